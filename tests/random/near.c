#include "near.h"

#include <float.h>
#include <math.h>

enum { MOST_OPERANDS = 8 };

/* Where the CPU rounds otherwise than the evaluator. */
typedef enum Rounding {
    ROUND_same,  /* nowhere: equal bits */
    ROUND_maths, /* a function: some ulp */
    ROUND_sum,   /* a sum in another order: ulp of the sum of magnitudes */
    ROUND_each,  /* the same, and every step rounds to the result's type */
    ROUND_weights, /* attention as dots: of scores in f32, weights in the result's type */
} Rounding;

static const uint8_t rounding[OP_COUNT] = {
    [OP_exp] = ROUND_maths,   [OP_expm1] = ROUND_maths,   [OP_log] = ROUND_maths,        [OP_log1p] = ROUND_maths,
    [OP_rsqrt] = ROUND_maths, [OP_sin] = ROUND_maths,     [OP_cos] = ROUND_maths,        [OP_tanh] = ROUND_maths,
    [OP_erf] = ROUND_maths,   [OP_sigmoid] = ROUND_maths, [OP_pow] = ROUND_maths,        [OP_reduce_sum] = ROUND_sum,
    [OP_cumsum] = ROUND_sum,  [OP_dot] = ROUND_sum,       [OP_scatter_add] = ROUND_each, [OP_attention] = ROUND_weights,
};

typedef struct FloatInfo {
    double ulp, least, most; /* least: the smallest normal number */
} FloatInfo;

static FloatInfo info_of(DType dtype) {
    switch (dtype) {
    case DT_F64:
        return (FloatInfo){DBL_EPSILON, DBL_MIN, DBL_MAX};
    case DT_F16:
        return (FloatInfo){0x1p-10, 0x1p-14, 65504};
    case DT_BF16:
        return (FloatInfo){0x1p-7, 0x1p-126, 0x1.fep127};
    default:
        return (FloatInfo){FLT_EPSILON, FLT_MIN, FLT_MAX};
    }
}

bool tg_same_value(double a, double b) { return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b); }

/* Overflow near the edge of the type is a matter of rounding; beyond it a value may be infinite. */
static bool within(double got, double wanted, double tolerance, double most) {
    if (isnan(got) || isnan(wanted))
        return isnan(got) && isnan(wanted);
    if (isinf(wanted))
        return got == wanted || (signbit(got) == signbit(wanted) && fabs(got) >= 0.99 * most);
    if (isinf(got))
        return signbit(got) == signbit(wanted) && fabs(wanted) + tolerance >= 0.99 * most;
    return fabs(got - wanted) <= tolerance;
}

/* The sums over the operands' magnitudes; of attention over the values'. Each is `least` more. */
static Tensor magnitudes(EvalState *state, const Graph *graph, const Func *func, NodeId id, const Tensor *operands, double least) {
    Tensor positive[MOST_OPERANDS], sum = {0};
    const Node *node = tg_node(func, id);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        positive[i] = operands[i];
        if (node->op == OP_attention && i != 2)
            continue;
        positive[i].at = TG_ALLOC(state->arena, double, operands[i].count + 1);
        for (int64_t k = 0; k < operands[i].count; k++)
            positive[i].at[k] = fabs(operands[i].at[k]) + least;
    }
    EvalState real = *state;
    real.mode = EVAL_REAL;
    if (tg_eval_node(&real, graph, func, id, positive, &sum) != TG_OK)
        sum.count = 0;
    return sum;
}

/* Equal terms, added one after the other, round all in one direction: a library's dot may. */
static double sum_ulps(EvalState *state, const Graph *graph, const Func *func, const Node *node) {
    double terms = 1;
    if (node->op == OP_dot) {
        const Type *type = tg_node_type(graph, func, tg_operand(func, node, 0));
        Ints axes = node->attr->list[2];
        for (uint32_t i = 0; i < axes.count; i++)
            terms *= (double)type->dims[axes.at[i]].size * (double)(type->dims[axes.at[i]].batch ? state->rows : 1);
    }
    return 32 + terms / 2;
}

/* Scores are sums of products, and an error in a score is relative in its weight. */
static double score_ulps(const Graph *graph, const Func *func, const Node *node, const Tensor *operands) {
    const Type *q = tg_node_type(graph, func, tg_operand(func, node, 0));
    double most[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < operands[i].count; k++)
            most[i] = fmax(most[i], fabs(operands[i].at[k]));
    return 32 + 8 * most[0] * most[1] * (double)q->dims[q->rank - 1].size * node->attr->number;
}

static double tolerance_at(Rounding rule, double ulps, DType in, DType out, double wanted, double magnitude) {
    FloatInfo to = info_of(out), sum = info_of(in == DT_F64 ? DT_F64 : DT_F32);
    if (rule == ROUND_maths) /* f64 has functions of its own, whose bound is 1e-12 */
        return (out == DT_F64 ? 1e-12 : (out == DT_F32 ? 5 : 2) * to.ulp) * fabs(wanted) + to.least;
    double each = rule == ROUND_each ? 8 * to.ulp : ulps * sum.ulp + (rule == ROUND_weights ? to.ulp : 0);
    return each * magnitude + 2 * to.ulp * fabs(wanted) + 4 * to.least;
}

/* ---- what mixed precision rounds besides ---- */

typedef struct Low {
    FloatInfo info;
    double least;   /* a rounding is an ulp of a magnitude and this; bf16 has no denormals */
    double product; /* ulps of the sum of magnitudes: what operands that round do to a dot or an attention */
    bool rounds;
} Low;

static bool overflows(const FloatInfo *info, const Tensor *operands, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (int64_t k = 0; k < operands[i].count; k++)
            if (!(fabs(operands[i].at[k]) < 0.99 * info->most))
                return true;
    return false;
}

static Low low_of(const Graph *graph, const Func *func, const Node *node, const Tensor *operands, DType out, DType low) {
    if ((low != DT_BF16 && low != DT_F16) || out != DT_F32)
        return (Low){0};
    Low result = {.info = info_of(low), .rounds = true};
    result.least = low == DT_BF16 ? result.info.least / result.info.ulp : result.info.least;
    if (node->op == OP_dot)
        result.product = 2;
    if (node->op == OP_attention) /* a score's error is relative in its weight */
        result.product = score_ulps(graph, func, node, operands) / 2 - 12;
    return result;
}

static double low_tolerance(const Low *low, double wanted, double magnitude) {
    return low->info.ulp * (fabs(wanted) + low->least + low->product * magnitude);
}

int64_t tg_first_wrong(EvalState *state, const Graph *graph, const Func *func, NodeId id, const Tensor *operands,
                       const Tensor *got, DType narrow, double *wanted) {
    const Node *node = tg_node(func, id);
    Tensor exact, size = {0};
    DType out = tg_node_type(graph, func, id)->dtype, in = out;
    if (node->operand_count)
        in = tg_node_type(graph, func, tg_operand(func, node, 0))->dtype;
    Rounding rule = tg_is_float(out) ? (Rounding)rounding[node->op] : ROUND_same;
    Low low = low_of(graph, func, node, operands, out, narrow);
    if (tg_eval_node(state, graph, func, id, operands, &exact) != TG_OK || exact.count != got->count)
        return 0;
    if (low.product > 0 && overflows(&low.info, operands, node->operand_count))
        return -1;
    bool sums = rule >= ROUND_sum;
    if (sums)
        size = magnitudes(state, graph, func, id, operands, low.product > 0 ? low.least : 0);
    double ulps = rule == ROUND_weights ? score_ulps(graph, func, node, operands) : sum_ulps(state, graph, func, node);
    double most = low.rounds ? low.info.most : info_of(out).most, sum_most = rule == ROUND_each ? most : in == DT_F64 ? DBL_MAX : FLT_MAX;
    for (int64_t i = 0; i < exact.count; i++) {
        *wanted = exact.at[i];
        double magnitude = sums ? size.at[i] : 0, tolerance = 0;
        if (rule != ROUND_same)
            tolerance += tolerance_at(rule, ulps, in, out, *wanted, magnitude);
        if (low.rounds)
            tolerance += low_tolerance(&low, *wanted, magnitude);
        bool good = tg_same_value(got->at[i], *wanted);
        if (!good && (rule != ROUND_same || low.rounds)) /* a sum whose parts overflow has no one value */
            good = magnitude > sum_most / 4 || within(got->at[i], *wanted, tolerance, most);
        if (!good)
            return i;
    }
    return -1;
}
