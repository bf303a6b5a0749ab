/* Shape rules of leaves, pointwise ops and calls, and what all rules share. */
#include "ir/shape.h"

bool shape_fail(Shape *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(s->graph->arena, format, args);
    va_end(args);
    s->why = tg_arena_printf(s->graph->arena, "%s: %s", tg_op(s->op)->name, text);
    return false;
}

const char *shape_show(Shape *s, const Type *type) {
    Str text = tg_str(s->graph->arena);
    tg_type_print(&text, type);
    return text.text;
}

const char *shape_show_dim(Shape *s, Dim dim) {
    if (!dim.batch)
        return tg_arena_printf(s->graph->arena, "%lld", (long long)dim.size);
    return dim.size == 1 ? "B" : tg_arena_printf(s->graph->arena, "B*%lld", (long long)dim.size);
}

/* ---- attributes ---- */

bool shape_valid_axis(Shape *s, int64_t axis, const Type *type) {
    if (axis >= 0 && axis < type->rank)
        return true;
    return shape_fail(s, "there is no dimension %lld in %s", (long long)axis, shape_show(s, type));
}

bool shape_not_along_batch(Shape *s, int64_t axis, const Type *type) {
    if (!type->dims[axis].batch)
        return true;
    return shape_fail(s, "dimension %lld of %s is the batch; this op cannot run along it", (long long)axis,
                      shape_show(s, type));
}

/* The one integer of an attribute that must be there: an axis of `type`, not the batch. */
static bool shape_one_axis(Shape *s, const Type *type, int64_t *axis) {
    if (s->attr->list[0].count != 1)
        return shape_fail(s, "it needs an axis");
    *axis = s->attr->list[0].at[0];
    return shape_valid_axis(s, *axis, type);
}

bool shape_plain_axis(Shape *s, const Type *type, int64_t *axis) {
    return shape_one_axis(s, type, axis) && shape_not_along_batch(s, *axis, type);
}

bool shape_ascending_axes(Shape *s, Ints axes, const Type *type) {
    for (uint32_t i = 0; i < axes.count; i++) {
        if (!shape_valid_axis(s, axes.at[i], type))
            return false;
        if (i > 0 && axes.at[i] <= axes.at[i - 1])
            return shape_fail(s, "axes must ascend, %lld follows %lld", (long long)axes.at[i],
                              (long long)axes.at[i - 1]);
    }
    return true;
}

bool shape_list_per_dim(Shape *s, int list, const char *name, const Type *type) {
    if (s->attr->list[list].count == type->rank)
        return true;
    return shape_fail(s, "`%s` has %u values for the %u dimensions of %s", name, s->attr->list[list].count, type->rank,
                      shape_show(s, type));
}

bool shape_good_split(Shape *s, bool over_batch) {
    int64_t split = tg_attr_int(s->attr, 1, 1);
    if (s->op == OP_dot)
        split = tg_attr_int(s->attr, 4, 1);
    if (split < 0)
        return shape_fail(s, "it cannot be split into %lld pieces", (long long)split);
    return split <= 1 || over_batch || shape_fail(s, "only a sum over the batch is split, this one is not");
}

/* ---- leaves ---- */

bool shape_needs_wanted(Shape *s) { return s->wanted != NULL || shape_fail(s, "its type must be given"); }

static bool want(Shape *s, const Type *type) {
    s->result = *type;
    if (s->wanted == NULL || (s->wanted->dtype == type->dtype && tg_shape_equal(s->wanted, type)))
        return true;
    return shape_fail(s, "its type is %s, not %s", shape_show(s, type), shape_show(s, s->wanted));
}

static bool leaf_buffer(Shape *s) {
    if (s->attr->ref >= s->graph->buffers.count)
        return shape_fail(s, "there is no buffer %u", s->attr->ref);
    return want(s, tg_type_of(&s->graph->types, s->graph->buffers.at[s->attr->ref].type));
}

static bool leaf_const(Shape *s) {
    if (!shape_needs_wanted(s))
        return false;
    s->result = *s->wanted;
    if (s->attr->dense != NULL && tg_type_batch_axis(s->wanted) >= 0)
        return shape_fail(s, "%s has the batch in it and cannot be a list of values", shape_show(s, s->wanted));
    return true;
}

static bool leaf_arg(Shape *s) {
    if (s->attr->list[0].count != 1 || s->attr->list[0].at[0] < 0)
        return shape_fail(s, "it needs an index");
    uint64_t index = (uint64_t)s->attr->list[0].at[0];
    if (s->func != NULL && index < s->func->args.count)
        return want(s, tg_type_of(&s->graph->types, s->func->args.at[index].type));
    return shape_needs_wanted(s) && want(s, s->wanted);
}

static bool leaf_load(Shape *s) {
    if (tg_attr_int(s->attr, 0, 0) < 0)
        return shape_fail(s, "there is no lane %lld", (long long)s->attr->list[0].at[0]);
    return leaf_buffer(s);
}

static bool leaf_scalar(Shape *s) {
    if (s->attr->ref >= s->graph->scalars.count)
        return shape_fail(s, "there is no run-time scalar %u", s->attr->ref);
    return want(s, &(Type){.dtype = DT_F64});
}

static bool leaf_result(Shape *s) {
    const Node *call = tg_node(s->func, s->operands[0]);
    if (call->op != OP_call)
        return shape_fail(s, "its operand is no call");
    const Func *kernel = s->graph->funcs.at[call->attr->ref];
    int64_t index = tg_attr_int(s->attr, 0, 0);
    if (index < 0 || index >= kernel->results.count)
        return shape_fail(s, "%s has %u results, there is no %lld", kernel->name, kernel->results.count,
                          (long long)index);
    return want(s, tg_node_type(s->graph, kernel, kernel->results.at[index].node));
}

bool shape_leaf(Shape *s) {
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

/* Along B too: the position in the micro-batch, which passes may ask for and programs may not. */
bool shape_iota(Shape *s) {
    int64_t axis;
    if (!shape_needs_wanted(s) || !shape_one_axis(s, s->wanted, &axis))
        return false;
    s->result = *s->wanted;
    return s->wanted->dtype != DT_BOOL || shape_fail(s, "its values are numbers, not bool");
}

bool shape_random(Shape *s) {
    if (!shape_needs_wanted(s))
        return false;
    s->result = *s->wanted;
    return tg_is_float(s->wanted->dtype) ||
           shape_fail(s, "its values lie in [0, 1), %s has none", tg_dtype(s->wanted->dtype)->name);
}

/* ---- pointwise ---- */

static bool equal_operands(Shape *s, uint32_t first) {
    const Type *a = s->types[first];
    for (uint32_t i = first + 1; i < s->count; i++) {
        const Type *b = s->types[i];
        if (a->dtype != b->dtype)
            return shape_fail(s, "%s and %s have different element types", shape_show(s, a), shape_show(s, b));
        if (a->rank != b->rank)
            return shape_fail(s, "%s and %s have different numbers of dimensions", shape_show(s, a), shape_show(s, b));
        for (int d = 0; d < a->rank; d++)
            if (!tg_dim_equal(a->dims[d], b->dims[d]))
                return shape_fail(s, "%s and %s differ in dimension %d (%s and %s)", shape_show(s, a), shape_show(s, b),
                                  d, shape_show_dim(s, a->dims[d]), shape_show_dim(s, b->dims[d]));
    }
    return true;
}

bool shape_is_kind(Shape *s, bool fits, const char *wanted) {
    return fits || shape_fail(s, "%s is not of %s", shape_show(s, s->types[0]), wanted);
}

bool shape_same(Shape *s) {
    s->result = *s->types[0];
    if (!equal_operands(s, 0))
        return false;
    int64_t axis;
    if (s->op == OP_detach || s->op == OP_again)
        return true;
    if (s->op == OP_reverse) {
        if (!shape_ascending_axes(s, s->attr->list[0], s->types[0]))
            return false;
        for (uint32_t i = 0; i < s->attr->list[0].count; i++)
            if (!shape_not_along_batch(s, s->attr->list[0].at[i], s->types[0]))
                return false;
        return true;
    }
    if (!shape_is_kind(s, s->result.dtype != DT_BOOL, "numbers"))
        return false;
    return s->op != OP_cumsum || shape_plain_axis(s, s->types[0], &axis);
}

bool shape_float_(Shape *s) {
    s->result = *s->types[0];
    return equal_operands(s, 0) && shape_is_kind(s, tg_is_float(s->result.dtype), "a floating-point type");
}

bool shape_bool_(Shape *s) {
    s->result = *s->types[0];
    return equal_operands(s, 0) && shape_is_kind(s, s->result.dtype == DT_BOOL, "bool");
}

bool shape_integer(Shape *s) {
    s->result = *s->types[0];
    if (s->attr->list[0].count != 1 || s->attr->list[1].count != 1 || s->attr->list[2].count > 1)
        return shape_fail(s, "it needs `low` and `high`, and at most one `also`");
    return shape_is_kind(s, tg_is_integer(s->result.dtype), "an integer type");
}

bool shape_test(Shape *s) {
    s->result = *s->types[0];
    s->result.dtype = DT_BOOL;
    return shape_is_kind(s, tg_is_float(s->types[0]->dtype), "a floating-point type");
}

bool shape_compare(Shape *s) {
    s->result = *s->types[0];
    s->result.dtype = DT_BOOL;
    return equal_operands(s, 0);
}

bool shape_convert(Shape *s) {
    if (!shape_needs_wanted(s))
        return false;
    s->result = *s->wanted;
    return tg_shape_equal(s->wanted, s->types[0]) || shape_fail(s, "it keeps the shape: %s cannot become %s",
                                                                shape_show(s, s->types[0]), shape_show(s, s->wanted));
}

bool shape_select(Shape *s) {
    s->result = *s->types[1];
    if (s->types[0]->dtype != DT_BOOL)
        return shape_fail(s, "its condition %s is not of bool", shape_show(s, s->types[0]));
    if (!equal_operands(s, 1))
        return false;
    return tg_shape_equal(s->types[0], s->types[1]) ||
           shape_fail(s, "its condition %s and its values %s differ in shape", shape_show(s, s->types[0]),
                      shape_show(s, s->types[1]));
}

/* ---- kernels ---- */

bool shape_call(Shape *s) {
    s->no_value = true;
    if (s->attr->ref >= s->graph->funcs.count)
        return shape_fail(s, "there is no function %u", s->attr->ref);
    const Func *kernel = s->graph->funcs.at[s->attr->ref];
    if (kernel->args.count != s->count)
        return shape_fail(s, "%s takes %u arguments, here are %u", kernel->name, kernel->args.count, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const Type *need = tg_type_of(&s->graph->types, kernel->args.at[i].type);
        if (need->dtype != s->types[i]->dtype || !tg_shape_equal(need, s->types[i]))
            return shape_fail(s, "argument %u of %s is %s, not %s", i, kernel->name, shape_show(s, need),
                              shape_show(s, s->types[i]));
    }
    return true;
}

/* ---- the way in ---- */

static bool good_result(Shape *s) {
    int batches = 0;
    for (int d = 0; d < s->result.rank; d++) {
        Dim dim = s->result.dims[d];
        batches += dim.batch;
        if (dim.size < 0 || (dim.batch && dim.size < 1))
            return shape_fail(s, "dimension %d of %s has a bad size", d, shape_show(s, &s->result));
    }
    if (batches > 1)
        return shape_fail(s, "%s has the batch in two dimensions", shape_show(s, &s->result));
    return tg_type_count(&s->result, 1) >= 0 ||
           shape_fail(s, "%s has more than 2^63 elements", shape_show(s, &s->result));
}

static bool good_operands(Shape *s, const Type **types) {
    const OpInfo *info = tg_op(s->op);
    if ((int64_t)s->count < info->min_operands || (info->max_operands >= 0 && (int64_t)s->count > info->max_operands))
        return shape_fail(s, "it does not take %u operands", s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->operands[i] == 0 || s->operands[i] >= s->func->nodes.count)
            return shape_fail(s, "operand %u is no node", i);
        const Node *node = tg_node(s->func, s->operands[i]);
        if ((node->op == OP_call) != (s->op == OP_result))
            return shape_fail(s, "operand %u has no value", i);
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
    bool good =
        good_operands(&s, s.types) && rules[op](&s) && shape_apply_scaling(&s) && (s.no_value || good_result(&s));
    *why = good ? NULL : s.why;
    return good && !s.no_value ? tg_type(&graph->types, &s.result) : 0;
}
