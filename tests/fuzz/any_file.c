#include "tests/fuzz/any_file.h"

#include "ir/base/map.h"

#include <stdlib.h>

static void read_values(Arena *arena, DataArray *array, DType wanted) {
    const char *why = NULL;
    int64_t bytes = tg_data_bytes(array->dtype, array->rank, array->dims);
    if (bytes < 0)
        abort();
    uint64_t hash = tg_hash(array->values, (size_t)bytes, 0); /* reads each byte */
    (void)tg_data_shape(arena, array->dtype, array->rank, array->dims);
    Status status = tg_data_widen(arena, array, wanted, "the file", &why);
    if ((status == TG_OK) != (why == NULL) || (status == TG_OK && array->dtype != wanted))
        abort();
    if (status != TG_OK && hash != tg_hash(array->values, (size_t)bytes, 0))
        abort();
}

void any_file(DataReader *reader, const DataRequest *request, const uint8_t *data, size_t bytes) {
    Arena arena;
    tg_arena_init(&arena, fuzz_host(data, bytes));
    if (setjmp(arena.guard))
        abort();
    DataRequest at = *request;
    at.path = FUZZ_FILE;
    DataArray array;
    const char *why = NULL;
    Status status = reader(&arena, &at, &array, &why);
    if ((status == TG_OK) != (why == NULL) || status == TG_INTERNAL || status == TG_MEMORY)
        abort();
    if (status == TG_OK)
        read_values(&arena, &array, request->dtype);
}
