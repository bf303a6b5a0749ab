#include "tests/ops/generate_rules.h"

#include <math.h>
#include <string.h>

typedef bool GenRule(Gen *g);

static GenRule *const rules[OP_COUNT] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen) [OP_##name] = gen_##gen,
#include "ir/ops.def"
#undef OP
};

static const char *const gradient_names[OP_COUNT] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, ...) [OP_##name] = #grad,
#include "ir/ops.def"
#undef OP
};

bool tg_op_has_case(Op op) { return rules[op] != gen_none; }
bool tg_op_has_gradient(Op op) { return strcmp(gradient_names[op], "none") != 0; }

/* splitmix64 */
static uint64_t next_random(Gen *g) {
    uint64_t z = g->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t gen_below(Gen *g, int64_t limit) { return (int64_t)(next_random(g) % (uint64_t)limit); }

bool gen_run(Gen *g) { return rules[g->op](g); }

int64_t gen_size(Gen *g, bool empty) {
    if (g->host)
        return g->host->size(g, empty);
    static const int64_t sizes[] = {3, 5, 7, 2, 17};
    if (g->flavour == FLAVOUR_ZERO && empty && gen_below(g, 3) == 0)
        return 0;
    if (g->flavour == FLAVOUR_ONE && gen_below(g, 2) == 0)
        return 1;
    return sizes[gen_below(g, 5)];
}

Type gen_shape(Gen *g, DType dtype, int low, int high) {
    if (g->host)
        return g->host->shape(g, dtype, low, high);
    Type type = {.dtype = dtype, .rank = (uint8_t)(low + gen_below(g, high - low + 1))};
    if (g->flavour == FLAVOUR_BATCH && type.rank == 0)
        type.rank = 1;
    for (int i = 0; i < type.rank; i++)
        type.dims[i] = (Dim){gen_size(g, true), false};
    if (g->flavour == FLAVOUR_ZERO && type.rank > 0)
        type.dims[gen_below(g, type.rank)].size = 0;
    if (g->flavour == FLAVOUR_BATCH)
        type.dims[gen_below(g, 2) ? 0 : gen_below(g, type.rank)] = (Dim){gen_below(g, 2) ? 1 : 3, true};
    return type;
}

int gen_plain_axis(Gen *g, const Type *type) {
    int first = type->rank ? (int)gen_below(g, type->rank) : 0;
    for (int i = 0; i < type->rank; i++)
        if (!type->dims[(first + i) % type->rank].batch)
            return (first + i) % type->rank;
    return -1;
}

/* Distinct over all arguments: element ranks are shuffled, each argument has its own place between ranks. */
static void fill_floats(Gen *g, Tensor *tensor, Values values) {
    int64_t n = tensor->count, *rank = TG_ALLOC(g->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = gen_below(g, i + 1);
        rank[i] = rank[k];
        rank[k] = i;
    }
    for (int64_t i = 0; i < n; i++) {
        double unit = ((double)rank[i] + (g->result->arg_count + 1) / (OP_CASE_ARGS + 2.0)) / (double)n;
        double value = 4.0 * unit - 2.0;
        if (values == VALUES_POSITIVE)
            value = 0.25 + 2.75 * unit;
        if (values == VALUES_NONZERO)
            value += value < 0 ? -0.5 : 0.5;
        tensor->at[i] = value;
    }
}

static void fill_integers(Gen *g, DType dtype, Tensor *tensor, Values values) {
    bool is_signed = tg_dtype(dtype)->kind == KIND_SIGNED;
    for (int64_t i = 0; i < tensor->count; i++) {
        double value = (double)gen_below(g, 12) - (is_signed && values != VALUES_POSITIVE ? 6 : 0);
        if (values == VALUES_NONZERO && value == 0)
            value = 1;
        if (values == VALUES_INDEX)
            value = (double)gen_below(g, g->index_limit);
        tensor->at[i] = dtype == DT_BOOL ? (double)gen_below(g, 2) : value;
    }
}

void gen_fill(Gen *g, DType dtype, Tensor *tensor, Values values) {
    if (tg_is_float(dtype))
        fill_floats(g, tensor, values);
    else
        fill_integers(g, dtype, tensor, values);
    for (int64_t i = 0; i < tensor->count; i++)
        tensor->at[i] = tg_round_to(dtype, tensor->at[i]);
}

NodeId gen_operand(Gen *g, const Type *type, Values values) {
    if (g->host)
        return g->host->operand(g, type, values);
    TypeId id = tg_type(&g->b.graph->types, type);
    int64_t count = tg_type_count(type, g->result->rows);
    Tensor tensor = {id, count, TG_ALLOC(g->arena, double, count + 1)};
    gen_fill(g, type->dtype, &tensor, values);
    uint32_t index = g->result->arg_count++;
    g->result->args[index] = tensor;
    return tg_arg(&g->b, index, tg_arena_printf(g->arena, "x%u", index), id);
}

bool gen_finish(Gen *g, const Attr *attr, const NodeId *operands, uint32_t count, const Type *wanted) {
    static const Attr none;
    const char *why = NULL;
    TypeId type = wanted ? tg_type(&g->b.graph->types, wanted) : 0;
    if (!tg_infer(g->b.graph, g->b.func, g->op, attr ? attr : &none, operands, count, type, &why))
        return false;
    g->result->node = tg_build(&g->b, g->op, attr ? attr : &none, operands, count, type);
    if (!g->host)
        tg_result_value(&g->b, "value", g->result->node);
    return g->result->node != 0 && !g->b.error;
}

bool tg_op_case(Arena *arena, Op op, DType dtype, uint64_t seed, OpCase *result) {
    static const Sources no_sources;
    *result = (OpCase){.rows = 1};
    result->graph = tg_graph_new(arena, &no_sources, LEVEL_STEP);
    result->func = tg_func_new(result->graph, FUNC_EXPORT, "case");
    Gen g = {.arena = arena, .op = op, .dtype = dtype, .result = result, .random = seed * 1000 + op};
    g.flavour = (Flavour)(seed % FLAVOUR_COUNT);
    g.b = tg_builder(result->graph, result->func, false);
    if (g.flavour == FLAVOUR_BATCH)
        result->rows = 1 + gen_below(&g, 5);
    return gen_run(&g);
}

bool gen_none(Gen *g) {
    (void)g;
    return false;
}

/* Pointwise. */
static bool point(Gen *g, DType dtype, int operands, Values first, Values second) {
    Type type = gen_shape(g, dtype, 0, 3);
    NodeId x[2] = {gen_operand(g, &type, first)};
    if (operands == 2)
        x[1] = gen_operand(g, &type, second);
    return gen_finish(g, NULL, x, (uint32_t)operands, NULL);
}

bool gen_float(Gen *g) { return point(g, g->dtype, 1, VALUES_ANY, VALUES_ANY); }
bool gen_positive(Gen *g) { return point(g, g->dtype, 1, VALUES_POSITIVE, VALUES_ANY); }
bool gen_bool_(Gen *g) { return point(g, g->dtype, 1, VALUES_ANY, VALUES_ANY); }
bool gen_pair(Gen *g) { return point(g, g->dtype, 2, VALUES_ANY, VALUES_ANY); }
bool gen_divide(Gen *g) { return point(g, g->dtype, 2, VALUES_ANY, VALUES_NONZERO); }
bool gen_power(Gen *g) { return point(g, g->dtype, 2, VALUES_POSITIVE, VALUES_ANY); }
bool gen_bool_pair(Gen *g) { return point(g, g->dtype, 2, VALUES_ANY, VALUES_ANY); }

bool gen_index(Gen *g) {
    Type type = gen_shape(g, g->dtype, 0, 3);
    int64_t low = 0, high = 9, also = 100;
    g->index_limit = high;
    NodeId x = gen_operand(g, &type, VALUES_INDEX);
    Attr attr = {.list = {gen_ints(&low, 1), gen_ints(&high, 1), gen_ints(&also, (uint32_t)gen_below(g, 2))}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_convert(Gen *g) {
    Type type = gen_shape(g, g->dtype, 0, 3);
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Type to = gen_with(type, (DType)gen_below(g, DT_COUNT));
    return gen_finish(g, NULL, &x, 1, &to);
}

bool gen_select(Gen *g) {
    Type type = gen_shape(g, g->dtype, 0, 3), condition = gen_with(type, DT_BOOL);
    NodeId x[3] = {gen_operand(g, &condition, VALUES_ANY)};
    x[1] = gen_operand(g, &type, VALUES_ANY);
    x[2] = gen_operand(g, &type, VALUES_ANY);
    return gen_finish(g, NULL, x, 3, NULL);
}

/* Leaves. */
bool gen_const(Gen *g) {
    Type type = gen_shape(g, g->dtype, 0, 3);
    Attr attr = {.number = tg_round_to(g->dtype, 1.5)};
    if (tg_type_batch_axis(&type) < 0 && gen_below(g, 2)) {
        gen_operand(g, &type, VALUES_ANY);
        attr.dense = g->result->args[0].at;
    }
    return gen_finish(g, &attr, NULL, 0, &type);
}

bool gen_iota(Gen *g) {
    Type type = gen_shape(g, g->dtype, 1, 3);
    int64_t axis = gen_plain_axis(g, &type);
    Attr attr = {.list = {gen_ints(&axis, 1)}};
    return axis >= 0 && gen_finish(g, &attr, NULL, 0, &type);
}

bool gen_random(Gen *g) {
    Type type = gen_shape(g, g->dtype, 0, 3);
    Attr attr = {.key = next_random(g)};
    return gen_finish(g, &attr, NULL, 0, &type);
}
