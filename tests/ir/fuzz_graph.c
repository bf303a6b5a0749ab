/* Any bytes as the text of a graph: refused, or read, verified and printed so that the text reads back to itself. */
#include "ir/graph.h"

#include <stdlib.h>
#include <string.h>

static Graph *parse(Arena *arena, Sources *sources, const char *text, size_t length, Diags *diags) {
    tg_diags_init(diags, arena, sources, NULL);
    Graph *graph;
    return tg_graph_parse(arena, diags, sources, "fuzz", text, length, &graph) == TG_OK ? graph : NULL;
}

static const char *print(Arena *arena, const Graph *graph) {
    Str text = tg_str(arena);
    tg_graph_print(&text, graph);
    return text.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        tg_arena_deinit(&arena);
        return 0;
    }
    Sources sources = {0};
    Diags diags;
    Graph *graph = parse(&arena, &sources, (const char *)data, size, &diags);
    if (graph != NULL) {
        const char *text = print(&arena, graph);
        Graph *again = parse(&arena, &sources, text, strlen(text), &diags);
        if (again == NULL || strcmp(print(&arena, again), text) != 0)
            abort();
        if (tg_graph_verify(graph, &diags) != tg_graph_verify(again, &diags))
            abort();
    }
    tg_arena_deinit(&arena);
    return 0;
}
