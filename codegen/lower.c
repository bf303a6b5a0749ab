/* tg_lower_kernel: a kernel's body as nests of loops, one after the other inside of one tile loop. */
#include "codegen/lower.h"

#include "codegen/codegen.h"

void tg_lower_fail(Lower *l, NodeId node, Status status, const char *what) {
    if (l->status != TG_OK)
        return;
    l->status = status;
    const Node *at = node ? tg_node(l->func, node) : NULL;
    Loc loc = at ? tg_locs_first(l->graph, at->locs) : (Loc){0};
    tg_error(l->diags, loc, status == TG_INTERNAL ? "internal error: kernel %s: %s: %s" : "kernel %s: %s: %s",
             l->k->name, at ? tg_op((Op)at->op)->name : "index", what);
}

/* ---- loops ---- */

LoopId tg_lower_open(Lower *l, LoopMode mode, uint32_t var, LoopId begin, LoopId end, int64_t extent) {
    LoopId loop = tg_loop_for(l->k, mode, begin, end, extent);
    l->live_marks[l->depth++] = l->live.count;
    if (var != 0)
        l->vars.at[var].id = loop;
    if (mode == MODE_VECTOR)
        l->vector = var;
    return loop;
}

void tg_lower_close(Lower *l, uint32_t var) {
    tg_loop_end(l->k);
    uint32_t mark = l->live_marks[--l->depth];
    while (l->live.count > mark)
        l->live.at[--l->live.count]->value = 0;
    if (l->vector != 0 && l->vector == var)
        l->vector = 0;
}

/* ---- what nests share ---- */

LoopId tg_lower_valid(Lower *l, int64_t per) {
    return tg_loop_op(l->k, LOOP_imul, tg_loop_leaf(l->k, LOOP_rows, 0), tg_loop_int(l->k, DT_I64, per), 0);
}

Span tg_lower_span(Lower *l, const Nest *nest, bool batch) {
    LoopId units = tg_loop_int(l->k, DT_I64, nest->units), grain = tg_loop_int(l->k, DT_I64, nest->grain);
    Span span = {.lo = tg_loop_op(l->k, LOOP_imul, l->tile, grain, 0)};
    span.lo = tg_loop_op(l->k, LOOP_imin, span.lo, units, 0);
    span.all = tg_loop_op(l->k, LOOP_imin, tg_loop_op(l->k, LOOP_iadd, span.lo, grain, 0), units, 0);
    span.hi = span.all;
    if (batch) {
        span.hi = tg_loop_op(l->k, LOOP_imin, span.all, tg_lower_valid(l, nest->units / l->capacity), 0);
        span.hi = tg_loop_op(l->k, LOOP_imax, span.lo, span.hi, 0);
    }
    return span;
}

/* Where an output's element at `place` of its domain lies in its buffer. */
static Index output_index(Lower *l, const Output *output, const Place *place) {
    if (output->into == NULL)
        return tg_place_flatten(l, place, output->type);
    Place shifted = *place;
    shifted.at[output->axis].constant += output->start;
    return tg_place_flatten(l, &shifted, output->into);
}

void tg_lower_store(Lower *l, const Nest *nest, const Output *output, const Place *place, LoopId value) {
    DType dtype = output->type->dtype;
    if (value == 0)
        value = tg_loop_number(l->k, dtype, 0);
    int batch = tg_type_batch_axis(output->type);
    if (nest->masked && batch >= 0) {
        LoopId at = tg_index_value(l, &place->at[batch]);
        LoopId present = tg_loop_op(l->k, LOOP_ilt, at, tg_lower_valid(l, output->type->dims[batch].size), 0);
        value = tg_loop_op(l->k, LOOP_select, present, value, tg_loop_number(l->k, dtype, 0));
    }
    int64_t stride;
    Index flat = output_index(l, output, place);
    LoopId address = tg_index_address(l, &flat, &stride);
    tg_loop_store(l->k, output->buffer, address, stride, value);
}

LoopOp tg_lower_reduce_op(Op op) {
    return op == OP_reduce_sum   ? LOOP_reduce_sum
           : op == OP_reduce_max ? LOOP_reduce_max
           : op == OP_reduce_min ? LOOP_reduce_min
                                 : LOOP_reduce_argmax;
}

LoopId tg_lower_combine(Lower *l, Op op, LoopId a, LoopId b) {
    DType type = (DType)l->k->instrs.at[a].type;
    bool is_float = tg_is_float(type), is_unsigned = tg_dtype(type)->kind == KIND_UNSIGNED;
    LoopOp with = op == OP_reduce_sum   ? (is_float ? LOOP_fadd : LOOP_iadd)
                  : op == OP_reduce_max ? (is_float      ? LOOP_fmax
                                           : is_unsigned ? LOOP_umax
                                                         : LOOP_imax)
                                        : (is_float      ? LOOP_fmin
                                           : is_unsigned ? LOOP_umin
                                                         : LOOP_imin);
    return tg_loop_op(l->k, with, a, b, 0);
}

LoopId tg_lower_tree(Lower *l, Op op, LoopId *values, int64_t count) {
    while (count > 1) {
        for (int64_t i = 0; i < count / 2; i++)
            values[i] = tg_lower_combine(l, op, values[2 * i], values[2 * i + 1]);
        if (count % 2)
            values[count / 2] = values[count - 1];
        count = (count + 1) / 2;
    }
    return values[0];
}

/* ---- analysis of the body ---- */

static const double WEIGHTS[OP_COUNT] = {
    [OP_random] = 40, [OP_exp] = 20, [OP_expm1] = 20, [OP_log] = 20,  [OP_log1p] = 20, [OP_sqrt] = 10,
    [OP_rsqrt] = 10,  [OP_sin] = 20, [OP_cos] = 20,   [OP_tanh] = 20, [OP_erf] = 20,   [OP_sigmoid] = 20,
    [OP_div] = 10,    [OP_mod] = 20, [OP_pow] = 40,   [OP_take] = 10,
};

static void analyse(Lower *l) {
    uint32_t count = l->func->nodes.count;
    l->level = TG_ALLOC(l->arena, int, count);
    l->weight = TG_ALLOC(l->arena, double, count);
    l->reduced = TG_ALLOC(l->arena, LoopId, count);
    l->dense = TG_ALLOC(l->arena, uint32_t, count);
    tg_lower_find_picks(l);
    for (NodeId id = 1; id < count; id++) {
        const Node *node = tg_node(l->func, id);
        bool free = node->op == OP_const || tg_op((Op)node->op)->fuse == FUSE_view;
        l->weight[id] = WEIGHTS[node->op] != 0 || free ? WEIGHTS[node->op] : 1;
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(l->func, node, i);
            l->level[id] = l->level[operand] > l->level[id] ? l->level[operand] : l->level[id];
            l->weight[id] += tg_lower_made_once(l, id) ? 0 : l->weight[operand];
        }
        if (tg_lower_is_reduction(l, id)) {
            l->level[id]++;
            l->weight[id] = 0;
        }
    }
}

static void add_buffers(Lower *l) {
    l->arg_buffer = TG_ALLOC(l->arena, uint32_t, l->func->args.count + 1);
    for (uint32_t i = 0; i < l->func->args.count; i++) {
        const Type *type = tg_type_of(&l->graph->types, l->func->args.at[i].type);
        l->arg_buffer[i] = tg_loop_buffer(l->k, ROLE_IN, type->dtype, tg_type_extent(l, type));
    }
    for (uint32_t i = 0; i < l->func->results.count; i++) {
        const Type *type = tg_node_type(l->graph, l->func, l->func->results.at[i].node);
        tg_loop_buffer(l->k, ROLE_OUT, type->dtype, tg_type_extent(l, type));
    }
}

/* Constants of several numbers lie in scratch buffers, filled by every call. */
static void fill_constants(Lower *l) {
    for (NodeId id = 1; id < l->func->nodes.count; id++) {
        const Node *node = tg_node(l->func, id);
        if (node->op != OP_const || node->attr->dense == NULL)
            continue;
        const Type *type = tg_node_type(l->graph, l->func, id);
        int64_t count = tg_type_extent(l, type);
        uint32_t buffer = tg_loop_buffer(l->k, ROLE_SCRATCH, type->dtype, count);
        l->dense[id] = buffer + 1;
        for (int64_t i = 0; i < count; i++)
            tg_loop_store(l->k, buffer, tg_loop_int(l->k, DT_I64, i), 0,
                          tg_loop_number(l->k, type->dtype, node->attr->dense[i]));
    }
}

/* ---- nests ---- */

typedef Vec(Nest *) Nests;

static Nest *new_nest(Lower *l, Nests *nests, NestKind kind) {
    Nest *nest = TG_ALLOC(l->arena, Nest, 1);
    nest->kind = kind;
    tg_push(l->arena, nests, nest);
    return nest;
}

/* The extents around a reduction's axis, and where B lies among them. */
static Nest around(const Lower *l, NodeId id) {
    const Node *node = tg_node(l->func, id);
    const Type *type = tg_node_type(l->graph, l->func, tg_operand(l->func, node, 0));
    int64_t axis = tg_lower_int(node, 0, 0);
    Nest found = {.rows = 1, .width = 1, .length = tg_dim_extent(l, type->dims[axis])};
    for (int i = 0; i < axis; i++)
        found.rows *= tg_dim_extent(l, type->dims[i]);
    for (int i = (int)axis + 1; i < type->rank; i++)
        found.width *= tg_dim_extent(l, type->dims[i]);
    int batch = tg_type_batch_axis(type), first = 0;
    while (first < batch && tg_dim_extent(l, type->dims[first]) == 1)
        first++;
    found.batch_length = batch == axis;
    found.batch_rows = batch >= 0 && batch < axis && first == batch;
    found.masked = batch >= 0 && !found.batch_length && !found.batch_rows;
    found.kind = NEST_COLUMNS;
    if (found.width == 1) {
        found.kind = NEST_ROWS;
        found.width = found.length;
        found.length = 0;
        found.batch_width = found.batch_length;
        found.batch_length = false;
    }
    return found;
}

static bool same_domain(const Nest *a, const Nest *b) {
    return a->kind == b->kind && a->rows == b->rows && a->width == b->width && a->length == b->length &&
           a->batch_rows == b->batch_rows && a->batch_width == b->batch_width && a->batch_length == b->batch_length &&
           a->masked == b->masked;
}

static void place_reductions(Lower *l, Nests *nests, Nest **of) {
    for (NodeId id = 1; id < l->func->nodes.count; id++) {
        if (!tg_lower_is_reduction(l, id))
            continue;
        Nest found = around(l, id);
        for (uint32_t i = 0; i < nests->count && of[id] == NULL; i++)
            if (nests->at[i]->reductions.count != 0 && same_domain(nests->at[i], &found))
                of[id] = nests->at[i];
        if (of[id] == NULL) {
            of[id] = new_nest(l, nests, found.kind);
            *of[id] = found;
        }
        tg_push(l->arena, &of[id]->reductions, id);
    }
}

/* The nest of the reductions that `node` needs; NULL: none. */
static Nest *nest_of(Lower *l, NodeId id, Nest **of, bool *seen) {
    if (of[id] != NULL || seen[id])
        return of[id];
    seen[id] = true;
    const Node *node = tg_node(l->func, id);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        Nest *found = nest_of(l, tg_operand(l->func, node, i), of, seen);
        if (found != NULL && of[id] != NULL && found != of[id])
            tg_lower_fail(l, id, TG_INTERNAL, "it needs reductions of two shapes");
        if (found != NULL)
            of[id] = found;
    }
    return of[id];
}

/* Pointwise outputs of one shape share loops: all are computed before the first is stored. */
static Nest *pointwise_nest(Lower *l, Nests *nests, const Output *output) {
    for (uint32_t i = 0; i < nests->count; i++) {
        Nest *nest = nests->at[i];
        if (nest->reductions.count == 0 && nest->kind == NEST_ROWS && output->into == NULL &&
            nest->outputs.at[0].into == NULL && tg_shape_equal(nest->outputs.at[0].type, output->type))
            return nest;
    }
    return new_nest(l, nests, NEST_ROWS);
}

static void add_concat(Lower *l, Nests *nests, NodeId id, uint32_t buffer) {
    const Node *node = tg_node(l->func, id);
    Output output = {.buffer = buffer, .into = tg_node_type(l->graph, l->func, id), .axis = tg_lower_int(node, 0, 0)};
    for (uint32_t i = 0; i < node->operand_count; i++) {
        output.node = tg_operand(l->func, node, i);
        output.type = tg_node_type(l->graph, l->func, output.node);
        Nest *nest = new_nest(l, nests, NEST_ROWS);
        tg_push(l->arena, &nest->outputs, output);
        output.start += tg_dim_extent(l, output.type->dims[output.axis]);
    }
}

/* Rows kernels take outputs of whole rows and one value a row; what reads no reduction joins them only at the full
 * width. */
static bool joins(const Lower *l, const Nest *nest, const Type *type) {
    const Node *first = tg_node(l->func, nest->reductions.at[0]);
    const Type *full = tg_node_type(l->graph, l->func, tg_operand(l->func, first, 0));
    return nest->kind == NEST_ROWS && !nest->batch_width && tg_shape_equal(full, type);
}

/* What has no elements has no loops: not even those of a row that it is made of. */
static void add_output(Lower *l, Nests *nests, NodeId id, uint32_t buffer, Nest **of) {
    Output output = {.node = id, .buffer = buffer, .type = tg_node_type(l->graph, l->func, id)};
    if (tg_type_extent(l, output.type) == 0)
        return;
    Op op = (Op)tg_node(l->func, id)->op;
    Nest *nest = nest_of(l, id, of, TG_ALLOC(l->arena, bool, l->func->nodes.count));
    if (op == OP_concat) {
        add_concat(l, nests, id, buffer);
        return;
    }
    if (op == OP_cumsum || op == OP_scatter_add)
        nest = new_nest(l, nests, op == OP_cumsum ? NEST_CUMSUM : NEST_SCATTER);
    for (uint32_t i = 0; nest == NULL && i < nests->count; i++)
        if (nests->at[i]->reductions.count != 0 && joins(l, nests->at[i], output.type))
            nest = nests->at[i];
    if (nest == NULL)
        nest = pointwise_nest(l, nests, &output);
    tg_push(l->arena, &nest->outputs, output);
}

static void (*const SIZES[])(Lower *, Nest *) = {
    [NEST_ROWS] = tg_lower_rows_size,
    [NEST_COLUMNS] = tg_lower_columns_size,
    [NEST_CUMSUM] = tg_lower_scan_size,
    [NEST_SCATTER] = tg_lower_scan_size,
};
static void (*const LOWERINGS[])(Lower *, const Nest *) = {
    [NEST_ROWS] = tg_lower_rows,
    [NEST_COLUMNS] = tg_lower_columns,
    [NEST_CUMSUM] = tg_lower_cumsum,
    [NEST_SCATTER] = tg_lower_scatter,
};

enum { TILE_WORK = 8192, ALIGNED_UNITS = 64 };

/* Tiles: as many as the largest nest has pieces of about TILE_WORK elements. The others spread over them. */
static int64_t count_tiles(const Nests *nests) {
    int64_t tiles = 1;
    for (uint32_t i = 0; i < nests->count; i++) {
        const Nest *nest = nests->at[i];
        int64_t grain = nest->work >= TILE_WORK ? 1 : TILE_WORK / (nest->work ? nest->work : 1);
        int64_t wanted = nest->units / grain;
        tiles = wanted > tiles ? wanted : tiles;
    }
    return tiles;
}

static void lower_nests(Lower *l, const Nests *nests, int64_t parts) {
    int64_t tiles = parts ? parts : count_tiles(nests);
    LoopId zero = tg_loop_int(l->k, DT_I64, 0), end = tg_loop_int(l->k, DT_I64, tiles);
    l->tile = tg_lower_open(l, MODE_TILE, 0, zero, end, tiles);
    if (tiles == 1)
        l->tile = zero;
    fill_constants(l);
    for (uint32_t i = 0; i < nests->count && l->status == TG_OK; i++) {
        Nest *nest = nests->at[i];
        nest->grain = (nest->units + tiles - 1) / tiles;
        if (parts && (nest->units % parts != 0 || !nest->batch_rows))
            tg_lower_fail(l, l->func->results.at[0].node, TG_INTERNAL, "its tiles are no parts of the batch");
        if (nest->flat && tiles > 1 && !parts)
            nest->grain = (nest->grain + ALIGNED_UNITS - 1) / ALIGNED_UNITS * ALIGNED_UNITS;
        l->stage = 0;
        l->row = NULL;
        if (nest->units > 0 && nest->outputs.count > 0)
            LOWERINGS[nest->kind](l, nest);
    }
    tg_lower_close(l, 0);
}

Status tg_lower_kernel(Arena *arena, Diags *diags, const Graph *graph, const Func *kernel, int64_t capacity,
                       LoopTarget target, bool in_place, int64_t parts, const char *name, LoopKernel **out) {
    Lower l = {.arena = arena,
               .diags = diags,
               .graph = graph,
               .func = kernel,
               .capacity = capacity,
               .target = target,
               .in_place = in_place,
               .k = tg_loop_kernel(arena, name),
               .entry_map = tg_map(arena)};
    tg_push(arena, &l.vars, (Var){0});
    add_buffers(&l);
    analyse(&l);
    Nests nests = {0};
    Nest **of = TG_ALLOC(arena, Nest *, kernel->nodes.count);
    place_reductions(&l, &nests, of);
    for (uint32_t i = 0; i < kernel->results.count; i++)
        add_output(&l, &nests, kernel->results.at[i].node, kernel->args.count + i, of);
    for (uint32_t i = 0; i < nests.count; i++)
        SIZES[nests.at[i]->kind](&l, nests.at[i]);
    lower_nests(&l, &nests, parts);
    *out = l.k;
    return l.status != TG_OK ? l.status : tg_loop_verify(l.k, diags);
}
