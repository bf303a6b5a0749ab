#include "runtime/safetensors.h"
#include "ir/base/file.h"
#include "runtime/data.h"
#include "runtime/json.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, LONGEST_HEADER = 100 * 1000 * 1000 };

static const char metadata[] = "__metadata__";

typedef struct Loading {
    Arena *arena;
    TensorFile *file;
    const unsigned char *data; /* of the tensors */
    size_t bytes;
    const char **why;
} Loading;

static Status bad(Loading *loading, const char *format, ...) __attribute__((format(printf, 2, 3)));
static Status bad(Loading *loading, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(loading->arena, format, args);
    va_end(args);
    *loading->why = tg_arena_printf(loading->arena, "%s: %s", loading->file->path, text);
    return TG_MODEL;
}

static DType dtype_of(const char *name) {
    for (int d = 0; name != NULL && d < DT_COUNT; d++)
        if (strcmp(tg_dtype((DType)d)->safetensors, name) == 0)
            return (DType)d;
    return DT_COUNT;
}

static Status load_tensor(Loading *loading, const char *name, const json_t *entry) {
    const json_t *shape = json_object_get(entry, "shape"), *offsets = json_object_get(entry, "data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    Tensor tensor = {.name = tg_arena_str(loading->arena, name, strlen(name)), .dtype = dtype_of(dtype)};
    if (tensor.dtype == DT_COUNT)
        return bad(loading, "tensor '%s': there is no type '%.20s'", tensor.name, dtype != NULL ? dtype : "");
    if (!json_is_array(shape) || json_array_size(shape) > TG_PLAN_RANK)
        return bad(loading, "tensor '%s': its shape is not a list of at most %d numbers", tensor.name, TG_PLAN_RANK);
    tensor.rank = (uint8_t)json_array_size(shape);
    for (size_t i = 0; i < tensor.rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        tensor.dims[i] = json_is_integer(dim) ? json_integer_value(dim) : -1;
    }
    int64_t need = tg_data_bytes(tensor.dtype, tensor.rank, tensor.dims);
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (!json_is_integer(first) || !json_is_integer(last) || json_array_size(offsets) != 2)
        return bad(loading, "tensor '%s': its data_offsets are not two numbers", tensor.name);
    json_int_t from = json_integer_value(first), to = json_integer_value(last);
    if (need < 0 || from < 0 || to < from || to - from != need)
        return bad(loading, "tensor '%s': bytes %lld to %lld do not fit its shape", tensor.name, (long long)from,
                   (long long)to);
    if ((uint64_t)to > loading->bytes)
        return bad(loading, "truncated: tensor '%s' ends at byte %lld of the data, which has %zu", tensor.name,
                   (long long)to, loading->bytes);
    tensor.values = loading->data + from;
    tensor.bytes = (size_t)need;
    tg_push(loading->arena, &loading->file->tensors, tensor);
    return TG_OK;
}

static Status load_header(Loading *loading, const json_t *header) {
    const char *name;
    const json_t *entry;
    json_object_foreach((json_t *)header, name, entry) {
        if (strcmp(name, metadata) != 0) {
            TG_TRY(load_tensor(loading, name, entry));
            continue;
        }
        const char *key;
        const json_t *note;
        json_object_foreach((json_t *)entry, key, note) {
            if (!json_is_string(note))
                return bad(loading, "its metadata '%.40s' is not text", key);
            const char *text = json_string_value(note);
            TensorNote copy = {tg_arena_str(loading->arena, key, strlen(key)),
                               tg_arena_str(loading->arena, text, strlen(text))};
            tg_push(loading->arena, &loading->file->notes, copy);
        }
    }
    return TG_OK;
}

static int by_place(const void *a, const void *b) {
    const Tensor *x = a, *y = b;
    const char *from = x->values, *to = y->values;
    if (from != to)
        return from < to ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The format wants every byte of the data to belong to exactly one tensor. */
static Status check_cover(Loading *loading) {
    TensorFile *file = loading->file;
    if (file->tensors.count > 0)
        qsort(file->tensors.at, file->tensors.count, sizeof *file->tensors.at, by_place);
    const unsigned char *end = loading->data;
    for (uint32_t i = 0; i < file->tensors.count; i++) {
        const Tensor *tensor = &file->tensors.at[i];
        if ((const unsigned char *)tensor->values != end)
            return bad(loading, "tensor '%s' %s", tensor->name,
                       (const unsigned char *)tensor->values < end ? "overlaps the one before it"
                                                                   : "begins after a gap");
        end += tensor->bytes;
    }
    if (end != loading->data + loading->bytes)
        return bad(loading, "%zu bytes follow the last tensor", (size_t)(loading->data + loading->bytes - end));
    return TG_OK;
}

Status tg_tensors_read(Arena *arena, const char *path, TensorFile *file, const char **why) {
    *file = (TensorFile){.path = path};
    char *text = NULL;
    size_t bytes = 0;
    TG_TRY(tg_file_read(arena, path, &text, &bytes, why));
    Loading loading = {.arena = arena, .file = file, .why = why};
    uint64_t length = 0;
    if (bytes < LENGTH_BYTES)
        return bad(&loading, "not a safetensors file: %zu bytes are too few", bytes);
    memcpy(&length, text, LENGTH_BYTES);
    if (length > LONGEST_HEADER)
        return bad(&loading, "not a safetensors file: its header would have %llu bytes", (unsigned long long)length);
    if (length > bytes - LENGTH_BYTES)
        return bad(&loading, "truncated: the header ends at byte %llu, the file at byte %zu",
                   (unsigned long long)length + LENGTH_BYTES, bytes);
    loading.data = (unsigned char *)text + LENGTH_BYTES + length;
    loading.bytes = bytes - LENGTH_BYTES - (size_t)length;
    json_error_t error;
    json_t *header = json_loadb(text + LENGTH_BYTES, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(header)) {
        json_decref(header);
        return bad(&loading, "its header is not a JSON object%s%s", header == NULL ? ": " : "",
                   header == NULL ? error.text : "");
    }
    Status status = load_header(&loading, header);
    json_decref(header);
    return status == TG_OK ? check_cover(&loading) : status;
}

static json_t *header_of(const TensorFile *file) {
    json_t *header = json_object(), *notes = json_object();
    for (uint32_t i = 0; i < file->notes.count; i++)
        json_object_set_new(notes, file->notes.at[i].name, json_string(file->notes.at[i].text));
    if (file->notes.count > 0)
        json_object_set(header, metadata, notes);
    json_decref(notes);
    size_t offset = 0;
    for (uint32_t i = 0; i < file->tensors.count; i++) {
        const Tensor *tensor = &file->tensors.at[i];
        json_t *shape = json_array();
        for (int d = 0; d < tensor->rank; d++)
            json_array_append_new(shape, json_integer(tensor->dims[d]));
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", tg_dtype(tensor->dtype)->safetensors, "shape", shape,
                                  "data_offsets", (json_int_t)offset, (json_int_t)(offset + tensor->bytes));
        json_object_set_new(header, tensor->name, entry);
        offset += tensor->bytes;
    }
    return header;
}

static Status write_parts(TgFileWriter *writer, const TgHost *host, const TensorFile *file, const char *header) {
    size_t length = strlen(header), padded = (length + 7) / 8 * 8;
    uint64_t stored = padded;
    TG_TRY(tg_file_begin(writer, host, file->path, 0666));
    TG_TRY(tg_file_write(writer, &stored, sizeof stored));
    TG_TRY(tg_file_write(writer, header, length));
    TG_TRY(tg_file_write(writer, "        ", padded - length));
    for (uint32_t i = 0; i < file->tensors.count; i++)
        TG_TRY(tg_file_write(writer, file->tensors.at[i].values, file->tensors.at[i].bytes));
    return tg_file_commit(writer);
}

Status tg_tensors_write(Arena *arena, const char *path, const TensorFile *file, const char **why) {
    const char *text = tg_json_text(arena, header_of(file), JSON_COMPACT | JSON_PRESERVE_ORDER);
    if (text == NULL)
        return TG_MEMORY;
    TensorFile named = *file;
    named.path = path;
    TgFileWriter writer;
    Status status = write_parts(&writer, arena->host, &named, text);
    tg_file_abandon(&writer);
    if (status != TG_OK)
        *why = tg_arena_printf(arena, "%s", writer.why);
    return status;
}

const Tensor *tg_tensor_find(const TensorFile *file, const char *name) {
    for (uint32_t i = 0; i < file->tensors.count; i++)
        if (strcmp(file->tensors.at[i].name, name) == 0)
            return &file->tensors.at[i];
    return NULL;
}
