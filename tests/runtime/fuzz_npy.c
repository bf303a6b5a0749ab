/* Any bytes as a .npy file. */
#include "tests/fuzz/any_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    any_file(tg_read_npy, &(DataRequest){.dtype = DT_F32}, data, size);
    return 0;
}
