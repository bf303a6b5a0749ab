/* Records of a fixed size without a header: the fields one after the other, little-endian. */
#include "runtime/data.h"

#include <string.h>

Status tg_read_records(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    const unsigned char *data = request->output;
    size_t bytes = request->output_bytes, whole = request->record_bytes;
    if (data == NULL) {
        unsigned char *loaded = NULL;
        TG_TRY(tg_data_load(arena, request->path, &loaded, &bytes, why));
        data = loaded;
    }
    if (whole == 0 || bytes % whole != 0) {
        *why = tg_arena_printf(
            arena, "%s: %zu bytes are not a whole number of records of %zu bytes: %zu follow byte %zu", request->path,
            bytes, whole, whole > 0 ? bytes % whole : bytes, whole > 0 ? bytes - bytes % whole : 0);
        return TG_MODEL;
    }
    size_t count = bytes / whole, each = (size_t)tg_data_bytes(request->dtype, request->rank, request->dims);
    *array = (DataArray){.dtype = request->dtype, .rank = (uint8_t)(request->rank + 1), .dims = {(int64_t)count}};
    memcpy(array->dims + 1, request->dims, request->rank * sizeof request->dims[0]);
    array->values = tg_arena_alloc(arena, count * each);
    for (size_t i = 0; i < count; i++)
        memcpy(array->values + i * each, data + i * whole + request->record_offset, each);
    return TG_OK;
}
