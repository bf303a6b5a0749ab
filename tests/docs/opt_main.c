/* A tgc opt of its own for the worked examples of docs/passes.md: opt --passes=A,B [--validate] FILE. */
#include "ir/base/file.h"
#include "passes/pass.h"

#include <string.h>

static Status run(Arena *arena, const char *passes, bool validate, const char *path) {
    Sources sources = {0};
    Diags diags;
    tg_diags_init(&diags, arena, &sources, stderr);
    char *text;
    size_t length;
    const char *why;
    Graph *in, *result;
    TG_TRY(tg_file_read(arena, path, &text, &length, &why));
    TG_TRY(tg_graph_parse(arena, &diags, &sources, path, text, length, &in));
    PassContext context = {.arena = arena, .diags = &diags};
    PassOptions options = tg_pass_options();
    options.validate = validate;
    TG_TRY(tg_passes_run(&context, &options, passes, in, &result));
    Str out = tg_str(arena);
    tg_graph_print(&out, result);
    fputs(out.text, stdout);
    return TG_OK;
}

int main(int argc, char **argv) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (argc < 4 || setjmp(arena.guard))
        return TG_USAGE;
    Status status = run(&arena, argv[2] + strlen("--passes="), argc > 4, argv[argc - 1]);
    tg_arena_deinit(&arena);
    return (int)status;
}
