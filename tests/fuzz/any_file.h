/* For fuzz targets: what a reader does with a file of any bytes. */
#ifndef TG_TESTS_ANY_FILE_H
#define TG_TESTS_ANY_FILE_H

#include "runtime/data.h"
#include "tests/fuzz/host.h"

/* Refuses it with a reason, or gives an array whose values are all there; else the process ends. The path is set here. */
void any_file(DataReader *reader, const DataRequest *request, const uint8_t *data, size_t bytes);

#endif
