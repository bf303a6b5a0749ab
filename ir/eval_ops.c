/* Leaves and pointwise operations. */
#include "ir/eval_rules.h"

#include <math.h>
#include <string.h>

double eval_maximum(double x, double y) {
    if (isnan(x) || isnan(y))
        return NAN;
    if (x == y)
        return signbit(x) ? y : x;
    return x > y ? x : y;
}

double eval_minimum(double x, double y) {
    if (isnan(x) || isnan(y))
        return NAN;
    if (x == y)
        return signbit(x) ? x : y;
    return x < y ? x : y;
}

/* Scalar meanings. */
static double point_neg(double x) { return -x; }
static double point_abs(double x) { return fabs(x); }
static double point_sign(double x) { return isnan(x) ? x : (x > 0) - (x < 0); }
static double point_floor(double x) { return floor(x); }
static double point_ceil(double x) { return ceil(x); }
static double point_round(double x) { return nearbyint(x); } /* ties to even */
static double point_exp(double x) { return exp(x); }
static double point_expm1(double x) { return expm1(x); }
static double point_log(double x) { return log(x); }
static double point_log1p(double x) { return log1p(x); }
static double point_sqrt(double x) { return sqrt(x); }
static double point_rsqrt(double x) { return 1.0 / sqrt(x); }
static double point_sin(double x) { return sin(x); }
static double point_cos(double x) { return cos(x); }
static double point_tanh(double x) { return tanh(x); }
static double point_erf(double x) { return erf(x); }
static double point_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static double point_not(double x) { return x == 0; }
static double point_is_finite(double x) { return isfinite(x) != 0; }

static double point_add(double x, double y) { return x + y; }
static double point_sub(double x, double y) { return x - y; }
static double point_mul(double x, double y) { return x * y; }
static double point_div(double x, double y) { return x / y; } /* integers: toward zero, x / 0 is 0 */
/* Has the sign of y; a zero has the sign of x. */
static double point_mod(double x, double y) {
    double rest = fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
static double point_pow(double x, double y) { return pow(x, y); }
static double point_maximum(double x, double y) { return eval_maximum(x, y); }
static double point_minimum(double x, double y) { return eval_minimum(x, y); }
static double point_and(double x, double y) { return x != 0 && y != 0; }
static double point_or(double x, double y) { return x != 0 || y != 0; }
static double point_eq(double x, double y) { return x == y; }
static double point_ne(double x, double y) { return x != y; }
static double point_lt(double x, double y) { return x < y; }
static double point_le(double x, double y) { return x <= y; }
static double point_gt(double x, double y) { return x > y; }
static double point_ge(double x, double y) { return x >= y; }

/* Only the rows whose eval name is `unary` or `binary` leave an entry: the probe of any other name is one token. */
#define SECOND(first, second, ...) second
#define CHOOSE(...)                SECOND(__VA_ARGS__, NO_ENTRY, none)
#define ENTRY(name)                [OP_##name] = point_##name,
#define NO_ENTRY(name)

#define PROBE_unary                                         none, ENTRY
#define OP(name, min, max, levels, attrs, shape, eval, ...) CHOOSE(PROBE_##eval)(name)
static double (*const unary_points[OP_COUNT])(double) = {
#include "ir/ops.def"
};
#undef PROBE_unary
#define PROBE_binary none, ENTRY
static double (*const binary_points[OP_COUNT])(double, double) = {
#include "ir/ops.def"
};
#undef OP

Status eval_unary(EvalCall *call) {
    double (*point)(double) = unary_points[call->node->op];
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = point(call->operands[0].at[i]);
    return TG_OK;
}

Status eval_binary(EvalCall *call) {
    double (*point)(double, double) = binary_points[call->node->op];
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = point(call->operands[0].at[i], call->operands[1].at[i]);
    return TG_OK;
}

Status eval_select(EvalCall *call) {
    const Tensor *x = call->operands;
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = x[0].at[i] != 0 ? x[1].at[i] : x[2].at[i];
    return TG_OK;
}

Status eval_copy(EvalCall *call) {
    memcpy(call->result->at, call->operands[0].at, (size_t)call->result->count * sizeof(double));
    return TG_OK;
}

/* In real mode f32 counts as real. */
Status eval_convert(EvalCall *call) {
    DType to = eval_type(call, call->node->type)->dtype;
    if (to == DT_F64 || (to == DT_F32 && call->state->mode == EVAL_REAL))
        return eval_copy(call);
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = tg_round_to(to, call->operands[0].at[i]);
    return TG_OK;
}

Status eval_const(EvalCall *call) {
    const Attr *attr = call->node->attr;
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = attr->dense ? attr->dense[i] : attr->number;
    return TG_OK;
}

/* `from` must hold the elements [skipped, skipped + result's count). */
static Status copy_given(EvalCall *call, const Tensor *from, int64_t skipped) {
    int64_t count = call->result->count;
    if (!from->at || skipped < 0 || from->count - skipped < count)
        return eval_fail(call, "its value was not given, or has another size");
    memcpy(call->result->at, from->at + skipped, (size_t)count * sizeof(double));
    return TG_OK;
}

Status eval_arg(EvalCall *call) {
    if (!call->state->args)
        return eval_fail(call, "no arguments were given");
    return copy_given(call, &call->state->args[eval_int(call, 0, 0)], 0);
}

Status eval_load(EvalCall *call) {
    uint32_t buffer = call->node->attr->ref;
    if (!call->state->buffers)
        return eval_fail(call, "no buffers were given");
    bool lanes = call->graph->buffers.at[buffer].class == BUFFER_SUM;
    int64_t lane = eval_int(call, 0, lanes ? call->state->lane : 0);
    return copy_given(call, &call->state->buffers[buffer], lane * call->result->count);
}

Status eval_gradient(EvalCall *call) {
    if (!call->state->gradients)
        return eval_fail(call, "it has no value before autodiff replaces it");
    return copy_given(call, &call->state->gradients[call->node->attr->ref], 0);
}

Status eval_scalar(EvalCall *call) {
    if (!call->state->scalars)
        return eval_fail(call, "no run-time scalars were given");
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = call->state->scalars[call->node->attr->ref];
    return TG_OK;
}

Status eval_iota(EvalCall *call) {
    Extents extents = eval_extents(call, call->node->type);
    Around around = eval_around(&extents, eval_int(call, 0, 0));
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = (double)(i / around.inner % around.length);
    return TG_OK;
}
