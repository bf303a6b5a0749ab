#include "growth.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_ELEMENTS = 3000, MOST_STEPS = 28, LONG = 65536 };

static Graph *graph_of(const Growth *w) { return w->r->graph; }
static const Type *type_of(const Growth *w, NodeId id) { return tg_node_type(w->r->graph, w->r->func, id); }
static TypeId type_id(Growth *w, const Type *type) { return tg_type(&w->r->graph->types, type); }
static bool chance(Growth *w, int64_t percent) { return grow_chance(w, percent); }

bool grow_chance(Growth *w, int64_t percent) { return gen_below(&w->g, 100) < percent; }

/* ---- values ---- */

static double special(Growth *w, DType dtype) {
    static const double floats[] = {NAN,   INFINITY, -INFINITY, -0.0,    0.0,     1.0,    -1.0, 65504,
                                    1e-40, FLT_MAX,  -FLT_MAX,  FLT_MIN, DBL_MAX, 1e-310, 0.5,  1e-7};
    static const double integers[] = {0, 1, -1, 127, -128, 255, 32767, -32768, 65535, 2147483647.0, -2147483648.0};
    if (tg_is_float(dtype))
        return floats[gen_below(&w->g, sizeof floats / sizeof *floats)];
    return integers[gen_below(&w->g, sizeof integers / sizeof *integers)];
}

static Tensor filled(Growth *w, const Type *type, Values values) {
    int64_t count = tg_type_count(type, w->r->rows);
    Tensor tensor = {type_id(w, type), count, TG_ALLOC(w->g.arena, double, count + 1)};
    gen_fill(&w->g, type->dtype, &tensor, values);
    for (int64_t i = 0; w->r->wild && values != VALUES_INDEX && i < count; i++)
        if (chance(w, 15))
            tensor.at[i] = tg_round_to(type->dtype, special(w, type->dtype));
    return tensor;
}

static double largest(const Tensor *tensor) {
    double most = 0;
    for (int64_t i = 0; i < tensor->count; i++)
        most = fmax(most, fabs(tensor->at[i]));
    return most;
}

static bool all_finite(const Tensor *tensor) {
    for (int64_t i = 0; i < tensor->count; i++)
        if (!isfinite(tensor->at[i]))
            return false;
    return true;
}

/* The evaluator counts in f64: it represents integers up to 2^53. Its attention keeps scores in f64, the pass in
   f32: large ones have other exponentials. */
static bool is_wanted(const Growth *w, const Node *node, const Tensor *operands, const Tensor *value) {
    DType dtype = tg_type_of(&w->r->graph->types, node->type)->dtype;
    if (tg_is_integer(dtype))
        return largest(value) <= 0x1p40 &&
               (node->op != OP_mul || largest(&operands[0]) * largest(&operands[1]) <= 0x1p52);
    if (node->op == OP_attention && largest(&operands[0]) * largest(&operands[1]) > 300)
        return false;
    return w->r->wild || (all_finite(value) && largest(value) <= 1e4);
}

bool grow_evaluate(Growth *w) {
    const Func *func = w->r->func;
    for (NodeId id = w->values.count; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        int64_t count = tg_type_count(type_of(w, id), w->r->rows);
        if (count < 0 || count > w->most || type_of(w, id)->rank > 6)
            return false;
        Tensor operands[8], value;
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = w->values.at[tg_operand(func, node, i)];
        w->state.args = w->r->args;
        if (tg_eval_node(&w->state, w->r->graph, func, id, operands, &value) != TG_OK ||
            !is_wanted(w, node, operands, &value) || (w->accepts && !w->accepts(w, id)))
            return false;
        tg_push(w->g.arena, &w->values, value);
    }
    return true;
}

/* ---- leaves ---- */

NodeId grow_arg(Growth *w, const Type *type, Values values) {
    uint32_t index = w->r->func->args.count;
    w->r->args[index] = filled(w, type, values);
    return tg_arg(&w->g.b, index, tg_arena_printf(w->g.arena, "x%u", index), type_id(w, type));
}

NodeId grow_load(Growth *w, const Type *type, Values values, BufferClass class) {
    uint32_t index = graph_of(w)->buffers.count;
    const char *name = tg_intern(graph_of(w), tg_arena_printf(w->g.arena, "w%u", index));
    tg_buffer_add(graph_of(w), (Buffer){.name = name, .type = type_id(w, type), .class = class});
    w->r->buffers[index] = filled(w, type, values);
    return tg_load(&w->g.b, index);
}

NodeId grow_const(Growth *w, const Type *type, Values values) {
    bool dense = tg_type_batch_axis(type) < 0 && chance(w, 50);
    Type one = {.dtype = type->dtype};
    Tensor value = filled(w, dense ? type : &one, values);
    Attr attr = {.number = dense ? 0 : value.at[0], .dense = dense && value.count ? value.at : NULL};
    return tg_build(&w->g.b, OP_const, &attr, NULL, 0, type_id(w, type));
}

static void add_settings(Growth *w) {
    static const Scalar settings[] = {{.name = "half", .class = SCALAR_SETTING, .value = 0.5},
                                      {.name = "tenth", .class = SCALAR_SETTING, .value = 0.1}};
    for (int i = 0; i < 2; i++)
        w->r->scalars[tg_scalar_add(graph_of(w), settings[i])] = settings[i].value;
}

/* A run-time scalar in the type. */
NodeId grow_scalar(Growth *w, const Type *type) {
    NodeId x = tg_scalar(&w->g.b, (uint32_t)gen_below(&w->g, 2));
    x = type->dtype == DT_F64 ? x : tg_convert(&w->g.b, x, type->dtype);
    return type->rank ? tg_broadcast(&w->g.b, x, NULL, 0, type_id(w, type)) : x;
}

static NodeId add_leaf(Growth *w, const Type *type, Values values) {
    if (w->leaf)
        return w->leaf(w, type, values);
    bool whole = tg_type_batch_axis(type) < 0;
    if (whole && graph_of(w)->buffers.count < GROWN_BUFFERS && chance(w, 25))
        return grow_load(w, type, values, BUFFER_STATE);
    if (values == VALUES_ANY && tg_is_float(type->dtype) && chance(w, 10))
        return grow_scalar(w, type);
    if (w->r->func->args.count == RANDOM_ARGS || chance(w, 25))
        return grow_const(w, type, values);
    return grow_arg(w, type, values);
}

/* ---- a value of another type ---- */

static NodeId built(Growth *w, Op op, const Attr *attr, NodeId x, const Type *type) {
    const char *why;
    TypeId wanted = type_id(w, type);
    if (!tg_infer(graph_of(w), w->r->func, op, attr, &x, 1, wanted, &why))
        return 0;
    return tg_build(&w->g.b, op, attr, &x, 1, wanted);
}

/* Dimensions of `small` in `large`, from the right; false: it is not a part. `ones`: a size of 1 goes with any. */
static bool is_part(const Type *small, const Type *large, bool ones, int64_t at[TG_MAX_RANK]) {
    int place = large->rank - 1;
    for (int d = small->rank - 1; d >= 0; d--, place--) {
        bool one = ones && small->dims[d].size == 1 && !small->dims[d].batch;
        while (place >= 0 && !one && !tg_dim_equal(small->dims[d], large->dims[place]))
            place--;
        if (place < 0)
            return false;
        at[d] = place;
    }
    return true;
}

static NodeId by_broadcast(Growth *w, NodeId x, const Type *type) {
    int64_t dims[TG_MAX_RANK];
    const Type *from = type_of(w, x);
    if (from->rank > type->rank || !is_part(from, type, true, dims))
        return 0;
    Attr attr = {.list = {gen_ints(dims, from->rank)}};
    return built(w, OP_broadcast, &attr, x, type);
}

static NodeId by_reduction(Growth *w, NodeId x, const Type *type) {
    static const Op ops[] = {OP_reduce_sum, OP_reduce_max, OP_reduce_min, OP_reduce_sum};
    Type from = *type_of(w, x);
    int64_t kept[TG_MAX_RANK];
    if (from.dtype == DT_BOOL || from.rank <= type->rank || !is_part(type, &from, false, kept))
        return 0;
    int next = type->rank - 1;
    for (int64_t axis = from.rank - 1; axis >= 0 && x; axis--) {
        if (next >= 0 && kept[next] == axis) {
            next--;
            continue;
        }
        x = tg_reduce(&w->g.b, ops[gen_below(&w->g, 4)], x, &axis, 1, 1);
    }
    return x;
}

static NodeId by_slice(Growth *w, NodeId x, const Type *type) {
    const Type *from = type_of(w, x);
    if (from->rank != type->rank)
        return 0;
    int64_t start[TG_MAX_RANK], limit[TG_MAX_RANK], stride[TG_MAX_RANK];
    for (int d = 0; d < type->rank; d++) {
        Dim have = from->dims[d], need = type->dims[d];
        if (have.batch != need.batch || have.size < need.size || (have.batch && have.size != need.size))
            return 0;
        start[d] = have.size > need.size ? gen_below(&w->g, have.size - need.size + 1) : 0;
        limit[d] = start[d] + need.size;
        stride[d] = 1;
    }
    Attr attr = {.list = {gen_ints(start, type->rank), gen_ints(limit, type->rank), gen_ints(stride, type->rank)}};
    return built(w, OP_slice, &attr, x, type);
}

static NodeId by_reshape(Growth *w, NodeId x, const Type *type) { return built(w, OP_reshape, NULL, x, type); }

static NodeId converted(Growth *w, NodeId x, DType dtype) {
    return type_of(w, x)->dtype == dtype ? x : tg_convert(&w->g.b, x, dtype);
}

/* `x` in the shape of `type` and with its elements, or 0. */
static NodeId adapted(Growth *w, NodeId x, const Type *type) {
    static NodeId (*const ways[])(Growth *, NodeId, const Type *) = {by_reshape, by_broadcast, by_reduction, by_slice};
    Type shape = gen_with(*type, type_of(w, x)->dtype);
    if (tg_shape_equal(&shape, type_of(w, x)))
        return converted(w, x, type->dtype);
    for (uint32_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        NodeId y = ways[i](w, x, &shape);
        if (y)
            return converted(w, y, type->dtype);
    }
    return 0;
}

NodeId grow_any_value(Growth *w) {
    int64_t count = w->values.count - 1;
    return (NodeId)(count - gen_below(&w->g, gen_below(&w->g, count) + 1));
}

static NodeId constant(Growth *w, NodeId like, double value) {
    return tg_const(&w->g.b, tg_node(w->r->func, like)->type, value);
}

/* `x` as the operation needs its values. */
static NodeId fitting(Growth *w, NodeId x, Values values) {
    Builder *b = &w->g.b;
    DType dtype = type_of(w, x)->dtype;
    if (values == VALUES_INDEX) {
        x = tg_binary(b, OP_maximum, x, constant(w, x, 0));
        return tg_binary(b, OP_minimum, x, constant(w, x, (double)w->g.index_limit - 1));
    }
    if (values == VALUES_ANY || dtype == DT_BOOL || (w->r->wild && chance(w, 60)))
        return x;
    NodeId size = tg_unary(b, OP_abs, x);
    return values == VALUES_POSITIVE ? tg_binary(b, OP_add, size, constant(w, x, tg_is_float(dtype) ? 0.25 : 1))
                                     : tg_binary(b, OP_maximum, size, constant(w, x, tg_is_float(dtype) ? 0.5 : 1));
}

/* ---- what the rules ask for ---- */

static int64_t grown_size(Gen *g, bool empty) {
    Growth *w = (Growth *)g;
    if (g->flavour == FLAVOUR_ZERO && empty && gen_below(g, 12) == 0)
        return 0;
    return w->sizes[gen_below(g, GROWN_SIZES)];
}

static Type new_shape(Growth *w, DType dtype, int low, int high) {
    Gen *g = &w->g;
    Type type = {.dtype = dtype, .rank = (uint8_t)(low + gen_below(g, high - low + 1))};
    for (int i = 0; i < type.rank; i++)
        type.dims[i].size = grown_size(g, true);
    if (g->flavour == FLAVOUR_BATCH && type.rank && chance(w, 70))
        type.dims[chance(w, 70) ? 0 : gen_below(g, type.rank)] = (Dim){chance(w, 70) ? 1 : 3, true};
    return type;
}

static Type grown_shape(Gen *g, DType dtype, int low, int high) {
    Growth *w = (Growth *)g;
    for (int i = 0; i < 8 && w->values.count > 1 && chance(w, 80); i++) {
        const Type *type = type_of(w, grow_any_value(w));
        if (type->rank >= low && type->rank <= high)
            return gen_with(*type, dtype);
    }
    return new_shape(w, dtype, low, high);
}

NodeId grow_from_values(Growth *w, const Type *type) {
    NodeId x = 0;
    for (int i = 0; i < 10 && x == 0 && w->values.count > 1 && chance(w, 95); i++)
        x = adapted(w, grow_any_value(w), type);
    return x;
}

static void any_perm(Growth *w, int rank, int64_t *perm) {
    for (int i = 0; i < rank; i++) {
        int k = (int)gen_below(&w->g, i + 1);
        perm[i] = perm[k];
        perm[k] = i;
    }
}

/* The transpose of a value. */
static NodeId transposed(Growth *w, const Type *type) {
    int64_t perm[TG_MAX_RANK];
    Type from = *type;
    any_perm(w, type->rank, perm);
    for (int i = 0; i < type->rank; i++)
        from.dims[perm[i]] = type->dims[i];
    NodeId x = grow_from_values(w, &from);
    return tg_transpose(&w->g.b, x ? x : add_leaf(w, &from, VALUES_ANY), perm, type->rank);
}

static NodeId grown_operand(Gen *g, const Type *type, Values values) {
    Growth *w = (Growth *)g;
    bool turned = type->rank > 1 && values != VALUES_INDEX && chance(w, g->op == OP_dot ? 50 : 5);
    NodeId x = turned ? transposed(w, type) : grow_from_values(w, type);
    return x ? fitting(w, x, values) : add_leaf(w, type, values);
}

static const GenHost host = {grown_size, grown_shape, grown_operand};

/* ---- growing ---- */

static Op any_op(Growth *w) {
    for (;;) {
        Op op = (Op)gen_below(&w->g, OP_COUNT);
        if (chance(w, tg_is_mixed(&graph_of(w)->training) ? 30 : 15))
            op = OP_dot;
        else if (chance(w, 3))
            op = OP_attention;
        bool refused = op == OP_const || (op == OP_attention && (w->attention || w->r->wild));
        if (tg_op_has_case(op) && !refused)
            return op;
    }
}

/* The result of a dot, its free axes of the second operand first, or in any order. */
static void turn_dot(Growth *w) {
    NodeId id = w->r->func->nodes.count - 1;
    const Type *type = type_of(w, id);
    int64_t perm[TG_MAX_RANK], rank = type->rank;
    const Node *node = tg_node(w->r->func, id);
    int64_t batch = node->attr->list[0].count, contract = node->attr->list[2].count;
    int64_t left = type_of(w, tg_operand(w->r->func, node, 0))->rank - batch - contract, right = rank - batch - left;
    any_perm(w, (int)rank, perm);
    if (chance(w, 60))
        for (int64_t i = 0; i < rank; i++)
            perm[i] = i < batch ? i : i < batch + right ? i + left : i - right;
    tg_transpose(&w->g.b, id, perm, (uint32_t)rank);
}

GrowthMark grow_mark(const Growth *w) {
    const Func *func = w->r->func;
    return (GrowthMark){func->nodes.count, func->operands.count, func->args.count, graph_of(w)->buffers.count};
}

void grow_back(Growth *w, GrowthMark mark) {
    Func *func = w->r->func;
    func->nodes.count = mark.nodes;
    func->operands.count = mark.operands;
    func->args.count = mark.args;
    graph_of(w)->buffers.count = mark.buffers;
    w->values.count = w->values.count < mark.nodes ? w->values.count : mark.nodes;
    w->g.b.error = NULL;
}

/* The operation in one type or another that it takes. */
static bool make(Growth *w, GrowthMark mark, Op op) {
    w->g.op = op;
    for (int tries = 0; tries < 4; tries++) {
        w->g.dtype = tries == 0 && chance(w, 65) ? w->dtype : (DType)gen_below(&w->g, DT_COUNT);
        w->ignored = (OpCase){.rows = w->r->rows};
        if (gen_run(&w->g))
            return true;
        grow_back(w, mark);
    }
    return false;
}

/* One operation more, or nothing. */
static bool grow(Growth *w, Op op) {
    GrowthMark mark = grow_mark(w);
    bool made = make(w, mark, op);
    if (made && w->g.op == OP_dot && chance(w, 40))
        turn_dot(w);
    if (made && grow_evaluate(w)) {
        w->attention |= w->g.op == OP_attention;
        return true;
    }
    grow_back(w, mark);
    return false;
}

/* Dots of few rows by one weight, as a loop over time has them; some depend on the one before. */
static void make_steps(Growth *w) {
    enum { MOST_DOTS = 4 };
    Gen *g = &w->g;
    g->op = OP_dot;
    g->dtype = tg_is_float(w->dtype) ? w->dtype : DT_F32;
    int64_t first = gen_below(g, 2), second = gen_below(g, 2), count = 2 + gen_below(g, MOST_DOTS - 1);
    Type x = {.dtype = g->dtype, .rank = 2, .dims = {{grown_size(g, true), false}, {grown_size(g, true), false}}}, weight = x;
    Type line = {.dtype = g->dtype, .rank = 1, .dims = {{grown_size(g, true), false}}};
    weight.dims[first] = x.dims[1];
    weight.dims[1 - first] = line.dims[0];
    if (g->flavour == FLAVOUR_BATCH && chance(w, 70))
        x.dims[0] = (Dim){second ? 1 : 3, true};
    NodeId operands[] = {0, grown_operand(g, &weight, VALUES_ANY), chance(w, 40) ? grown_operand(g, &line, VALUES_ANY) : 0};
    Attr attr = {.list = {[2] = gen_ints(&(int64_t){1}, 1), [3] = gen_ints(&first, 1)}};
    for (int64_t i = 0; i < count; i++) {
        NodeId before = i && chance(w, 25) ? adapted(w, w->r->func->nodes.count - 1, &x) : 0;
        operands[0] = before ? before : grown_operand(g, &x, VALUES_ANY);
        tg_build(&g->b, OP_dot, &attr, operands, operands[2] ? 3 : 2, type_id(w, &line));
    }
}

/* Such dots, or nothing. */
static bool grow_steps(Growth *w) {
    GrowthMark mark = grow_mark(w);
    make_steps(w);
    if (w->g.b.error == NULL && grow_evaluate(w))
        return true;
    grow_back(w, mark);
    return false;
}

static NodeId long_operand(Growth *w, int64_t axis, int64_t width, int64_t length) {
    Type type = {.dtype = w->g.dtype, .rank = 2, .dims = {{width, false}, {width, false}}};
    type.dims[axis].size = length;
    return grow_arg(w, &type, VALUES_ANY);
}

/* A reduction of as many elements as the lanes and trees of sums are made for, and more. */
static void make_long(Growth *w) {
    static const Op reductions[] = {OP_reduce_sum, OP_reduce_sum, OP_reduce_max, OP_reduce_min};
    Gen *g = &w->g;
    g->dtype = tg_is_float(w->dtype) ? w->dtype : DT_F32;
    int64_t length = LONG + gen_below(g, 3) * gen_below(g, 500), axis = gen_below(g, 2), other = gen_below(g, 2);
    NodeId x = long_operand(w, axis, 1 + gen_below(g, 3), length);
    if (chance(w, 40)) {
        tg_reduce(&g->b, reductions[gen_below(g, 4)], x, &axis, 1, 1);
        return;
    }
    NodeId operands[] = {x, long_operand(w, other, 1 + gen_below(g, 3), length)};
    Type type = {.dtype = g->dtype, .rank = 2};
    type.dims[0] = type_of(w, operands[0])->dims[1 - axis];
    type.dims[1] = type_of(w, operands[1])->dims[1 - other];
    Attr attr = {.list = {[2] = gen_ints(&axis, 1), [3] = gen_ints(&other, 1)}};
    tg_build(&g->b, OP_dot, &attr, operands, 2, type_id(w, &type));
}

static void grow_long(Growth *w) {
    GrowthMark mark = grow_mark(w);
    if (w->r->func->args.count + 2 > RANDOM_ARGS)
        return;
    w->most = 4 * LONG;
    make_long(w);
    if (w->g.b.error != NULL || !grow_evaluate(w))
        grow_back(w, mark);
    w->most = MOST_ELEMENTS;
}

/* `x` and the buffer's old value, which is read element by element or all for each. */
static NodeId with_old(Growth *w, uint32_t buffer, NodeId x) {
    Type type = *type_of(w, x);
    int64_t axes[] = {0}, count = type.rank ? 1 : 0;
    NodeId old = tg_load(&w->g.b, buffer);
    if (type.dtype == DT_BOOL)
        return tg_binary(&w->g.b, OP_ne, x, old);
    if (count && type.dims[0].size && chance(w, 70)) {
        Type line = type;
        line.dims[0].size = 1;
        old = chance(w, 70) ? by_slice(w, old, &line) : tg_reduce(&w->g.b, OP_reduce_max, old, axes, 1, 1);
        old = by_broadcast(w, old, &type);
    }
    return old ? tg_binary(&w->g.b, OP_maximum, x, old) : x;
}

/* New values for most buffers: the function reads the old ones to its end. */
static void add_stores(Growth *w) {
    for (uint32_t i = 0; i < graph_of(w)->buffers.count; i++) {
        GrowthMark mark = grow_mark(w);
        Type type = *tg_type_of(&graph_of(w)->types, graph_of(w)->buffers.at[i].type);
        NodeId x = chance(w, 70) ? grow_from_values(w, &type) : 0;
        if (x && chance(w, 60))
            x = with_old(w, i, x);
        if (x && grow_evaluate(w))
            tg_result_store(&w->g.b, i, x);
        else
            grow_back(w, mark);
    }
}

static bool is_leaf(const Growth *w, NodeId id) { return tg_node(w->r->func, id)->operand_count == 0; }

static void add_results(Growth *w) {
    Func *func = w->r->func;
    Uses uses = tg_uses(w->g.arena, func);
    for (NodeId id = 1; id < func->nodes.count; id++) {
        bool read = uses.first[id + 1] > uses.first[id];
        bool always = tg_node(func, id)->op == OP_attention;
        read |= uses.result_uses[id] > 0;
        if (always || (read ? chance(w, 8) : !is_leaf(w, id) || chance(w, 20)))
            tg_result_value(&w->g.b, tg_arena_printf(w->g.arena, "y%u", id), id);
    }
}

static void choose_sizes(Growth *w) {
    static const int64_t sizes[] = {2, 3, 5, 7, 17, 4, 33};
    for (int i = 0; i < GROWN_SIZES; i++)
        w->sizes[i] = sizes[gen_below(&w->g, 7)];
    if (w->g.flavour == FLAVOUR_ONE || chance(w, 20))
        w->sizes[0] = 1;
}

void grow_start(Growth *w, Arena *arena, uint64_t seed, RandomGraph *result) {
    static const DType common[] = {DT_F32, DT_F32, DT_F32, DT_BF16, DT_F16, DT_F64};
    static const Flavour flavours[] = {FLAVOUR_BATCH, FLAVOUR_ODD,   FLAVOUR_BATCH,
                                       FLAVOUR_ONE,   FLAVOUR_BATCH, FLAVOUR_ZERO};
    *w = (Growth){.g = {.arena = arena, .result = &w->ignored, .host = &host, .random = seed * 7919 + 1}, .r = result, .most = MOST_ELEMENTS};
    w->g.flavour = flavours[gen_below(&w->g, 6)];
    w->g.b = tg_builder(result->graph, result->func, false);
    w->dtype = common[gen_below(&w->g, 6)];
    choose_sizes(w);
    add_settings(w);
}

void grow_operations(Growth *w) {
    w->state = tg_random_graph_state(w->g.arena, w->r, w->r->rows);
    tg_push(w->g.arena, &w->values, (Tensor){0});
    int64_t wanted = 3 + gen_below(&w->g, MOST_STEPS - 2);
    for (int64_t made = 0, tries = 0; made < wanted && (tries < 6 * wanted || made == 0); tries++)
        made += chance(w, 4) ? grow_steps(w) : grow(w, any_op(w));
    for (int tries = 0; w->last && tries < 8; tries++)
        if (grow(w, w->last))
            return;
}

void grow_mixed(Growth *w) {
    static const Training kinds[] = {{.precision = DT_BF16}, {.precision = DT_BF16}, {.precision = DT_F16}, {.precision = DT_F16},
                                     {.precision = DT_F16, .loss_scale = 1024}, {.precision = DT_F16, .loss_scale = 1}};
    const Training *kind = &kinds[gen_below(&w->g, 6)];
    graph_of(w)->training.precision = kind->precision;
    graph_of(w)->training.loss_scale = kind->loss_scale;
    w->dtype = DT_F32;
}

void grow_marks(Growth *w) {
    Func *func = w->r->func;
    for (NodeId id = 1; tg_is_mixed(&graph_of(w)->training) && id < func->nodes.count; id++)
        if (chance(w, 6))
            func->nodes.at[id].precision = chance(w, 80) ? PRECISION_F32 : PRECISION_LOW;
}

void tg_random_graph(Arena *arena, uint64_t seed, RandomGraph *result) {
    static const Sources no_sources;
    *result = (RandomGraph){.graph = tg_graph_new(arena, &no_sources, LEVEL_STEP), .rows = 1, .wild = seed % 4 == 3};
    result->func = tg_func_new(result->graph, FUNC_MICRO, "micro");
    Growth *w = TG_ALLOC(arena, Growth, 1);
    grow_start(w, arena, seed, result);
    result->rows = w->g.flavour == FLAVOUR_BATCH ? 1 + gen_below(&w->g, 5) : 1;
    if (chance(w, 30))
        grow_mixed(w);
    grow_operations(w);
    if (chance(w, 4))
        grow_long(w);
    grow_marks(w);
    add_stores(w);
    add_results(w);
    Training *training = &result->graph->training;
    training->micro = training->batch = result->rows;
    training->lanes = 1;
    training->clip_scalar = -1;
}

/* The first `rows` of `of->rows` rows. */
static Tensor first_rows(Arena *arena, const RandomGraph *of, const Tensor *whole, int64_t rows) {
    const Type *type = tg_type_of(&of->graph->types, whole->type);
    int axis = tg_type_batch_axis(type);
    if (axis < 0 || rows == of->rows)
        return *whole;
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < axis; d++)
        outer *= type->dims[d].size;
    for (int d = axis; d < type->rank; d++)
        inner *= type->dims[d].size;
    Tensor part = {whole->type, outer * inner * rows, TG_ALLOC(arena, double, outer *inner *rows + 1)};
    for (int64_t o = 0; o < outer; o++)
        memcpy(part.at + o * inner * rows, whole->at + o * inner * of->rows, sizeof(double) * (size_t)(inner * rows));
    return part;
}

EvalState tg_random_graph_state(Arena *arena, const RandomGraph *of, int64_t rows) {
    Tensor *args = TG_ALLOC(arena, Tensor, RANDOM_ARGS);
    for (uint32_t i = 0; i < of->func->args.count; i++)
        args[i] = first_rows(arena, of, &of->args[i], rows);
    return (EvalState){.arena = arena,
                       .mode = EVAL_TYPED,
                       .rows = rows,
                       .seed = 1,
                       .args = args,
                       .buffers = (Tensor *)of->buffers,
                       .scalars = of->scalars};
}
