/* What the fuzz targets share: a host whose memory is one region, used again for every input, and whose only file is the input.
   An input for which the region is too small ends the process: so much memory is a finding. */
#ifndef TG_TESTS_FUZZ_HOST_H
#define TG_TESTS_FUZZ_HOST_H

#include "ir/base/host.h"

#define FUZZ_FILE "input"

/* Valid until the next call. Every file but FUZZ_FILE is missing. */
const TgHost *fuzz_host(const uint8_t *input, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
