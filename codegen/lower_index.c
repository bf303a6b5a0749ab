/* Symbolic places: sums of digits of loop variables. */
#include "codegen/divisor.h"
#include "codegen/lower.h"

#include <string.h>

uint32_t tg_lower_var(Lower *l, int64_t extent, int depth) {
    tg_push(l->arena, &l->vars, (Var){.kind = VAR_LOOP, .extent = extent, .depth = depth});
    return l->vars.count - 1;
}

Index tg_index_const(int64_t value) { return (Index){.constant = value}; }

Index tg_index_var(const Lower *l, uint32_t var) {
    Index index = {0};
    if (l->vars.at[var].extent != 1) {
        index.count = 1;
        index.at[0] = (Term){.var = var, .div = 1, .mod = l->vars.at[var].extent, .coeff = 1};
    }
    return index;
}

/* The upper digit `a` and the lower `b` as one term, if they are neighbours. */
static bool joined(const Term *a, const Term *b, Term *out) {
    if (a->var != b->var)
        return false;
    if (a->div == b->div && a->mod == b->mod) {
        *out = *a;
        out->coeff = a->coeff + b->coeff;
        return true;
    }
    if (a->div == b->div * b->mod && a->coeff == b->coeff * b->mod) {
        *out = (Term){.var = a->var, .div = b->div, .mod = a->mod * b->mod, .coeff = b->coeff};
        return true;
    }
    return false;
}

static void remove_term(Index *index, uint32_t i) {
    memmove(&index->at[i], &index->at[i + 1], (index->count - i - 1) * sizeof(Term));
    index->count--;
}

static void add_term(Lower *l, Index *index, Term term) {
    if (term.coeff == 0 || term.mod == 1)
        return;
    for (uint32_t i = 0; i < index->count; i++) {
        Term sum;
        if (joined(&index->at[i], &term, &sum) || joined(&term, &index->at[i], &sum)) {
            remove_term(index, i);
            add_term(l, index, sum);
            return;
        }
    }
    if (index->count == INDEX_TERMS) {
        tg_lower_fail(l, 0, TG_INTERNAL, "an index of too many digits");
        return;
    }
    uint32_t at = index->count++;
    for (; at > 0; at--) {
        const Term *before = &index->at[at - 1];
        if (before->var < term.var || (before->var == term.var && before->div > term.div))
            break;
        index->at[at] = *before;
    }
    index->at[at] = term;
}

void tg_index_add(Lower *l, Index *to, const Index *from, int64_t scale) {
    to->constant += from->constant * scale;
    for (uint32_t i = 0; i < from->count; i++) {
        Term term = from->at[i];
        term.coeff *= scale;
        add_term(l, to, term);
    }
}

/* Least and greatest value. */
static void bounds(const Index *index, int64_t *low, int64_t *high) {
    *low = *high = index->constant;
    for (uint32_t i = 0; i < index->count; i++) {
        int64_t reach = index->at[i].coeff * (index->at[i].mod - 1);
        *(reach < 0 ? low : high) += reach;
    }
}

static bool split_term(Lower *l, Term t, int64_t by, Index *quotient, Index *remainder) {
    if (t.coeff % by == 0) {
        t.coeff /= by;
        add_term(l, quotient, t);
        return true;
    }
    if (t.coeff < 0)
        return false;
    if (t.coeff * (t.mod - 1) < by) {
        add_term(l, remainder, t);
        return true;
    }
    int64_t low = by / t.coeff;
    if (by % t.coeff != 0 || t.mod % low != 0)
        return false;
    add_term(l, remainder, (Term){.var = t.var, .div = t.div, .mod = low, .coeff = t.coeff});
    add_term(l, quotient, (Term){.var = t.var, .div = t.div * low, .mod = t.mod / low, .coeff = 1});
    return true;
}

static Index opaque(Lower *l, VarKind kind, const Index *of, int64_t by, int64_t extent) {
    for (uint32_t i = 1; i < l->vars.count; i++) {
        const Var *var = &l->vars.at[i];
        if (var->kind == kind && var->by == by && tg_index_equal(var->of, of))
            return tg_index_var(l, i);
    }
    Var var = {.kind = kind, .extent = extent, .depth = tg_index_depth(l, of), .by = by};
    var.of = tg_arena_copy(l->arena, of, sizeof *of);
    tg_push(l->arena, &l->vars, var);
    return tg_index_var(l, l->vars.count - 1);
}

void tg_index_split(Lower *l, const Index *from, int64_t by, Index *quotient, Index *remainder) {
    *quotient = *remainder = (Index){0};
    if (by <= 0)
        return;
    int64_t rest = ((from->constant % by) + by) % by, low, high;
    quotient->constant = (from->constant - rest) / by;
    remainder->constant = rest;
    bool digits = true;
    for (uint32_t i = 0; digits && i < from->count; i++)
        digits = split_term(l, from->at[i], by, quotient, remainder);
    bounds(remainder, &low, &high);
    if (digits && low >= 0 && high < by)
        return;
    bounds(from, &low, &high);
    *quotient = opaque(l, VAR_QUOTIENT, from, by, high / by + 1);
    *remainder = opaque(l, VAR_REMAINDER, from, by, by);
}

bool tg_index_equal(const Index *a, const Index *b) {
    if (a->constant != b->constant || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const Term *x = &a->at[i], *y = &b->at[i];
        if (x->var != y->var || x->div != y->div || x->mod != y->mod || x->coeff != y->coeff)
            return false;
    }
    return true;
}

int tg_index_depth(const Lower *l, const Index *index) {
    int depth = 0;
    for (uint32_t i = 0; i < index->count; i++)
        if (l->vars.at[index->at[i].var].depth > depth)
            depth = l->vars.at[index->at[i].var].depth;
    return depth;
}

int tg_place_depth(const Lower *l, const Place *place) {
    int depth = 0;
    for (uint32_t i = 0; i < place->rank; i++) {
        int of = tg_index_depth(l, &place->at[i]);
        depth = of > depth ? of : depth;
    }
    return depth;
}

int64_t tg_dim_extent(const Lower *l, Dim dim) { return dim.batch ? dim.size * l->capacity : dim.size; }

int64_t tg_type_extent(const Lower *l, const Type *type) { return tg_type_count(type, l->capacity); }

Place *tg_index_unflatten(Lower *l, const Index *flat, const Type *type) {
    Place *place = TG_ALLOC(l->arena, Place, 1);
    place->rank = type->rank;
    int first = 0;
    while (first < type->rank && tg_dim_extent(l, type->dims[first]) == 1)
        first++;
    Index rest = *flat;
    for (int i = type->rank - 1; i > first; i--) {
        int64_t extent = tg_dim_extent(l, type->dims[i]);
        if (extent == 1)
            continue;
        Index quotient;
        tg_index_split(l, &rest, extent, &quotient, &place->at[i]);
        rest = quotient;
    }
    if (first < type->rank)
        place->at[first] = rest;
    return place;
}

Index tg_place_flatten(Lower *l, const Place *place, const Type *type) {
    Index flat = {0};
    int64_t stride = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        tg_index_add(l, &flat, &place->at[i], stride);
        stride *= tg_dim_extent(l, type->dims[i]);
    }
    return flat;
}

static LoopId loop_int(Lower *l, int64_t value) { return tg_loop_int(l->k, DT_I64, value); }

static LoopId var_value(Lower *l, uint32_t number) {
    const Var *var = &l->vars.at[number];
    if (var->kind == VAR_LOOP)
        return var->id;
    if (var->kind == VAR_TAKEN || var->kind == VAR_CLAMPED) {
        int64_t last = var->by - 1, step = var->step;
        LoopId index = var->kind == VAR_TAKEN ? tg_lower_index(l, var->node, var->place) : tg_index_value(l, var->of);
        if (step > 1)
            index = tg_loop_op(l->k, LOOP_idiv, index, loop_int(l, step), 0);
        index = tg_loop_op(l->k, LOOP_imax, index, loop_int(l, 0), 0);
        return tg_loop_op(l->k, LOOP_imin, index, loop_int(l, last), 0);
    }
    LoopOp op = var->kind == VAR_QUOTIENT ? LOOP_udiv : LOOP_urem;
    int64_t by = var->by;
    LoopId of = tg_index_value(l, var->of);
    return tg_loop_op(l->k, op, of, loop_int(l, by), 0);
}

static LoopId term_value(Lower *l, const Term *term) {
    LoopId value = var_value(l, term->var);
    bool top = term->div * term->mod >= l->vars.at[term->var].extent;
    if (term->div != 1)
        value = tg_loop_op(l->k, LOOP_udiv, value, loop_int(l, term->div), 0);
    if (!top)
        value = tg_loop_op(l->k, LOOP_urem, value, loop_int(l, term->mod), 0);
    return tg_loop_op(l->k, LOOP_imul, value, loop_int(l, term->coeff), 0);
}

/* The sum of all terms but one. */
static LoopId sum_value(Lower *l, const Index *index, uint32_t but) {
    LoopId sum = loop_int(l, index->constant);
    for (uint32_t i = 0; i < index->count; i++)
        if (i != but)
            sum = tg_loop_op(l->k, LOOP_iadd, sum, term_value(l, &index->at[i]), 0);
    return sum;
}

LoopId tg_index_value(Lower *l, const Index *index) { return sum_value(l, index, UINT32_MAX); }

LoopId tg_index_address(Lower *l, const Index *index, int64_t *stride) {
    *stride = 0;
    uint32_t whole = UINT32_MAX, varying = 0;
    for (uint32_t i = 0; l->vector != 0 && i < index->count; i++) {
        const Term *term = &index->at[i];
        varying += l->vars.at[term->var].depth >= l->vars.at[l->vector].depth && l->vars.at[term->var].kind != VAR_LOOP;
        if (term->var != l->vector)
            continue;
        varying++;
        if (term->div == 1 && term->mod == l->vars.at[l->vector].extent)
            whole = i;
    }
    if (varying != 1)
        whole = UINT32_MAX;
    if (whole != UINT32_MAX)
        *stride = index->at[whole].coeff;
    return sum_value(l, index, whole);
}

void tg_index_measure(Lower *l, const Index *index) {
    for (uint32_t i = 0; i < index->count; i++) {
        const Term *term = &index->at[i];
        const Var *var = &l->vars.at[term->var];
        if (var->kind == VAR_QUOTIENT || var->kind == VAR_REMAINDER) {
            tg_index_measure(l, var->of);
            continue;
        }
        if (var->kind != VAR_LOOP)
            continue;
        if (term->div > 1)
            l->common = tg_common_divisor(l->common, term->div);
        if (term->div * term->mod < var->extent)
            l->common = tg_common_divisor(l->common, term->div * term->mod);
    }
}
