/* Reductions along an axis that is not the last: outer x length x inner. The columns are vectors; along the axis runs
   are folded in order, CHUNK elements each, and the chunks combined in a binary tree, neighbours first. */
#include "codegen/lower.h"

enum { CHUNK = 32, UNROLLED_CHUNKS = 4, SCRATCH_CHUNKS = 1024, BLOCK_WORK = 16384, MAX_PIECES = 64 };

/* What is larger than the cache of a core is read as it lies, rows outside and columns inside, with the chunks' sums in scratch, a
   group of about the root of all chunks at a time. A unit is as wide as scratch allows, and so narrow that WIDE_UNITS threads
   have one each. */
enum { WIDE_BYTES = 512 << 10, WIDE_SCRATCH = 96 << 10, WIDE_UNITS = 16, WIDE_BLOCK = 64 };

typedef struct Columns {
    Lower *l;
    const Nest *nest;
    uint32_t unit, column;
    Index outer;               /* index of the outer dimensions */
    bool wide;
    LoopId first, last;        /* columns of the block */
    LoopId valid;              /* elements along the axis that hold records */
    /* by reduction: 1 + the buffer of its chunks, of its groups of SCRATCH_CHUNKS chunks, of every other level of a tree */
    uint32_t *chunks, *groups, *levels;
} Columns;

static const Node *node_at(const Lower *l, NodeId id) { return tg_node(l->func, id); }
static NodeId reduced_node(const Lower *l, NodeId reduction) { return tg_operand(l->func, node_at(l, reduction), 0); }
static LoopId loop_int(Lower *l, int64_t value) { return tg_loop_int(l->k, DT_I64, value); }
static LoopId two(Lower *l, LoopOp op, LoopId a, LoopId b) { return tg_loop_op(l->k, op, a, b, 0); }
static int64_t blocks(const Nest *nest) { return nest->block ? (nest->width + nest->block - 1) / nest->block : 1; }

static int64_t chunks_of(const Nest *nest) { return (nest->length + CHUNK - 1) / CHUNK; }

/* Chunks a group: a power of two, so that a group is a subtree. */
static int64_t wide_group_of(const Nest *nest) {
    int64_t group = 1;
    while (group * group < chunks_of(nest))
        group *= 2;
    return group;
}

static DType sum_type(const Lower *l, NodeId reduction) {
    return tg_loop_compute_type((DType)tg_node_type(l->graph, l->func, reduced_node(l, reduction))->dtype);
}

/* Scratch for a column of sums: a group, all groups, and the levels of their trees. */
static int64_t wide_column_bytes(const Lower *l, const Nest *nest) {
    int64_t bytes = 0, group = wide_group_of(nest), rows = group + (chunks_of(nest) + group - 1) / group;
    for (uint32_t i = 0; i < nest->reductions.count; i++)
        bytes += tg_dtype(sum_type(l, nest->reductions.at[i]))->bytes * (rows + (rows + 1) / 2);
    return bytes;
}

/* Only sums in one piece: their chunks begin with a number that changes nothing. A GPU has a thread a column and chunk instead. */
static bool is_wide(const Lower *l, const Nest *nest) {
    if (l->target == LOOPS_CUDA)
        return false;
    for (uint32_t i = 0; i < nest->reductions.count; i++) {
        const Node *node = node_at(l, nest->reductions.at[i]);
        if (node->op != OP_reduce_sum || !tg_is_float(sum_type(l, nest->reductions.at[i])) || tg_lower_int(node, 1, 1) > 1)
            return false;
    }
    return nest->width >= WIDE_BLOCK && nest->length * nest->width * 4 >= WIDE_BYTES && chunks_of(nest) > 1 &&
           wide_column_bytes(l, nest) * WIDE_BLOCK <= WIDE_SCRATCH;
}

static int64_t wide_block(const Lower *l, const Nest *nest) {
    int64_t block = WIDE_SCRATCH / wide_column_bytes(l, nest), even = nest->width * nest->rows / WIDE_UNITS;
    block = (block < even ? block : even) / WIDE_BLOCK * WIDE_BLOCK;
    return block > WIDE_BLOCK ? block : WIDE_BLOCK;
}

void tg_lower_columns_size(Lower *l, Nest *nest) {
    int64_t length = nest->length ? nest->length : 1;
    int64_t block = (BLOCK_WORK / length + LOOP_LANES - 1) / LOOP_LANES * LOOP_LANES;
    block = block < LOOP_LANES ? LOOP_LANES : block;
    if (is_wide(l, nest))
        block = wide_block(l, nest);
    nest->block = block < nest->width ? block : nest->width;
    nest->units = nest->width ? nest->rows * blocks(nest) : 0;
    nest->work = nest->block * length;
}


static const Place *operand_place(Columns *c, NodeId reduction, uint32_t along) {
    Lower *l = c->l;
    Index at = {0}, column = tg_index_var(l, c->column), step = tg_index_var(l, along);
    tg_index_add(l, &at, &c->outer, c->nest->length * c->nest->width);
    tg_index_add(l, &at, &step, c->nest->width);
    tg_index_add(l, &at, &column, 1);
    return tg_index_unflatten(l, &at, tg_node_type(l->graph, l->func, reduced_node(l, reduction)));
}

static Index result_index(Columns *c) {
    Index at = {0}, column = tg_index_var(c->l, c->column);
    tg_index_add(c->l, &at, &c->outer, c->nest->width);
    tg_index_add(c->l, &at, &column, 1);
    return at;
}

typedef struct Group {
    bool argmax; /* argmaxes, whose order does not matter, or the others */
    int64_t split;
} Group;

static const Group SUMS = {.split = 1};

static Group group_of(const Lower *l, NodeId id) {
    if (node_at(l, id)->op == OP_argmax)
        return (Group){.argmax = true, .split = 1};
    int64_t split = tg_lower_int(node_at(l, id), 1, 1);
    return (Group){.split = split > 1 ? split : 1};
}

static bool in_group(const Columns *c, uint32_t i, Group group) {
    Group own = group_of(c->l, c->nest->reductions.at[i]);
    return own.argmax == group.argmax && own.split == group.split;
}

/* Folds the elements [begin, end) of the axis, at most `extent`. */
static void fold_run(Columns *c, Group group, LoopId begin, LoopId end, int64_t extent, LoopId *out) {
    Lower *l = c->l;
    uint32_t along = tg_lower_var(l, c->nest->length, l->depth + 1);
    tg_lower_new_walk(l);
    for (uint32_t i = 0; i < c->nest->reductions.count; i++)
        if (in_group(c, i, group))
            tg_lower_hoist(l, reduced_node(l, c->nest->reductions.at[i]),
                           operand_place(c, c->nest->reductions.at[i], along));
    tg_lower_open(l, MODE_SERIAL, along, begin, end, extent);
    for (uint32_t i = 0; i < c->nest->reductions.count; i++) {
        NodeId id = c->nest->reductions.at[i];
        if (!in_group(c, i, group))
            continue;
        LoopId value = tg_lower_compute(l, reduced_node(l, id), operand_place(c, id, along));
        out[i] = tg_loop_op(l->k, tg_lower_reduce_op((Op)node_at(l, id)->op), value, 0, 0);
    }
    tg_lower_close(l, along);
}

/* Chunk `chunk` of the run that begins at `start` and has `extent` elements. */
static void fold_chunk(Columns *c, Group group, int64_t start, int64_t extent, LoopId chunk, LoopId *out) {
    Lower *l = c->l;
    LoopId begin = two(l, LOOP_iadd, two(l, LOOP_imul, chunk, loop_int(l, CHUNK)), loop_int(l, start));
    LoopId end = two(l, LOOP_imin, two(l, LOOP_iadd, begin, loop_int(l, CHUNK)), loop_int(l, start + extent));
    fold_run(c, group, begin, two(l, LOOP_imin, end, c->valid), CHUNK, out);
}

/* Element (chunk, own column) of a scratch [chunks][block]. */
static LoopId chunk_address(Columns *c, LoopId chunk) {
    return two(c->l, LOOP_isub, two(c->l, LOOP_imul, chunk, loop_int(c->l, c->nest->block)), c->first);
}

static LoopId chunk_load(Columns *c, uint32_t buffer, LoopId chunk) {
    return tg_loop_load(c->l->k, buffer, chunk_address(c, chunk), 1);
}

/* The `count` results in `from`, two and two, into `to`. */
static void combine_level(Columns *c, Group group, const uint32_t *from, const uint32_t *to, int64_t count) {
    Lower *l = c->l;
    LoopId pair = tg_lower_open(l, MODE_PARALLEL, 0, loop_int(l, 0), loop_int(l, count / 2), count / 2);
    LoopId even = two(l, LOOP_imul, pair, loop_int(l, 2)), odd = two(l, LOOP_iadd, even, loop_int(l, 1));
    for (uint32_t i = 0; i < c->nest->reductions.count; i++) {
        if (!in_group(c, i, group))
            continue;
        Op op = (Op)node_at(l, c->nest->reductions.at[i])->op;
        LoopId sum = tg_lower_combine(l, op, chunk_load(c, from[i] - 1, even), chunk_load(c, from[i] - 1, odd));
        tg_loop_store(l->k, to[i] - 1, chunk_address(c, pair), 1, sum);
    }
    tg_lower_close(l, 0);
    for (uint32_t i = 0; count % 2 && i < c->nest->reductions.count; i++)
        if (in_group(c, i, group))
            tg_loop_store(l->k, to[i] - 1, chunk_address(c, loop_int(l, count / 2)), 1,
                          chunk_load(c, from[i] - 1, loop_int(l, count - 1)));
}

/* The first `count` results in the scratch buffers, combined: into `out`. Levels of the tree lie in these buffers and in
   others by turns, so that its pairs are independent. */
static void combine_scratch(Columns *c, Group group, const uint32_t *buffers, int64_t count, LoopId *out) {
    const uint32_t *from = buffers, *to = c->levels;
    for (; count > 1; count = (count + 1) / 2) {
        combine_level(c, group, from, to, count);
        const uint32_t *done = from;
        from = to;
        to = done;
    }
    for (uint32_t i = 0; i < c->nest->reductions.count; i++)
        if (in_group(c, i, group))
            out[i] = chunk_load(c, from[i] - 1, loop_int(c->l, 0));
}

/* Keeps `values` as number `at` of at most `count`. */
static void keep(Columns *c, Group group, uint32_t *buffers, int64_t count, LoopId at, const LoopId *values) {
    Lower *l = c->l;
    for (uint32_t i = 0; i < c->nest->reductions.count; i++) {
        if (!in_group(c, i, group))
            continue;
        DType type = (DType)l->k->instrs.at[values[i]].type;
        if (buffers[i] == 0)
            buffers[i] = 1 + tg_loop_buffer(l->k, ROLE_SCRATCH, type, count * c->nest->block);
        int64_t level = (count + 1) / 2 * c->nest->block;
        if (c->levels[i] == 0)
            c->levels[i] = 1 + tg_loop_buffer(l->k, ROLE_SCRATCH, type, level);
        LoopBuffer *levels = &l->k->buffers.at[c->levels[i] - 1];
        levels->count = level > levels->count ? level : levels->count;
        tg_loop_store(l->k, buffers[i] - 1, chunk_address(c, at), 1, values[i]);
    }
}

/* The run's chunks [first, first + count), combined. */
static void fold_chunks(Columns *c, Group group, int64_t start, int64_t extent, LoopId first, int64_t count,
                        LoopId *out) {
    Lower *l = c->l;
    int64_t most = (extent + CHUNK - 1) / CHUNK;
    LoopId at = tg_lower_open(l, MODE_PARALLEL, 0, loop_int(l, 0), loop_int(l, count), count);
    fold_chunk(c, group, start, extent, two(l, LOOP_iadd, first, at), out);
    keep(c, group, c->chunks, most < SCRATCH_CHUNKS ? most : SCRATCH_CHUNKS, at, out);
    tg_lower_close(l, 0);
    combine_scratch(c, group, c->chunks, count, out);
}

/* A group of SCRATCH_CHUNKS chunks, a power of two, is a subtree of the whole tree: scratch holds one group, and a
 * result a group. */
static void scratch_run(Columns *c, Group group, int64_t start, int64_t extent, LoopId *out) {
    Lower *l = c->l;
    int64_t chunks = (extent + CHUNK - 1) / CHUNK, whole = chunks / SCRATCH_CHUNKS, rest = chunks % SCRATCH_CHUNKS;
    if (chunks <= SCRATCH_CHUNKS) {
        fold_chunks(c, group, start, extent, loop_int(l, 0), chunks, out);
        return;
    }
    int64_t groups = whole + (rest != 0);
    LoopId at = tg_lower_open(l, MODE_SERIAL, 0, loop_int(l, 0), loop_int(l, whole), whole);
    fold_chunks(c, group, start, extent, two(l, LOOP_imul, at, loop_int(l, SCRATCH_CHUNKS)), SCRATCH_CHUNKS, out);
    keep(c, group, c->groups, groups, at, out);
    tg_lower_close(l, 0);
    if (rest != 0) {
        fold_chunks(c, group, start, extent, loop_int(l, whole * SCRATCH_CHUNKS), rest, out);
        keep(c, group, c->groups, groups, loop_int(l, whole), out);
    }
    combine_scratch(c, group, c->groups, groups, out);
}

/* One of the `split` equal runs of the axis. */
static void fold_piece(Columns *c, Group group, int64_t start, int64_t extent, LoopId *out) {
    Lower *l = c->l;
    uint32_t count = c->nest->reductions.count;
    int64_t chunks = (extent + CHUNK - 1) / CHUNK;
    LoopId end = two(l, LOOP_imin, loop_int(l, start + extent), c->valid);
    if (chunks <= 1 || group.argmax) {
        fold_run(c, group, loop_int(l, start), end, extent, out);
        return;
    }
    if (chunks > UNROLLED_CHUNKS || l->target == LOOPS_CUDA) { /* there a chunk is a thread's */
        scratch_run(c, group, start, extent, out);
        return;
    }
    LoopId *values = TG_ALLOC(l->arena, LoopId, (size_t)chunks * count), column[UNROLLED_CHUNKS];
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        fold_chunk(c, group, start, extent, loop_int(l, chunk), values + chunk * count);
    for (uint32_t i = 0; i < count; i++) {
        if (!in_group(c, i, group))
            continue;
        for (int64_t chunk = 0; chunk < chunks; chunk++)
            column[chunk] = values[chunk * count + i];
        out[i] = tg_lower_tree(l, (Op)node_at(l, c->nest->reductions.at[i])->op, column, chunks);
    }
}

static void fold_group(Columns *c, Group group) {
    Lower *l = c->l;
    uint32_t count = c->nest->reductions.count;
    int64_t run = c->nest->length / group.split;
    LoopId *values = TG_ALLOC(l->arena, LoopId, (size_t)group.split * count), column[MAX_PIECES];
    for (int64_t piece = 0; piece < group.split; piece++)
        fold_piece(c, group, piece * run, run, values + piece * count);
    for (uint32_t i = 0; i < count; i++) {
        if (!in_group(c, i, group))
            continue;
        NodeId id = c->nest->reductions.at[i];
        for (int64_t piece = 0; piece < group.split; piece++)
            column[piece] = values[piece * count + i];
        LoopId value = tg_lower_tree(l, (Op)node_at(l, id)->op, column, group.split);
        l->reduced[id] = tg_loop_convert(l->k, LOOP_convert, value, tg_node_type(l->graph, l->func, id)->dtype);
    }
}

static void fold_groups(Columns *c) {
    const Nest *nest = c->nest;
    for (uint32_t i = 0; i < nest->reductions.count; i++) {
        Group group = group_of(c->l, nest->reductions.at[i]);
        bool first = true;
        for (uint32_t before = 0; before < i; before++)
            first = first && !in_group(c, before, group);
        if (group.split > MAX_PIECES || nest->length % group.split != 0)
            tg_lower_fail(c->l, nest->reductions.at[i], TG_INTERNAL, "a split that does not divide the axis");
        else if (first)
            fold_group(c, group);
    }
}

static void store_outputs(Columns *c, bool zero) {
    Lower *l = c->l;
    const Nest *nest = c->nest;
    Index at = result_index(c);
    LoopId *values = TG_ALLOC(l->arena, LoopId, nest->outputs.count);
    for (uint32_t i = 0; !zero && i < nest->outputs.count; i++) {
        const Output *output = &nest->outputs.at[i];
        if (tg_type_extent(l, output->type) != nest->rows * nest->width)
            tg_lower_fail(l, output->node, TG_INTERNAL, "an output of another shape than the reductions of its kernel");
        values[i] = tg_lower_value(l, output->node, tg_index_unflatten(l, &at, output->type));
    }
    for (uint32_t i = 0; i < nest->outputs.count; i++)
        tg_lower_store(l, nest, &nest->outputs.at[i], tg_index_unflatten(l, &at, nest->outputs.at[i].type), values[i]);
}

/* ---- rows outside, columns inside ---- */

/* -0, which leaves the first element as it is; over nothing +0. */
static void wide_start(Columns *c, LoopId at, LoopId begin, LoopId end) {
    Lower *l = c->l;
    LoopId some = two(l, LOOP_ilt, begin, end);
    tg_lower_open(l, MODE_VECTOR, c->column, c->first, c->last, c->nest->block);
    for (uint32_t i = 0; i < c->nest->reductions.count; i++) {
        DType type = sum_type(l, c->nest->reductions.at[i]);
        LoopId start = tg_loop_op(l->k, LOOP_select, some, tg_loop_number(l->k, type, -0.0), tg_loop_number(l->k, type, 0));
        tg_loop_store(l->k, c->chunks[i] - 1, chunk_address(c, at), 1, start);
    }
    tg_lower_close(l, c->column);
}

static void wide_row(Columns *c, LoopId at, uint32_t along) {
    Lower *l = c->l;
    const Nest *nest = c->nest;
    tg_lower_new_walk(l);
    for (uint32_t i = 0; i < nest->reductions.count; i++)
        tg_lower_hoist(l, reduced_node(l, nest->reductions.at[i]), operand_place(c, nest->reductions.at[i], along));
    tg_lower_open(l, MODE_VECTOR, c->column, c->first, c->last, nest->block);
    for (uint32_t i = 0; i < nest->reductions.count; i++) {
        NodeId id = nest->reductions.at[i];
        LoopId value = tg_lower_compute(l, reduced_node(l, id), operand_place(c, id, along));
        LoopId sum = two(l, LOOP_fadd, chunk_load(c, c->chunks[i] - 1, at), value);
        tg_loop_store(l->k, c->chunks[i] - 1, chunk_address(c, at), 1, sum);
    }
    tg_lower_close(l, c->column);
}

/* The chunks [first, first + count), into their scratch; then combined: group `group`. */
static void wide_group(Columns *c, LoopId first, int64_t count, LoopId group) {
    Lower *l = c->l;
    const Nest *nest = c->nest;
    LoopId *sums = TG_ALLOC(l->arena, LoopId, nest->reductions.count);
    LoopId at = tg_lower_open(l, MODE_SERIAL, 0, loop_int(l, 0), loop_int(l, count), count);
    LoopId begin = two(l, LOOP_imul, two(l, LOOP_iadd, first, at), loop_int(l, CHUNK));
    LoopId end = two(l, LOOP_imin, two(l, LOOP_iadd, begin, loop_int(l, CHUNK)), loop_int(l, nest->length));
    end = two(l, LOOP_imin, end, c->valid);
    wide_start(c, at, begin, end);
    uint32_t along = tg_lower_var(l, nest->length, l->depth + 1);
    tg_lower_open(l, MODE_SERIAL, along, begin, end, CHUNK);
    wide_row(c, at, along);
    tg_lower_close(l, along);
    tg_lower_close(l, 0);
    tg_lower_open(l, MODE_VECTOR, c->column, c->first, c->last, nest->block);
    combine_scratch(c, SUMS, c->chunks, count, sums);
    for (uint32_t i = 0; i < nest->reductions.count; i++)
        tg_loop_store(l->k, c->groups[i] - 1, chunk_address(c, group), 1, sums[i]);
    tg_lower_close(l, c->column);
}

static void wide_scratch(Columns *c, int64_t group, int64_t groups) {
    const Nest *nest = c->nest;
    int64_t most = group > groups ? group : groups;
    for (uint32_t i = 0; i < nest->reductions.count; i++) {
        DType type = sum_type(c->l, nest->reductions.at[i]);
        c->chunks[i] = 1 + tg_loop_buffer(c->l->k, ROLE_SCRATCH, type, group * nest->block);
        c->groups[i] = 1 + tg_loop_buffer(c->l->k, ROLE_SCRATCH, type, groups * nest->block);
        c->levels[i] = 1 + tg_loop_buffer(c->l->k, ROLE_SCRATCH, type, (most + 1) / 2 * nest->block);
    }
}

/* Loops over groups, chunks and rows around the columns. */
enum { MOST_ROW_LOOPS = 3 };

static void fold_wide(Columns *c) {
    Lower *l = c->l;
    int64_t chunks = chunks_of(c->nest), size = wide_group_of(c->nest), whole = chunks / size, rest = chunks % size;
    wide_scratch(c, size, whole + (rest != 0));
    LoopId group = tg_lower_open(l, MODE_SERIAL, 0, loop_int(l, 0), loop_int(l, whole), whole);
    wide_group(c, two(l, LOOP_imul, group, loop_int(l, size)), size, group);
    tg_lower_close(l, 0);
    if (rest != 0)
        wide_group(c, loop_int(l, whole * size), rest, loop_int(l, whole));
}

static void combine_wide(Columns *c) {
    Lower *l = c->l;
    LoopId *sums = TG_ALLOC(l->arena, LoopId, c->nest->reductions.count);
    int64_t size = wide_group_of(c->nest);
    combine_scratch(c, SUMS, c->groups, (chunks_of(c->nest) + size - 1) / size, sums);
    for (uint32_t i = 0; i < c->nest->reductions.count; i++) {
        NodeId id = c->nest->reductions.at[i];
        l->reduced[id] = tg_loop_convert(l->k, LOOP_convert, sums[i], tg_node_type(l->graph, l->func, id)->dtype);
    }
}

static void columns_loop(Columns *c, LoopId begin, LoopId end, bool padding) {
    Lower *l = c->l;
    const Nest *nest = c->nest;
    tg_lower_open(l, MODE_PARALLEL, c->unit, begin, end, nest->grain);
    LoopId unit = l->vars.at[c->unit].id;
    c->first = two(l, LOOP_imul, two(l, LOOP_irem, unit, loop_int(l, blocks(nest))), loop_int(l, nest->block));
    c->last = two(l, LOOP_imin, two(l, LOOP_iadd, c->first, loop_int(l, nest->block)), loop_int(l, nest->width));
    if (c->wide && !padding) {
        int depth = l->vars.at[c->column].depth;
        l->vars.at[c->column].depth = depth + MOST_ROW_LOOPS;
        fold_wide(c);
        l->vars.at[c->column].depth = depth;
    }
    tg_lower_open(l, MODE_VECTOR, c->column, c->first, c->last, nest->block);
    l->stage = 0;
    if (!padding && c->wide)
        combine_wide(c);
    else if (!padding)
        fold_groups(c);
    l->stage = 1;
    store_outputs(c, padding);
    tg_lower_close(l, c->column);
    tg_lower_close(l, c->unit);
}

void tg_lower_columns(Lower *l, const Nest *nest) {
    Columns c = {.l = l,
                 .nest = nest,
                 .wide = is_wide(l, nest),
                 .chunks = TG_ALLOC(l->arena, uint32_t, nest->reductions.count),
                 .groups = TG_ALLOC(l->arena, uint32_t, nest->reductions.count),
                 .levels = TG_ALLOC(l->arena, uint32_t, nest->reductions.count)};
    c.unit = tg_lower_var(l, nest->units, l->depth + 1);
    c.column = tg_lower_var(l, nest->width, l->depth + 2);
    Index unit = tg_index_var(l, c.unit), rest;
    tg_index_split(l, &unit, blocks(nest), &c.outer, &rest);
    Index row = result_index(&c);
    l->row = &row;
    c.valid = nest->batch_length ? tg_lower_valid(l, nest->length / l->capacity) : loop_int(l, nest->length);
    Span span = tg_lower_span(l, nest, nest->batch_rows);
    columns_loop(&c, span.lo, span.hi, false);
    if (nest->batch_rows)
        columns_loop(&c, span.hi, span.all, true);
    l->row = NULL;
}
