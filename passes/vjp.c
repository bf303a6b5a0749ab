#include "passes/vjp_rules.h"

#include <math.h>

typedef void VjpRule(Vjp *v);

static VjpRule *const rules[OP_COUNT] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, ...) [OP_##name] = vjp_##grad,
#include "ir/ops.def"
#undef OP
};

void tg_vjp(Vjp *v) {
    const Node node = *tg_node(v->b->func, v->node);
    NodeId *operands = TG_ALLOC(v->b->graph->arena, NodeId, node.operand_count + 1);
    bool any = false;
    for (uint32_t i = 0; i < node.operand_count; i++) {
        operands[i] = tg_operand(v->b->func, &node, i);
        v->grad[i] = 0;
        v->wanted[i] = v->wanted[i] && tg_is_float(grad_type(v, operands[i]).dtype);
        any = any || v->wanted[i];
    }
    v->operand = operands;
    if (any && v->cotangent)
        rules[node.op](v);
}

bool grad_is_splat(const Vjp *v, NodeId node, double *value) {
    const Node *n = tg_node(v->b->func, node);
    while (n->op == OP_broadcast || n->op == OP_reshape)
        n = tg_node(v->b->func, tg_operand(v->b->func, n, 0));
    if (n->op != OP_const || n->attr->dense)
        return false;
    *value = n->attr->number;
    return true;
}

NodeId grad_guarded(Vjp *v, NodeId gradient) {
    NodeId zero = grad_number(v, 0.0);
    return tg_select(v->b, tg_binary(v->b, OP_eq, v->cotangent, zero), zero, gradient);
}

/* cotangent * factor, where a cotangent of 0 gives 0 whatever the factor is. */
static NodeId chain(Vjp *v, NodeId factor) {
    double value;
    NodeId product = grad_mul(v, v->cotangent, factor);
    return grad_is_splat(v, factor, &value) && isfinite(value) ? product : grad_guarded(v, product);
}

static NodeId unary(Vjp *v, Op op, NodeId x) { return tg_unary(v->b, op, x); }
static NodeId binary(Vjp *v, Op op, NodeId x, NodeId y) { return tg_binary(v->b, op, x, y); }

/* Where gradients stop, and leaves: their cotangent is the result. */
void vjp_none(Vjp *v) { (void)v; }

bool tg_vjp_stops(Op op) { return rules[op] == vjp_none; }
void vjp_arg(Vjp *v) { (void)v; }
void vjp_load(Vjp *v) { (void)v; }

/* One operand. In the formulas y is the node's value. */
void vjp_neg(Vjp *v) { v->grad[0] = unary(v, OP_neg, v->cotangent); }

void vjp_abs(Vjp *v) { v->grad[0] = chain(v, unary(v, OP_sign, v->operand[0])); }

void vjp_exp(Vjp *v) { v->grad[0] = chain(v, v->node); }

void vjp_expm1(Vjp *v) { v->grad[0] = chain(v, binary(v, OP_add, v->node, grad_number(v, 1.0))); }

void vjp_log(Vjp *v) { v->grad[0] = grad_guarded(v, binary(v, OP_div, v->cotangent, v->operand[0])); }

void vjp_log1p(Vjp *v) {
    NodeId shifted = binary(v, OP_add, v->operand[0], grad_number(v, 1.0));
    v->grad[0] = grad_guarded(v, binary(v, OP_div, v->cotangent, shifted));
}

/* 1/2y; 0 at 0. */
void vjp_sqrt(Vjp *v) {
    NodeId zero = grad_number(v, 0.0);
    NodeId flat = binary(v, OP_eq, v->node, zero);
    NodeId factor = binary(v, OP_div, grad_number(v, 0.5), v->node);
    v->grad[0] = chain(v, tg_select(v->b, flat, zero, factor));
}

/* -y^3/2 */
void vjp_rsqrt(Vjp *v) {
    NodeId cube = grad_mul(v, grad_mul(v, v->node, v->node), v->node);
    v->grad[0] = chain(v, grad_mul(v, grad_number(v, -0.5), cube));
}

void vjp_sin(Vjp *v) { v->grad[0] = chain(v, unary(v, OP_cos, v->operand[0])); }

void vjp_cos(Vjp *v) { v->grad[0] = chain(v, unary(v, OP_neg, unary(v, OP_sin, v->operand[0]))); }

/* 1 - y^2 */
void vjp_tanh(Vjp *v) { v->grad[0] = chain(v, binary(v, OP_sub, grad_number(v, 1.0), grad_mul(v, v->node, v->node))); }

/* 2/sqrt(pi) exp(-x^2) */
void vjp_erf(Vjp *v) {
    NodeId square = grad_mul(v, v->operand[0], v->operand[0]);
    NodeId bell = unary(v, OP_exp, unary(v, OP_neg, square));
    v->grad[0] = chain(v, grad_mul(v, grad_number(v, 1.1283791670955126), bell));
}

/* y (1 - y) */
void vjp_sigmoid(Vjp *v) {
    v->grad[0] = chain(v, grad_mul(v, v->node, binary(v, OP_sub, grad_number(v, 1.0), v->node)));
}

void vjp_convert(Vjp *v) { v->grad[0] = tg_convert(v->b, v->cotangent, grad_type(v, v->operand[0]).dtype); }

/* Two and three operands. */
void vjp_add(Vjp *v) {
    for (int i = 0; i < 2; i++)
        if (v->wanted[i])
            v->grad[i] = v->cotangent;
}

void vjp_sub(Vjp *v) {
    if (v->wanted[0])
        v->grad[0] = v->cotangent;
    if (v->wanted[1])
        v->grad[1] = unary(v, OP_neg, v->cotangent);
}

void vjp_mul(Vjp *v) {
    for (int i = 0; i < 2; i++)
        if (v->wanted[i])
            v->grad[i] = chain(v, v->operand[1 - i]);
}

void vjp_div(Vjp *v) {
    NodeId quotient = binary(v, OP_div, v->cotangent, v->operand[1]);
    double value;
    if (v->wanted[0]) {
        bool regular = grad_is_splat(v, v->operand[1], &value) && isfinite(value) && value != 0;
        v->grad[0] = regular ? quotient : grad_guarded(v, quotient);
    }
    if (v->wanted[1])
        v->grad[1] = grad_guarded(v, unary(v, OP_neg, grad_mul(v, quotient, v->node)));
}

/* b a^(b - 1), 0 where b is 0. */
static NodeId pow_by_base(Vjp *v, NodeId base, NodeId exponent) {
    double value;
    if (grad_is_splat(v, exponent, &value) && value == 2.0)
        return chain(v, grad_mul(v, grad_number(v, 2.0), base));
    NodeId zero = grad_number(v, 0.0);
    NodeId lower = binary(v, OP_sub, exponent, grad_number(v, 1.0));
    NodeId factor = grad_mul(v, exponent, binary(v, OP_pow, base, lower));
    return chain(v, tg_select(v->b, binary(v, OP_eq, exponent, zero), zero, factor));
}

/* a^b log a, 0 where a is 0 and b is not negative. */
static NodeId pow_by_exponent(Vjp *v, NodeId base, NodeId exponent) {
    NodeId zero = grad_number(v, 0.0);
    NodeId flat = binary(v, OP_and, binary(v, OP_eq, base, zero), binary(v, OP_ge, exponent, zero));
    NodeId factor = grad_mul(v, v->node, unary(v, OP_log, base));
    return chain(v, tg_select(v->b, flat, zero, factor));
}

void vjp_pow(Vjp *v) {
    if (v->wanted[0])
        v->grad[0] = pow_by_base(v, v->operand[0], v->operand[1]);
    if (v->wanted[1])
        v->grad[1] = pow_by_exponent(v, v->operand[0], v->operand[1]);
}

/* The whole cotangent where `wins` holds against the other operand, half of it where both are equal. */
static void extremum(Vjp *v, Op wins) {
    NodeId equal = binary(v, OP_eq, v->operand[0], v->operand[1]);
    NodeId half = grad_mul(v, v->cotangent, grad_number(v, 0.5));
    NodeId tied = tg_select(v->b, equal, half, grad_number(v, 0.0));
    for (int i = 0; i < 2; i++)
        if (v->wanted[i])
            v->grad[i] = tg_select(v->b, binary(v, wins, v->operand[i], v->operand[1 - i]), v->cotangent, tied);
}

void vjp_maximum(Vjp *v) { extremum(v, OP_gt); }
void vjp_minimum(Vjp *v) { extremum(v, OP_lt); }

void vjp_select(Vjp *v) {
    NodeId zero = grad_number(v, 0.0);
    if (v->wanted[1])
        v->grad[1] = tg_select(v->b, v->operand[0], v->cotangent, zero);
    if (v->wanted[2])
        v->grad[2] = tg_select(v->b, v->operand[0], zero, v->cotangent);
}
