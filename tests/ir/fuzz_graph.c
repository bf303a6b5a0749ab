/* Any bytes as the text of a graph: refused, or read, verified and printed so that the text reads back to itself. Each pass then
   takes what verifies: one that may stand anywhere gives what verifies again, one that needs others before it may say that. */
#include "ir/graph.h"
#include "passes/pass.h"
#include "tests/fuzz/host.h"

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

static void run_passes(Arena *arena, Diags *diags, const Graph *graph) {
    PassOptions options = tg_pass_options();
    for (int pass = 0; pass < PASS_COUNT; pass++) {
        const PassInfo *info = tg_pass(pass);
        if (info->from != graph->level)
            continue;
        PassContext context = {.arena = arena, .diags = diags, .recompute = {RECOMPUTE_ALL, 0}};
        Graph *out;
        Status status = tg_passes_run(&context, &options, info->name, graph, &out);
        bool alone = info->to == graph->level && (info->effect == EFFECT_KEEPS || info->effect == EFFECT_ROUNDS);
        if (status == TG_INTERNAL && alone)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena arena;
    tg_arena_init(&arena, fuzz_host(data, size));
    if (setjmp(arena.guard))
        abort();
    Sources sources = {0};
    Diags diags;
    Graph *graph = parse(&arena, &sources, (const char *)data, size, &diags);
    if (graph == NULL)
        return 0;
    const char *text = print(&arena, graph);
    Graph *again = parse(&arena, &sources, text, strlen(text), &diags);
    if (again == NULL || strcmp(print(&arena, again), text) != 0)
        abort();
    Status status = tg_graph_verify(graph, &diags);
    if (status != tg_graph_verify(again, &diags))
        abort();
    if (status == TG_OK)
        run_passes(&arena, &diags, graph);
    return 0;
}
