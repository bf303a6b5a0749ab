/* recompute: values of the forward half that the backward half reads are computed again there, just before they are read, so that their
   memory is free in between. Their copies read what stays through `again`, which keeps them apart from the originals, in this pass and
   in all that follow, and behind all that stands before them. The bits are the same: the same operations on the same bits; random ones
   carry their key. Only micro has two halves. */
#include "passes/recompute.h"

#include "ir/cost.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct Recomputer {
    PassContext *context;
    const Graph *graph;
    const Func *func;
    Fates fates;
    NodeId *copy_of;    /* per node: its copy for the backward half, or 0 */
    NodeId *again_of;   /* per node that stays: the newest `again` of it, or 0 */
    uint32_t *again_at; /* the time that it was made for */
    bool *due;          /* to be copied at this time */
    uint32_t time;      /* from 1: how often copies have been made */
} Recomputer;

static const Node *node_at(const Recomputer *r, NodeId id) { return tg_node(r->func, id); }

static NodeId again(Recomputer *r, Builder *b, NodeId id, NodeId value) {
    if (r->again_at[id] != r->time) {
        int64_t at = r->time;
        b->locs = node_at(r, id)->locs;
        r->again_of[id] = tg_build(b, OP_again, &(Attr){.list = {{&at, 1}}}, &value, 1, 0);
        r->again_at[id] = r->time;
    }
    return r->again_of[id];
}

/* Marks `id` and what it needs that is not kept; gives the first of them. */
static NodeId mark_due(Recomputer *r, NodeId id) {
    NodeId first = id;
    r->due[id] = true;
    for (NodeId at = id; at >= first; at--) {
        const Node *node = node_at(r, at);
        for (uint32_t i = 0; r->due[at] && i < node->operand_count; i++) {
            NodeId operand = tg_operand(r->func, node, i);
            if (r->fates.of[operand] != FATE_AGAIN || r->copy_of[operand] || r->due[operand])
                continue;
            r->due[operand] = true;
            first = operand < first ? operand : first;
        }
    }
    return first;
}

/* A copy that read nothing but arguments and parameters would be shared with the original: one of them is read again. */
static void keep_apart(Recomputer *r, Builder *b, const Node *node, NodeId *operands) {
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId id = tg_operand(r->func, node, i);
        uint16_t op = node_at(r, id)->op;
        if (r->fates.of[id] != FATE_FREE)
            return;
        if (op != OP_arg && op != OP_load)
            continue;
        operands[i] = again(r, b, id, operands[i]);
        return;
    }
}

static void copy_one(Recomputer *r, const Copy *copy, NodeId id) {
    const Node *node = node_at(r, id);
    NodeId *operands = TG_ALLOC(r->context->arena, NodeId, node->operand_count);
    bool free = true;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(r->func, node, i);
        Fate fate = r->fates.of[operand];
        operands[i] = copy->map[operand];
        free &= fate == FATE_FREE;
        if (fate == FATE_AGAIN)
            operands[i] = r->copy_of[operand];
        else if (tg_fate_stays(fate))
            operands[i] = again(r, copy->b, operand, operands[i]);
    }
    if (free)
        keep_apart(r, copy->b, node, operands);
    r->copy_of[id] = tg_build_like(copy->b, r->graph, r->func, id, operands);
    r->context->recomputed.flops += tg_node_flops(r->graph, r->func, id, r->graph->training.micro);
    r->context->recomputed.dear += tg_op((Op)node->op)->fuse == FUSE_library || tg_op((Op)node->op)->fuse == FUSE_alone;
}

static void copy_due(Recomputer *r, const Copy *copy, NodeId last) {
    r->time++;
    for (NodeId id = mark_due(r, last); id <= last; id++)
        if (r->due[id]) {
            r->due[id] = false;
            copy_one(r, copy, id);
        }
}

/* A node of the backward half reads copies; and what stays as the newest copy does, so that a kernel of both reads it once. */
static NodeId over_copies(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    Recomputer *r = context;
    const Node *node = node_at(r, id);
    if (r->fates.forward[id])
        return 0;
    NodeId *read = TG_ALLOC(r->context->arena, NodeId, node->operand_count);
    bool changed = false;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(r->func, node, i);
        if (r->fates.forward[operand] && r->fates.of[operand] == FATE_AGAIN && r->copy_of[operand] == 0)
            copy_due(r, copy, operand);
    }
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(r->func, node, i);
        NodeId other = r->copy_of[operand] ? r->copy_of[operand] : r->again_of[operand];
        read[i] = other ? other : operands[i];
        changed |= other != 0;
    }
    return changed ? tg_build_like(copy->b, r->graph, r->func, id, read) : 0;
}

static const char *text_of(Fate fate) {
    static const char *const texts[] = {
        [FATE_CHECKPOINT] = "it is a checkpoint",
        [FATE_DEAR] = "it is dear",
        [FATE_OPERANDS] = "what it is made of is not kept",
        [FATE_SOURCE] = "what is made of it takes no less",
        [FATE_SOON] = "it is read again so soon that nothing is saved",
        [FATE_REFUSED] = "the limit of rewrites",
    };
    return fate < sizeof texts / sizeof *texts ? texts[fate] : NULL;
}

/* "mul is computed again: 12582912 bytes less to keep", or why it stays. */
static void remark(const Recomputer *r) {
    PassContext *context = r->context;
    for (NodeId id = 1; id < r->func->nodes.count; id++) {
        const Node *node = node_at(r, id);
        Fate fate = r->fates.of[id];
        if (!r->fates.wanted[id])
            continue;
        const char *name = tg_op((Op)node->op)->name;
        if (fate == FATE_AGAIN && tg_says_remarks(context))
            tg_pass_remark(context, node->locs, tg_arena_printf(context->arena, "%s is computed again: %.0f bytes need not be kept", name, r->fates.bytes[id]));
        if (text_of(fate) && tg_says_missed(context))
            tg_pass_missed(context, node->locs, tg_arena_printf(context->arena, "%s is kept for the backward half, %.0f bytes: %s", name, r->fates.bytes[id], text_of(fate)));
    }
}

static void count(Recomputer *r) {
    Recomputed *recomputed = &r->context->recomputed;
    *recomputed = (Recomputed){.candidates = r->fates.candidates};
    for (NodeId id = 1; id < r->func->nodes.count; id++) {
        if (r->fates.live[id])
            recomputed->step_flops += tg_node_flops(r->graph, r->func, id, r->graph->training.micro);
        recomputed->values += r->fates.wanted[id] && r->fates.of[id] == FATE_AGAIN;
    }
}

static Status recompute(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    uint32_t nodes = from->nodes.count;
    Recomputer r = {
        .context = context, .graph = in, .func = from, .fates = tg_recompute_choose(context, in, from),
        .copy_of = TG_ALLOC(context->arena, NodeId, nodes), .again_of = TG_ALLOC(context->arena, NodeId, nodes),
        .again_at = TG_ALLOC(context->arena, uint32_t, nodes), .due = TG_ALLOC(context->arena, bool, nodes),
    };
    count(&r);
    remark(&r);
    return tg_copy_replacing(context, in, from, out, over_copies, &r);
}

Status run_recompute(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, in->level);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *from = in->funcs.at[f];
        bool chosen = context->recompute.mode != RECOMPUTE_NONE && from->kind == FUNC_MICRO;
        TG_TRY(chosen ? recompute(context, in, from, *out) : tg_copy_replacing(context, in, from, *out, NULL, NULL));
    }
    return TG_OK;
}
