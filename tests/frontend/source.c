#include "tests/frontend/source.h"

#include <stdlib.h>
#include <unistd.h>

static void write_file(const char *path, int fd, const char *text, size_t length) {
    FILE *file = fdopen(fd, "wb");
    if (file == NULL || fwrite(text, 1, length, file) != length || fclose(file) != 0) {
        fprintf(stderr, "cannot write %s\n", path);
        exit(1);
    }
}

TestSource *source_parse(const TgHost *host, const char *text, size_t length) {
    char path[] = "/tmp/tgc-test-XXXXXX";
    TestSource *source = calloc(1, sizeof *source);
    int fd = source ? mkstemp(path) : -1;
    if (fd < 0)
        exit(1);
    write_file(path, fd, text, length);
    tg_arena_init(&source->arena, host);
    if (setjmp(source->arena.guard)) {
        source->status = TG_MEMORY;
    } else {
        tg_diags_init(&source->diags, &source->arena, &source->sources, NULL);
        source->messages = tg_str(&source->arena);
        source->diags.capture = &source->messages;
        const char *own_path = tg_arena_str(&source->arena, path, sizeof path - 1);
        source->status = tg_parse_file(&source->arena, &source->diags, &source->sources, own_path, &source->unit);
    }
    unlink(path);
    return source;
}

TestSource *source_check(const char *text) {
    size_t length = 0;
    while (text[length])
        length++;
    TestSource *source = source_parse(tg_host(), text, length);
    if (source->status == TG_OK)
        source->status = tg_parse_std(&source->arena, &source->diags, &source->sources, &source->std);
    if (source->status == TG_OK)
        source->status = tg_sema(&source->arena, &source->diags, source->unit, source->std);
    return source;
}

void source_free(TestSource *source) {
    tg_arena_deinit(&source->arena);
    free(source);
}

const char *source_tree(TestSource *source) {
    Str text = tg_str(&source->arena);
    tg_ast_print(&text, source->unit->file);
    return text.text;
}
