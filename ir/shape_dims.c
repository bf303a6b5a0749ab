/* Shape rules of views and reductions. */
#include "ir/shape.h"

/* ---- shape ---- */

static bool same_element(Shape *s, const Type *operand) {
    return s->wanted->dtype == operand->dtype || shape_fail(s, "it keeps the element type: %s cannot become %s",
                                                            shape_show(s, operand), shape_show(s, s->wanted));
}

/* Elements before the batch dimension: B major means that a reshape cannot move anything across it. */
static int64_t outer_count(const Type *type) {
    int64_t count = 1;
    for (int d = 0; d < type->rank && !type->dims[d].batch; d++)
        count *= type->dims[d].size;
    return count;
}

bool shape_reshape(Shape *s) {
    if (!shape_needs_wanted(s) || !same_element(s, s->types[0]))
        return false;
    const Type *from = s->types[0], *to = s->wanted;
    s->result = *to;
    bool from_batch = tg_type_batch_axis(from) >= 0, to_batch = tg_type_batch_axis(to) >= 0;
    int64_t count = tg_type_count(from, 1);
    if (from_batch != to_batch || count != tg_type_count(to, 1))
        return shape_fail(s, "%s and %s have different numbers of elements", shape_show(s, from), shape_show(s, to));
    if (from_batch && count > 0 && outer_count(from) != outer_count(to))
        return shape_fail(s, "%s cannot become %s: elements would cross the batch dimension", shape_show(s, from),
                          shape_show(s, to));
    return true;
}

bool shape_transpose(Shape *s) {
    const Type *from = s->types[0];
    Ints perm = s->attr->list[0];
    if (!shape_list_per_dim(s, 0, "perm", from))
        return false;
    s->result = *from;
    unsigned seen = 0;
    for (uint32_t i = 0; i < perm.count; i++) {
        if (!shape_valid_axis(s, perm.at[i], from))
            return false;
        seen |= 1u << perm.at[i];
        s->result.dims[i] = from->dims[perm.at[i]];
    }
    return seen == (1u << from->rank) - 1 || shape_fail(s, "`perm` names a dimension of %s twice", shape_show(s, from));
}

bool shape_broadcast(Shape *s) {
    const Type *from = s->types[0];
    if (!shape_needs_wanted(s) || !same_element(s, from) || !shape_list_per_dim(s, 0, "dims", from) ||
        !shape_ascending_axes(s, s->attr->list[0], s->wanted))
        return false;
    s->result = *s->wanted;
    for (int d = 0; d < from->rank; d++) {
        Dim have = from->dims[d], need = s->wanted->dims[s->attr->list[0].at[d]];
        bool one = have.size == 1 && !have.batch;
        if (!one && !tg_dim_equal(have, need))
            return shape_fail(s, "dimension %d of %s (%s) cannot become %s in %s", d, shape_show(s, from),
                              shape_show_dim(s, have), shape_show_dim(s, need), shape_show(s, s->wanted));
    }
    return true;
}

bool shape_slice(Shape *s) {
    const Type *from = s->types[0];
    if (!shape_list_per_dim(s, 0, "start", from) || !shape_list_per_dim(s, 1, "limit", from) ||
        !shape_list_per_dim(s, 2, "stride", from))
        return false;
    s->result = *from;
    for (int d = 0; d < from->rank; d++) {
        int64_t start = s->attr->list[0].at[d], limit = s->attr->list[1].at[d], stride = s->attr->list[2].at[d];
        Dim dim = from->dims[d];
        if (start < 0 || start > limit || limit > dim.size || stride < 1)
            return shape_fail(s, "[%lld:%lld:%lld] is no range of dimension %d of %s", (long long)start,
                              (long long)limit, (long long)stride, d, shape_show(s, from));
        if (dim.batch && (start != 0 || limit != dim.size || stride != 1))
            return shape_not_along_batch(s, d, from);
        s->result.dims[d].size = dim.batch ? dim.size : (limit - start + stride - 1) / stride;
    }
    return true;
}

bool shape_pad(Shape *s) {
    const Type *from = s->types[0];
    if (!shape_list_per_dim(s, 0, "low", from) || !shape_list_per_dim(s, 1, "high", from) ||
        !shape_list_per_dim(s, 2, "interior", from))
        return false;
    s->result = *from;
    for (int d = 0; d < from->rank; d++) {
        int64_t low = s->attr->list[0].at[d], high = s->attr->list[1].at[d], interior = s->attr->list[2].at[d];
        Dim *dim = &s->result.dims[d];
        if (low < 0 || high < 0 || interior < 0)
            return shape_fail(s, "negative padding in dimension %d of %s", d, shape_show(s, from));
        if (dim->batch && (low || high || interior))
            return shape_not_along_batch(s, d, from);
        int64_t size = dim->size, gaps;
        if (__builtin_mul_overflow(size > 0 ? size - 1 : 0, interior, &gaps) ||
            __builtin_add_overflow(size, gaps, &size) || __builtin_add_overflow(size, low, &size) ||
            __builtin_add_overflow(size, high, &size))
            return shape_fail(s, "padding in dimension %d of %s is too large", d, shape_show(s, from));
        dim->size = size;
    }
    return true;
}

bool shape_concat(Shape *s) {
    const Type *first = s->types[0];
    int64_t axis, size = 0;
    if (!shape_plain_axis(s, first, &axis))
        return false;
    for (uint32_t i = 0; i < s->count; i++) {
        const Type *type = s->types[i];
        Type like = *type;
        if (type->rank == first->rank)
            like.dims[axis] = first->dims[axis];
        if (type->dtype != first->dtype || !tg_shape_equal(&like, first) || type->dims[axis].batch)
            return shape_fail(s, "%s and %s differ in more than dimension %lld", shape_show(s, first),
                              shape_show(s, type), (long long)axis);
        if (__builtin_add_overflow(size, type->dims[axis].size, &size))
            return shape_fail(s, "its result is too large");
    }
    s->result = *first;
    s->result.dims[axis].size = size;
    return true;
}

/* ---- reductions ---- */

static void drop_axes(Type *result, const Type *from, Ints axes) {
    result->rank = 0;
    uint32_t next = 0;
    for (int d = 0; d < from->rank; d++) {
        if (next < axes.count && axes.at[next] == d)
            next++;
        else
            result->dims[result->rank++] = from->dims[d];
    }
}

bool shape_reduce(Shape *s) {
    const Type *from = s->types[0];
    Ints axes = s->attr->list[0];
    if (axes.count == 0)
        return shape_fail(s, "it needs an axis");
    if (!shape_ascending_axes(s, axes, from) || !shape_is_kind(s, from->dtype != DT_BOOL, "numbers"))
        return false;
    s->result = *from;
    drop_axes(&s->result, from, axes);
    return shape_good_split(s, tg_type_batch_axis(from) >= 0 && tg_type_batch_axis(&s->result) < 0);
}

bool shape_argmax(Shape *s) {
    const Type *from = s->types[0];
    int64_t axis;
    if (!shape_plain_axis(s, from, &axis) || !shape_is_kind(s, from->dtype != DT_BOOL, "numbers"))
        return false;
    if (from->dims[axis].size == 0)
        return shape_fail(s, "dimension %lld of %s is empty", (long long)axis, shape_show(s, from));
    s->result = *from;
    s->result.dtype = DT_I32;
    drop_axes(&s->result, from, (Ints){&axis, 1});
    return true;
}
