/* NumPy's .npy: a magic, a version, a Python dict {'descr', 'fortran_order', 'shape'} as text, the values. */
#include "ir/base/file.h"
#include "runtime/data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct NpyType {
    const char *code;
    DType dtype;
} NpyType;

static const NpyType types[] = {
    {"b1", DT_BOOL}, {"u1", DT_U8},  {"i1", DT_I8},  {"u2", DT_U16}, {"i2", DT_I16},
    {"i4", DT_I32},  {"i8", DT_I64}, {"f2", DT_F16}, {"f4", DT_F32}, {"f8", DT_F64},
};

static const char magic[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6 };

static Status bad(Arena *arena, const char *path, size_t byte, const char *text, const char **why) {
    *why = tg_arena_printf(arena, "%s: byte %zu: %s", path, byte, text);
    return TG_MODEL;
}

/* What follows 'key': in the dict, or NULL. */
static const char *value_of(const char *dict, const char *key) {
    const char *at = strstr(dict, key);
    if (at == NULL)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " :");
}

static bool parse_shape(const char *text, DataArray *array) {
    if (text == NULL || *text++ != '(')
        return false;
    for (;;) {
        text += strspn(text, " ,");
        if (*text == ')')
            return true;
        char *end;
        errno = 0;
        long long dim = strtoll(text, &end, 10);
        if (end == text || errno != 0 || dim < 0 || array->rank > TG_PLAN_RANK)
            return false;
        array->dims[array->rank++] = dim;
        text = end;
    }
}

/* `descr`: behind the key; of records and objects it is a list or 'O'. */
static Status bad_type(Arena *arena, const char *path, size_t at, const char *descr, const char **why) {
    enum { SHOWN = 24 };
    const char *from = descr != NULL ? descr : "missing";
    int length = (int)strcspn(from, ",}");
    return bad(arena, path, at,
               tg_arena_printf(arena,
                               "its element type is %.*s, none of those that can be read (b1 u1 i1 u2 i2 i4 i8 f2 "
                               "f4 f8); save a.astype(\"f4\")",
                               length < SHOWN ? length : SHOWN, from),
               why);
}

static Status parse_header(Arena *arena, const char *path, size_t at, const char *dict, DataArray *array, bool *big,
                           const char **why) {
    const char *descr = value_of(dict, "'descr'"), *order = value_of(dict, "'fortran_order'");
    const NpyType *type = NULL;
    if (descr != NULL && (*descr == '\'' || *descr == '"') && strspn(descr + 1, "<>|=") > 0)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strncmp(descr + 2, types[i].code, 2) == 0 && (descr[4] == '\'' || descr[4] == '"'))
                type = &types[i];
    if (type == NULL)
        return bad_type(arena, path, at, descr, why);
    array->dtype = type->dtype;
    *big = descr[1] == '>';
    if (!parse_shape(value_of(dict, "'shape'"), array))
        return bad(arena, path, at, "its shape is none that can be read", why);
    if (order == NULL || (strncmp(order, "False", 5) != 0 && array->rank > 1))
        return bad(arena, path, at, "column-major order is not supported; save numpy.ascontiguousarray(a)", why);
    return TG_OK;
}

Status tg_read_npy(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    const char *path = request->path;
    unsigned char *data = NULL;
    size_t bytes = 0;
    TG_TRY(tg_data_load(arena, path, &data, &bytes, why));
    if (bytes < MAGIC_BYTES || memcmp(data, magic, MAGIC_BYTES) != 0)
        return bad(arena, path, 0, "not a .npy file", why);
    if (bytes < MAGIC_BYTES + 2)
        return bad(arena, path, bytes, "truncated: the header does not end", why);
    size_t width = data[MAGIC_BYTES] == 1 ? 2 : 4, at = MAGIC_BYTES + 2 + width, length = 0;
    for (size_t i = 0; i < width && at <= bytes; i++)
        length |= (size_t)data[MAGIC_BYTES + 2 + i] << (8 * i);
    if (bytes < at || bytes - at < length)
        return bad(arena, path, bytes, "truncated: the header does not end", why);
    *array = (DataArray){.values = data + at + length};
    bool big = false;
    TG_TRY(parse_header(arena, path, at, tg_arena_str(arena, (char *)data + at, length), array, &big, why));
    int64_t need = tg_data_bytes(array->dtype, array->rank, array->dims);
    if (need < 0)
        return bad(arena, path, at, "its dimensions are too large", why);
    size_t have = bytes - at - length;
    if ((size_t)need != have) {
        *why = tg_arena_printf(arena, "%s: %s: the values end at byte %zu, the file at byte %zu", path,
                               have < (size_t)need ? "truncated" : "too long", at + length + (size_t)need, bytes);
        return TG_MODEL;
    }
    int each = tg_dtype(array->dtype)->bytes;
    if (big)
        tg_data_from_big_endian(array->values, need / each, each);
    return TG_OK;
}

Status tg_npy_write(const TgHost *host, const char *path, const DataArray *array, char *why, size_t why_bytes) {
    char header[512], shape[256] = "";
    size_t length = 0;
    for (int i = 0; i < array->rank; i++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, "%lld,%s", (long long)array->dims[i],
                                   i + 1 < array->rank ? " " : "");
    const char *code = "f4";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == array->dtype)
            code = types[i].code;
    enum { PREFIX = MAGIC_BYTES + 4 };
    int dict =
        snprintf(header + PREFIX, sizeof header - PREFIX, "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }",
                 tg_dtype(array->dtype)->bytes == 1 ? "|" : "<", code, shape);
    size_t total = (PREFIX + (size_t)dict + 1 + 63) / 64 * 64;
    memset(header + PREFIX + dict, ' ', total - PREFIX - (size_t)dict - 1);
    header[total - 1] = '\n';
    memcpy(header, magic, MAGIC_BYTES);
    header[MAGIC_BYTES] = 1;
    header[MAGIC_BYTES + 1] = 0;
    header[MAGIC_BYTES + 2] = (char)((total - PREFIX) & 0xff);
    header[MAGIC_BYTES + 3] = (char)((total - PREFIX) >> 8);
    TgFileWriter file;
    Status status = tg_file_begin(&file, host, path, 0666);
    if (status == TG_OK)
        status = tg_file_write(&file, header, total);
    if (status == TG_OK)
        status = tg_file_write(&file, array->values, (size_t)tg_data_bytes(array->dtype, array->rank, array->dims));
    if (status == TG_OK)
        status = tg_file_commit(&file);
    if (status != TG_OK)
        snprintf(why, why_bytes, "%s", file.why);
    tg_file_abandon(&file);
    return status;
}
