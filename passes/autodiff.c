/* autodiff: the objective's function gets, for every trained parameter, the result `gradient.PATH`: the derivative of the loss.
   Reverse mode over the nodes that lie between a parameter and the loss; each op's rule is its row's in ir/ops.def (vjp.c).
   Several readers of one value: cotangent.c. In f16 the loss is scaled, and gradients lose the scale at their end: scaler.c. */
#include "passes/cotangent.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/scaler.h"
#include "passes/vjp.h"

#include <string.h>

typedef struct Autodiff {
    PassContext *context;
    Graph *graph;
    Builder *b;
    uint32_t forward;   /* nodes below this one are the forward pass */
    bool *varies;       /* depends on a trained parameter */
    bool *is_weight;    /* a low copy of a parameter, or what only moves its elements: its gradient is in f32 */
    Parts *parts;       /* of each node's cotangent */
    NodeId *cotangent;
} Autodiff;

static bool is_trained(const Graph *graph, const Node *node) {
    if (node->op != OP_load)
        return false;
    const Buffer *buffer = &graph->buffers.at[node->attr->ref];
    return buffer->class == BUFFER_PARAM && !buffer->frozen;
}

static void mark_varying(Autodiff *a) {
    const Func *func = a->b->func;
    for (NodeId id = 1; id < a->forward; id++) {
        const Node *node = tg_node(func, id);
        bool varies = is_trained(a->graph, node);
        for (uint32_t i = 0; i < node->operand_count; i++)
            varies |= a->varies[tg_operand(func, node, i)];
        a->varies[id] = varies && tg_is_float(tg_node_type(a->graph, func, id)->dtype);
    }
}

static bool is_low(const Autodiff *a, NodeId id) { return tg_is_low(tg_node_type(a->graph, a->b->func, id)->dtype); }

static void mark_weights(Autodiff *a) {
    const Func *func = a->b->func;
    for (NodeId id = 1; id < a->forward; id++) {
        const Node *node = tg_node(func, id);
        if (!is_low(a, id) || node->operand_count != 1)
            continue;
        NodeId below = tg_operand(func, node, 0);
        bool copies = node->op == OP_convert && is_trained(a->graph, tg_node(func, below));
        a->is_weight[id] = copies || (tg_op((Op)node->op)->fuse == FUSE_view && a->is_weight[below]);
    }
}

/* What `node` sends back, to the parts of its operands. */
static void send_back(Autodiff *a, const Node *node, const Vjp *vjp) {
    for (uint32_t i = 0; i < node->operand_count; i++) {
        if (vjp->grad[i] == 0 || !vjp->wanted[i])
            continue;
        NodeId part = vjp->in_f32[i] ? tg_convert(a->b, vjp->grad[i], DT_F32) : vjp->grad[i];
        tg_push(a->context->arena, &a->parts[tg_operand(a->b->func, node, i)], part);
    }
}

/* The backward pass; `grad`, `in_f32` and `wanted` have room for the operands of any node. */
static void backward(Autodiff *a, NodeId loss, NodeId *grad, bool *wanted, bool *in_f32) {
    const Func *func = a->b->func;
    const Cotangents sums = {.arena = a->context->arena, .b = a->b};
    NodeId seed = tg_convert(a->b, tg_scaler_seed(a->b), tg_node_type(a->graph, func, loss)->dtype);
    tg_push(sums.arena, &a->parts[loss], seed);
    for (NodeId id = loss; id > 0; id--) {
        const Node node = *tg_node(func, id); /* the builder moves nodes as it grows */
        a->b->locs = node.locs;
        a->cotangent[id] = a->varies[id] ? tg_cotangent_sum(&sums, &a->parts[id]) : 0;
        if (a->cotangent[id] == 0)
            continue;
        for (uint32_t i = 0; i < node.operand_count; i++) {
            wanted[i] = a->varies[tg_operand(func, &node, i)];
            in_f32[i] = a->is_weight[tg_operand(func, &node, i)];
        }
        Vjp vjp = {.b = a->b, .func = func, .node = id, .cotangent = a->cotangent[id], .wanted = wanted, .in_f32 = in_f32, .grad = grad};
        tg_vjp(&vjp);
        send_back(a, &node, &vjp);
    }
}

/* Gradients by buffer. A parameter has several loads only where sharing is off: its gradient is the sum over them. */
static void gather(Autodiff *a, NodeId *gradient, bool *read) {
    const Func *func = a->b->func;
    for (NodeId id = 1; id < a->forward; id++) {
        const Node *node = tg_node(func, id);
        if (node->op != OP_load)
            continue;
        uint32_t buffer = node->attr->ref;
        read[buffer] = true;
        if (a->cotangent[id] && gradient[buffer])
            gradient[buffer] = tg_binary(a->b, OP_add, gradient[buffer], a->cotangent[id]);
        else if (a->cotangent[id])
            gradient[buffer] = a->cotangent[id];
    }
}

static void missing_gradient(const Autodiff *a, const Buffer *buffer, bool read) {
    tg_error(a->context->diags, buffer->loc, "the loss does not depend on parameter '%s'%s", buffer->name,
             read ? ": no gradient reaches it" : ": nothing reads it in training");
    tg_note(a->context->diags, buffer->loc, "remove it, or mark its instance `frozen`");
}

static Status differentiate(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Func *func = tg_func_new(out, from->kind, from->name);
    Builder b = tg_pass_builder(context, out, func);
    tg_copy_func(context->arena, &b, in, from);
    NodeId loss = 0;
    for (uint32_t i = 0; i < func->results.count; i++)
        if (tg_is_loss(out, &func->results.at[i]))
            loss = func->results.at[i].node;
    if (loss == 0) {
        tg_error(context->diags, (Loc){0}, "the objective gives no field '%s' to minimise",
                 out->training.loss ? out->training.loss : "");
        return TG_MODEL;
    }
    Autodiff a = {.context = context, .graph = out, .b = &b, .forward = func->nodes.count};
    a.varies = TG_ALLOC(context->arena, bool, a.forward);
    a.parts = TG_ALLOC(context->arena, Parts, a.forward);
    a.cotangent = TG_ALLOC(context->arena, NodeId, a.forward);
    a.is_weight = TG_ALLOC(context->arena, bool, a.forward);
    mark_varying(&a);
    mark_weights(&a);
    uint32_t room = func->operands.count + 1;
    backward(&a, loss, TG_ALLOC(context->arena, NodeId, room), TG_ALLOC(context->arena, bool, room),
             TG_ALLOC(context->arena, bool, room));
    NodeId *gradients = TG_ALLOC(context->arena, NodeId, out->buffers.count + 1);
    bool *read = TG_ALLOC(context->arena, bool, out->buffers.count + 1);
    gather(&a, gradients, read);
    for (uint32_t i = 0; i < out->buffers.count; i++) {
        const Buffer *buffer = &out->buffers.at[i];
        if (buffer->class != BUFFER_PARAM || buffer->frozen)
            continue;
        NodeId gradient = gradients[i];
        if (gradient == 0) {
            missing_gradient(&a, buffer, read[i]);
            continue;
        }
        b.locs = func->nodes.at[gradient].locs;
        gradient = tg_scaler_remove(&b, tg_convert(&b, gradient, DT_F32));
        tg_result_value(&b, tg_arena_printf(out->arena, "gradient.%s", buffer->name), gradient);
    }
    return context->diags->errors ? TG_MODEL : tg_builder_status(&b, context->diags);
}

static Status first_scale(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Builder b = tg_pass_builder(context, out, tg_func_new(out, from->kind, from->name));
    tg_copy_func(context->arena, &b, in, from);
    tg_scaler_init(&b);
    return tg_builder_status(&b, context->diags);
}

Status run_autodiff(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, LEVEL_MODEL);
    tg_scaler_add(*out);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *from = in->funcs.at[f];
        if (from->kind == FUNC_OBJECTIVE)
            TG_TRY(differentiate(context, in, from, *out));
        else if (from->kind == FUNC_INIT)
            TG_TRY(first_scale(context, in, from, *out));
        else
            TG_TRY(tg_copy_replacing(context, in, from, *out, NULL, NULL));
    }
    return TG_OK;
}
