/* Ops that write what they have written before: cumsum along an axis, and scatter_add into a table. The axis runs
   serially, in a fixed order; vectors and tiles run over what it leaves. */
#include "codegen/lower.h"

static LoopId loop_int(Lower *l, int64_t value) { return tg_loop_int(l->k, DT_I64, value); }
static LoopId two(Lower *l, LoopOp op, LoopId a, LoopId b) { return tg_loop_op(l->k, op, a, b, 0); }

typedef struct Scan {
    Lower *l;
    const Nest *nest;
    const Output *output;
    const Node *node;
    int64_t outer, length, inner;
    uint32_t unit, column; /* columns: vectors run over them, and over `outer` where inner is 1 */
} Scan;

static Scan scan_of(Lower *l, const Nest *nest) {
    const Output *output = &nest->outputs.at[0];
    Scan s = {.l = l, .nest = nest, .output = output, .node = tg_node(l->func, output->node), .outer = 1, .inner = 1};
    int64_t axis = tg_lower_int(s.node, 0, 0);
    for (int i = 0; i < output->type->rank; i++) {
        int64_t extent = tg_dim_extent(l, output->type->dims[i]);
        if (i == axis)
            s.length = extent;
        else if (i < axis)
            s.outer *= extent;
        else
            s.inner *= extent;
    }
    return s;
}

static int64_t extent_of(const Lower *l, NodeId node) {
    return tg_type_extent(l, tg_node_type(l->graph, l->func, node));
}

static void mask_padding(Nest *nest) { nest->masked = tg_type_batch_axis(nest->outputs.at[0].type) >= 0; }

enum { BLOCK = 64 };

void tg_lower_scan_size(Lower *l, Nest *nest) {
    Scan s = scan_of(l, nest);
    int64_t across = s.inner > 1 || nest->kind == NEST_SCATTER ? s.inner : s.outer;
    nest->block = across < BLOCK ? across : BLOCK;
    int64_t each = nest->block ? (across + nest->block - 1) / nest->block : 0;
    nest->units = across == s.inner && (s.inner > 1 || nest->kind == NEST_SCATTER) ? s.outer * each : each;
    nest->work = l->in_place ? 0 : nest->block * s.length;
    if (nest->kind == NEST_SCATTER)
        nest->work += extent_of(l, tg_operand(l->func, s.node, 1)) / (s.outer ? s.outer : 1);
    mask_padding(nest);
    if (extent_of(l, nest->outputs.at[0].node) == 0)
        nest->units = 0;
}

/* Opens the loops over units and over the columns of one; `*first`: the block's first column. */
static Index open_columns(Scan *s, int64_t across, LoopId *first) {
    Lower *l = s->l;
    int64_t each = (across + s->nest->block - 1) / s->nest->block;
    s->unit = tg_lower_var(l, s->nest->units, l->depth + 1);
    s->column = tg_lower_var(l, across, l->depth + 2);
    Index unit = tg_index_var(l, s->unit), outer, rest;
    tg_index_split(l, &unit, each, &outer, &rest);
    Span span = tg_lower_span(l, s->nest, false);
    LoopId at = tg_lower_open(l, MODE_PARALLEL, s->unit, span.lo, span.hi, s->nest->grain);
    *first = two(l, LOOP_imul, two(l, LOOP_irem, at, loop_int(l, each)), loop_int(l, s->nest->block));
    LoopId last = two(l, LOOP_imin, two(l, LOOP_iadd, *first, loop_int(l, s->nest->block)), loop_int(l, across));
    tg_lower_open(l, MODE_VECTOR, s->column, *first, last, s->nest->block);
    return outer;
}

static void close_columns(Scan *s) {
    tg_lower_close(s->l, s->column);
    tg_lower_close(s->l, s->unit);
}

static LoopId added(Lower *l, LoopId a, LoopId b) { return tg_lower_combine(l, OP_reduce_sum, a, b); }

void tg_lower_cumsum(Lower *l, const Nest *nest) {
    Scan s = scan_of(l, nest);
    LoopId first;
    bool wide = s.inner > 1;
    Index outer = open_columns(&s, wide ? s.inner : s.outer, &first), at = {0}, column = tg_index_var(l, s.column);
    DType type = tg_loop_compute_type((DType)s.output->type->dtype);
    uint32_t sums = tg_loop_buffer(l->k, ROLE_SCRATCH, type, nest->block);
    LoopId own = two(l, LOOP_isub, loop_int(l, 0), first);
    tg_loop_store(l->k, sums, own, 1, tg_loop_number(l->k, type, 0));

    uint32_t along = tg_lower_var(l, s.length, l->depth + 1);
    Index step = tg_index_var(l, along);
    bool reverse = tg_lower_int(s.node, 1, 0) != 0;
    tg_index_add(l, &at, &column, wide ? 1 : s.length);
    if (wide)
        tg_index_add(l, &at, &outer, s.length * s.inner);
    at.constant += reverse ? (s.length - 1) * s.inner : 0;
    tg_index_add(l, &at, &step, reverse ? -s.inner : s.inner);
    tg_lower_open(l, MODE_SERIAL, along, loop_int(l, 0), loop_int(l, s.length), s.length);
    Place *place = tg_index_unflatten(l, &at, s.output->type);
    NodeId operand = tg_operand(l->func, s.node, 0);
    LoopId sum = added(l, tg_loop_load(l->k, sums, own, 1), tg_lower_compute(l, operand, place));
    tg_loop_store(l->k, sums, own, 1, sum);
    tg_lower_store(l, nest, s.output, place, tg_loop_convert(l->k, LOOP_convert, sum, (DType)s.output->type->dtype));
    tg_lower_close(l, along);
    close_columns(&s);
}

/* Fills the block's part of the table: with what is added to, or with zeros. */
static void begin_table(Scan *s, const Index *outer) {
    Lower *l = s->l;
    if (l->in_place)
        return;
    uint32_t along = tg_lower_var(l, s->length, l->depth + 1);
    Index at = {0}, step = tg_index_var(l, along), column = tg_index_var(l, s->column);
    tg_index_add(l, &at, outer, s->length * s->inner);
    tg_index_add(l, &at, &step, s->inner);
    tg_index_add(l, &at, &column, 1);
    tg_lower_open(l, MODE_PARALLEL, along, loop_int(l, 0), loop_int(l, s->length), s->length);
    int64_t stride;
    LoopId address = tg_index_address(l, &at, &stride), value;
    if (s->node->operand_count == 3)
        value = tg_lower_value(l, tg_operand(l->func, s->node, 2), tg_index_unflatten(l, &at, s->output->type));
    else
        value = tg_loop_number(l->k, s->output->type->dtype, 0);
    tg_loop_store(l->k, s->output->buffer, address, stride, value);
    tg_lower_close(l, along);
}

/* Updates in ascending order; those that are padding or outside of the table add nothing (they add zero to row 0). */
void tg_lower_scatter(Lower *l, const Nest *nest) {
    Scan s = scan_of(l, nest);
    LoopId first;
    Index outer = open_columns(&s, s.inner, &first), column = tg_index_var(l, s.column);
    begin_table(&s, &outer);

    NodeId indices = tg_operand(l->func, s.node, 0), updates = tg_operand(l->func, s.node, 1);
    const Type *index_type = tg_node_type(l->graph, l->func, indices);
    const Type *update_type = tg_node_type(l->graph, l->func, updates);
    int64_t count = tg_type_extent(l, index_type);
    bool batch = tg_type_batch_axis(index_type) == 0;
    LoopId end = batch ? tg_lower_valid(l, count / l->capacity) : loop_int(l, count);
    uint32_t update = tg_lower_var(l, count, l->depth + 1);
    Index number = tg_index_var(l, update), from = {0};
    tg_index_add(l, &from, &outer, count * s.inner);
    tg_index_add(l, &from, &number, s.inner);
    tg_index_add(l, &from, &column, 1);

    tg_lower_open(l, MODE_SERIAL, update, loop_int(l, 0), end, count);
    LoopId row = tg_lower_index(l, indices, tg_index_unflatten(l, &number, index_type));
    LoopId inside = two(l, LOOP_ult, row, loop_int(l, s.length)), zero = loop_int(l, 0);
    row = tg_loop_op(l->k, LOOP_select, inside, row, zero);
    Index base = {0};
    tg_index_add(l, &base, &outer, s.length * s.inner);
    tg_index_add(l, &base, &column, 1);
    int64_t stride;
    LoopId address = tg_index_address(l, &base, &stride);
    address = two(l, LOOP_iadd, address, two(l, LOOP_imul, row, loop_int(l, s.inner)));
    DType dtype = (DType)s.output->type->dtype, type = tg_loop_compute_type(dtype);
    LoopId old = tg_loop_load(l->k, s.output->buffer, address, stride);
    LoopId value = tg_lower_compute(l, updates, tg_index_unflatten(l, &from, update_type));
    LoopId sum = added(l, tg_loop_convert(l->k, LOOP_convert, old, type), value);
    sum = tg_loop_convert(l->k, LOOP_convert, sum, dtype);
    tg_loop_store(l->k, s.output->buffer, address, stride, tg_loop_op(l->k, LOOP_select, inside, sum, old));
    tg_lower_close(l, update);
    close_columns(&s);
}
