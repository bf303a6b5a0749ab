/* Rows kernels: rows x width, any number of reductions along the rows, one after the other; and pointwise kernels,
   which are rows kernels without reductions.

   A row is computed in stages: a stage is one vector loop that makes the reductions which need only those of earlier
   stages. What a later stage needs again is kept in a scratch row where that is cheaper than computing it again. */
#include "codegen/divisor.h"
#include "codegen/lower.h"

enum { SCRATCH_LIMIT = 1 << 19 /* bytes, all rows of a kernel */, MAX_STAGES = 15, MAX_PIECES = 64 };
static const double CHEAP = 8; /* weight up to which a value is computed again */

typedef struct Rows {
    Lower *l;
    const Nest *nest;
    uint32_t row, column; /* variables */
    Index place;          /* flat: row * width + column */
    Entries kept;
    int64_t bytes; /* of them */
    int stages;
} Rows;

static const Node *node_at(const Lower *l, NodeId id) { return tg_node(l->func, id); }
static NodeId reduced_node(const Lower *l, NodeId reduction) { return tg_operand(l->func, node_at(l, reduction), 0); }
static LoopId loop_int(Lower *l, int64_t value) { return tg_loop_int(l->k, DT_I64, value); }

/* ---- the domain ---- */

static int64_t output_width(const Lower *l, const Nest *nest, const Output *output) {
    return tg_type_extent(l, output->type) / nest->rows;
}

/* Pointwise: the last loop's width is the greatest that keeps every address affine. */
static void measure_pointwise(Lower *l, Nest *nest) {
    int64_t count = tg_type_extent(l, nest->outputs.at[0].type);
    Index flat = tg_index_var(l, tg_lower_var(l, count, 1));
    l->common = count;
    tg_lower_new_walk(l);
    for (uint32_t i = 0; i < nest->outputs.count; i++) {
        const Output *output = &nest->outputs.at[i];
        const Place *place = tg_index_unflatten(l, &flat, output->type);
        tg_lower_measure(l, output->node, place);
        if (output->into != NULL) {
            Index into = tg_place_flatten(l, place, output->into);
            tg_index_measure(l, &into);
        }
    }
    int batch = tg_type_batch_axis(nest->outputs.at[0].type);
    bool leading = batch >= 0;
    for (int i = 0; i < batch; i++)
        leading = leading && tg_dim_extent(l, nest->outputs.at[0].type->dims[i]) == 1;
    nest->masked = batch >= 0 && !leading;
    nest->batch_rows = leading;
    nest->width = l->common;
    if (leading && l->common < count)
        nest->width = tg_common_divisor(nest->width, count / l->capacity);
    nest->rows = count ? count / nest->width : 0;
    if (nest->rows <= 1)
        nest->flat = true;
}

void tg_lower_rows_size(Lower *l, Nest *nest) {
    if (nest->reductions.count == 0)
        measure_pointwise(l, nest);
    nest->units = nest->flat ? nest->width * nest->rows : nest->rows;
    nest->work = nest->flat ? 1 : nest->width;
}

/* ---- stages ---- */

static const Place *operand_place(Rows *r, NodeId reduction) {
    return tg_index_unflatten(r->l, &r->place, tg_node_type(r->l->graph, r->l->func, reduced_node(r->l, reduction)));
}

static const Place *output_place(Rows *r, const Output *output, const Index *at) {
    return tg_index_unflatten(r->l, at, output->type);
}

static bool is_full(const Rows *r, const Output *output) {
    return output_width(r->l, r->nest, output) == r->nest->width && (r->nest->width != 1 || r->nest->flat);
}

/* Finds what an earlier stage has computed and this one needs again. */
static void plan_walk(Rows *r, NodeId node, const Place *place, int stage) {
    Lower *l = r->l;
    Entry *entry = tg_lower_entry(l, node, place);
    if (entry->walk == l->walk || tg_place_depth(l, entry->place) < l->vars.at[r->column].depth)
        return;
    entry->walk = l->walk;
    DType dtype = (DType)tg_node_type(l->graph, l->func, node)->dtype;
    int64_t bytes = r->nest->width * tg_dtype(dtype)->bytes;
    bool fits = r->bytes + bytes <= SCRATCH_LIMIT;
    if (entry->scratch != 0)
        return;
    if (entry->first_stage == 0) {
        entry->first_stage = stage + 1;
    } else if (entry->first_stage <= stage && l->weight[node] > CHEAP && fits) {
        entry->scratch = 1 + tg_loop_buffer(l->k, ROLE_SCRATCH, dtype, r->nest->width);
        tg_push(l->arena, &r->kept, entry);
        r->bytes += bytes;
        return;
    }
    for (uint32_t i = 0; tg_lower_descends(l, node) && i < node_at(l, node)->operand_count; i++)
        plan_walk(r, tg_operand(l->func, node_at(l, node), i), tg_lower_operand_place(l, node, i, entry->place), stage);
}

typedef void RootVisit(Rows *r, NodeId node, const Place *place, int stage);

static int output_stage(const Rows *r, const Output *output) { return r->l->level[output->node]; }

/* The values that stage `stage` computes for each column. */
static void each_root(Rows *r, int stage, RootVisit *visit) {
    const Nest *nest = r->nest;
    for (uint32_t i = 0; i < nest->reductions.count; i++)
        if (r->l->level[nest->reductions.at[i]] == stage + 1)
            visit(r, reduced_node(r->l, nest->reductions.at[i]), operand_place(r, nest->reductions.at[i]), stage);
    for (uint32_t i = 0; i < nest->outputs.count; i++) {
        const Output *output = &nest->outputs.at[i];
        if (is_full(r, output) && output_stage(r, output) == stage)
            visit(r, output->node, output_place(r, output, &r->place), stage);
    }
}

static void plan(Rows *r) {
    for (uint32_t i = 0; i < r->nest->reductions.count; i++) {
        int level = r->l->level[r->nest->reductions.at[i]];
        r->stages = level > r->stages ? level : r->stages;
    }
    for (int stage = 0; stage <= r->stages; stage++) {
        tg_lower_new_walk(r->l);
        each_root(r, stage, plan_walk);
    }
}

static void hoist_root(Rows *r, NodeId node, const Place *place, int stage) {
    (void)stage;
    tg_lower_hoist(r->l, node, place);
}

/* ---- one stage ---- */

static int64_t split_of(const Lower *l, NodeId reduction) {
    const Node *node = node_at(l, reduction);
    int64_t split = node->op == OP_argmax ? 1 : tg_lower_int(node, 1, 1);
    return split > 1 ? split : 1;
}

/* Outputs and rows kept for later stages: values first, stores after them, so that an output may lie on an input. */
static void store_columns(Rows *r, int stage) {
    Lower *l = r->l;
    const Nest *nest = r->nest;
    LoopId *values = TG_ALLOC(l->arena, LoopId, nest->outputs.count);
    for (uint32_t i = 0; i < nest->outputs.count; i++) {
        const Output *output = &nest->outputs.at[i];
        if (is_full(r, output) && output_stage(r, output) == stage)
            values[i] = tg_lower_value(l, output->node, output_place(r, output, &r->place));
    }
    for (uint32_t i = 0; i < r->kept.count; i++) {
        Entry *entry = r->kept.at[i];
        if (entry->first_stage == stage + 1)
            tg_loop_store(l->k, entry->scratch - 1, loop_int(l, 0), 1, tg_lower_value(l, entry->node, entry->place));
    }
    for (uint32_t i = 0; i < nest->outputs.count; i++)
        if (values[i] != 0)
            tg_lower_store(l, nest, &nest->outputs.at[i], output_place(r, &nest->outputs.at[i], &r->place), values[i]);
}

/* One pass over the columns [begin, end): reductions of the stage with this split, into partial[reduction]. */
static void pass(Rows *r, int stage, int64_t split, LoopId begin, LoopId end, int64_t extent, LoopId *partial) {
    Lower *l = r->l;
    const Nest *nest = r->nest;
    tg_lower_open(l, MODE_VECTOR, r->column, begin, end, extent);
    for (uint32_t i = 0; i < nest->reductions.count; i++) {
        NodeId id = nest->reductions.at[i];
        if (l->level[id] == stage + 1 && split_of(l, id) == split) {
            LoopId value = tg_lower_compute(l, reduced_node(l, id), operand_place(r, id));
            partial[i] = tg_loop_op(l->k, tg_lower_reduce_op((Op)node_at(l, id)->op), value, 0, 0);
        }
    }
    if (split == 1)
        store_columns(r, stage);
    tg_lower_close(l, r->column);
}

static void finish_reduction(Rows *r, NodeId id, LoopId value) {
    Lower *l = r->l;
    const Type *type = tg_node_type(l->graph, l->func, id);
    l->reduced[id] = tg_loop_convert(l->k, LOOP_convert, value, type->dtype);
}

/* The columns in `split` equal runs, the results combined in a tree. */
static void split_pass(Rows *r, int stage, int64_t split, LoopId end) {
    Lower *l = r->l;
    const Nest *nest = r->nest;
    uint32_t count = nest->reductions.count;
    int64_t run = nest->width / split;
    LoopId *partial = TG_ALLOC(l->arena, LoopId, (size_t)split * count), *column = TG_ALLOC(l->arena, LoopId, split);
    if (nest->width % split != 0 || split > MAX_PIECES) {
        tg_lower_fail(l, nest->reductions.at[0], TG_INTERNAL, "a split that does not divide the axis");
        return;
    }
    for (int64_t piece = 0; piece < split; piece++) {
        LoopId from = loop_int(l, piece * run),
               to = tg_loop_op(l->k, LOOP_imin, loop_int(l, (piece + 1) * run), end, 0);
        pass(r, stage, split, split == 1 ? loop_int(l, 0) : from, split == 1 ? end : to, run, partial + piece * count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (partial[i] == 0)
            continue;
        for (int64_t piece = 0; piece < split; piece++)
            column[piece] = partial[piece * count + i];
        NodeId id = nest->reductions.at[i];
        finish_reduction(r, id, tg_lower_tree(l, (Op)node_at(l, id)->op, column, split));
    }
}

static bool has_work(Rows *r, int stage, int64_t split) {
    const Nest *nest = r->nest;
    for (uint32_t i = 0; i < nest->reductions.count; i++)
        if (r->l->level[nest->reductions.at[i]] == stage + 1 && split_of(r->l, nest->reductions.at[i]) == split)
            return true;
    for (uint32_t i = 0; split == 1 && i < nest->outputs.count; i++)
        if (is_full(r, &nest->outputs.at[i]) && output_stage(r, &nest->outputs.at[i]) == stage)
            return true;
    for (uint32_t i = 0; split == 1 && i < r->kept.count; i++)
        if (r->kept.at[i]->first_stage == stage + 1)
            return true;
    return false;
}

static void run_stages(Rows *r, LoopId end) {
    Lower *l = r->l;
    for (int stage = 0; stage <= r->stages; stage++) {
        l->stage = stage;
        tg_lower_new_walk(l);
        each_root(r, stage, hoist_root);
        for (int64_t split = 1; split <= MAX_PIECES; split++)
            if (has_work(r, stage, split))
                split_pass(r, stage, split, end);
    }
}

/* ---- outputs of another width ---- */

static void store_narrow(Rows *r, const Output *output, int64_t width) {
    Lower *l = r->l;
    Index row = tg_index_var(l, r->row), at = {0};
    tg_index_add(l, &at, &row, width);
    if (width == 1) {
        const Place *place = output_place(r, output, &at);
        tg_lower_store(l, r->nest, output, place, tg_lower_value(l, output->node, place));
        return;
    }
    uint32_t column = tg_lower_var(l, width, l->depth + 1);
    Index inner = tg_index_var(l, column);
    tg_index_add(l, &at, &inner, 1);
    const Place *place = output_place(r, output, &at);
    tg_lower_new_walk(l);
    tg_lower_hoist(l, output->node, place);
    tg_lower_open(l, MODE_VECTOR, column, loop_int(l, 0), loop_int(l, width), width);
    tg_lower_store(l, r->nest, output, place, tg_lower_value(l, output->node, place));
    tg_lower_close(l, column);
}

/* Values of a row: all before the first store, as above. */
static void store_narrow_outputs(Rows *r) {
    Lower *l = r->l;
    const Nest *nest = r->nest;
    l->stage = r->stages;
    Index row = tg_index_var(l, r->row);
    for (uint32_t i = 0; i < nest->outputs.count; i++)
        if (!is_full(r, &nest->outputs.at[i]) && output_width(l, nest, &nest->outputs.at[i]) == 1)
            (void)tg_lower_value(l, nest->outputs.at[i].node, output_place(r, &nest->outputs.at[i], &row));
    for (uint32_t i = 0; i < nest->outputs.count; i++)
        if (!is_full(r, &nest->outputs.at[i]))
            store_narrow(r, &nest->outputs.at[i], output_width(l, nest, &nest->outputs.at[i]));
}

/* ---- padding ---- */

static void clear_output(Rows *r, const Output *output) {
    Lower *l = r->l;
    int64_t width = output_width(l, r->nest, output);
    Index row = tg_index_var(l, r->row), at = {0};
    tg_index_add(l, &at, &row, width);
    uint32_t column = width == 1 ? 0 : tg_lower_var(l, width, l->depth + 1);
    if (column != 0) {
        Index inner = tg_index_var(l, column);
        tg_index_add(l, &at, &inner, 1);
        tg_lower_open(l, MODE_VECTOR, column, loop_int(l, 0), loop_int(l, width), width);
    }
    tg_lower_store(l, r->nest, output, output_place(r, output, &at), 0);
    if (column != 0)
        tg_lower_close(l, column);
}

static void clear_rows(Rows *r, Span span) {
    Lower *l = r->l;
    tg_lower_open(l, MODE_PARALLEL, r->row, span.hi, span.all, r->nest->grain);
    for (uint32_t i = 0; i < r->nest->outputs.count; i++)
        if (tg_type_batch_axis(r->nest->outputs.at[i].type) >= 0)
            clear_output(r, &r->nest->outputs.at[i]);
    tg_lower_close(l, r->row);
}

static void flat_nest(Rows *r, Span span) {
    Lower *l = r->l;
    const Nest *nest = r->nest;
    tg_lower_new_walk(l);
    each_root(r, 0, hoist_root);
    tg_lower_open(l, MODE_VECTOR, r->column, span.lo, span.hi, nest->grain);
    store_columns(r, 0);
    tg_lower_close(l, r->column);
    if (!nest->batch_rows)
        return;
    tg_lower_open(l, MODE_VECTOR, r->column, span.hi, span.all, nest->grain);
    for (uint32_t i = 0; i < nest->outputs.count; i++)
        tg_lower_store(l, nest, &nest->outputs.at[i], output_place(r, &nest->outputs.at[i], &r->place), 0);
    tg_lower_close(l, r->column);
}

void tg_lower_rows(Lower *l, const Nest *nest) {
    int depth = l->depth + 1;
    Rows r = {.l = l, .nest = nest};
    r.row = tg_lower_var(l, nest->rows, depth);
    r.column = tg_lower_var(l, nest->width, nest->flat ? depth : depth + 1);
    Index row = tg_index_var(l, r.row), column = tg_index_var(l, r.column);
    tg_index_add(l, &r.place, &row, nest->width);
    tg_index_add(l, &r.place, &column, 1);
    l->row = &row;
    l->empty_rows = nest->width == 0 && !nest->flat;
    plan(&r);
    Span span = tg_lower_span(l, nest, nest->batch_rows);
    if (nest->flat) {
        flat_nest(&r, span);
        return;
    }
    LoopId end = nest->batch_width ? tg_lower_valid(l, nest->width / l->capacity) : loop_int(l, nest->width);
    tg_lower_new_walk(l);
    each_root(&r, 0, hoist_root);
    tg_lower_open(l, MODE_PARALLEL, r.row, span.lo, span.hi, nest->grain);
    run_stages(&r, end);
    store_narrow_outputs(&r);
    tg_lower_close(l, r.row);
    if (nest->batch_rows)
        clear_rows(&r, span);
    l->row = NULL;
    l->empty_rows = false;
}
