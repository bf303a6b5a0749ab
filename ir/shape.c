/* The shape rules of ops.def: the result's type from operands and attributes, or the reason why there is none. Rules
   look at element types and dimensions; what a scaled operand means is the table `scaling` below. */
#include "ir/build.h"

#include <stdlib.h>
#include <string.h>

typedef struct Shape {
    Graph *graph;
    Op op;
    const Attr *attr;
    const Type **types; /* of the operands */
    const NodeId *operands;
    const Func *func;
    uint32_t count;
    const Type *wanted; /* NULL: none */
    Type result;
    bool no_value;
    const char *why;
} Shape;

static bool fail(Shape *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Shape *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(s->graph->arena, format, args);
    va_end(args);
    s->why = tg_arena_printf(s->graph->arena, "%s: %s", tg_op(s->op)->name, text);
    return false;
}

static const char *show(Shape *s, const Type *type) {
    Str text = tg_str(s->graph->arena);
    tg_type_print(&text, type);
    return text.text;
}

static const char *show_dim(Shape *s, Dim dim) {
    if (!dim.batch)
        return tg_arena_printf(s->graph->arena, "%lld", (long long)dim.size);
    return dim.size == 1 ? "B" : tg_arena_printf(s->graph->arena, "B*%lld", (long long)dim.size);
}

/* ---- attributes ---- */

static bool valid_axis(Shape *s, int64_t axis, const Type *type) {
    if (axis >= 0 && axis < type->rank)
        return true;
    return fail(s, "there is no dimension %lld in %s", (long long)axis, show(s, type));
}

static bool not_along_batch(Shape *s, int64_t axis, const Type *type) {
    if (!type->dims[axis].batch)
        return true;
    return fail(s, "dimension %lld of %s is the batch; this op cannot run along it", (long long)axis, show(s, type));
}

/* The one integer of an attribute that must be there: an axis of `type`, not the batch. */
static bool plain_axis(Shape *s, const Type *type, int64_t *axis) {
    if (s->attr->list[0].count != 1)
        return fail(s, "it needs an axis");
    *axis = s->attr->list[0].at[0];
    return valid_axis(s, *axis, type) && not_along_batch(s, *axis, type);
}

static bool ascending_axes(Shape *s, Ints axes, const Type *type) {
    for (uint32_t i = 0; i < axes.count; i++) {
        if (!valid_axis(s, axes.at[i], type))
            return false;
        if (i > 0 && axes.at[i] <= axes.at[i - 1])
            return fail(s, "axes must ascend, %lld follows %lld", (long long)axes.at[i], (long long)axes.at[i - 1]);
    }
    return true;
}

static bool list_per_dim(Shape *s, int list, const char *name, const Type *type) {
    if (s->attr->list[list].count == type->rank)
        return true;
    return fail(s, "`%s` has %u values for the %u dimensions of %s", name, s->attr->list[list].count, type->rank,
                show(s, type));
}

static bool good_split(Shape *s, bool over_batch) {
    int64_t split = tg_attr_int(s->attr, 1, 1);
    if (s->op == OP_dot)
        split = tg_attr_int(s->attr, 4, 1);
    if (split < 0)
        return fail(s, "it cannot be split into %lld pieces", (long long)split);
    return split <= 1 || over_batch || fail(s, "only a sum over the batch is split, this one is not");
}

/* ---- leaves ---- */

static bool needs_wanted(Shape *s) { return s->wanted != NULL || fail(s, "its type must be given"); }

static bool want(Shape *s, const Type *type) {
    s->result = *type;
    if (s->wanted == NULL || (s->wanted->dtype == type->dtype && tg_shape_equal(s->wanted, type)))
        return true;
    return fail(s, "its type is %s, not %s", show(s, type), show(s, s->wanted));
}

static bool leaf_buffer(Shape *s) {
    if (s->attr->ref >= s->graph->buffers.count)
        return fail(s, "there is no buffer %u", s->attr->ref);
    return want(s, tg_type_of(&s->graph->types, s->graph->buffers.at[s->attr->ref].type));
}

static bool leaf_const(Shape *s) {
    if (!needs_wanted(s))
        return false;
    s->result = *s->wanted;
    if (s->attr->dense != NULL && tg_type_batch_axis(s->wanted) >= 0)
        return fail(s, "%s has the batch in it and cannot be a list of values", show(s, s->wanted));
    return true;
}

static bool leaf_arg(Shape *s) {
    if (s->attr->list[0].count != 1 || s->attr->list[0].at[0] < 0)
        return fail(s, "it needs an index");
    uint64_t index = (uint64_t)s->attr->list[0].at[0];
    if (s->func != NULL && index < s->func->args.count)
        return want(s, tg_type_of(&s->graph->types, s->func->args.at[index].type));
    return needs_wanted(s) && want(s, s->wanted);
}

static bool leaf_load(Shape *s) {
    if (tg_attr_int(s->attr, 0, 0) < 0)
        return fail(s, "there is no lane %lld", (long long)s->attr->list[0].at[0]);
    return leaf_buffer(s);
}

static bool leaf_scalar(Shape *s) {
    if (s->attr->ref >= s->graph->scalars.count)
        return fail(s, "there is no run-time scalar %u", s->attr->ref);
    return want(s, &(Type){.dtype = DT_F64});
}

static bool leaf_result(Shape *s) {
    const Node *call = tg_node(s->func, s->operands[0]);
    if (call->op != OP_call)
        return fail(s, "its operand is no call");
    const Func *kernel = s->graph->funcs.at[call->attr->ref];
    int64_t index = tg_attr_int(s->attr, 0, 0);
    if (index < 0 || index >= kernel->results.count)
        return fail(s, "%s has %u results, there is no %lld", kernel->name, kernel->results.count, (long long)index);
    return want(s, tg_node_type(s->graph, kernel, kernel->results.at[index].node));
}

static bool shape_leaf(Shape *s) {
    switch (s->op) {
    case OP_const:
        return leaf_const(s);
    case OP_arg:
        return leaf_arg(s);
    case OP_load:
        return leaf_load(s);
    case OP_gradient:
        return leaf_buffer(s);
    case OP_scalar:
        return leaf_scalar(s);
    default:
        return leaf_result(s);
    }
}

static bool shape_iota(Shape *s) {
    int64_t axis;
    if (!needs_wanted(s) || !plain_axis(s, s->wanted, &axis))
        return false;
    s->result = *s->wanted;
    return s->wanted->dtype != DT_BOOL || fail(s, "its values are numbers, not bool");
}

static bool shape_random(Shape *s) {
    if (!needs_wanted(s))
        return false;
    s->result = *s->wanted;
    return tg_is_float(s->wanted->dtype) ||
           fail(s, "its values lie in [0, 1), %s has none", tg_dtype(s->wanted->dtype)->name);
}

/* ---- pointwise ---- */

static bool equal_operands(Shape *s, uint32_t first) {
    const Type *a = s->types[first];
    for (uint32_t i = first + 1; i < s->count; i++) {
        const Type *b = s->types[i];
        if (a->dtype != b->dtype)
            return fail(s, "%s and %s have different element types", show(s, a), show(s, b));
        if (a->rank != b->rank)
            return fail(s, "%s and %s have different numbers of dimensions", show(s, a), show(s, b));
        for (int d = 0; d < a->rank; d++)
            if (!tg_dim_equal(a->dims[d], b->dims[d]))
                return fail(s, "%s and %s differ in dimension %d (%s and %s)", show(s, a), show(s, b), d,
                            show_dim(s, a->dims[d]), show_dim(s, b->dims[d]));
    }
    return true;
}

static bool is_kind(Shape *s, bool fits, const char *wanted) {
    return fits || fail(s, "%s is not of %s", show(s, s->types[0]), wanted);
}

static bool shape_same(Shape *s) {
    s->result = *s->types[0];
    if (!equal_operands(s, 0))
        return false;
    int64_t axis;
    if (s->op == OP_detach)
        return true;
    if (s->op == OP_reverse) {
        if (!ascending_axes(s, s->attr->list[0], s->types[0]))
            return false;
        for (uint32_t i = 0; i < s->attr->list[0].count; i++)
            if (!not_along_batch(s, s->attr->list[0].at[i], s->types[0]))
                return false;
        return true;
    }
    if (!is_kind(s, s->result.dtype != DT_BOOL, "numbers"))
        return false;
    return s->op != OP_cumsum || plain_axis(s, s->types[0], &axis);
}

static bool shape_float_(Shape *s) {
    s->result = *s->types[0];
    return equal_operands(s, 0) && is_kind(s, tg_is_float(s->result.dtype), "a floating-point type");
}

static bool shape_bool_(Shape *s) {
    s->result = *s->types[0];
    return equal_operands(s, 0) && is_kind(s, s->result.dtype == DT_BOOL, "bool");
}

static bool shape_integer(Shape *s) {
    s->result = *s->types[0];
    if (s->attr->list[0].count != 1 || s->attr->list[1].count != 1 || s->attr->list[2].count > 1)
        return fail(s, "it needs `low` and `high`, and at most one `also`");
    return is_kind(s, tg_is_integer(s->result.dtype), "an integer type");
}

static bool shape_test(Shape *s) {
    s->result = *s->types[0];
    s->result.dtype = DT_BOOL;
    return is_kind(s, tg_is_float(s->types[0]->dtype), "a floating-point type");
}

static bool shape_compare(Shape *s) {
    s->result = *s->types[0];
    s->result.dtype = DT_BOOL;
    return equal_operands(s, 0);
}

static bool shape_convert(Shape *s) {
    if (!needs_wanted(s))
        return false;
    s->result = *s->wanted;
    return tg_shape_equal(s->wanted, s->types[0]) ||
           fail(s, "it keeps the shape: %s cannot become %s", show(s, s->types[0]), show(s, s->wanted));
}

static bool shape_select(Shape *s) {
    s->result = *s->types[1];
    if (s->types[0]->dtype != DT_BOOL)
        return fail(s, "its condition %s is not of bool", show(s, s->types[0]));
    if (!equal_operands(s, 1))
        return false;
    return tg_shape_equal(s->types[0], s->types[1]) ||
           fail(s, "its condition %s and its values %s differ in shape", show(s, s->types[0]), show(s, s->types[1]));
}

/* ---- shape ---- */

static bool same_element(Shape *s, const Type *operand) {
    return s->wanted->dtype == operand->dtype ||
           fail(s, "it keeps the element type: %s cannot become %s", show(s, operand), show(s, s->wanted));
}

/* Elements before the batch dimension: B major means that a reshape cannot move anything across it. */
static int64_t outer_count(const Type *type) {
    int64_t count = 1;
    for (int d = 0; d < type->rank && !type->dims[d].batch; d++)
        count *= type->dims[d].size;
    return count;
}

static bool shape_reshape(Shape *s) {
    if (!needs_wanted(s) || !same_element(s, s->types[0]))
        return false;
    const Type *from = s->types[0], *to = s->wanted;
    s->result = *to;
    bool from_batch = tg_type_batch_axis(from) >= 0, to_batch = tg_type_batch_axis(to) >= 0;
    int64_t count = tg_type_count(from, 1);
    if (from_batch != to_batch || count != tg_type_count(to, 1))
        return fail(s, "%s and %s have different numbers of elements", show(s, from), show(s, to));
    if (from_batch && count > 0 && outer_count(from) != outer_count(to))
        return fail(s, "%s cannot become %s: elements would cross the batch dimension", show(s, from), show(s, to));
    return true;
}

static bool shape_transpose(Shape *s) {
    const Type *from = s->types[0];
    Ints perm = s->attr->list[0];
    if (!list_per_dim(s, 0, "perm", from))
        return false;
    s->result = *from;
    unsigned seen = 0;
    for (uint32_t i = 0; i < perm.count; i++) {
        if (!valid_axis(s, perm.at[i], from))
            return false;
        seen |= 1u << perm.at[i];
        s->result.dims[i] = from->dims[perm.at[i]];
    }
    return seen == (1u << from->rank) - 1 || fail(s, "`perm` names a dimension of %s twice", show(s, from));
}

static bool shape_broadcast(Shape *s) {
    const Type *from = s->types[0];
    if (!needs_wanted(s) || !same_element(s, from) || !list_per_dim(s, 0, "dims", from) ||
        !ascending_axes(s, s->attr->list[0], s->wanted))
        return false;
    s->result = *s->wanted;
    for (int d = 0; d < from->rank; d++) {
        Dim have = from->dims[d], need = s->wanted->dims[s->attr->list[0].at[d]];
        bool one = have.size == 1 && !have.batch;
        if (!one && !tg_dim_equal(have, need))
            return fail(s, "dimension %d of %s (%s) cannot become %s in %s", d, show(s, from), show_dim(s, have),
                        show_dim(s, need), show(s, s->wanted));
    }
    return true;
}

static bool shape_slice(Shape *s) {
    const Type *from = s->types[0];
    if (!list_per_dim(s, 0, "start", from) || !list_per_dim(s, 1, "limit", from) || !list_per_dim(s, 2, "stride", from))
        return false;
    s->result = *from;
    for (int d = 0; d < from->rank; d++) {
        int64_t start = s->attr->list[0].at[d], limit = s->attr->list[1].at[d], stride = s->attr->list[2].at[d];
        Dim dim = from->dims[d];
        if (start < 0 || start > limit || limit > dim.size || stride < 1)
            return fail(s, "[%lld:%lld:%lld] is no range of dimension %d of %s", (long long)start, (long long)limit,
                        (long long)stride, d, show(s, from));
        if (dim.batch && (start != 0 || limit != dim.size || stride != 1))
            return not_along_batch(s, d, from);
        s->result.dims[d].size = dim.batch ? dim.size : (limit - start + stride - 1) / stride;
    }
    return true;
}

static bool shape_pad(Shape *s) {
    const Type *from = s->types[0];
    if (!list_per_dim(s, 0, "low", from) || !list_per_dim(s, 1, "high", from) || !list_per_dim(s, 2, "interior", from))
        return false;
    s->result = *from;
    for (int d = 0; d < from->rank; d++) {
        int64_t low = s->attr->list[0].at[d], high = s->attr->list[1].at[d], interior = s->attr->list[2].at[d];
        Dim *dim = &s->result.dims[d];
        if (low < 0 || high < 0 || interior < 0)
            return fail(s, "negative padding in dimension %d of %s", d, show(s, from));
        if (dim->batch && (low || high || interior))
            return not_along_batch(s, d, from);
        int64_t size = dim->size, gaps;
        if (__builtin_mul_overflow(size > 0 ? size - 1 : 0, interior, &gaps) ||
            __builtin_add_overflow(size, gaps, &size) || __builtin_add_overflow(size, low, &size) ||
            __builtin_add_overflow(size, high, &size))
            return fail(s, "padding in dimension %d of %s is too large", d, show(s, from));
        dim->size = size;
    }
    return true;
}

static bool shape_concat(Shape *s) {
    const Type *first = s->types[0];
    int64_t axis, size = 0;
    if (!plain_axis(s, first, &axis))
        return false;
    for (uint32_t i = 0; i < s->count; i++) {
        const Type *type = s->types[i];
        Type like = *type;
        if (type->rank == first->rank)
            like.dims[axis] = first->dims[axis];
        if (type->dtype != first->dtype || !tg_shape_equal(&like, first) || type->dims[axis].batch)
            return fail(s, "%s and %s differ in more than dimension %lld", show(s, first), show(s, type),
                        (long long)axis);
        if (__builtin_add_overflow(size, type->dims[axis].size, &size))
            return fail(s, "its result is too large");
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

static bool shape_reduce(Shape *s) {
    const Type *from = s->types[0];
    Ints axes = s->attr->list[0];
    if (axes.count == 0)
        return fail(s, "it needs an axis");
    if (!ascending_axes(s, axes, from) || !is_kind(s, from->dtype != DT_BOOL, "numbers"))
        return false;
    s->result = *from;
    drop_axes(&s->result, from, axes);
    return good_split(s, tg_type_batch_axis(from) >= 0 && tg_type_batch_axis(&s->result) < 0);
}

static bool shape_argmax(Shape *s) {
    const Type *from = s->types[0];
    int64_t axis;
    if (!plain_axis(s, from, &axis) || !is_kind(s, from->dtype != DT_BOOL, "numbers"))
        return false;
    if (from->dims[axis].size == 0)
        return fail(s, "dimension %lld of %s is empty", (long long)axis, show(s, from));
    s->result = *from;
    s->result.dtype = DT_I32;
    drop_axes(&s->result, from, (Ints){&axis, 1});
    return true;
}

/* ---- contractions ---- */

/* Marks the named axes; false when one is not there or named twice. */
static bool mark_axes(Shape *s, const Type *type, Ints axes, bool *used) {
    for (uint32_t i = 0; i < axes.count; i++) {
        if (!valid_axis(s, axes.at[i], type))
            return false;
        if (used[axes.at[i]])
            return fail(s, "dimension %lld of %s is named twice", (long long)axes.at[i], show(s, type));
        used[axes.at[i]] = true;
    }
    return true;
}

static bool matching_axes(Shape *s, Ints a, Ints b, const char *what) {
    if (a.count != b.count)
        return fail(s, "%u and %u %s axes", a.count, b.count, what);
    for (uint32_t i = 0; i < a.count; i++) {
        Dim x = s->types[0]->dims[a.at[i]], y = s->types[1]->dims[b.at[i]];
        if (!tg_dim_equal(x, y))
            return fail(s, "%s and %s differ where they are %s: dimension %lld is %s, dimension %lld is %s",
                        show(s, s->types[0]), show(s, s->types[1]), what, (long long)a.at[i], show_dim(s, x),
                        (long long)b.at[i], show_dim(s, y));
    }
    return true;
}

static bool push_dim(Shape *s, Type *type, Dim dim) {
    if (type->rank == TG_MAX_RANK)
        return fail(s, "its result has more than %d dimensions", TG_MAX_RANK);
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
    return fail(s, "%s gives its own element type or f32, not %s", show(s, s->types[0]), tg_dtype(dtype)->name);
}

static bool dot_bias(Shape *s, const bool *used_b) {
    if (s->count < 3)
        return true;
    Type free = {0};
    if (!push_free(s, &free, s->types[1], used_b))
        return false;
    free.dtype = s->types[2]->dtype;
    if (!tg_shape_equal(&free, s->types[2]))
        return fail(s, "its bias is %s, it needs %s", show(s, s->types[2]), show(s, &free));
    return low_or_f32(s, free.dtype);
}

static bool shape_dot(Shape *s) {
    const Type *a = s->types[0], *b = s->types[1];
    Ints batch_a = s->attr->list[0], batch_b = s->attr->list[1], contract_a = s->attr->list[2],
         contract_b = s->attr->list[3];
    bool used_a[TG_MAX_RANK] = {0}, used_b[TG_MAX_RANK] = {0}, over_batch = false;
    if (a->dtype != b->dtype)
        return fail(s, "%s and %s have different element types", show(s, a), show(s, b));
    if (!is_kind(s, tg_is_float(a->dtype), "a floating-point type"))
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
    return push_free(s, &s->result, a, used_a) && push_free(s, &s->result, b, used_b) && dot_bias(s, used_b) &&
           low_or_f32(s, s->result.dtype) && good_split(s, over_batch);
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
    return tg_is_integer(indices->dtype) || fail(s, "its indices %s are not of an integer type", show(s, indices));
}

static bool shape_take(Shape *s) {
    int64_t axis;
    return plain_axis(s, s->types[0], &axis) && integer_indices(s, s->types[1]) &&
           taken(s, s->types[0], axis, s->types[1], &s->result);
}

static bool shape_scatter_add(Shape *s) {
    int64_t axis;
    Type rows;
    if (!needs_wanted(s) || !plain_axis(s, s->wanted, &axis) || !integer_indices(s, s->types[0]) ||
        !taken(s, s->wanted, axis, s->types[0], &rows))
        return false;
    s->result = *s->wanted;
    if (rows.dtype == s->types[1]->dtype && tg_shape_equal(&rows, s->types[1]))
        return is_kind(s, rows.dtype != DT_BOOL, "numbers");
    return fail(s, "rows of %s at %s are %s, not %s", show(s, s->wanted), show(s, s->types[0]), show(s, &rows),
                show(s, s->types[1]));
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
           fail(s, "its mask is %s, it needs %s", show(s, mask), show(s, &need));
}

static bool attention_operands(Shape *s) {
    const Type *q = s->types[0], *k = s->types[1], *v = s->types[2];
    int rank = q->rank;
    if (rank < 3 || k->rank != rank || v->rank != rank || q->dtype != k->dtype || q->dtype != v->dtype ||
        !tg_is_float(q->dtype))
        return fail(s, "queries %s, keys %s and values %s need at least three dimensions and one floating-point type",
                    show(s, q), show(s, k), show(s, v));
    for (int d = rank - 3; d < rank; d++)
        if (q->dims[d].batch || k->dims[d].batch || v->dims[d].batch)
            return fail(s, "heads, positions and features cannot hold the batch: %s, %s, %s", show(s, q), show(s, k),
                        show(s, v));
    int64_t heads = q->dims[rank - 3].size, kv = k->dims[rank - 3].size;
    if (!leading_equal(q, k, rank - 3) || !leading_equal(k, v, rank - 1) ||
        !tg_dim_equal(q->dims[rank - 1], k->dims[rank - 1]) || !tg_dim_equal(k->dims[rank - 1], v->dims[rank - 1]))
        return fail(s, "queries %s, keys %s and values %s do not fit", show(s, q), show(s, k), show(s, v));
    return (kv > 0 && heads % kv == 0) ||
           fail(s, "%lld key heads do not divide %lld query heads", (long long)kv, (long long)heads);
}

static bool shape_attention(Shape *s) {
    if (!attention_operands(s) || !attention_mask(s, 3))
        return false;
    s->result = *s->types[0];
    s->result.dtype = wanted_dtype(s);
    return low_or_f32(s, s->result.dtype);
}

static bool shape_attention_d(Shape *s) {
    if (!attention_operands(s) || !attention_mask(s, 4))
        return false;
    if (!tg_shape_equal(s->types[0], s->types[3]))
        return fail(s, "the cotangent is %s, not of the shape of %s", show(s, s->types[3]), show(s, s->types[0]));
    s->result = *s->types[s->op == OP_attention_dq ? 0 : s->op == OP_attention_dk ? 1 : 2];
    s->result.dtype = wanted_dtype(s);
    return low_or_f32(s, s->result.dtype);
}

/* ---- kernels ---- */

static bool shape_call(Shape *s) {
    s->no_value = true;
    if (s->attr->ref >= s->graph->funcs.count)
        return fail(s, "there is no function %u", s->attr->ref);
    const Func *kernel = s->graph->funcs.at[s->attr->ref];
    if (kernel->args.count != s->count)
        return fail(s, "%s takes %u arguments, here are %u", kernel->name, kernel->args.count, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const Type *need = tg_type_of(&s->graph->types, kernel->args.at[i].type);
        if (need->dtype != s->types[i]->dtype || !tg_shape_equal(need, s->types[i]))
            return fail(s, "argument %u of %s is %s, not %s", i, kernel->name, show(s, need), show(s, s->types[i]));
    }
    return true;
}

/* ---- scaled values ---- */

/* What a scaled operand means. An op with no entry takes none. */
typedef enum Scaling {
    SCALING_none,
    SCALING_all,     /* all operands or none, and the result with them */
    SCALING_product, /* one operand at most (a dot's bias with it) */
    SCALING_first,   /* the first may be */
    SCALING_second,
    SCALING_branches, /* select: both values or none */
    SCALING_fourth,   /* the cotangent of attention's gradients */
    SCALING_drop,     /* any; the result is not */
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
    [OP_neg] = SCALING_all,
    [OP_detach] = SCALING_all,
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
        return (mask & ~2u) == 0;
    case SCALING_branches:
        return mask == 0 || mask == 6;
    case SCALING_fourth:
        return (mask & ~8u) == 0;
    case SCALING_drop:
        *result = false;
        return true;
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

static bool apply_scaling(Shape *s) {
    uint32_t mask = scaled_mask(s);
    bool scaled, all = scaling[s->op] == SCALING_all || scaling[s->op] == SCALING_branches;
    if (mask != 0 && all)
        mask |= zero_mask(s) & (scaling[s->op] == SCALING_branches ? 6u : ~0u);
    if (!scaling_fits(s, mask, &scaled))
        return fail(s, "it is not linear in a scaled operand, or its operands are scaled differently");
    s->result.scaled = scaled;
    return true;
}

/* ---- the way in ---- */

static bool good_result(Shape *s) {
    int batches = 0;
    for (int d = 0; d < s->result.rank; d++) {
        Dim dim = s->result.dims[d];
        batches += dim.batch;
        if (dim.size < 0 || (dim.batch && dim.size < 1))
            return fail(s, "dimension %d of %s has a bad size", d, show(s, &s->result));
    }
    if (batches > 1)
        return fail(s, "%s has the batch in two dimensions", show(s, &s->result));
    return tg_type_count(&s->result, 1) >= 0 || fail(s, "%s has more than 2^63 elements", show(s, &s->result));
}

static bool good_operands(Shape *s, const Type **types) {
    const OpInfo *info = tg_op(s->op);
    if ((int64_t)s->count < info->min_operands || (info->max_operands >= 0 && (int64_t)s->count > info->max_operands))
        return fail(s, "it does not take %u operands", s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->operands[i] == 0 || s->operands[i] >= s->func->nodes.count)
            return fail(s, "operand %u is no node", i);
        const Node *node = tg_node(s->func, s->operands[i]);
        if ((node->op == OP_call) != (s->op == OP_result))
            return fail(s, "operand %u has no value", i);
        types[i] = tg_type_of(&s->graph->types, node->type);
    }
    return true;
}

TypeId tg_infer(Graph *graph, const Func *func, Op op, const Attr *attr, const NodeId *operands, uint32_t count,
                TypeId wanted, const char **why) {
    static bool (*const rules[])(Shape *) = {
#define OP(name, min, max, levels, attrs, shape, ...) shape_##shape,
#include "ir/ops.def"
#undef OP
    };
    static const Attr no_attr = {0};
    const Type *few[8];
    Shape s = {
        .graph = graph,
        .op = op,
        .attr = attr ? attr : &no_attr,
        .types = count <= 8 ? few : TG_ALLOC(graph->arena, const Type *, count),
        .operands = operands,
        .func = func,
        .count = count,
        .wanted = wanted ? tg_type_of(&graph->types, wanted) : NULL,
    };
    bool good = good_operands(&s, s.types) && rules[op](&s) && apply_scaling(&s) && (s.no_value || good_result(&s));
    *why = good ? NULL : s.why;
    return good && !s.no_value ? tg_type(&graph->types, &s.result) : 0;
}
