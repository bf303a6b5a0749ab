/* Shape rules of contractions, tables and attention. */
#include "ir/shape.h"

#include <string.h>

/* ---- contractions ---- */

/* Marks the named axes; false when one is not there or named twice. */
static bool mark_axes(Shape *s, const Type *type, Ints axes, bool *used) {
    for (uint32_t i = 0; i < axes.count; i++) {
        if (!shape_valid_axis(s, axes.at[i], type))
            return false;
        if (used[axes.at[i]])
            return shape_fail(s, "dimension %lld of %s is named twice", (long long)axes.at[i], shape_show(s, type));
        used[axes.at[i]] = true;
    }
    return true;
}

static bool matching_axes(Shape *s, Ints a, Ints b, const char *what) {
    if (a.count != b.count)
        return shape_fail(s, "%u and %u %s axes", a.count, b.count, what);
    for (uint32_t i = 0; i < a.count; i++) {
        Dim x = s->types[0]->dims[a.at[i]], y = s->types[1]->dims[b.at[i]];
        if (!tg_dim_equal(x, y))
            return shape_fail(s, "%s and %s differ where they are %s: dimension %lld is %s, dimension %lld is %s",
                              shape_show(s, s->types[0]), shape_show(s, s->types[1]), what, (long long)a.at[i],
                              shape_show_dim(s, x), (long long)b.at[i], shape_show_dim(s, y));
    }
    return true;
}

static bool push_dim(Shape *s, Type *type, Dim dim) {
    if (type->rank == TG_MAX_RANK)
        return shape_fail(s, "its result has more than %d dimensions", TG_MAX_RANK);
    type->dims[type->rank++] = dim;
    return true;
}

static bool push_free(Shape *s, Type *to, const Type *from, const bool *used) {
    for (int d = 0; d < from->rank; d++)
        if (!used[d] && !push_dim(s, to, from->dims[d]))
            return false;
    return true;
}

static DType wanted_dtype(const Shape *s) { return s->wanted ? s->wanted->dtype : s->types[0]->dtype; }

static bool low_or_f32(Shape *s, DType dtype) {
    if (dtype == s->types[0]->dtype || dtype == DT_F32)
        return true;
    return shape_fail(s, "%s gives its own element type or f32, not %s", shape_show(s, s->types[0]),
                      tg_dtype(dtype)->name);
}

/* A bias, or what the products are added to. */
static bool dot_third(Shape *s, const bool *used_b) {
    if (s->count < 3)
        return true;
    Type free = {0};
    if (!push_free(s, &free, s->types[1], used_b))
        return false;
    free.dtype = s->types[2]->dtype;
    if (tg_shape_equal(&s->result, s->types[2]) && s->result.rank > free.rank && s->types[2]->dtype == s->result.dtype)
        return true;
    if (!tg_shape_equal(&free, s->types[2]))
        return shape_fail(s, "its bias is %s, it needs %s", shape_show(s, s->types[2]), shape_show(s, &free));
    return low_or_f32(s, free.dtype);
}

bool shape_dot(Shape *s) {
    const Type *a = s->types[0], *b = s->types[1];
    Ints batch_a = s->attr->list[0], batch_b = s->attr->list[1], contract_a = s->attr->list[2],
         contract_b = s->attr->list[3];
    bool used_a[TG_MAX_RANK] = {0}, used_b[TG_MAX_RANK] = {0}, over_batch = false;
    if (a->dtype != b->dtype)
        return shape_fail(s, "%s and %s have different element types", shape_show(s, a), shape_show(s, b));
    if (!shape_is_kind(s, tg_is_float(a->dtype), "a floating-point type"))
        return false;
    if (!mark_axes(s, a, batch_a, used_a) || !mark_axes(s, a, contract_a, used_a) ||
        !mark_axes(s, b, batch_b, used_b) || !mark_axes(s, b, contract_b, used_b) ||
        !matching_axes(s, batch_a, batch_b, "matched") || !matching_axes(s, contract_a, contract_b, "contracted"))
        return false;
    s->result = (Type){.dtype = wanted_dtype(s)};
    for (uint32_t i = 0; i < batch_a.count; i++)
        if (!push_dim(s, &s->result, a->dims[batch_a.at[i]]))
            return false;
    for (uint32_t i = 0; i < contract_a.count; i++)
        over_batch |= a->dims[contract_a.at[i]].batch;
    return push_free(s, &s->result, a, used_a) && push_free(s, &s->result, b, used_b) && dot_third(s, used_b) &&
           low_or_f32(s, s->result.dtype) && shape_good_split(s, over_batch);
}

/* ---- tables ---- */

/* `table` with dimension `axis` replaced by those of `indices`. */
static bool taken(Shape *s, const Type *table, int64_t axis, const Type *indices, Type *rows) {
    *rows = (Type){.dtype = table->dtype};
    for (int d = 0; d < table->rank; d++) {
        if (d != axis && !push_dim(s, rows, table->dims[d]))
            return false;
        for (int i = 0; d == axis && i < indices->rank; i++)
            if (!push_dim(s, rows, indices->dims[i]))
                return false;
    }
    return true;
}

static bool integer_indices(Shape *s, const Type *indices) {
    return tg_is_integer(indices->dtype) ||
           shape_fail(s, "its indices %s are not of an integer type", shape_show(s, indices));
}

bool shape_take(Shape *s) {
    int64_t axis;
    return shape_plain_axis(s, s->types[0], &axis) && integer_indices(s, s->types[1]) &&
           taken(s, s->types[0], axis, s->types[1], &s->result);
}

bool shape_scatter_add(Shape *s) {
    int64_t axis;
    Type rows;
    if (!shape_needs_wanted(s) || !shape_plain_axis(s, s->wanted, &axis) || !integer_indices(s, s->types[0]) ||
        !taken(s, s->wanted, axis, s->types[0], &rows))
        return false;
    s->result = *s->wanted;
    if (s->count == 3 && (s->types[2]->dtype != s->result.dtype || !tg_shape_equal(s->types[2], &s->result)))
        return shape_fail(s, "it adds to %s, not to %s", shape_show(s, s->wanted), shape_show(s, s->types[2]));
    bool widened = rows.dtype == DT_F32 && tg_is_low(s->types[1]->dtype);
    if ((rows.dtype == s->types[1]->dtype || widened) && tg_shape_equal(&rows, s->types[1]))
        return shape_is_kind(s, rows.dtype != DT_BOOL, "numbers");
    return shape_fail(s, "rows of %s at %s are %s, not %s", shape_show(s, s->wanted), shape_show(s, s->types[0]),
                      shape_show(s, &rows), shape_show(s, s->types[1]));
}

/* ---- attention ---- */

static bool leading_equal(const Type *a, const Type *b, int dims) {
    for (int d = 0; d < dims; d++)
        if (!tg_dim_equal(a->dims[d], b->dims[d]))
            return false;
    return true;
}

static bool attention_mask(Shape *s, uint32_t index) {
    if (s->count <= index)
        return true;
    const Type *q = s->types[0], *k = s->types[1], *mask = s->types[index];
    Type need = {.dtype = DT_BOOL, .rank = q->rank - 1};
    memcpy(need.dims, q->dims, sizeof need.dims);
    need.dims[q->rank - 3] = q->dims[q->rank - 2];
    need.dims[q->rank - 2] = k->dims[q->rank - 2];
    return (mask->dtype == DT_BOOL && tg_shape_equal(mask, &need)) ||
           shape_fail(s, "its mask is %s, it needs %s", shape_show(s, mask), shape_show(s, &need));
}

static bool attention_operands(Shape *s) {
    const Type *q = s->types[0], *k = s->types[1], *v = s->types[2];
    int rank = q->rank;
    if (rank < 3 || k->rank != rank || v->rank != rank || q->dtype != k->dtype || q->dtype != v->dtype ||
        !tg_is_float(q->dtype))
        return shape_fail(
            s, "queries %s, keys %s and values %s need at least three dimensions and one floating-point type",
            shape_show(s, q), shape_show(s, k), shape_show(s, v));
    for (int d = rank - 3; d < rank; d++)
        if (q->dims[d].batch || k->dims[d].batch || v->dims[d].batch)
            return shape_fail(s, "heads, positions and features cannot hold the batch: %s, %s, %s", shape_show(s, q),
                              shape_show(s, k), shape_show(s, v));
    int64_t heads = q->dims[rank - 3].size, kv = k->dims[rank - 3].size;
    if (!leading_equal(q, k, rank - 3) || !leading_equal(k, v, rank - 1) ||
        !tg_dim_equal(q->dims[rank - 1], k->dims[rank - 1]) || !tg_dim_equal(k->dims[rank - 1], v->dims[rank - 1]))
        return shape_fail(s, "queries %s, keys %s and values %s do not fit", shape_show(s, q), shape_show(s, k),
                          shape_show(s, v));
    return (kv > 0 && heads % kv == 0) ||
           shape_fail(s, "%lld key heads do not divide %lld query heads", (long long)kv, (long long)heads);
}

bool shape_attention(Shape *s) {
    if (!attention_operands(s) || !attention_mask(s, 3))
        return false;
    s->result = *s->types[0];
    s->result.dtype = wanted_dtype(s);
    return low_or_f32(s, s->result.dtype);
}

bool shape_attention_d(Shape *s) {
    if (!attention_operands(s) || !attention_mask(s, 4))
        return false;
    if (!tg_shape_equal(s->types[0], s->types[3]))
        return shape_fail(s, "the cotangent is %s, not of the shape of %s", shape_show(s, s->types[3]),
                          shape_show(s, s->types[0]));
    if (s->types[3]->dtype != s->types[0]->dtype)
        return shape_fail(s, "the cotangent is %s, not of the type of %s", shape_show(s, s->types[3]), shape_show(s, s->types[0]));
    s->result = *s->types[s->op == OP_attention_dq ? 0 : s->op == OP_attention_dk ? 1 : 2];
    s->result.dtype = wanted_dtype(s);
    return low_or_f32(s, s->result.dtype);
}
