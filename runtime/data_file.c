#include "ir/base/file.h"
#include "runtime/data.h"

#include <string.h>
#include <zlib.h>

/* zlib's memory is the arena's, so that running out of it in the middle leaks nothing. */
static voidpf zlib_alloc(voidpf arena, uInt items, uInt size) { return tg_arena_alloc(arena, (size_t)items * size); }
static void zlib_free(voidpf arena, voidpf address) {
    (void)arena;
    (void)address;
}

static uInt at_once(size_t bytes) { return bytes > 1u << 30 ? 1u << 30 : (uInt)bytes; }

static Status inflate_all(Arena *arena, const char *path, unsigned char *in, size_t in_bytes, unsigned char **data,
                          size_t *bytes, const char **why) {
    z_stream stream = {.zalloc = zlib_alloc, .zfree = zlib_free, .opaque = arena};
    int result = inflateInit2(&stream, 16 + MAX_WBITS);
    size_t capacity = in_bytes * 4 + 4096, have = 0, used = 0;
    unsigned char *out = tg_arena_alloc(arena, capacity);
    while (result == Z_OK) {
        if (have == capacity) {
            out = tg_arena_grow(arena, out, capacity, capacity * 2);
            capacity *= 2;
        }
        stream.next_in = in + used;
        stream.avail_in = at_once(in_bytes - used);
        stream.next_out = out + have;
        stream.avail_out = at_once(capacity - have);
        result = inflate(&stream, Z_NO_FLUSH);
        used = (size_t)(stream.next_in - in);
        have = (size_t)(stream.next_out - out);
        if (result == Z_STREAM_END && used < in_bytes && in[used] == 0x1f)
            result = inflateReset(&stream); /* gzip files one after the other are one */
    }
    *data = out;
    *bytes = have;
    if (result == Z_STREAM_END)
        return TG_OK;
    if (result == Z_BUF_ERROR)
        *why = tg_arena_printf(arena, "%s: truncated: the compressed data ends at byte %zu", path, used);
    else
        *why = tg_arena_printf(arena, "%s: damaged gzip data at byte %zu: %s", path, used,
                               stream.msg ? stream.msg : "not gzip");
    return TG_MODEL;
}

Status tg_data_load(Arena *arena, const char *path, unsigned char **data, size_t *bytes, const char **why) {
    char *text = NULL;
    TG_TRY(tg_file_read(arena, path, &text, bytes, why));
    *data = (unsigned char *)text;
    if (*bytes < 2 || (*data)[0] != 0x1f || (*data)[1] != 0x8b)
        return TG_OK;
    return inflate_all(arena, path, (unsigned char *)text, *bytes, data, bytes, why);
}

void tg_data_from_big_endian(unsigned char *values, int64_t count, int bytes_each) {
    for (int64_t i = 0; i < count; i++)
        for (int low = 0, high = bytes_each - 1; low < high; low++, high--) {
            unsigned char *value = values + i * bytes_each, kept = value[low];
            value[low] = value[high];
            value[high] = kept;
        }
}

int64_t tg_data_bytes(DType dtype, int rank, const int64_t *dims) {
    int64_t bytes = tg_dtype(dtype)->bytes;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(bytes, dims[i], &bytes))
            return -1;
    return bytes;
}

const char *tg_data_shape(Arena *arena, DType dtype, int rank, const int64_t *dims) {
    Str text = tg_str(arena);
    tg_str_printf(&text, "%s%s", tg_dtype(dtype)->name, rank > 0 ? "[" : "");
    for (int i = 0; i < rank; i++)
        tg_str_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)dims[i]);
    tg_str_printf(&text, "%s", rank > 0 ? "]" : "");
    return text.text;
}

static bool holds_all(DType to, DType from) {
    const DTypeInfo *wide = tg_dtype(to), *narrow = tg_dtype(from);
    if (!tg_is_integer(to) || !tg_is_integer(from))
        return false;
    if (wide->kind == narrow->kind)
        return wide->bytes >= narrow->bytes;
    return wide->kind == KIND_SIGNED && wide->bytes > narrow->bytes;
}

static int64_t integer_at(DType dtype, const unsigned char *values, int64_t index) {
    int bytes = tg_dtype(dtype)->bytes, spare = 64 - 8 * bytes;
    uint64_t bits = 0;
    memcpy(&bits, values + index * bytes, (size_t)bytes);
    return tg_dtype(dtype)->kind == KIND_SIGNED ? (int64_t)(bits << spare) >> spare : (int64_t)bits;
}

Status tg_data_widen(Arena *arena, DataArray *array, DType to, const char *what, const char **why) {
    if (array->dtype == to)
        return TG_OK;
    if (!holds_all(to, array->dtype)) {
        *why =
            tg_arena_printf(arena,
                            "%s holds %s values, but the program wants %s; only integers widen, to a type that holds "
                            "all their values",
                            what, tg_dtype(array->dtype)->name, tg_dtype(to)->name);
        return TG_MODEL;
    }
    int64_t count = tg_data_bytes(array->dtype, array->rank, array->dims) / tg_dtype(array->dtype)->bytes;
    unsigned char *wide = tg_arena_alloc(arena, (size_t)count * tg_dtype(to)->bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t value = integer_at(array->dtype, array->values, i);
        memcpy(wide + i * tg_dtype(to)->bytes, &value, tg_dtype(to)->bytes);
    }
    array->values = wide;
    array->dtype = to;
    return TG_OK;
}
