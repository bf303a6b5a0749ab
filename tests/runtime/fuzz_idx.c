/* Any bytes as an idx file. */
#include "tests/fuzz/any_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    any_file(tg_read_idx, &(DataRequest){.dtype = DT_U8}, data, size);
    return 0;
}
