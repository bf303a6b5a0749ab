/* Reductions, scans and tables. */
#include "ir/eval_rules.h"

#include <math.h>

static double plus(double x, double y) { return x + y; }

/* Folds every element, in row-major order, into the result's element that it belongs to. */
static Status reduce(EvalCall *call, double neutral, double (*fold)(double, double)) {
    Extents from = eval_extents(call, call->operands[0].type), to = eval_extents(call, call->node->type);
    int64_t step[TG_MAX_RANK] = {0}, place[TG_MAX_RANK] = {0}, target = 0;
    Ints axes = call->node->attr->list[0];
    int kept = 0;
    for (int i = 0; i < from.rank; i++) {
        bool reduced = false;
        for (uint32_t k = 0; k < axes.count; k++)
            reduced = reduced || axes.at[k] == i;
        if (!reduced)
            step[i] = to.stride[kept++];
    }
    for (int64_t i = 0; i < call->result->count; i++)
        call->result->at[i] = neutral;
    for (int64_t i = 0; i < call->operands[0].count; i++) {
        call->result->at[target] = fold(call->result->at[target], call->operands[0].at[i]);
        for (int axis = from.rank - 1; axis >= 0; axis--) {
            target += step[axis];
            if (++place[axis] < from.at[axis])
                break;
            target -= step[axis] * from.at[axis];
            place[axis] = 0;
        }
    }
    return TG_OK;
}

/* The least value of the type for `sign` -1, the greatest for 1. */
static double limit(const EvalCall *call, int sign) {
    return tg_round_to(eval_type(call, call->node->type)->dtype, sign * INFINITY);
}

Status eval_reduce_sum(EvalCall *call) { return reduce(call, 0.0, plus); }
Status eval_reduce_max(EvalCall *call) { return reduce(call, limit(call, -1), eval_maximum); }
Status eval_reduce_min(EvalCall *call) { return reduce(call, limit(call, 1), eval_minimum); }

/* NaN wins over all, then the first of equals. */
Status eval_argmax(EvalCall *call) {
    Extents extents = eval_extents(call, call->operands[0].type);
    Around around = eval_around(&extents, eval_int(call, 0, 0));
    for (int64_t o = 0; o < around.outer; o++)
        for (int64_t i = 0; i < around.inner; i++) {
            const double *x = call->operands[0].at + o * around.length * around.inner + i;
            int64_t best = 0;
            for (int64_t n = 1; n < around.length; n++) {
                double winner = x[best * around.inner], value = x[n * around.inner];
                if (!isnan(winner) && (isnan(value) || value > winner))
                    best = n;
            }
            call->result->at[o * around.inner + i] = (double)best;
        }
    return TG_OK;
}

Status eval_cumsum(EvalCall *call) {
    Extents extents = eval_extents(call, call->node->type);
    Around around = eval_around(&extents, eval_int(call, 0, 0));
    bool reverse = eval_int(call, 1, 0) != 0;
    for (int64_t o = 0; o < around.outer; o++)
        for (int64_t i = 0; i < around.inner; i++) {
            int64_t base = o * around.length * around.inner + i;
            double sum = 0;
            for (int64_t n = 0; n < around.length; n++) {
                int64_t at = base + (reverse ? around.length - 1 - n : n) * around.inner;
                sum += call->operands[0].at[at];
                call->result->at[at] = sum;
            }
        }
    return TG_OK;
}

/* Rows outside of the table: NaN, and 0 in integers. */
Status eval_take(EvalCall *call) {
    Extents extents = eval_extents(call, call->operands[0].type);
    Around table = eval_around(&extents, eval_int(call, 0, 0));
    const Tensor *indices = &call->operands[1];
    double outside = tg_is_float(eval_type(call, call->node->type)->dtype) ? NAN : 0.0;
    double *to = call->result->at;
    for (int64_t o = 0; o < table.outer; o++)
        for (int64_t k = 0; k < indices->count; k++) {
            double index = indices->at[k];
            bool inside = index >= 0 && index < (double)table.length;
            int64_t row = inside ? (int64_t)index : 0;
            for (int64_t i = 0; i < table.inner; i++)
                *to++ = inside ? call->operands[0].at[(o * table.length + row) * table.inner + i] : outside;
        }
    return TG_OK;
}

/* Rows outside of the table are dropped. */
Status eval_scatter_add(EvalCall *call) {
    for (int64_t i = 0; call->node->operand_count == 3 && i < call->result->count; i++)
        call->result->at[i] = call->operands[2].at[i];
    Extents extents = eval_extents(call, call->node->type);
    Around table = eval_around(&extents, eval_int(call, 0, 0));
    const Tensor *indices = &call->operands[0];
    const double *from = call->operands[1].at;
    for (int64_t o = 0; o < table.outer; o++)
        for (int64_t k = 0; k < indices->count; k++, from += table.inner) {
            double index = indices->at[k];
            if (!(index >= 0 && index < (double)table.length))
                continue;
            for (int64_t i = 0; i < table.inner; i++)
                call->result->at[(o * table.length + (int64_t)index) * table.inner + i] += from[i];
        }
    return TG_OK;
}
