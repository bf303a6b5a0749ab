#include "passes/scaler.h"

static const char scale_name[] = TG_SCALE_STATE, good_name[] = TG_GOOD_STATE, skipped_name[] = TG_SKIPPED_STATE;

static bool scales(const Training *training) { return training->precision == DT_F16 && training->loss_scale != 1; }
static bool follows(const Training *training) { return scales(training) && training->loss_scale == 0; }

static TypeId real(Graph *graph, bool scaled) { return tg_type(&graph->types, &(Type){.dtype = DT_F32, .scaled = scaled}); }

void tg_scaler_add(Graph *graph) {
    if (!follows(&graph->training))
        return;
    const char *const names[] = {scale_name, good_name, skipped_name};
    for (int i = 0; i < 3; i++)
        tg_buffer_add(graph, (Buffer){.name = names[i], .type = real(graph, i == 0), .class = BUFFER_OPTIMIZER});
}

static NodeId load(Builder *b, const char *name) { return tg_load(b, (uint32_t)tg_buffer_find(b->graph, name)); }

/* The scale as a number: what it multiplies is scaled, it is not. */
static NodeId plain(Builder *b, NodeId scale) { return tg_build(b, OP_convert, NULL, &scale, 1, real(b->graph, false)); }

NodeId tg_scaler_seed(Builder *b) {
    const Training *training = &b->graph->training;
    if (!scales(training))
        return tg_const(b, real(b->graph, false), 1);
    return follows(training) ? load(b, scale_name) : tg_const(b, real(b->graph, true), training->loss_scale);
}

NodeId tg_scaler_remove(Builder *b, NodeId gradient) {
    if (!scales(&b->graph->training))
        return gradient;
    NodeId one = tg_const(b, real(b->graph, false), 1);
    NodeId inverse = tg_binary(b, OP_div, one, plain(b, tg_scaler_seed(b)));
    NodeId product = tg_binary(b, OP_mul, gradient, tg_broadcast_like(b, inverse, tg_node(b->func, gradient)->type));
    Type type = *tg_node_type(b->graph, b->func, product);
    type.scaled = false;
    return tg_build(b, OP_convert, NULL, &product, 1, tg_type(&b->graph->types, &type));
}

static void store(Builder *b, const char *name, NodeId value) {
    tg_result_store(b, (uint32_t)tg_buffer_find(b->graph, name), value);
}

static NodeId number(Builder *b, double value) { return tg_const(b, real(b->graph, false), value); }

static NodeId as_scale(Builder *b, NodeId x) { return tg_build(b, OP_convert, NULL, &x, 1, real(b->graph, true)); }

void tg_scaler_init(Builder *b) {
    if (!follows(&b->graph->training))
        return;
    store(b, scale_name, tg_const(b, real(b->graph, true), TG_FIRST_SCALE));
    store(b, good_name, number(b, 0));
    store(b, skipped_name, number(b, 0));
}

void tg_scaler_update(Builder *b, NodeId finite) {
    if (!follows(&b->graph->training))
        return;
    NodeId zero = number(b, 0), one = number(b, 1);
    NodeId scale = plain(b, load(b, scale_name)), good = tg_binary(b, OP_add, load(b, good_name), one);
    NodeId grows = tg_binary(b, OP_ge, good, number(b, TG_GOOD_STEPS));
    NodeId doubled = tg_binary(b, OP_minimum, tg_binary(b, OP_mul, scale, number(b, 2)), number(b, TG_MOST_SCALE));
    NodeId halved = tg_binary(b, OP_maximum, tg_binary(b, OP_mul, scale, number(b, 0.5)), one);
    NodeId next = tg_select(b, finite, tg_select(b, grows, doubled, scale), halved);
    NodeId skipped = tg_binary(b, OP_add, load(b, skipped_name), tg_select(b, finite, zero, one));
    store(b, scale_name, as_scale(b, next));
    store(b, good_name, tg_select(b, finite, tg_select(b, grows, zero, good), zero));
    store(b, skipped_name, skipped);
    NodeId overflows = tg_binary(b, OP_and, tg_unary(b, OP_not, finite), tg_binary(b, OP_gt, scale, one));
    tg_result_value(b, TG_OVERFLOWED, overflows);
    tg_result_value(b, TG_LOSS_SCALE, scale);
    tg_result_value(b, TG_SKIPPED, skipped);
}
