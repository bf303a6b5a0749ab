#include "ir/graph.h"

#include <string.h>

enum { MOST_PLACES = 8 };

/* Index by name of the first `known` entries of a list that grows at its end. */
typedef struct NameIndex {
    Map ids;
    uint32_t known;
} NameIndex;

static NameIndex *name_index(Arena *arena) {
    NameIndex *index = TG_ALLOC(arena, NameIndex, 1);
    index->ids = tg_map(arena);
    return index;
}

/* The first of a name counts. */
static void add_name(NameIndex *index, const char *name) {
    bool is_new;
    uint64_t *id = tg_map_put(&index->ids, name, strlen(name), &is_new);
    if (is_new)
        *id = index->known;
    index->known++;
}

static int32_t find_name(const NameIndex *index, const char *name) {
    const uint64_t *id = tg_map_find(&index->ids, name, strlen(name));
    return id ? (int32_t)*id : -1;
}

Graph *tg_graph_new(Arena *arena, const Sources *sources, Level level) {
    Graph *graph = TG_ALLOC(arena, Graph, 1);
    *graph = (Graph){.arena = arena, .sources = sources, .level = level};
    tg_types_init(&graph->types, arena);
    graph->training.clip_scalar = -1;
    graph->buffer_names = name_index(arena);
    graph->scalar_names = name_index(arena);
    graph->strings = TG_ALLOC(arena, Map, 1);
    *graph->strings = tg_map(arena);
    tg_push(arena, &graph->loc_items, (Loc){0});
    tg_push(arena, &graph->loc_next, 0);
    tg_push(arena, &graph->instances, (InstanceInfo){0});
    return graph;
}

#define COPY_VEC(arena, to, from)                                                                                      \
    do {                                                                                                               \
        (to)->at = tg_arena_copy((arena), (from)->at, sizeof *(from)->at * (from)->count);                             \
        (to)->count = (to)->capacity = (from)->count;                                                                  \
    } while (0)

Graph *tg_graph_like(Arena *arena, const Graph *graph, Level level) {
    Graph *like = TG_ALLOC(arena, Graph, 1);
    *like = (Graph){
        .arena = arena,
        .sources = graph->sources,
        .level = level,
        .path = graph->path,
        .training = graph->training,
        .strings = graph->strings,
        .buffer_names = name_index(arena),
        .scalar_names = name_index(arena),
    };
    tg_types_init(&like->types, arena);
    for (TypeId id = 1; id < graph->types.all.count; id++)
        tg_type(&like->types, &graph->types.all.at[id]);
    COPY_VEC(arena, &like->buffers, &graph->buffers);
    COPY_VEC(arena, &like->scalars, &graph->scalars);
    COPY_VEC(arena, &like->settings, &graph->settings);
    COPY_VEC(arena, &like->loc_items, &graph->loc_items);
    COPY_VEC(arena, &like->loc_next, &graph->loc_next);
    COPY_VEC(arena, &like->instances, &graph->instances);
    return like;
}

Func *tg_func_new(Graph *graph, FuncKind kind, const char *name) {
    Func *func = TG_ALLOC(graph->arena, Func, 1);
    func->kind = kind;
    func->name = tg_intern(graph, name);
    tg_push(graph->arena, &func->nodes, (Node){0});
    func->operands.at = tg_vec_grow(graph->arena, NULL, &func->operands.capacity, sizeof *func->operands.at);
    tg_push(graph->arena, &graph->funcs, func);
    return func;
}

bool tg_has_batch(const Training *training) {
    return training->batch >= 1 && training->micro >= 1 && training->lanes >= 1 && training->batch <= INT64_MAX - training->micro;
}

bool tg_is_mixed(const Training *training) { return tg_is_low(training->precision); }

bool tg_is_loss(const Graph *graph, const Result *result) {
    return result->kind == RESULT_VALUE && graph->training.loss && strcmp(result->name, graph->training.loss) == 0;
}

Func *tg_func_find(const Graph *graph, FuncKind kind, const char *name) {
    for (uint32_t i = 0; i < graph->funcs.count; i++) {
        Func *func = graph->funcs.at[i];
        if (func->kind == kind && (name == NULL || strcmp(func->name, name) == 0))
            return func;
    }
    return NULL;
}

const char *tg_intern(Graph *graph, const char *text) {
    if (text == NULL)
        return NULL;
    bool is_new;
    uint64_t *place = tg_map_put(graph->strings, text, strlen(text), &is_new);
    if (is_new)
        *place = (uint64_t)(uintptr_t)tg_arena_str(graph->strings->arena, text, strlen(text));
    return (const char *)(uintptr_t)*place;
}

int32_t tg_buffer_find(const Graph *graph, const char *name) {
    while (graph->buffer_names->known < graph->buffers.count)
        add_name(graph->buffer_names, graph->buffers.at[graph->buffer_names->known].name);
    return find_name(graph->buffer_names, name);
}

int32_t tg_scalar_find(const Graph *graph, const char *name) {
    while (graph->scalar_names->known < graph->scalars.count)
        add_name(graph->scalar_names, graph->scalars.at[graph->scalar_names->known].name);
    return find_name(graph->scalar_names, name);
}

uint32_t tg_buffer_add(Graph *graph, Buffer buffer) {
    buffer.name = tg_intern(graph, buffer.name);
    tg_push(graph->arena, &graph->buffers, buffer);
    return graph->buffers.count - 1;
}

uint32_t tg_scalar_add(Graph *graph, Scalar scalar) {
    int32_t known = tg_scalar_find(graph, scalar.name);
    if (known >= 0)
        return (uint32_t)known;
    scalar.name = tg_intern(graph, scalar.name);
    tg_push(graph->arena, &graph->scalars, scalar);
    return graph->scalars.count - 1;
}

static bool same_loc(Loc a, Loc b) {
    return a.file == b.file && a.line == b.line && a.column == b.column && a.end_column == b.end_column;
}

uint32_t tg_instance(Graph *graph, const char *path) {
    const char *name = tg_intern(graph, path);
    for (uint32_t i = graph->instances.count - 1; i > 0; i--)
        if (graph->instances.at[i].path == name)
            return i;
    tg_push(graph->arena, &graph->instances, (InstanceInfo){.path = name});
    return graph->instances.count - 1;
}

static LocsId put_loc(Graph *graph, Loc loc, LocsId next) {
    tg_push(graph->arena, &graph->loc_items, loc);
    tg_push(graph->arena, &graph->loc_next, next);
    return graph->loc_items.count - 1;
}

LocsId tg_locs_one(Graph *graph, Loc loc) {
    if (loc.line == 0)
        return 0;
    uint32_t last = graph->loc_items.count - 1;
    Loc before = graph->loc_items.at[last];
    if (last > 0 && same_loc(before, loc) && before.instance == loc.instance && graph->loc_next.at[last] == 0)
        return last;
    return put_loc(graph, loc, 0);
}

LocsId tg_locs_union(Graph *graph, LocsId a, LocsId b) {
    if (a == 0 || a == b)
        return b;
    Loc places[2 * MOST_PLACES];
    uint32_t had = tg_locs_list(graph, a, places, MOST_PLACES), count = had;
    for (LocsId at = b; at != 0; at = graph->loc_next.at[at]) {
        Loc loc = graph->loc_items.at[at];
        bool known = false;
        for (uint32_t i = 0; i < count && !known; i++)
            known = same_loc(places[i], loc);
        if (!known)
            places[count++] = loc;
    }
    count = count < MOST_PLACES ? count : MOST_PLACES;
    if (count == had)
        return a;
    LocsId set = 0;
    while (count-- > 0)
        set = put_loc(graph, places[count], set);
    return set;
}

Loc tg_locs_first(const Graph *graph, LocsId locs) { return graph->loc_items.at[locs]; }

uint32_t tg_locs_list(const Graph *graph, LocsId locs, Loc *out, uint32_t max) {
    uint32_t count = 0;
    for (; locs != 0 && count < max; locs = graph->loc_next.at[locs])
        out[count++] = graph->loc_items.at[locs];
    return count;
}

Uses tg_uses(Arena *arena, const Func *func) {
    uint32_t nodes = func->nodes.count;
    Uses uses = {
        .first = TG_ALLOC(arena, uint32_t, nodes + 1),
        .at = TG_ALLOC(arena, NodeId, func->operands.count),
        .result_uses = TG_ALLOC(arena, uint32_t, nodes),
    };
    uint32_t *next = TG_ALLOC(arena, uint32_t, nodes + 1);
    for (NodeId n = 1; n < nodes; n++)
        for (uint32_t i = 0; i < func->nodes.at[n].operand_count; i++)
            uses.first[tg_operand(func, &func->nodes.at[n], i) + 1]++;
    for (NodeId n = 0; n < nodes; n++) {
        uses.first[n + 1] += uses.first[n];
        next[n] = uses.first[n];
    }
    for (NodeId n = 1; n < nodes; n++)
        for (uint32_t i = 0; i < func->nodes.at[n].operand_count; i++)
            uses.at[next[tg_operand(func, &func->nodes.at[n], i)]++] = n;
    for (uint32_t r = 0; r < func->results.count; r++)
        uses.result_uses[func->results.at[r].node]++;
    return uses;
}
