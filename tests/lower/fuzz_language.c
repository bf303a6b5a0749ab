/* Any bytes as a model: refused with a message, or a graph that verifies and a tree that prints. */
#include "frontend/ast.h"
#include "ir/base/map.h"
#include "ir/graph.h"
#include "tests/fuzz/host.h"

#include <stdlib.h>

/* The library, which all inputs share. */
typedef struct Library {
    Arena arena;
    Sources sources;
    Unit *unit;
} Library;

static const Library *library(void) {
    static Library std;
    Diags diags;
    if (std.unit != NULL)
        return &std;
    tg_arena_init(&std.arena, tg_host());
    if (setjmp(std.arena.guard))
        abort();
    tg_diags_init(&diags, &std.arena, &std.sources, NULL);
    if (tg_parse_std(&std.arena, &diags, &std.sources, &std.unit) != TG_OK)
        abort();
    return &std;
}

/* The input's own view of the library's sources and names. A map that is full makes room before it takes a name. */
static Sources *sources_of(Arena *arena, const Library *std) {
    Sources *sources = tg_arena_copy(arena, &std->sources, sizeof *sources);
    sources->names = tg_arena_copy(arena, sources->names, sizeof *sources->names);
    sources->names->arena = arena;
    sources->names->count = sources->names->capacity;
    sources->files.capacity = sources->files.count;
    return sources;
}

static Status compile(Arena *arena, Diags *diags, Sources *sources, const Unit *std, Graph **graph) {
    Unit *unit;
    LowerOptions options = {.fold = true};
    TG_TRY(tg_parse_file(arena, diags, sources, FUZZ_FILE, &unit));
    Str tree = tg_str(arena);
    tg_ast_print(&tree, unit->file);
    TG_TRY(tg_sema(arena, diags, unit, std));
    TG_TRY(tg_lower(arena, diags, sources, unit, std, &options, graph));
    return tg_graph_verify(*graph, diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const Library *std = library();
    Arena arena;
    Diags diags;
    Graph *graph;
    tg_arena_init(&arena, fuzz_host(data, size));
    if (setjmp(arena.guard))
        abort();
    Sources *sources = sources_of(&arena, std);
    tg_diags_init(&diags, &arena, sources, NULL);
    Status status = compile(&arena, &diags, sources, std->unit, &graph);
    if (status == TG_INTERNAL || (status == TG_OK) != (diags.errors == 0))
        abort();
    return 0;
}
