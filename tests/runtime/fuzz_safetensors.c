/* A safetensors file, and the vocabularies of its notes. The first byte says whether the rest is any bytes, or a header up to
   its first zero byte, whose length is put before it, and data. */
#include "ir/base/map.h"
#include "runtime/data.h"
#include "runtime/safetensors.h"
#include "tests/fuzz/host.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8, LARGEST = 1 << 20 };

static size_t make_file(uint8_t *file, const uint8_t *data, size_t size) {
    const uint8_t *end = memchr(data, 0, size);
    uint64_t header = end == NULL ? size : (size_t)(end - data), skipped = end != NULL;
    memcpy(file, &header, LENGTH);
    memcpy(file + LENGTH, data, header);
    memcpy(file + LENGTH + header, data + header + skipped, size - header - skipped);
    return LENGTH + size - skipped;
}

static void look_at(const TensorFile *file) {
    for (uint32_t i = 0; i < file->tensors.count; i++) {
        const Tensor *tensor = &file->tensors.at[i];
        if (tg_data_bytes(tensor->dtype, tensor->rank, tensor->dims) != (int64_t)tensor->bytes ||
            tg_tensor_find(file, tensor->name) == NULL)
            abort();
        (void)tg_hash(tensor->values, tensor->bytes, 0); /* reads each byte */
    }
}

static void read_file(const uint8_t *data, size_t size) {
    Arena arena;
    tg_arena_init(&arena, fuzz_host(data, size));
    if (setjmp(arena.guard))
        abort();
    TensorFile file;
    DataVocabulary vocabulary = {0};
    const char *why = NULL;
    Status status = tg_tensors_read(&arena, FUZZ_FILE, &file, &why);
    if (status == TG_OK)
        look_at(&file);
    if (status == TG_OK)
        status = tg_data_words_take(&arena, &vocabulary, &file, &why);
    if ((status == TG_OK) != (why == NULL) || status == TG_INTERNAL || status == TG_MEMORY)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t made[LENGTH + LARGEST];
    if (size == 0 || size > LARGEST)
        return 0;
    if (data[0] & 1)
        read_file(made, make_file(made, data + 1, size - 1));
    else
        read_file(data + 1, size - 1);
    return 0;
}
