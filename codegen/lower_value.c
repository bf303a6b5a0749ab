/* The value of a node at a place, as loop instructions. */
#include "codegen/lower.h"

#include "codegen/scalar.h"

#include <math.h>
#include <string.h>

typedef LoopId EmitRule(Lower *l, NodeId id, const Place *place);

static const Node *node_at(const Lower *l, NodeId id) { return tg_node(l->func, id); }
static DType dtype_of(const Lower *l, NodeId id) { return (DType)tg_node_type(l->graph, l->func, id)->dtype; }
static DType loop_type(const Lower *l, LoopId id) { return (DType)l->k->instrs.at[id].type; }

static LoopId operand(Lower *l, NodeId id, uint32_t i, const Place *place) {
    return tg_lower_value(l, tg_operand(l->func, node_at(l, id), i), tg_lower_operand_place(l, id, i, place));
}

static LoopId compute_operand(Lower *l, NodeId id, uint32_t i, const Place *place) {
    LoopId value = operand(l, id, i, place);
    return tg_loop_convert(l->k, LOOP_convert, value, tg_loop_compute_type(loop_type(l, value)));
}

/* A result rounds to its node's type, in registers too. */
static LoopId settled(Lower *l, NodeId id, LoopId value) {
    return tg_loop_convert(l->k, LOOP_convert, value, dtype_of(l, id));
}

static LoopId zero_of(Lower *l, NodeId id) { return tg_loop_number(l->k, dtype_of(l, id), 0); }

/* ---- leaves ---- */

static LoopId load_at(Lower *l, NodeId id, const Place *place, uint32_t buffer) {
    int64_t stride;
    Index flat = tg_place_flatten(l, place, tg_node_type(l->graph, l->func, id));
    LoopId address = tg_index_address(l, &flat, &stride);
    return tg_loop_load(l->k, buffer, address, stride);
}

static LoopId emit_const(Lower *l, NodeId id, const Place *place) {
    if (l->dense[id] != 0)
        return load_at(l, id, place, l->dense[id] - 1);
    return tg_loop_number(l->k, dtype_of(l, id), node_at(l, id)->attr->number);
}

static LoopId emit_arg(Lower *l, NodeId id, const Place *place) {
    return load_at(l, id, place, l->arg_buffer[tg_lower_int(node_at(l, id), 0, 0)]);
}

static LoopId emit_scalar(Lower *l, NodeId id, const Place *place) {
    (void)place;
    return settled(l, id, tg_loop_leaf(l->k, LOOP_scalar, node_at(l, id)->attr->ref));
}

static LoopId emit_iota(Lower *l, NodeId id, const Place *place) {
    LoopId value = tg_index_value(l, &place->at[tg_lower_int(node_at(l, id), 0, 0)]);
    DType to = dtype_of(l, id);
    return tg_is_integer(to) ? tg_loop_convert(l->k, LOOP_wrap, value, to) : scalar_convert(l->k, value, to);
}

static LoopId emit_random(Lower *l, NodeId id, const Place *place) {
    Index row, index;
    tg_lower_random_counter(l, id, place, &row, &index);
    LoopId global = tg_index_value(l, &row);
    if (tg_type_batch_axis(tg_node_type(l->graph, l->func, id)) >= 0)
        global = tg_loop_op(l->k, LOOP_iadd, global, tg_loop_leaf(l->k, LOOP_first_row, 0), 0);
    return scalar_convert(l->k, scalar_random(l->k, node_at(l, id)->attr->key, global, tg_index_value(l, &index)),
                          dtype_of(l, id));
}

/* ---- pointwise: only the rows whose emit name is `unary` or `binary` leave an entry ---- */

#define SECOND(first, second, ...) second
#define CHOOSE(...)                SECOND(__VA_ARGS__, NO_ENTRY, none)
#define ENTRY(name)                [OP_##name] = scalar_##name,
#define NO_ENTRY(name)
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen)                        \
    CHOOSE(PROBE_##emit)(name)

#define PROBE_unary none, ENTRY
static ScalarUnary *const UNARY[OP_COUNT] = {
#include "ir/ops.def"
};
#undef PROBE_unary
#define PROBE_binary none, ENTRY
static ScalarBinary *const BINARY[OP_COUNT] = {
#include "ir/ops.def"
};
#undef PROBE_binary
#undef OP

static LoopId emit_unary(Lower *l, NodeId id, const Place *place) {
    LoopId x = compute_operand(l, id, 0, place);
    return settled(l, id, UNARY[node_at(l, id)->op](l->k, loop_type(l, x), x));
}

static LoopId emit_binary(Lower *l, NodeId id, const Place *place) {
    LoopId x = compute_operand(l, id, 0, place), y = compute_operand(l, id, 1, place);
    return settled(l, id, BINARY[node_at(l, id)->op](l->k, loop_type(l, x), x, y));
}

static LoopId emit_select(Lower *l, NodeId id, const Place *place) {
    LoopId condition = operand(l, id, 0, place), yes = operand(l, id, 1, place), no = operand(l, id, 2, place);
    return tg_loop_op(l->k, LOOP_select, condition, yes, no);
}

static LoopId emit_convert(Lower *l, NodeId id, const Place *place) {
    return scalar_convert(l->k, operand(l, id, 0, place), dtype_of(l, id));
}

/* ---- views ---- */

static LoopId emit_copy(Lower *l, NodeId id, const Place *place) { return operand(l, id, 0, place); }
static LoopId emit_reshape(Lower *l, NodeId id, const Place *place) { return operand(l, id, 0, place); }
static LoopId emit_transpose(Lower *l, NodeId id, const Place *place) { return operand(l, id, 0, place); }
static LoopId emit_broadcast(Lower *l, NodeId id, const Place *place) { return operand(l, id, 0, place); }
static LoopId emit_slice(Lower *l, NodeId id, const Place *place) { return operand(l, id, 0, place); }
static LoopId emit_reverse(Lower *l, NodeId id, const Place *place) { return operand(l, id, 0, place); }

static LoopId both(Lower *l, LoopId a, LoopId b) { return a ? tg_loop_op(l->k, LOOP_and, a, b, 0) : b; }

/* Whether the place of a padded axis lies on an element of the operand. */
static LoopId inside_axis(Lower *l, const Index *index, int64_t low, int64_t step, int64_t extent) {
    Index shifted = tg_index_const(-low);
    tg_index_add(l, &shifted, index, 1);
    LoopId at = tg_index_value(l, &shifted), zero = tg_loop_int(l->k, DT_I64, 0);
    LoopId inside = tg_loop_op(l->k, LOOP_ige, at, zero, 0);
    inside = both(l, inside, tg_loop_op(l->k, LOOP_ile, at, tg_loop_int(l->k, DT_I64, (extent - 1) * step), 0));
    if (step == 1)
        return inside;
    LoopId rest = tg_loop_op(l->k, LOOP_irem, at, tg_loop_int(l->k, DT_I64, step), 0);
    return both(l, inside, tg_loop_op(l->k, LOOP_ieq, rest, zero, 0));
}

static LoopId emit_pad(Lower *l, NodeId id, const Place *place) {
    const Attr *attr = node_at(l, id)->attr;
    const Type *from = tg_node_type(l->graph, l->func, tg_operand(l->func, node_at(l, id), 0));
    LoopId inside = 0, padding = tg_loop_number(l->k, dtype_of(l, id), attr->number);
    if (tg_type_extent(l, from) == 0)
        return padding;
    for (int d = 0; d < from->rank; d++) {
        int64_t low = attr->list[0].at[d], step = attr->list[2].at[d] + 1;
        if (low != 0 || attr->list[1].at[d] != 0 || step != 1)
            inside = both(l, inside, inside_axis(l, &place->at[d], low, step, tg_dim_extent(l, from->dims[d])));
    }
    LoopId value = operand(l, id, 0, place);
    return inside ? tg_loop_op(l->k, LOOP_select, inside, value, padding) : value;
}

/* Rows outside of the table: NaN, and 0 in integers. */
static LoopId emit_take(Lower *l, NodeId id, const Place *place) {
    const Type *table = tg_node_type(l->graph, l->func, tg_operand(l->func, node_at(l, id), 0));
    int64_t rows = tg_dim_extent(l, table->dims[tg_lower_int(node_at(l, id), 0, 0)]);
    LoopId absent = tg_loop_number(l->k, table->dtype, tg_is_float(table->dtype) ? (double)NAN : 0);
    if (rows == 0)
        return absent;
    LoopId index = tg_lower_index(l, tg_operand(l->func, node_at(l, id), 1), tg_lower_operand_place(l, id, 1, place));
    LoopId inside = tg_loop_op(l->k, LOOP_ult, index, tg_loop_int(l->k, DT_I64, rows), 0);
    return tg_loop_op(l->k, LOOP_select, inside, operand(l, id, 0, place), absent);
}

/* ---- reductions: made by the nest; here only read ---- */

static LoopId emit_pick(Lower *l, NodeId id, const Place *place) {
    LoopId value = compute_operand(l, id, 0, place), zero = tg_loop_number(l->k, loop_type(l, value), 0);
    return settled(l, id, tg_loop_op(l->k, tg_is_float(loop_type(l, value)) ? LOOP_fadd : LOOP_iadd, value, zero, 0));
}

static LoopId emit_reduce(Lower *l, NodeId id, const Place *place) {
    if (l->label[id] != 0)
        return emit_pick(l, id, place);
    Index flat = tg_place_flatten(l, place, tg_node_type(l->graph, l->func, id));
    if (l->reduced[id] != 0 && l->row != NULL && (l->empty_rows || tg_index_equal(&flat, l->row)))
        return l->reduced[id];
    tg_lower_fail(l, id, TG_INTERNAL, "a reduction is read outside of its row");
    return zero_of(l, id);
}

static LoopId emit_argmax(Lower *l, NodeId id, const Place *place) { return emit_reduce(l, id, place); }

/* ---- what stands alone in a kernel, or in none ---- */

static LoopId alone(Lower *l, NodeId id, const Place *place) {
    (void)place;
    tg_lower_fail(l, id, TG_INTERNAL, "it must stand alone in its kernel");
    return zero_of(l, id);
}

static LoopId emit_concat(Lower *l, NodeId id, const Place *place) { return alone(l, id, place); }
static LoopId emit_cumsum(Lower *l, NodeId id, const Place *place) { return alone(l, id, place); }
static LoopId emit_scatter_add(Lower *l, NodeId id, const Place *place) { return alone(l, id, place); }

static LoopId emit_unbuilt(Lower *l, NodeId id, const Place *place) {
    (void)place;
    tg_lower_fail(l, id, TG_MODEL, "not built yet for this target");
    return zero_of(l, id);
}

static EmitRule *const RULES[OP_COUNT] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen)                        \
    [OP_##name] = emit_##emit,
#include "ir/ops.def"
#undef OP
};

/* ---- values at places ---- */

static size_t add_bytes(char *to, size_t at, const void *from, size_t bytes) {
    memcpy(to + at, from, bytes);
    return at + bytes;
}

Entry *tg_lower_entry(Lower *l, NodeId node, const Place *place) {
    char key[sizeof(NodeId) + TG_MAX_RANK * sizeof(Index)];
    size_t bytes = add_bytes(key, 0, &node, sizeof node);
    for (uint32_t i = 0; i < place->rank; i++) {
        const Index *index = &place->at[i];
        bytes = add_bytes(key, bytes, &index->constant, sizeof index->constant);
        bytes = add_bytes(key, bytes, &index->count, sizeof index->count);
        for (uint32_t t = 0; t < index->count; t++) {
            const Term *term = &index->at[t];
            bytes = add_bytes(key, bytes, &term->var, sizeof term->var);
            bytes = add_bytes(key, bytes, &term->div, 3 * sizeof term->div);
        }
    }
    bool is_new;
    uint64_t *at = tg_map_put(&l->entry_map, key, bytes, &is_new);
    if (is_new) {
        Entry *entry = TG_ALLOC(l->arena, Entry, 1);
        entry->node = node;
        entry->place = tg_arena_copy(l->arena, place, sizeof *place);
        *at = l->entries.count;
        tg_push(l->arena, &l->entries, entry);
    }
    return l->entries.at[*at];
}

static bool kept(const Lower *l, const Entry *entry) { return entry->scratch != 0 && l->stage >= entry->first_stage; }

LoopId tg_lower_value(Lower *l, NodeId node, const Place *place) {
    Entry *entry = tg_lower_entry(l, node, place);
    if (entry->value != 0)
        return entry->value;
    LoopId value = kept(l, entry) ? tg_loop_load(l->k, entry->scratch - 1, tg_loop_int(l->k, DT_I64, 0), 1)
                                  : RULES[node_at(l, node)->op](l, node, entry->place);
    entry->value = value;
    tg_push(l->arena, &l->live, entry);
    return value;
}

LoopId tg_lower_compute(Lower *l, NodeId node, const Place *place) {
    LoopId value = tg_lower_value(l, node, place);
    return tg_loop_convert(l->k, LOOP_convert, value, tg_loop_compute_type(loop_type(l, value)));
}

LoopId tg_lower_index(Lower *l, NodeId node, const Place *place) {
    LoopId value = tg_lower_value(l, node, place);
    bool is_unsigned = tg_dtype(loop_type(l, value))->kind == KIND_UNSIGNED;
    return tg_loop_convert(l->k, is_unsigned ? LOOP_zero : LOOP_wrap, value, DT_I64);
}

bool tg_lower_descends(const Lower *l, NodeId node) {
    FuseKind fuse = tg_op((Op)node_at(l, node)->op)->fuse;
    Op op = (Op)node_at(l, node)->op;
    return (fuse != FUSE_reduce || l->label[node] != 0) && op != OP_cumsum && op != OP_scatter_add && op != OP_concat;
}

void tg_lower_new_walk(Lower *l) { l->walk++; }

/* Whether this walk comes here for the first time. */
static bool visit(Lower *l, Entry *entry) {
    bool first = entry->walk != l->walk;
    entry->walk = l->walk;
    return first;
}

void tg_lower_hoist(Lower *l, NodeId node, const Place *place) {
    Entry *entry = tg_lower_entry(l, node, place);
    bool empty = tg_type_extent(l, tg_node_type(l->graph, l->func, node)) == 0; /* in a loop that never runs */
    if (!visit(l, entry) || entry->value != 0 || kept(l, entry) || empty || node_at(l, node)->op == OP_const)
        return;
    if (l->level[node] <= l->stage && tg_place_depth(l, entry->place) <= l->depth) {
        tg_lower_value(l, node, entry->place);
        return;
    }
    for (uint32_t i = 0; tg_lower_descends(l, node) && i < node_at(l, node)->operand_count; i++)
        tg_lower_hoist(l, tg_operand(l->func, node_at(l, node), i), tg_lower_operand_place(l, node, i, entry->place));
}

void tg_lower_measure(Lower *l, NodeId node, const Place *place) {
    Entry *entry = tg_lower_entry(l, node, place);
    if (!visit(l, entry))
        return;
    const Node *n = node_at(l, node);
    if (n->op == OP_arg || n->op == OP_const) {
        Index flat = tg_place_flatten(l, entry->place, tg_node_type(l->graph, l->func, node));
        tg_index_measure(l, &flat);
    } else if (n->op == OP_random) {
        Index row, index;
        tg_lower_random_counter(l, node, entry->place, &row, &index);
        tg_index_measure(l, &row);
        tg_index_measure(l, &index);
    } else if (n->op == OP_iota || n->op == OP_pad) {
        for (uint32_t d = 0; d < place->rank; d++)
            tg_index_measure(l, &place->at[d]);
    }
    for (uint32_t i = 0; tg_lower_descends(l, node) && i < n->operand_count; i++)
        tg_lower_measure(l, tg_operand(l->func, n, i), tg_lower_operand_place(l, node, i, entry->place));
}
