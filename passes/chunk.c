/* chunk: a dot whose result is large and is only worked on row by row (logits under a cross entropy) runs in slices of its rows, one
   after the other, so that the whole result is never held:

       y = dot(x, w)    row results r = f(y, ...)    dx = dot(g(y, ...), w)    dw = dot(g(y, ...), x)   contracting the rows
   ->  per slice x_i of x along an axis T of its rows:
       y_i = dot(x_i, w)    r_i = f(y_i, ...)    dx_i = dot(g(y_i, ...), w)    dw_i = dot(g(y_i, ...), x_i) + dw_(i-1)
       r = concat(r_i)    dx = concat(dx_i)    dw = dw_n

   The region is what depends on y row by row, T being an axis of each value: pointwise operations, reductions over other axes,
   broadcasts, reshapes and transposes that keep T. It must reduce over the columns of y, and all that leaves it must be small: row
   results, and dots, which end it. Its other inputs are sliced along T, or built again per slice where they are as large as y or
   made of leaves. It sees forward and backward at once, behind autodiff; where what leaves the region comes back into it (a loss whose
   gradient depends on its value) it stays as it is.

   The number of slices follows from shapes alone: from the records that are added up by themselves whatever the micro-batches are
   (those of a lane), so that equal lanes give equal bits. A slice reads w again, twice, and dw is read and written again: few slices of
   many rows. */
#include "passes/passes.h"
#include "passes/rewrite.h"

#include "ir/axes.h"
#include "ir/dot.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLICE_BYTES = 64 << 20, /* what a slice should not be larger than, as long as it has */
    LEAST_ROWS = 256,       /* this many rows */
    MOST_NODES = 1024,      /* of a region */
    MOST_DEPTH = 32,        /* of an input that is built again */
};

typedef enum Role {
    ROLE_OUTSIDE,
    ROLE_REGION,  /* built per slice */
    ROLE_INPUT,   /* the same: no part of the region, but built again */
    ROLE_END,     /* a dot or a sum over T: built per slice, what reads it stands outside */
    ROLE_SLICED,  /* lies outside, and is sliced along T */
    ROLE_WHOLE,   /* lies outside, and has no T */
} Role;

/* How T lies in a value: its dimension, or */
enum { NO_T = -1, T_SUMMED = -2, T_LOST = -3 };

typedef struct Chunker {
    PassContext *context;
    Arena *arena;
    const Graph *graph;
    const Func *func;
    Uses uses;
    int64_t records;  /* see above */
    uint8_t *role;    /* per node, as the three below; cleared between candidates */
    int8_t *t;        /* the dimension of T, NO_T, or T_SUMMED (END) */
    NodeId *piece;    /* while building: the value of the slice at hand */
    Vec(NodeId) touched;
    /* of the candidate at hand */
    NodeId dot;
    int64_t slices;
    Vec(NodeId) found;
    const char *why;  /* what stands in the way */
    NodeId where;
} Chunker;

static const Type *type_of(const Chunker *c, NodeId id) { return tg_node_type(c->graph, c->func, id); }
static const Node *node_of(const Chunker *c, NodeId id) { return tg_node(c->func, id); }
static NodeId operand_of(const Chunker *c, NodeId id, uint32_t i) { return tg_operand(c->func, node_of(c, id), i); }

static int64_t count_of(const Chunker *c, NodeId id) { return tg_type_count(type_of(c, id), c->records); }

/* About as large as the result that is to be cut. */
static bool is_wide(const Chunker *c, NodeId id) { return 2 * count_of(c, id) >= count_of(c, c->dot); }

static bool refuse(Chunker *c, NodeId at, const char *why) {
    c->why = why;
    c->where = at;
    return false;
}

static void set_role(Chunker *c, NodeId id, Role role, int t) {
    if (c->role[id] == ROLE_OUTSIDE)
        tg_push(c->arena, &c->touched, id);
    c->role[id] = (uint8_t)role;
    c->t[id] = (int8_t)t;
}

static void clear(Chunker *c) {
    for (uint32_t i = 0; i < c->touched.count; i++)
        c->role[c->touched.at[i]] = ROLE_OUTSIDE;
    c->touched.count = c->found.count = 0;
}

/* ---- where T lies ---- */

/* The axis that a dimension of a value is, -1: none or several. */
static int axis_at(const Axes *axes, uint32_t value, int dim) {
    const DimParts *parts = tg_dim_parts(axes, value, (uint32_t)dim);
    return parts->count == 1 && parts->parts[0].kind == PART_AXIS ? parts->parts[0].axis : -1;
}

/* The dimension of a value that is the axis; NO_T, or T_LOST: it is there, but not alone, or twice. */
static int dim_of(const Axes *axes, uint32_t value, int rank, int axis) {
    int found = NO_T;
    for (int d = 0; d < rank; d++) {
        const DimParts *parts = tg_dim_parts(axes, value, (uint32_t)d);
        for (uint32_t i = 0; i < parts->count; i++)
            if (parts->parts[i].axis == axis)
                found = found == NO_T && axis_at(axes, value, d) == axis ? d : T_LOST;
    }
    return found;
}

/* T in the result of `id`, given that in its operand `i`; T_LOST where it cannot be followed. */
static int t_of_result(const Chunker *c, NodeId id, uint32_t i, int t) {
    const Axes *axes = tg_node_axes(c->arena, c->graph, c->func, id);
    int axis = axis_at(axes, 1 + i, t);
    if (axis < 0 || axes->axes[axis].role == AXIS_WHOLE)
        return T_LOST;
    int to = dim_of(axes, 0, type_of(c, id)->rank, axis);
    return to == NO_T && axes->axes[axis].role == AXIS_REDUCED ? T_SUMMED : to == NO_T ? T_LOST : to;
}

/* T in operand `i`, given that in the result, or in operand `known` if it is summed. */
static int t_of_operand(const Chunker *c, NodeId id, uint32_t i, int t, uint32_t known, int t_known) {
    const Axes *axes = tg_node_axes(c->arena, c->graph, c->func, id);
    int axis = t >= 0 ? axis_at(axes, 0, t) : axis_at(axes, 1 + known, t_known);
    return axis < 0 ? T_LOST : dim_of(axes, 1 + i, type_of(c, operand_of(c, id, i))->rank, axis);
}

/* Row by row, if T is an axis of its own: with the sizes of its slice the node means the same. */
static bool is_row_wise(const Node *node) {
    FuseKind kind = tg_op((Op)node->op)->fuse;
    return kind == FUSE_point || kind == FUSE_reduce || node->op == OP_reshape || node->op == OP_transpose ||
           node->op == OP_broadcast;
}

/* ---- the region ---- */

static int ascending(const void *a, const void *b) {
    NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x > y) - (x < y);
}

/* A dot that reads the region, or a sum over T. */
static bool is_end(const Node *node, int t) { return node->op == OP_dot || (node->op == OP_reduce_sum && t == T_SUMMED); }

/* Follows `id`, operand `i` of `reader`. What reads small values may stand outside. */
static bool follow(Chunker *c, NodeId id, NodeId reader, uint32_t i) {
    const Node *node = node_of(c, reader);
    bool wide = is_wide(c, id);
    int t = is_row_wise(node) || node->op == OP_dot ? t_of_result(c, reader, i, c->t[id]) : T_LOST;
    bool end = t != T_LOST && is_end(node, t);
    if (t == T_LOST || (t == T_SUMMED && !end) || (end && !wide))
        return !wide || refuse(c, reader, "it does not work row by row");
    if (c->role[reader] != ROLE_OUTSIDE)
        return c->t[reader] == t || refuse(c, reader, "its operands have other rows");
    if (c->found.count == MOST_NODES)
        return refuse(c, reader, "too much depends on it");
    set_role(c, reader, end ? ROLE_END : ROLE_REGION, t);
    tg_push(c->arena, &c->found, reader);
    return true;
}

static bool find_region(Chunker *c, int t) {
    set_role(c, c->dot, ROLE_REGION, t);
    tg_push(c->arena, &c->found, c->dot);
    for (uint32_t k = 0; k < c->found.count; k++) {
        NodeId id = c->found.at[k];
        if (c->role[id] == ROLE_END)
            continue;
        if (c->uses.result_uses[id] && is_wide(c, id))
            return refuse(c, id, "it is a result");
        for (uint32_t u = c->uses.first[id]; u < c->uses.first[id + 1]; u++)
            for (uint32_t i = 0; i < node_of(c, c->uses.at[u])->operand_count; i++)
                if (operand_of(c, c->uses.at[u], i) == id && !follow(c, id, c->uses.at[u], i))
                    return false;
    }
    qsort(c->found.at, c->found.count, sizeof *c->found.at, ascending);
    return true;
}

static bool in_region(const Chunker *c, NodeId id) { return c->role[id] == ROLE_REGION || c->role[id] == ROLE_END; }

static bool reads_wide(const Chunker *c, NodeId id) {
    for (uint32_t i = 0; i < node_of(c, id)->operand_count; i++)
        if (c->role[operand_of(c, id, i)] == ROLE_REGION && is_wide(c, operand_of(c, id, i)))
            return true;
    return false;
}

/* A small value stays if it is made of large ones, or something large is made of it. */
static void leave_out_small(Chunker *c) {
    bool *leads = TG_ALLOC(c->arena, bool, c->found.count);
    uint32_t kept = c->found.count;
    for (uint32_t k = c->found.count; k > 0; k--) {
        NodeId id = c->found.at[k - 1];
        leads[k - 1] = is_wide(c, id) && c->role[id] == ROLE_REGION;
        for (uint32_t u = c->uses.first[id]; !leads[k - 1] && u < c->uses.first[id + 1]; u++) {
            NodeId reader = c->uses.at[u];
            const NodeId *at = c->role[reader] == ROLE_REGION
                                   ? bsearch(&reader, c->found.at, c->found.count, sizeof reader, ascending) : NULL;
            leads[k - 1] = at && leads[at - c->found.at];
        }
    }
    kept = 0;
    for (uint32_t k = 0; k < c->found.count; k++) {
        NodeId id = c->found.at[k];
        if (c->role[id] == ROLE_END || leads[k] || reads_wide(c, id))
            c->found.at[kept++] = id;
        else
            c->role[id] = ROLE_OUTSIDE;
    }
    c->found.count = kept;
}

/* Something takes the columns of y together. */
static bool reduces_columns(const Chunker *c) {
    for (uint32_t k = 0; k < c->found.count; k++) {
        NodeId id = c->found.at[k];
        if (c->role[id] == ROLE_REGION && tg_op((Op)node_of(c, id)->op)->fuse == FUSE_reduce && reads_wide(c, id) && !is_wide(c, id))
            return true;
    }
    return false;
}

/* ---- inputs ---- */

/* Built again, or sliced: what `id` is to the slices, T being its dimension `t`. */
static bool plan_input(Chunker *c, NodeId id, int t, int depth) {
    const Node *node = node_of(c, id);
    if (c->role[id] != ROLE_OUTSIDE)
        return c->t[id] == t || refuse(c, id, "it is read by two sets of rows");
    if (t == NO_T) {
        set_role(c, id, ROLE_WHOLE, NO_T);
        return true;
    }
    bool leaf = node->op == OP_const || (node->op == OP_iota && node->attr->list[0].at[0] != t);
    bool again = depth < MOST_DEPTH && (leaf || is_row_wise(node)) && !(leaf && node->attr->dense);
    bool wide = is_wide(c, id), made_again = true;
    for (uint32_t i = 0; again && i < node->operand_count; i++) {
        NodeId operand = operand_of(c, id, i);
        int at = t_of_operand(c, id, i, t, 0, NO_T);
        again = at != T_LOST;
        if (again && !plan_input(c, operand, at, depth + 1))
            return false;
        wide |= is_wide(c, operand);
        made_again &= again && c->role[operand] != ROLE_SLICED;
    }
    again &= wide || made_again;
    set_role(c, id, again ? ROLE_INPUT : ROLE_SLICED, t);
    if (again)
        tg_push(c->arena, &c->found, id);
    return true;
}

/* The operand of an end that is known to be in the region. */
static uint32_t known_operand(const Chunker *c, NodeId id) {
    uint32_t i = 0;
    while (c->role[operand_of(c, id, i)] != ROLE_REGION)
        i++;
    return i;
}

static bool plan_inputs(Chunker *c) {
    uint32_t count = c->found.count;
    NodeId x = operand_of(c, c->dot, 0);
    set_role(c, x, ROLE_SLICED, t_of_operand(c, c->dot, 0, c->t[c->dot], 0, NO_T));
    for (uint32_t k = 0; k < count; k++) {
        NodeId id = c->found.at[k];
        uint32_t known = c->t[id] == T_SUMMED ? known_operand(c, id) : 0;
        for (uint32_t i = 0; i < node_of(c, id)->operand_count; i++) {
            NodeId operand = operand_of(c, id, i);
            int t = t_of_operand(c, id, i, c->t[id], known, c->t[operand_of(c, id, known)]);
            if (t == T_LOST || !plan_input(c, operand, t, 0))
                return t != T_LOST ? false : refuse(c, id, "its operands have other rows");
        }
        if (c->role[id] == ROLE_END && node_of(c, id)->op == OP_dot && c->t[id] == T_SUMMED &&
            (node_of(c, id)->operand_count != 2 || tg_dtype(type_of(c, id)->dtype)->bytes < 4))
            return refuse(c, id, "its sum would round between slices");
    }
    qsort(c->found.at, c->found.count, sizeof *c->found.at, ascending);
    return true;
}

/* ---- order ---- */

static bool is_built(const Chunker *c, NodeId id) { return in_region(c, id) || c->role[id] == ROLE_INPUT; }

/* Nothing that is made of what leaves the region enters it. */
static bool is_convex(Chunker *c) {
    bool *follows = TG_ALLOC(c->arena, bool, c->func->nodes.count);
    for (NodeId id = c->dot + 1; id < c->func->nodes.count; id++)
        for (uint32_t i = 0; i < node_of(c, id)->operand_count; i++) {
            NodeId operand = operand_of(c, id, i);
            if (is_built(c, id) && follows[operand])
                return refuse(c, id, "it depends on all rows");
            follows[id] |= !is_built(c, id) && (in_region(c, operand) || follows[operand]);
        }
    return true;
}

/* All nodes but those of the region, which `dot` stands for; those that it reads come first. */
static NodeId *new_order(const Chunker *c, uint32_t *ordered) {
    uint32_t count = c->func->nodes.count;
    bool *early = TG_ALLOC(c->arena, bool, count);
    for (NodeId id = count - 1; id > 0; id--)
        for (uint32_t i = 0; (early[id] || is_built(c, id)) && i < node_of(c, id)->operand_count; i++)
            early[operand_of(c, id, i)] |= !(early[id] ? in_region(c, operand_of(c, id, i)) : is_built(c, operand_of(c, id, i)));
    NodeId *order = TG_ALLOC(c->arena, NodeId, count);
    *ordered = 0;
    for (NodeId id = 1; id < count; id++)
        if (!in_region(c, id) && (id < c->dot || early[id]))
            order[(*ordered)++] = id;
    order[(*ordered)++] = c->dot;
    for (NodeId id = c->dot + 1; id < count; id++)
        if (!in_region(c, id) && !early[id])
            order[(*ordered)++] = id;
    return order;
}

/* ---- building ---- */

static TypeId slice_type(const Chunker *c, Graph *graph, NodeId id) {
    Type type = *type_of(c, id);
    if (c->t[id] >= 0)
        type.dims[c->t[id]].size /= c->slices;
    return tg_type(&graph->types, &type);
}

static NodeId slice_of(const Chunker *c, Builder *b, NodeId x, int t, int64_t at) {
    Type type = *tg_node_type(b->graph, b->func, x);
    int64_t start[TG_MAX_RANK] = {0}, limit[TG_MAX_RANK], stride[TG_MAX_RANK], size = type.dims[t].size / c->slices;
    for (int i = 0; i < type.rank; i++) {
        limit[i] = type.dims[i].size;
        stride[i] = 1;
    }
    start[t] = at * size;
    limit[t] = start[t] + size;
    uint32_t rank = (uint32_t)type.rank;
    return tg_build(b, OP_slice, &(Attr){.list = {{start, rank}, {limit, rank}, {stride, rank}}}, &x, 1, 0);
}

static NodeId operand_piece(Chunker *c, const Copy *copy, NodeId operand, int64_t at) {
    if (c->role[operand] == ROLE_WHOLE)
        return copy->map[operand];
    if (c->role[operand] == ROLE_SLICED && c->piece[operand] == 0)
        c->piece[operand] = slice_of(c, copy->b, copy->map[operand], c->t[operand], at);
    return c->piece[operand];
}

/* A sum over T goes on from what the slices before have given. */
static NodeId add_up(const Chunker *c, const Copy *copy, NodeId id, NodeId before, NodeId *operands) {
    const Node *node = node_of(c, id);
    Builder *b = copy->b;
    uint32_t columns = node->op == OP_dot ? type_of(c, operand_of(c, id, 1))->rank - node->attr->list[1].count - node->attr->list[3].count : 0;
    if (node->op == OP_dot && (uint32_t)type_of(c, id)->rank > columns) {
        operands[2] = before;
        return tg_build(b, OP_dot, node->attr, operands, 3, node->type);
    }
    return tg_binary(b, OP_add, before, tg_build(b, node->op, node->attr, operands, node->operand_count, node->type));
}

static void build_slice(Chunker *c, const Copy *copy, int64_t at, NodeId **given) {
    for (uint32_t i = 0; i < c->touched.count; i++)
        c->piece[c->touched.at[i]] = 0;
    for (uint32_t k = 0; k < c->found.count; k++) {
        NodeId id = c->found.at[k], operands[4];
        const Node *node = node_of(c, id);
        copy->b->locs = node->locs;
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = operand_piece(c, copy, operand_of(c, id, i), at);
        copy->b->locs = node->locs;
        if (c->t[id] == T_SUMMED && at > 0)
            c->piece[id] = add_up(c, copy, id, given[k][at - 1], operands);
        else
            c->piece[id] = tg_build(copy->b, (Op)node->op, node->attr, operands, node->operand_count, slice_type(c, copy->b->graph, id));
        given[k][at] = c->piece[id];
    }
}

/* Is there a reader outside of the slices, or a result? */
static bool leaves(const Chunker *c, NodeId id) {
    if (!in_region(c, id))
        return false;
    bool outside = c->uses.result_uses[id] > 0;
    for (uint32_t u = c->uses.first[id]; u < c->uses.first[id + 1]; u++)
        outside |= !is_built(c, c->uses.at[u]);
    return outside;
}

/* In the place of `dot`: all slices, and what leaves the region. */
static NodeId build_all(void *context, const Copy *copy, NodeId id, const NodeId *unused) {
    (void)unused;
    Chunker *c = context;
    if (id != c->dot)
        return 0;
    NodeId **given = TG_ALLOC(c->arena, NodeId *, c->found.count);
    for (uint32_t k = 0; k < c->found.count; k++)
        given[k] = TG_ALLOC(c->arena, NodeId, c->slices);
    for (int64_t at = 0; at < c->slices; at++)
        build_slice(c, copy, at, given);
    for (uint32_t k = 0; k < c->found.count; k++) {
        NodeId left = c->found.at[k];
        if (!leaves(c, left))
            continue;
        int64_t axis = c->t[left];
        copy->b->locs = node_of(c, left)->locs;
        copy->map[left] = axis == T_SUMMED ? given[k][c->slices - 1]
                                           : tg_build(copy->b, OP_concat, &(Attr){.list = {{&axis, 1}}}, given[k], (uint32_t)c->slices, 0);
    }
    return given[0][0];
}

static Status rebuild(Chunker *c, Graph *out) {
    const Func *from = c->func;
    Builder b = tg_pass_builder(c->context, out, tg_func_new(out, from->kind, from->name));
    b.func->args = from->args;
    Copy copy = tg_copy(c->arena, &b, c->graph, from);
    copy.order = new_order(c, &copy.ordered);
    copy.replace = build_all;
    copy.context = c;
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_need(&copy, c->dot);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    return tg_builder_status(&b, c->context->diags);
}

/* ---- candidates ---- */

/* The fewest slices that are small enough, or as many as have enough rows; 1: it stays whole. */
static int64_t slices_of(const Chunker *c, NodeId id, int64_t size) {
    const Type *type = type_of(c, id);
    int64_t count = count_of(c, id), columns = 1, best = 1;
    const Node *node = node_of(c, id);
    uint32_t column_axes = type_of(c, operand_of(c, id, 1))->rank - node->attr->list[1].count - node->attr->list[3].count;
    for (uint32_t i = 0; i < column_axes; i++)
        columns *= type->dims[(uint32_t)type->rank - 1 - i].size;
    double bytes = (double)count * tg_dtype(type->dtype)->bytes;
    if (bytes <= SLICE_BYTES)
        return 1;
    for (int64_t n = 2; n <= size && count / columns / n >= LEAST_ROWS; n++) {
        if (size % n != 0)
            continue;
        best = n;
        if (bytes / (double)n <= SLICE_BYTES)
            break;
    }
    return best;
}

static bool is_candidate(const Chunker *c, NodeId id) {
    const Node *node = node_of(c, id);
    if (node->op != OP_dot || type_of(c, id)->rank < 3 || tg_dot_adds(c->graph, c->func, node))
        return false;
    double bytes = (double)count_of(c, id) * tg_dtype(type_of(c, id)->dtype)->bytes;
    return bytes > SLICE_BYTES && tg_type_batch_axis(type_of(c, operand_of(c, id, 1))) < 0;
}

/* Places are asked for in the graph that the pass reads; one that it has made itself may have others. */
static LocsId known_locs(const Chunker *c) { return c->graph == c->context->in ? node_of(c, c->dot)->locs : 0; }

static void say_missed(const Chunker *c) {
    if (!tg_says_missed(c->context) || c->graph != c->context->in)
        return;
    Str text = tg_str(c->arena);
    tg_str_printf(&text, "a dot of ");
    tg_type_print(&text, type_of(c, c->dot));
    tg_str_printf(&text, " stays whole: %s, %s", tg_op((Op)node_of(c, c->where)->op)->name, c->why);
    tg_pass_missed(c->context, known_locs(c), text.text);
}

/* Along dimension `t` of the dot. */
static bool fits(Chunker *c, NodeId id, int t) {
    clear(c);
    c->dot = id;
    c->slices = slices_of(c, id, type_of(c, id)->dims[t].size);
    if (c->slices < 2 || !find_region(c, t))
        return false;
    leave_out_small(c);
    return reduces_columns(c) && plan_inputs(c) && is_convex(c);
}

/* The axes of rows, one after another. */
static bool find_axis(Chunker *c, NodeId id) {
    const Node *node = node_of(c, id);
    uint32_t first = node->attr->list[0].count;
    int64_t free_axes[TG_MAX_RANK];
    uint32_t count = tg_free_axes(type_of(c, operand_of(c, id, 0)), node->attr->list[0], node->attr->list[2], free_axes);
    c->why = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!type_of(c, id)->dims[first + i].batch && fits(c, id, (int)(first + i)))
            return true;
    if (c->why)
        say_missed(c);
    return false;
}

static void remark(const Chunker *c) {
    if (!tg_says_remarks(c->context))
        return;
    Str text = tg_str(c->arena);
    tg_str_printf(&text, "what follows a dot of ");
    tg_type_print(&text, type_of(c, c->dot));
    tg_str_printf(&text, " runs in %lld slices of dimension %d", (long long)c->slices, c->t[c->dot]);
    tg_pass_remark(c->context, known_locs(c), text.text);
}

static bool find_dot(Chunker *c) {
    for (NodeId id = 1; id < c->func->nodes.count; id++)
        if (is_candidate(c, id) && find_axis(c, id) && tg_rewrite(c->context, "rows", known_locs(c))) {
            remark(c);
            return true;
        }
    return false;
}

/* Sets `*fired` if a dot of the function was cut. */
static Status chunk_func(PassContext *context, const Graph *in, const Func *from, Graph *out, bool *fired) {
    const Training *training = &in->training;
    uint32_t count = from->nodes.count;
    if ((from->kind != FUNC_OBJECTIVE && from->kind != FUNC_OBJECTIVE_EVAL) || !tg_has_batch(training))
        return tg_copy_replacing(context, in, from, out, NULL, NULL);
    int64_t lane = (training->batch + training->lanes - 1) / training->lanes;
    Chunker c = {.context = context, .arena = context->arena, .graph = in, .func = from, .uses = tg_uses(context->arena, from),
                 .records = training->micro < lane ? training->micro : lane,
                 .role = TG_ALLOC(context->arena, uint8_t, count), .t = TG_ALLOC(context->arena, int8_t, count),
                 .piece = TG_ALLOC(context->arena, NodeId, count)};
    if (!find_dot(&c))
        return tg_copy_replacing(context, in, from, out, NULL, NULL);
    *fired = true;
    return rebuild(&c, out);
}

/* One dot of each function at a time, until none is left to cut: what is built has new numbers. */
Status run_chunk(PassContext *context, const Graph *in, Graph **out) {
    for (bool fired = true; fired; in = *out) {
        fired = false;
        *out = tg_graph_like(context->arena, in, in->level);
        for (uint32_t f = 0; f < in->funcs.count; f++)
            TG_TRY(chunk_func(context, in, in->funcs.at[f], *out, &fired));
    }
    return TG_OK;
}
