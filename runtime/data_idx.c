/* idx, the format of MNIST: two zero bytes, a type, the rank, the dimensions (big-endian u32), the values (big-endian).
 */
#include "runtime/data.h"

typedef struct IdxType {
    unsigned char code;
    DType dtype;
} IdxType;

static const IdxType types[] = {
    {0x08, DT_U8}, {0x09, DT_I8}, {0x0b, DT_I16}, {0x0c, DT_I32}, {0x0d, DT_F32}, {0x0e, DT_F64},
};

static Status truncated(Arena *arena, const char *path, const char *part, size_t needs, size_t has, const char **why) {
    *why =
        tg_arena_printf(arena, "%s: truncated: the %s end at byte %zu, the file at byte %zu", path, part, needs, has);
    return TG_MODEL;
}

Status tg_read_idx(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    const char *path = request->path;
    unsigned char *data = NULL;
    size_t bytes = 0;
    TG_TRY(tg_data_load(arena, path, &data, &bytes, why));
    if (bytes < 4)
        return truncated(arena, path, "four bytes of an idx file's type", 4, bytes, why);
    if (data[0] != 0 || data[1] != 0) {
        *why = tg_arena_printf(arena, "%s: byte 0: not an idx file (it begins with %02x %02x, not 00 00)", path,
                               data[0], data[1]);
        return TG_MODEL;
    }
    const IdxType *type = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == data[2])
            type = &types[i];
    if (type == NULL) {
        *why = tg_arena_printf(arena, "%s: byte 2: 0x%02x is no idx type", path, data[2]);
        return TG_MODEL;
    }
    int rank = data[3];
    if (rank < 1 || rank > TG_PLAN_RANK) {
        *why = tg_arena_printf(arena, "%s: byte 3: %d dimensions; 1 to %d are possible", path, rank, TG_PLAN_RANK);
        return TG_MODEL;
    }
    size_t header = 4 + 4 * (size_t)rank;
    if (bytes < header)
        return truncated(arena, path, "dimensions", header, bytes, why);
    *array = (DataArray){.dtype = type->dtype, .rank = (uint8_t)rank, .values = data + header};
    for (int i = 0; i < rank; i++) {
        const unsigned char *at = data + 4 + 4 * i;
        array->dims[i] = (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
    }
    int64_t need = tg_data_bytes(type->dtype, rank, array->dims);
    if (need < 0 || (uint64_t)need > (uint64_t)INT64_MAX - header) {
        *why = tg_arena_printf(arena, "%s: byte 4: its dimensions are too large", path);
        return TG_MODEL;
    }
    if (bytes < header + (size_t)need)
        return truncated(arena, path, "values", header + (size_t)need, bytes, why);
    if (bytes > header + (size_t)need) {
        *why = tg_arena_printf(arena, "%s: byte %zu: %zu bytes follow the last value", path, header + (size_t)need,
                               bytes - header - (size_t)need);
        return TG_MODEL;
    }
    int each = tg_dtype(type->dtype)->bytes;
    tg_data_from_big_endian(array->values, need / each, each);
    return TG_OK;
}
