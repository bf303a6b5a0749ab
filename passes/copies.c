/* copies: the low copy of a parameter is a buffer of its own, `copy.PATH`, so that a weight is cast once an update and not once a
   micro-batch:

       convert(load @p) : bf16   ->   load @copy.p        in the functions that go over rows, and in exports

   The tail stores the copy with the parameter. The function `copies` stores all of them: a program runs it where a parameter is
   written otherwise (behind init, and where weights are loaded). */
#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct Copies {
    PassContext *context;
    Graph *out;
    uint32_t *copy; /* per buffer of the old graph: 1 + its copy */
} Copies;

static bool goes_over_rows(FuncKind kind) {
    return kind == FUNC_PRE || kind == FUNC_MICRO || kind == FUNC_EVAL_MICRO || kind == FUNC_EXPORT;
}

/* The parameter that `node` makes a low copy of; -1: it is something else. */
static int64_t copied(const Graph *graph, const Func *func, const Node *node) {
    if (node->op != OP_convert || !tg_is_low(tg_type_of(&graph->types, node->type)->dtype))
        return -1;
    const Node *load = tg_node(func, tg_operand(func, node, 0));
    bool is_param = load->op == OP_load && graph->buffers.at[load->attr->ref].class == BUFFER_PARAM;
    return is_param ? (int64_t)load->attr->ref : -1;
}

/* Copies of one parameter have one type: another one stays a conversion. */
static void find_copies(Copies *c, const Graph *in) {
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *func = in->funcs.at[f];
        for (NodeId id = 1; goes_over_rows(func->kind) && id < func->nodes.count; id++) {
            const Node *node = tg_node(func, id);
            int64_t from = copied(in, func, node);
            if (from < 0 || c->copy[from] || !tg_rewrite(c->context, "weight", node->locs))
                continue;
            const Buffer *param = &in->buffers.at[from];
            Buffer copy = {.name = tg_intern(c->out, tg_arena_printf(c->out->arena, "copy.%s", param->name)),
                           .type = node->type, .class = BUFFER_COPY, .loc = param->loc};
            c->copy[from] = 1 + tg_buffer_add(c->out, copy);
        }
    }
}

static NodeId from_copy(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)operands;
    const Copies *c = context;
    const Node *node = tg_node(copy->from, id);
    int64_t from = goes_over_rows(copy->from->kind) ? copied(copy->graph, copy->from, node) : -1;
    if (from < 0 || !c->copy[from] || c->out->buffers.at[c->copy[from] - 1].type != node->type)
        return 0;
    return tg_load(copy->b, c->copy[from] - 1);
}

static void store_copy(Builder *b, uint32_t copy, NodeId param) {
    DType dtype = tg_type_of(&b->graph->types, b->graph->buffers.at[copy].type)->dtype;
    tg_result_store(b, copy, tg_convert(b, param, dtype));
}

/* What the tail stores to a parameter it stores to its copy. */
static Status copy_tail(Copies *c, const Graph *in, const Func *from) {
    Builder b = tg_pass_builder(c->context, c->out, tg_func_new(c->out, from->kind, from->name));
    tg_copy_func(c->context->arena, &b, in, from);
    uint32_t count = b.func->results.count;
    for (uint32_t i = 0; i < count; i++) {
        const Result result = b.func->results.at[i];
        b.locs = result.locs;
        if (result.kind == RESULT_STORE && c->copy[result.buffer])
            store_copy(&b, c->copy[result.buffer] - 1, result.node);
    }
    return tg_builder_status(&b, c->context->diags);
}

static Status store_all(Copies *c, const Graph *in) {
    Builder b = tg_pass_builder(c->context, c->out, tg_func_new(c->out, FUNC_COPIES, "copies"));
    for (uint32_t i = 0; i < in->buffers.count; i++) {
        b.locs = tg_locs_one(c->out, in->buffers.at[i].loc);
        if (c->copy[i])
            store_copy(&b, c->copy[i] - 1, tg_load(&b, i));
    }
    return tg_builder_status(&b, c->context->diags);
}

Status run_copies(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, LEVEL_STEP);
    Copies c = {.context = context, .out = *out, .copy = TG_ALLOC(context->arena, uint32_t, in->buffers.count + 1)};
    find_copies(&c, in);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *from = in->funcs.at[f];
        if (from->kind == FUNC_TAIL)
            TG_TRY(copy_tail(&c, in, from));
        else
            TG_TRY(tg_copy_replacing(context, in, from, *out, from_copy, &c));
    }
    return (*out)->buffers.count > in->buffers.count ? store_all(&c, in) : TG_OK;
}
