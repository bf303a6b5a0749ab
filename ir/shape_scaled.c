/* What a scaled operand means to each op: linear ops keep the scale, others take none. */
#include "ir/shape.h"

/* What a scaled operand means. An op with no entry takes none. */
typedef enum Scaling {
    SCALING_none,
    SCALING_all,     /* all operands or none, and the result with them */
    SCALING_product, /* one operand at most (a dot's bias with it) */
    SCALING_first,   /* the first may be */
    SCALING_second,  /* the second may be, and the third with it */
    SCALING_branches, /* select: both values or none */
    SCALING_fourth,   /* the cotangent of attention's gradients */
    SCALING_drop,     /* any; the result is not */
    SCALING_zero,     /* compared with a zero: what is said of a scaled value holds without the scale */
    SCALING_wanted,   /* as its own type says: where a scale is applied or taken away */
} Scaling;

static const uint8_t scaling[OP_COUNT] = {
    [OP_const] = SCALING_wanted,
    [OP_arg] = SCALING_wanted,
    [OP_load] = SCALING_wanted,
    [OP_result] = SCALING_wanted,
    [OP_convert] = SCALING_wanted,
    [OP_call] = SCALING_drop,
    [OP_is_finite] = SCALING_drop,
    [OP_eq] = SCALING_zero,
    [OP_ne] = SCALING_zero,
    [OP_neg] = SCALING_all,
    [OP_detach] = SCALING_all,
    [OP_again] = SCALING_all,
    [OP_add] = SCALING_all,
    [OP_sub] = SCALING_all,
    [OP_mul] = SCALING_product,
    [OP_div] = SCALING_first,
    [OP_select] = SCALING_branches,
    [OP_reshape] = SCALING_all,
    [OP_transpose] = SCALING_all,
    [OP_broadcast] = SCALING_all,
    [OP_slice] = SCALING_all,
    [OP_reverse] = SCALING_all,
    [OP_pad] = SCALING_all,
    [OP_concat] = SCALING_all,
    [OP_reduce_sum] = SCALING_all,
    [OP_cumsum] = SCALING_all,
    [OP_dot] = SCALING_product,
    [OP_take] = SCALING_first,
    [OP_scatter_add] = SCALING_second,
    [OP_attention_dq] = SCALING_fourth,
    [OP_attention_dk] = SCALING_fourth,
    [OP_attention_dv] = SCALING_fourth,
};

static uint32_t scaled_mask(const Shape *s) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->types[i]->scaled)
            mask |= 1u << (i < 31 ? i : 31);
    return mask;
}

/* Whether the operands `mask` may be scaled, and if the result then is. */
static bool scaling_fits(const Shape *s, uint32_t mask, bool *result) {
    uint32_t every = (uint32_t)((UINT64_C(1) << (s->count < 32 ? s->count : 32)) - 1);
    *result = mask != 0;
    switch ((Scaling)scaling[s->op]) {
    case SCALING_none:
        return mask == 0;
    case SCALING_all:
        return mask == 0 || mask == every;
    case SCALING_product:
        if (s->count == 3)
            return mask == 0 || mask == 5 || mask == 6;
        return mask != 3;
    case SCALING_first:
        return (mask & ~1u) == 0;
    case SCALING_second:
        return s->count == 3 ? mask == 0 || mask == 6 : (mask & ~2u) == 0;
    case SCALING_branches:
        return mask == 0 || mask == 6;
    case SCALING_fourth:
        return (mask & ~8u) == 0;
    case SCALING_drop:
        *result = false;
        return true;
    case SCALING_zero:
        *result = false;
        return mask == 0 || mask == every;
    case SCALING_wanted:
        *result = s->wanted ? s->wanted->scaled : s->result.scaled;
        return true;
    }
    return false;
}

/* A scaled zero is a zero: constants that are 0 go with any operand. */
static uint32_t zero_mask(const Shape *s) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < s->count && i < 31; i++) {
        const Node *node = tg_node(s->func, s->operands[i]);
        if (node->op == OP_const && node->attr->dense == NULL && node->attr->number == 0)
            mask |= 1u << i;
    }
    return mask;
}

bool shape_apply_scaling(Shape *s) {
    uint32_t mask = scaled_mask(s);
    bool scaled, all = scaling[s->op] == SCALING_all || scaling[s->op] == SCALING_branches || scaling[s->op] == SCALING_zero;
    if (mask != 0 && all)
        mask |= zero_mask(s) & (scaling[s->op] == SCALING_branches ? 6u : ~0u);
    if (!scaling_fits(s, mask, &scaled))
        return shape_fail(s, "it is not linear in a scaled operand, or its operands are scaled differently");
    s->result.scaled = scaled;
    return true;
}
