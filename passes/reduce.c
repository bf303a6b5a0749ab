#include "passes/reduce.h"

#include "passes/reduce_edit.h"

#include <math.h>
#include <string.h>

/* How large a graph is, the most important part first. Only what is smaller is tried, so the search ends. */
typedef struct Cost {
    double part[6];
} Cost;

typedef struct Reducer {
    const ReduceTest *test;
    jmp_buf guard;
    Arena memory;  /* of the whole search */
    Arena lists;   /* of what is tried next */
    Arena kept[2]; /* of `best`: the one and the next */
    int which;
    Arena scratch; /* of a candidate */
    Graph *best;
    Str text; /* its text */
    Cost cost;
    Map seen; /* texts that were tried */
    bool places;
} Reducer;

/* ---- cost ---- */

static void add_node(Cost *cost, const Graph *graph, const Func *func, const Node *node) {
    bool leaf = tg_op((Op)node->op)->fuse == FUSE_leaf;
    cost->part[0] += !leaf;
    cost->part[1] += leaf ? node->op == OP_arg ? 1 : 3 : 0;
    const Type *type = tg_type_of(&graph->types, node->type);
    for (int i = 0; i < type->rank; i++)
        cost->part[2] += (double)type->dims[i].size + 2 * type->dims[i].batch;
    cost->part[3] += type->dtype != DT_F32 && type->dtype != DT_I32 && type->dtype != DT_BOOL;
    if (node->attr) {
        double number = node->attr->number;
        cost->part[4] += node->attr->dense ? 4 : number == 0 ? 0 : number == 1 ? 1 : 2;
        for (int i = 0; i < TG_ATTR_LISTS; i++)
            cost->part[4] += node->attr->list[i].count == 1 && node->attr->list[i].at[0] > 1;
    }
    for (uint32_t i = 0; i < node->operand_count; i++)
        cost->part[5] += tg_operand(func, node, i);
}

static Cost cost_of(const Graph *graph) {
    Cost cost = {{0}};
    const Training *training = &graph->training;
    cost.part[1] = graph->buffers.count + graph->scalars.count + graph->settings.count + training->validate.count +
                   (training->train.name != NULL) + (training->batch || training->micro || training->lanes || training->loss);
    for (uint32_t f = 0; f < graph->funcs.count; f++) {
        const Func *func = graph->funcs.at[f];
        cost.part[1] += 1 + func->args.count + func->results.count;
        for (NodeId id = 1; id < func->nodes.count; id++)
            add_node(&cost, graph, func, tg_node(func, id));
    }
    return cost;
}

static bool is_less(const Cost *a, const Cost *b) {
    for (int i = 0; i < 6; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i];
    return false;
}

ReduceCounts tg_reduce_count(const Graph *graph) {
    ReduceCounts counts = {.funcs = graph->funcs.count};
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        counts.nodes += graph->funcs.at[f]->nodes.count - 1;
    return counts;
}

/* ---- candidates ---- */

static void open_arena(Reducer *r, Arena *arena) {
    tg_arena_deinit(arena);
    tg_arena_init(arena, r->memory.host);
    memcpy(arena->guard, r->guard, sizeof r->guard);
}

/* What is smaller becomes the best, read back from its text: numbers are consecutive again, and nothing old is kept alive. */
static Status keep(Reducer *r, const Str *text) {
    Arena *arena = &r->kept[1 - r->which];
    open_arena(r, arena);
    Sources *sources = TG_ALLOC(arena, Sources, 1);
    Diags *quiet = TG_ALLOC(arena, Diags, 1);
    tg_diags_init(quiet, arena, sources, NULL);
    r->text = tg_str(arena);
    tg_str_add(&r->text, text->text, text->length);
    TG_TRY(tg_graph_parse(arena, quiet, sources, "reduced", r->text.text, r->text.length, &r->best));
    r->which = 1 - r->which;
    r->cost = cost_of(r->best);
    return TG_OK;
}

static void print(const Reducer *r, Str *to, const Graph *graph) {
    if (r->places)
        tg_graph_print(to, graph);
    else
        tg_graph_print_plain(to, graph);
}

/* A graph that is well formed, smaller and new, as text; false: it is not worth a test. */
static bool candidate(Reducer *r, const MoveKind *kind, const Item *items, uint32_t count, Str *text) {
    Edits edits = reduce_edits(&r->scratch, r->best);
    for (uint32_t i = 0; i < count; i++)
        kind->edit(&edits, items[i]);
    const Graph *graph = reduce_apply(&edits);
    Diags quiet;
    tg_diags_init(&quiet, &r->scratch, r->best->sources, NULL);
    if (graph == NULL || tg_graph_verify(graph, &quiet) != TG_OK)
        return false;
    Cost cost = cost_of(graph);
    if (!is_less(&cost, &r->cost))
        return false;
    *text = tg_str(&r->scratch);
    print(r, text, graph);
    uint64_t key[] = {tg_hash(text->text, text->length, 0), tg_hash(text->text, text->length, 1)};
    bool is_new;
    (void)tg_map_put(&r->seen, key, sizeof key, &is_new);
    return is_new;
}

static Status attempt(Reducer *r, const MoveKind *kind, const Item *items, uint32_t count, bool *accepted) {
    open_arena(r, &r->scratch);
    Str text;
    *accepted = candidate(r, kind, items, count, &text) &&
                r->test->is_interesting(r->test->context, text.text, text.length);
    if (!*accepted)
        return TG_OK;
    TG_TRY(keep(r, &text));
    r->test->progress(r->test->context, tg_reduce_count(r->best));
    return TG_OK;
}

static Items list_of(Reducer *r, const MoveKind *kind) {
    Items items = {0};
    open_arena(r, &r->lists);
    kind->list(&r->lists, r->best, &items);
    return items;
}

static bool is_stopped(const Reducer *r) { return r->test->is_stopped(r->test->context); }

/* All of one kind at once, then halves, quarters, ... single ones. */
static Status sweep(Reducer *r, const MoveKind *kind, bool *any) {
    Items items = list_of(r, kind);
    for (uint32_t chunk = kind->together ? items.count : 1; chunk > 0; chunk /= 2)
        for (uint32_t at = 0; at < items.count && !is_stopped(r);) {
            uint32_t count = items.count - at < chunk ? items.count - at : chunk;
            bool accepted;
            TG_TRY(attempt(r, kind, &items.at[at], count, &accepted));
            if (accepted)
                items = list_of(r, kind); /* what follows has moved to this place */
            else
                at += count;
            *any = *any || accepted;
        }
    return TG_OK;
}

/* Places in the source are kept only if the failure needs them. */
static Status begin(Reducer *r, const Graph *graph) {
    for (int places = 0; places < 2; places++) {
        r->places = places;
        open_arena(r, &r->scratch);
        Str text = tg_str(&r->scratch);
        print(r, &text, graph);
        if (r->test->is_interesting(r->test->context, text.text, text.length))
            return keep(r, &text);
        if (is_stopped(r))
            break;
    }
    return TG_USAGE;
}

static Status search(Reducer *r) {
    for (bool any = true; any && !is_stopped(r);) {
        any = false;
        for (uint32_t kind = 0; kind < reduce_move_count; kind++)
            TG_TRY(sweep(r, &reduce_moves[kind], &any));
    }
    return TG_OK;
}

Status tg_shrink(Arena *arena, const Graph *graph, const ReduceTest *test, Str *text, bool *minimal) {
    Reducer *r = TG_ALLOC(arena, Reducer, 1);
    Arena *const arenas[] = {&r->memory, &r->lists, &r->kept[0], &r->kept[1], &r->scratch};
    enum { ARENAS = sizeof arenas / sizeof *arenas };
    Status status = TG_MEMORY;
    r->test = test;
    for (int i = 0; i < ARENAS; i++)
        tg_arena_init(arenas[i], arena->host);
    if (setjmp(r->guard) == 0) {
        memcpy(r->memory.guard, r->guard, sizeof r->guard);
        r->seen = tg_map(&r->memory);
        status = begin(r, graph);
        if (status == TG_OK) {
            status = search(r);
            *minimal = !is_stopped(r);
            *text = tg_str(arena);
            tg_str_add(text, r->text.text, r->text.length);
        }
    }
    for (int i = 0; i < ARENAS; i++)
        tg_arena_deinit(arenas[i]);
    return status;
}
