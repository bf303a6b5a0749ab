/* Cheap values (pointwise, views, reductions) can be computed again from dear ones (dots, attention, tables) and from checkpoints:
   values that the forward half itself carries over a cut through it. Cuts are made so that checkpoints and the largest stretch between
   two of them are the least together: in a transformer they fall on the residual stream. A dear value is computed again only if it is
   asked for: they are numbered by the bytes that each alone saves for its price. Nothing before a cut is computed again for the sake of
   what is after it, so all is computed at most once more. */
#include "passes/recompute.h"

#include "ir/cost.h"
#include "passes/group.h"
#include "passes/rewrite.h"

#include <stdlib.h>
#include <string.h>

/* SMALL_REDUCTION: how much smaller than what it reduces a value is that is always kept. BYTE_OPS: operations that take as long as to
   move a byte. */
enum { SMALL_REDUCTION = 4, BYTE_OPS = 8, MOST_STRETCHES = 128 };

typedef struct Chooser {
    PassContext *context;
    Arena *arena;
    const Graph *graph;
    const Func *func;
    Fates fates;
    bool *fixed, *small, *carried; /* carried: a checkpoint may be made of it; it is no view of another value */
    bool *checkpoint, *best;       /* as the cuts are being tried; the best so far */
    bool *dear;                    /* dear values that may be computed again */
    bool *source;                  /* kept in place of what is made of them */
    uint32_t *last;                /* the last node of the forward half that reads it, through views too */
    uint32_t *dies, *dies_next;    /* per node: the values whose `last` it is, as a list */
    double *gap;                   /* bytes that are made between the last forward and the first backward reader */
    double *counted;               /* what keeping it takes: wanted bytes, of a view those of what it shows */
} Chooser;

static FuseKind fuse_of(const Node *node) { return tg_op((Op)node->op)->fuse; }
static bool is_dear(const Node *node) { return fuse_of(node) == FUSE_library || fuse_of(node) == FUSE_alone; }
static bool is_seen_through(const Node *node) { return node->op == OP_reshape || node->op == OP_broadcast; }

static bool *flags(const Chooser *c) { return TG_ALLOC(c->arena, bool, c->func->nodes.count); }

/* One that is scaled gets its name where the scale is taken away. */
static bool is_gradient(const Graph *graph, const Result *result) {
    if (result->kind != RESULT_STORE || graph->buffers.at[result->buffer].class != BUFFER_SUM)
        return false;
    const Buffer *buffer = &graph->buffers.at[result->buffer];
    return tg_type_of(&graph->types, buffer->type)->scaled || strncmp(buffer->name, "gradient.", strlen("gradient.")) == 0;
}

/* ---- what there is ---- */

static void mark_halves(Chooser *c) {
    const Func *func = c->func;
    for (uint32_t i = 0; i < func->results.count; i++) {
        const Result *result = &func->results.at[i];
        c->fates.live[result->node] = true;
        c->fates.forward[result->node] |= !is_gradient(c->graph, result);
    }
    for (NodeId id = func->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; i < node->operand_count && c->fates.live[id]; i++) {
            NodeId operand = tg_operand(func, node, i);
            c->fates.live[operand] = true;
            c->fates.forward[operand] |= c->fates.forward[id];
        }
    }
}

/* Computed again by every kernel that reads it, or a parameter: it takes no memory of the step's. */
static bool is_fixed(const Chooser *c, const Node *node) {
    FuseKind kind = fuse_of(node);
    bool fixed = kind == FUSE_point || kind == FUSE_view;
    for (uint32_t i = 0; i < node->operand_count && fixed; i++) {
        NodeId operand = tg_operand(c->func, node, i);
        const Node *read = tg_node(c->func, operand);
        fixed = c->fixed[operand] || (fuse_of(read) == FUSE_leaf && read->op != OP_arg);
    }
    return fixed;
}

static void measure(Chooser *c) {
    const Func *func = c->func;
    int64_t rows = c->graph->training.micro;
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        const Type *type = tg_node_type(c->graph, func, id);
        c->fixed[id] = is_fixed(c, node);
        c->fates.bytes[id] = (double)tg_type_count(type, rows) * tg_dtype(type->dtype)->bytes;
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(func, node, i);
            bool value = fuse_of(tg_node(func, operand)) != FUSE_leaf && !c->fixed[operand];
            c->fates.wanted[operand] |= c->fates.live[id] && !c->fates.forward[id] && c->fates.forward[operand] && value;
        }
    }
}

/* What a reduction leaves of something much larger, and what is made of that alone: statistics of rows. */
static void mark_small(Chooser *c) {
    const Func *func = c->func;
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        bool reduced = fuse_of(node) == FUSE_reduce && SMALL_REDUCTION * c->fates.bytes[id] <= c->fates.bytes[tg_operand(func, node, 0)];
        bool of_small = false, only = node->op != OP_broadcast && !is_dear(node);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(func, node, i);
            of_small |= c->small[operand];
            only &= c->small[operand] || c->fixed[operand] || fuse_of(tg_node(func, operand)) == FUSE_leaf;
        }
        c->small[id] = reduced || (of_small && only);
    }
}

/* What keeping a value takes: of a reshape or broadcast, to keep what it shows. */
static void count_bytes(Chooser *c) {
    const Func *func = c->func;
    bool *counts = TG_ALLOC(c->arena, bool, func->nodes.count);
    for (NodeId id = func->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(func, id);
        counts[id] |= c->fates.wanted[id];
        if (counts[id] && is_seen_through(node))
            counts[tg_operand(func, node, 0)] = true;
        else if (counts[id] && c->fates.forward[id] && fuse_of(node) != FUSE_leaf && !c->fixed[id] && !c->small[id])
            c->counted[id] = c->fates.bytes[id];
    }
}

/* Sets `last` and `gap`. */
static void measure_lives(Chooser *c) {
    const Func *func = c->func;
    uint32_t count = func->nodes.count;
    double *made = TG_ALLOC(c->arena, double, count);
    uint32_t *first = TG_ALLOC(c->arena, uint32_t, count); /* backward reader */
    for (NodeId id = 1; id < count; id++) {
        const Node *node = tg_node(func, id);
        bool counts = c->fates.live[id] && is_dear(node);
        made[id] = made[id - 1] + (counts ? c->fates.bytes[id] : 0);
        c->last[id] = id;
        c->carried[id] = c->fates.forward[id] && fuse_of(node) != FUSE_leaf && !c->fixed[id] && !is_seen_through(node);
        for (uint32_t i = 0; i < node->operand_count && c->fates.live[id]; i++) {
            NodeId operand = tg_operand(func, node, i);
            if (c->fates.forward[id])
                c->last[operand] = id;
            else if (first[operand] == 0)
                first[operand] = id;
        }
    }
    for (NodeId id = count - 1; id > 0; id--) {
        const Node *node = tg_node(func, id);
        if (c->fates.forward[id] && is_seen_through(node) && c->last[id] > c->last[tg_operand(func, node, 0)])
            c->last[tg_operand(func, node, 0)] = c->last[id];
    }
    for (NodeId id = 1; id < count; id++) {
        c->gap[id] = first[id] > c->last[id] ? made[first[id] - 1] - made[c->last[id]] : 0;
        c->dies_next[id] = c->dies[c->last[id]];
        c->dies[c->last[id]] = id;
    }
}

/* ---- checkpoints ---- */

/* Makes checkpoints of what is carried over the cut behind `at`; gives their bytes. */
static double cut(Chooser *c, NodeId from, NodeId at) {
    double bytes = 0;
    for (NodeId id = from; id <= at; id++)
        if (c->carried[id] && c->last[id] > at && !c->checkpoint[id]) {
            c->checkpoint[id] = true;
            bytes += c->fates.bytes[id];
        }
    return bytes;
}

/* Cuts the forward half into stretches of about `length` bytes, each where the least is carried over, behind the half of it. Gives what
   checkpoints and the largest stretch take together. */
static double cut_all(Chooser *c, double length) {
    uint32_t count = c->func->nodes.count;
    double kept = 0, largest = 0, stretch = 0, carried = 0, least = 0, stretch_at_best = 0;
    NodeId start = 0, best = 0;
    memset(c->checkpoint, 0, sizeof(bool) * count);
    for (NodeId id = 1; id < count; id++) {
        if (!c->fates.forward[id])
            continue;
        stretch += c->counted[id];
        if (c->carried[id] && c->last[id] > id)
            carried += c->fates.bytes[id];
        for (NodeId dead = c->dies[id]; dead; dead = c->dies_next[dead])
            if (c->carried[dead] && dead < id && !c->checkpoint[dead])
                carried -= c->fates.bytes[dead];
        if (stretch >= length / 2 && (best == 0 || carried <= least))
            best = id, least = carried, stretch_at_best = stretch;
        if (stretch < length)
            continue;
        kept += cut(c, start + 1, best);
        largest = stretch_at_best > largest ? stretch_at_best : largest;
        id = start = best;
        best = 0, stretch = 0, carried = 0;
    }
    return kept + (stretch > largest ? stretch : largest);
}

static void place_checkpoints(Chooser *c) {
    uint32_t count = c->func->nodes.count;
    double all = 0;
    for (NodeId id = 1; id < count; id++)
        all += c->counted[id];
    double least = all;
    for (int stretches = 2; stretches <= MOST_STRETCHES; stretches += 1 + stretches / 8) {
        double bytes = cut_all(c, all / stretches);
        if (bytes >= least)
            continue;
        least = bytes;
        memcpy(c->best, c->checkpoint, sizeof(bool) * count);
    }
    memcpy(c->checkpoint, c->best, sizeof(bool) * count);
}

/* ---- fates ---- */

/* What of a lost value would have to be kept, and what that is made with. */
typedef struct Below {
    double bytes;
    uint32_t readers;
    bool cheap;
} Below;

/* A lost value stays if what would be kept of it takes more; or as much, but is made of it with cheap operations and it has several
   readers: a residual stream stays in place of what a norm makes of it. Values nearer to the beginning are preferred. */
static bool keep_sources(Chooser *c) {
    const Func *func = c->func;
    const uint8_t *fate = c->fates.of;
    Below *below = TG_ALLOC(c->arena, Below, func->nodes.count);
    bool *offered = flags(c), any = false;
    for (NodeId id = func->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(func, id);
        if (!c->fates.forward[id])
            continue;
        bool kept = fate[id] == FATE_OPERANDS || (fate[id] == FATE_LOST && below[id].bytes > 0);
        bool least = fate[id] == FATE_OPERANDS || c->fates.bytes[id] <= below[id].bytes;
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(func, node, i);
            Below *of = &below[operand];
            of->cheap = (of->readers++ == 0 || of->cheap) && (!kept || tg_is_cheap(node->op));
            of->bytes += kept ? least ? c->fates.bytes[id] : below[id].bytes : 0;
        }
    }
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        if (!c->fates.forward[id] || fate[id] != FATE_LOST || below[id].bytes == 0)
            continue;
        offered[id] = is_dear(node);
        for (uint32_t i = 0; i < node->operand_count; i++)
            offered[id] |= offered[tg_operand(func, node, i)];
        bool less = c->fates.bytes[id] < below[id].bytes;
        bool as_well = c->fates.bytes[id] == below[id].bytes && below[id].readers > 1 && below[id].cheap;
        if (!offered[id] || (!less && !as_well))
            continue;
        c->source[id] = any = true;
        offered[id] = false;
    }
    return any;
}

static Fate fate_of(const Chooser *c, NodeId id) {
    const Node *node = tg_node(c->func, id);
    bool wanted = c->fates.wanted[id];
    if (fuse_of(node) == FUSE_leaf || c->fixed[id])
        return FATE_FREE;
    if (c->small[id])
        return FATE_SMALL;
    if (c->checkpoint[id])
        return FATE_CHECKPOINT;
    if (c->source[id])
        return FATE_SOURCE;
    if (is_dear(node) && !c->dear[id])
        return wanted ? FATE_DEAR : FATE_LOST;
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (c->fates.of[tg_operand(c->func, node, i)] == FATE_LOST)
            return wanted ? FATE_OPERANDS : FATE_LOST;
    bool soon = wanted && c->gap[id] < c->fates.bytes[id] && c->context->recompute.mode != RECOMPUTE_ALL;
    return soon ? FATE_SOON : FATE_AGAIN;
}

static double decide_all(Chooser *c, bool asks) {
    double bytes = 0;
    for (NodeId id = 1; id < c->func->nodes.count; id++) {
        if (!c->fates.forward[id])
            continue;
        Fate fate = fate_of(c, id);
        if (asks && fate == FATE_AGAIN && c->fates.wanted[id] && !tg_rewrite(c->context, "again", tg_node(c->func, id)->locs))
            fate = FATE_REFUSED;
        c->fates.of[id] = (uint8_t)fate;
        if (tg_fate_stays(fate) && (c->fates.wanted[id] || fate == FATE_SOURCE))
            bytes += c->fates.bytes[id];
    }
    return bytes;
}

/* Decides for all; gives the bytes that stay from one half to the other. `asks`: every value that does not is a rewrite. */
static double decide(Chooser *c, bool asks) {
    memset(c->source, 0, sizeof(bool) * c->func->nodes.count);
    double bytes = decide_all(c, false);
    return keep_sources(c) || asks ? decide_all(c, asks) : bytes;
}

typedef struct Candidate {
    NodeId id;
    double gain; /* bytes for an operation */
} Candidate;

static int compare(const void *x, const void *y) {
    const Candidate *a = x, *b = y;
    if (a->gain != b->gain)
        return a->gain > b->gain ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static double price(const Chooser *c, NodeId id) {
    int64_t rows = c->graph->training.micro;
    return tg_node_flops(c->graph, c->func, id, rows) + BYTE_OPS * tg_node_bytes(c->graph, c->func, id, rows);
}

/* Allows the first of them, those that save most for their price; of equals those that would be kept longest. */
static void allow_dear(Chooser *c) {
    Candidate *candidates = TG_ALLOC(c->arena, Candidate, c->func->nodes.count);
    uint32_t count = 0, allowed = c->context->recompute.dear;
    double without = decide(c, false);
    for (NodeId id = 1; id < c->func->nodes.count; id++) {
        if (!c->fates.forward[id] || !is_dear(tg_node(c->func, id)) || c->small[id] || c->checkpoint[id])
            continue;
        c->dear[id] = true;
        candidates[count++] = (Candidate){id, (without - decide(c, false)) / price(c, id)};
        c->dear[id] = false;
    }
    qsort(candidates, count, sizeof *candidates, compare);
    if (c->context->recompute.mode >= RECOMPUTE_FULL || allowed > count)
        allowed = count;
    for (uint32_t i = 0; i < allowed; i++)
        c->dear[candidates[i].id] = true;
    c->fates.candidates = count;
}

Fates tg_recompute_choose(PassContext *context, const Graph *graph, const Func *func) {
    Chooser c = {.context = context, .arena = context->arena, .graph = graph, .func = func};
    uint32_t count = func->nodes.count;
    c.fates = (Fates){.of = TG_ALLOC(c.arena, uint8_t, count), .live = flags(&c), .forward = flags(&c), .wanted = flags(&c),
                      .bytes = TG_ALLOC(c.arena, double, count)};
    c.fixed = flags(&c), c.small = flags(&c), c.carried = flags(&c), c.checkpoint = flags(&c), c.best = flags(&c), c.dear = flags(&c);
    c.source = flags(&c);
    c.last = TG_ALLOC(c.arena, uint32_t, count), c.dies = TG_ALLOC(c.arena, uint32_t, count);
    c.dies_next = TG_ALLOC(c.arena, uint32_t, count);
    c.gap = TG_ALLOC(c.arena, double, count), c.counted = TG_ALLOC(c.arena, double, count);
    mark_halves(&c);
    measure(&c);
    mark_small(&c);
    count_bytes(&c);
    measure_lives(&c);
    place_checkpoints(&c);
    allow_dear(&c);
    decide(&c, true);
    return c.fates;
}
