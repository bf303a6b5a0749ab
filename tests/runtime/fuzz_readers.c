/* libFuzzer target: the first byte chooses a reader, the rest is the file. */
#include "runtime/data.h"
#include "runtime/safetensors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Content {
    const uint8_t *next;
    size_t left;
} Content;

static int open_content(const TgHost *host, const char *path, int flags, mode_t mode) {
    (void)host, (void)path, (void)flags, (void)mode;
    return 1000;
}

static int close_content(const TgHost *host, int fd) {
    (void)host, (void)fd;
    return 0;
}

static ssize_t read_content(const TgHost *host, int fd, void *to, size_t bytes) {
    (void)fd;
    Content *content = host->context;
    size_t count = bytes < content->left ? bytes : content->left;
    memcpy(to, content->next, count);
    content->next += count;
    content->left -= count;
    return (ssize_t)count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    Content content = {data + 1, size - 1};
    TgHost host = *tg_host();
    host.open = open_content;
    host.close = close_content;
    host.read = read_content;
    host.context = &content;
    Arena arena;
    tg_arena_init(&arena, &host);
    if (setjmp(arena.guard) == 0) {
        static DataReader *const readers[] = {tg_read_idx, tg_read_csv, tg_read_npy, tg_read_text};
        static const char *const options[] = {"", "missing=0", "missing=mean", "missing_name=?\ncategories=true"};
        DataVocabulary vocabulary = {0};
        DataRequest request = {.path = "file",
                               .columns = data[0] & 8 ? "a" : "a\nb",
                               .options = data[0] % 8 == 3 ? "tokenizer=characters" : options[data[0] >> 5 & 3],
                               .field = "field",
                               .dtype = data[0] & 16 ? DT_F32 : DT_U8,
                               .vocabulary = &vocabulary};
        const char *why = NULL;
        DataArray array;
        TensorFile tensors;
        Status status = data[0] % 8 > 3 ? tg_tensors_read(&arena, "file", &tensors, &why)
                                        : readers[data[0] % 4](&arena, &request, &array, &why);
        if (status == TG_OK && data[0] % 8 > 3)
            status = tg_data_words_take(&arena, &vocabulary, &tensors, &why);
        if (status != TG_OK && why == NULL)
            __builtin_trap();
    }
    tg_arena_deinit(&arena);
    return 0;
}
