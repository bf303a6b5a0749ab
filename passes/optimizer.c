/* optimizer: what stands between the gradients and the update.

   - clipping: every gradient leaf is multiplied by min(1, clip / (norm + 1e-6)), the norm over all gradients; squares are added
     in f64, per piece, in the order of the parameters (the formula is the one of torch.nn.utils.clip_grad_norm_);
   - the gate: the update function gets the argument `loss` (bound by the pass batch) and the value `finite`, true when the loss
     and every gradient are finite; every store becomes select(finite, new, old), so that a step that is not finite changes
     nothing. If the objective says when its loss is over nothing, there is the argument `empty` too, the value `open` (finite
     and not empty), and the stores read that. */
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/scaler.h"

#include <string.h>

/* A reduction of many elements is one over pieces of at most this many, then over the pieces. */
enum { LONGEST_PIECE = 16384 };

typedef struct Gate {
    Graph *graph;
    Builder *b;
    TypeId real, wide; /* scalar f32, f64 */
} Gate;

static TypeId plain_type(Graph *graph, DType dtype, uint8_t rank, int64_t d0, int64_t d1) {
    Type type = {.dtype = dtype, .rank = rank, .dims = {{d0, false}, {d1, false}}};
    return tg_type(&graph->types, &type);
}

static int64_t piece_of(int64_t count) {
    if (count <= LONGEST_PIECE)
        return count;
    for (int64_t piece = LONGEST_PIECE; piece > 1; piece--)
        if (count % piece == 0)
            return piece;
    return 1;
}

/* The sum of part(x) over all elements of `x`, which has no B. `part` comes after the reshape: a kernel of its own then reads
   `x` as it lies, and the update waits for the gate instead of being computed before it and stored after it. */
static NodeId total(Gate *g, NodeId x, NodeId (*part)(Gate *, NodeId)) {
    const Type type = *tg_node_type(g->graph, g->b->func, x);
    int64_t count = tg_type_count(&type, 0), piece = count ? piece_of(count) : 0;
    int64_t zero = 0, one = 1;
    if (piece == count) {
        x = tg_reshape(g->b, x, plain_type(g->graph, type.dtype, 1, count, 0));
        return tg_reduce(g->b, OP_reduce_sum, part(g, x), &zero, 1, 0);
    }
    x = tg_reshape(g->b, x, plain_type(g->graph, type.dtype, 2, count / piece, piece));
    return tg_reduce(g->b, OP_reduce_sum, tg_reduce(g->b, OP_reduce_sum, part(g, x), &one, 1, 0), &zero, 1, 0);
}

/* +-0 when an element is finite, NaN otherwise: cheaper than a test and an `and` for each element. */
static NodeId zero_if_finite(Gate *g, NodeId x) {
    return tg_binary(g->b, OP_mul, x, tg_const(g->b, tg_node(g->b->func, x)->type, 0));
}

static NodeId square(Gate *g, NodeId x) {
    NodeId wide = tg_convert(g->b, x, DT_F64);
    return tg_binary(g->b, OP_mul, wide, wide);
}

/* The total of `part` over all gradient leaves, adding in the order of the leaves. */
static NodeId over_gradients(Gate *g, const Func *from, const Copy *copy, NodeId (*part)(Gate *, NodeId)) {
    NodeId sum = 0;
    for (NodeId id = 1; id < from->nodes.count; id++) {
        if (tg_node(from, id)->op != OP_gradient || !copy->needed[id])
            continue;
        g->b->locs = tg_node(from, id)->locs;
        NodeId one = total(g, copy->map[id], part);
        sum = sum ? tg_binary(g->b, OP_add, sum, one) : one;
    }
    return sum;
}

static NodeId clip_factor(Gate *g, NodeId squares) {
    const Training *training = &g->graph->training;
    NodeId clip = training->clip_scalar >= 0 ? tg_scalar(g->b, (uint32_t)training->clip_scalar)
                                             : tg_const(g->b, g->wide, training->clip_norm);
    NodeId norm = tg_binary(g->b, OP_add, tg_unary(g->b, OP_sqrt, squares), tg_const(g->b, g->wide, 1e-6));
    NodeId factor = tg_binary(g->b, OP_minimum, tg_binary(g->b, OP_div, clip, norm), tg_const(g->b, g->wide, 1));
    return tg_convert(g->b, factor, DT_F32);
}

/* The gradient leaves, copied, and what replaces them for the update. Gives the value `finite`. */
static NodeId gradients(Gate *g, Copy *copy) {
    const Func *from = copy->from;
    for (NodeId id = 1; id < from->nodes.count; id++)
        if (tg_node(from, id)->op == OP_gradient && copy->needed[id])
            copy->map[id] = tg_build_like(g->b, copy->graph, from, id, NULL);
    const Training *training = &g->graph->training;
    bool clips = training->clip_norm > 0 || training->clip_scalar >= 0;
    NodeId loss = tg_arg(g->b, 0, "loss", g->real);
    NodeId finite = tg_unary(g->b, OP_is_finite, loss);
    NodeId measure = over_gradients(g, from, copy, clips ? square : zero_if_finite);
    if (measure == 0)
        return finite;
    finite = tg_binary(g->b, OP_and, tg_unary(g->b, OP_is_finite, measure), finite);
    if (!clips)
        return finite;
    NodeId factor = clip_factor(g, measure);
    for (NodeId id = 1; id < from->nodes.count; id++)
        if (tg_node(from, id)->op == OP_gradient && copy->needed[id]) {
            g->b->locs = tg_node(from, id)->locs;
            NodeId spread = tg_broadcast_like(g->b, factor, tg_node(from, id)->type);
            copy->map[id] = tg_binary(g->b, OP_mul, copy->map[id], spread);
        }
    return finite;
}

/* What the stores wait for: `finite`, and where the loss can be over nothing that it is not. */
static NodeId open_gate(Gate *g, const Graph *in, NodeId finite) {
    tg_result_value(g->b, "finite", finite);
    const Func *objective = tg_func_find(in, FUNC_OBJECTIVE, NULL);
    bool may_be_empty = false;
    for (uint32_t i = 0; objective && i < objective->results.count; i++)
        may_be_empty |= objective->results.at[i].kind == RESULT_VALUE &&
                        strcmp(objective->results.at[i].name, TG_EMPTY_LOSS) == 0;
    if (!may_be_empty)
        return finite;
    TypeId truth = plain_type(g->graph, DT_BOOL, 0, 0, 0);
    tg_push(g->graph->arena, &g->b->func->args, (FuncArg){.name = "empty", .type = truth});
    NodeId full = tg_unary(g->b, OP_not, tg_arg(g->b, 1, "empty", truth));
    NodeId open = tg_binary(g->b, OP_and, finite, full);
    tg_result_value(g->b, "open", open);
    return open;
}

static Status gate_update(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Func *func = tg_func_new(out, from->kind, from->name);
    Builder b = tg_pass_builder(context, out, func);
    Gate g = {.graph = out, .b = &b, .real = plain_type(out, DT_F32, 0, 0, 0),
              .wide = plain_type(out, DT_F64, 0, 0, 0)};
    tg_push(out->arena, &func->args, (FuncArg){.name = "loss", .type = g.real});
    Copy copy = tg_copy(context->arena, &b, in, from);
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_mark(&copy);
    NodeId finite = gradients(&g, &copy);
    tg_copy_run(&copy);
    NodeId gate = open_gate(&g, in, finite);
    for (uint32_t i = 0; i < from->results.count; i++) {
        const Result *result = &from->results.at[i];
        b.locs = result->locs;
        NodeId fresh = copy.map[result->node], old = tg_load(&b, result->buffer);
        NodeId open = tg_broadcast_like(&b, gate, tg_type_with(out, tg_node(func, fresh)->type, DT_BOOL));
        tg_result_store(&b, result->buffer, tg_select(&b, open, fresh, old));
    }
    tg_scaler_update(&b, finite);
    return tg_builder_status(&b, context->diags);
}

Status run_optimizer(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, LEVEL_MODEL);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *from = in->funcs.at[f];
        if (from->kind == FUNC_UPDATE)
            TG_TRY(gate_update(context, in, from, *out));
        else
            TG_TRY(tg_copy_replacing(context, in, from, *out, NULL, NULL));
    }
    return TG_OK;
}
