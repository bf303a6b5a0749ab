/* batch: cuts the joint graph of a step (objective with its gradients, and update) into the functions that a program runs.

   A node is a *row* when its type has B, a *batch sum* when it has none but an operand has (a reduction over the batch, a
   contraction, a scatter), *after* when it depends on batch sums, *static* otherwise (parameters and scalars alone).

       micro        all rows, and the batch sums that anything needs: each into a BUFFER_SUM
       tail         what follows the sums on the way to gradients, clipping, gate, update, states
       fields       what follows the sums on the way to the logged fields; eval.micro and eval.fields likewise
       pre.K        with several micro-batches: the batch sums on which rows depend (a count under a masked mean), level by level.
                    They must not depend on parameters: otherwise a micro-batch would need its successors' ([batch-coupled])

   Sums of floats for fields are taken in f64, the others in their own type. With several micro-batches a sum is accumulated per lane; the
   lanes are combined in a binary tree where the sum is read. A scatter_add that adds to a batch sum is one sum with it. With fewer
   micro-batches than lanes every batch sum inside a micro-batch is split (split.c) so that the same tree results. */
#include "ir/dot.h"
#include "passes/hoist.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "passes/split.h"

#include <string.h>

typedef struct Cut {
    PassContext *context;
    const Graph *in;
    Graph *out;
    const Func *from;
    const char *prefix;  /* of the sums' names: "" or "eval." */
    bool single;         /* one micro-batch: sums are stored, not accumulated */
    int64_t lanes, split;
    uint32_t *hoisted;   /* per node: 1 + computed scalar */
    bool *rows, *sum, *couples; /* couples: a batch sum that rows depend on */
    bool *trained;       /* depends on a trained parameter */
    uint32_t *level;     /* of the sums below it */
    int32_t *own, *wide; /* per batch sum: its buffer in its own type, in f64; -1: not needed */
    uint32_t levels;     /* pre functions */
} Cut;

static TypeId scalar_type(Graph *graph, DType dtype) {
    Type type = {.dtype = dtype};
    return tg_type(&graph->types, &type);
}

static bool has_batch(const Graph *graph, const Func *func, NodeId id) {
    return tg_type_batch_axis(tg_node_type(graph, func, id)) >= 0;
}

/* A scatter of rows to a table without B that is there before. */
static bool scatters_to(const Cut *c, const Node *node) {
    return node->op == OP_scatter_add && node->operand_count == 3 && !c->rows[tg_operand(c->from, node, 2)] &&
           (c->rows[tg_operand(c->from, node, 0)] || c->rows[tg_operand(c->from, node, 1)]);
}

/* Operand `i` is a batch sum to which `node`, a batch sum too, adds its own. */
static bool adds_to(const Cut *c, const Node *node, uint32_t i) {
    bool adds = i == 2 && (scatters_to(c, node) || (node->op == OP_dot && tg_dot_adds(c->in, c->from, node)));
    return adds && c->sum[tg_operand(c->from, node, i)];
}

static void classify(Cut *c) {
    const Func *from = c->from;
    for (NodeId id = 1; id < from->nodes.count; id++) {
        const Node *node = tg_node(from, id);
        c->rows[id] = has_batch(c->in, from, id);
        if (node->op == OP_load) {
            const Buffer *buffer = &c->in->buffers.at[node->attr->ref];
            c->trained[id] = buffer->class == BUFFER_PARAM && !buffer->frozen;
        }
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(from, node, i);
            c->sum[id] |= !c->rows[id] && c->rows[operand];
            c->trained[id] |= c->trained[operand];
            uint32_t below = c->level[operand] + (c->sum[operand] && !adds_to(c, node, i));
            c->level[id] = below > c->level[id] ? below : c->level[id];
        }
    }
}

/* Marks the batch sums that rows or other batch sums read, through whatever follows them. */
static void find_couplings(Cut *c) {
    const Func *from = c->from;
    bool *feeds = TG_ALLOC(c->context->arena, bool, from->nodes.count);
    for (NodeId id = from->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(from, id);
        c->couples[id] = c->sum[id] && feeds[id];
        if (!c->rows[id] && !c->sum[id] && !feeds[id])
            continue;
        for (uint32_t i = 0; i < node->operand_count; i++)
            if (!c->rows[tg_operand(from, node, i)] && !adds_to(c, node, i))
                feeds[tg_operand(from, node, i)] = true;
    }
}

static bool is_gradient(const Result *result) {
    return result->kind == RESULT_VALUE && strncmp(result->name, "gradient.", 9) == 0;
}
static bool is_empty(const Result *result) {
    return result->kind == RESULT_VALUE && strcmp(result->name, TG_EMPTY_LOSS) == 0;
}
static bool is_field(const Result *result) {
    return result->kind == RESULT_VALUE && !is_gradient(result) && !is_empty(result);
}

static uint32_t add_sum_buffer(Cut *c, NodeId id, DType dtype, const char *name) {
    TypeId type = tg_type_with(c->out, tg_node(c->from, id)->type, dtype);
    return tg_buffer_add(c->out, (Buffer){.name = name, .type = type, .class = BUFFER_SUM, .lanes = c->lanes,
                                          .loc = tg_locs_first(c->out, tg_node(c->from, id)->locs)});
}

/* Where a gradient loses the loss scale: by convert(mul(sum, 1 / scale)). */
static bool removes_scale(const Cut *c, const Node *node) {
    return (node->op == OP_convert || node->op == OP_mul) && tg_node_type(c->in, c->from, tg_operand(c->from, node, 0))->scaled;
}

/* Gives buffers to the sums that results of one kind read. A sum that is a gradient, scaled or not, is named after it. */
static void assign_buffers(Cut *c, bool for_fields) {
    const Func *from = c->from;
    int32_t *buffers = for_fields ? c->wide : c->own;
    bool *read = TG_ALLOC(c->context->arena, bool, from->nodes.count);
    const char **names = TG_ALLOC(c->context->arena, const char *, from->nodes.count);
    for (uint32_t i = 0; i < from->results.count; i++) {
        const Result *result = &from->results.at[i];
        read[result->node] |= is_field(result) == for_fields;
        if (is_gradient(result))
            names[result->node] = result->name;
    }
    for (NodeId id = from->nodes.count - 1; id > 0; id--) {
        if (!read[id])
            continue;
        const Node *node = tg_node(from, id);
        if (c->sum[id]) {
            const char *name = !for_fields && names[id] ? names[id]
                                                        : tg_arena_printf(c->out->arena, "%s%s.%u", c->prefix,
                                                                          for_fields ? "field" : "sum", id);
            DType own = tg_node_type(c->in, from, id)->dtype, dtype = for_fields && !tg_is_integer(own) ? DT_F64 : own;
            buffers[id] = (int32_t)add_sum_buffer(c, id, dtype, name);
            continue;
        }
        for (uint32_t i = 0; i < node->operand_count; i++)
            read[tg_operand(from, node, i)] = true;
        if (names[id] && removes_scale(c, node))
            names[tg_operand(from, node, 0)] = names[id];
    }
}

/* The first row, or sum over rows, that reads `sum` through what follows it. */
static NodeId reader_of(const Cut *c, NodeId sum) {
    bool *follows = TG_ALLOC(c->context->arena, bool, c->from->nodes.count);
    follows[sum] = true;
    for (NodeId id = sum + 1; id < c->from->nodes.count; id++) {
        const Node *node = tg_node(c->from, id);
        for (uint32_t i = 0; i < node->operand_count; i++)
            follows[id] |= follows[tg_operand(c->from, node, i)];
        if (follows[id] && (c->rows[id] || c->sum[id]))
            return id;
    }
    return sum;
}

static Status batch_coupled(const Cut *c, NodeId sum) {
    Loc loc = tg_locs_first(c->in, tg_node(c->from, sum)->locs);
    Loc reader = tg_locs_first(c->in, tg_node(c->from, reader_of(c, sum))->locs);
    tg_error(c->context->diags, loc, "rows depend on this sum over the batch, and the sum on parameters, so the "
             "batch cannot be split into micro-batches [batch-coupled]");
    if (reader.line)
        tg_note(c->context->diags, reader, "rows depend on it here");
    tg_note(c->context->diags, loc, "use one micro-batch (micro = batch)");
    return TG_MODEL;
}

/* With several micro-batches the sums on which rows depend must be there before: they get buffers and a level. */
static Status assign_levels(Cut *c) {
    if (c->single)
        return TG_OK;
    for (NodeId id = 1; id < c->from->nodes.count; id++) {
        if (!c->couples[id])
            continue;
        if (c->trained[id])
            return batch_coupled(c, id);
        if (c->own[id] < 0)
            c->own[id] = (int32_t)add_sum_buffer(c, id, tg_node_type(c->in, c->from, id)->dtype,
                                                 tg_arena_printf(c->out->arena, "%ssum.%u", c->prefix, id));
        if (c->level[id] + 1 > c->levels)
            c->levels = c->level[id] + 1;
    }
    return TG_OK;
}

/* How two sums of one kind combine. */
static Op combiner(Op op) { return op == OP_reduce_max ? OP_maximum : op == OP_reduce_min ? OP_minimum : OP_add; }

static NodeId combine_lanes(Builder *b, uint32_t buffer, Op op, int64_t first, int64_t count) {
    if (count == 1)
        return tg_load_lane(b, buffer, first);
    int64_t half = 1;
    while (2 * half < count)
        half *= 2;
    NodeId left = combine_lanes(b, buffer, op, first, half);
    return tg_binary(b, op, left, combine_lanes(b, buffer, op, first + half, count - half));
}

/* The finished value of a batch sum, read from its buffer. */
static NodeId read_sum(const Cut *c, Builder *b, NodeId id, int32_t buffer) {
    NodeId value = combine_lanes(b, (uint32_t)buffer, combiner(tg_node(c->from, id)->op), 0, c->lanes);
    return tg_convert(b, value, tg_node_type(c->in, c->from, id)->dtype);
}

static NodeId replace_hoisted(const Cut *c, const Copy *copy, NodeId id) {
    return c->hoisted[id] ? tg_scalar(copy->b, c->hoisted[id] - 1) : 0;
}

static NodeId replace_in_rows(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    const Cut *c = context;
    if (c->sum[id])
        return tg_split_sum(copy->b, c->in, c->from, id, operands, c->split);
    return replace_hoisted(c, copy, id);
}

static NodeId replace_after(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)operands;
    return replace_hoisted(context, copy, id);
}

/* The sum over this function's rows. What rows depend on stands in the map with its value over the whole batch. */
static NodeId sum_of_rows(const Cut *c, const Copy *copy, NodeId id) {
    if (c->single || !c->couples[id])
        return copy->map[id];
    const Node *node = tg_node(c->from, id);
    NodeId *operands = TG_ALLOC(c->context->arena, NodeId, node->operand_count + 1);
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = copy->map[tg_operand(c->from, node, i)];
    return tg_split_sum(copy->b, c->in, c->from, id, operands, c->split);
}

/* The value that a field's buffer accumulates: f64, rounded nowhere on the way; integers are exact, and wrap, as they are. */
static NodeId wide_sum(const Cut *c, Copy *copy, NodeId id) {
    const Node *node = tg_node(c->from, id);
    Builder *b = copy->b;
    if (tg_is_integer(tg_node_type(c->in, c->from, id)->dtype))
        return sum_of_rows(c, copy, id);
    if (node->op != OP_reduce_sum)
        return tg_convert(b, sum_of_rows(c, copy, id), DT_F64);
    NodeId rows = tg_convert(b, copy->map[tg_operand(c->from, node, 0)], DT_F64);
    return tg_reduce(b, OP_reduce_sum, rows, node->attr->list[0].at, node->attr->list[0].count, c->split);
}

static void store_sum(const Cut *c, Builder *b, NodeId id, int32_t buffer, NodeId value) {
    b->locs = tg_node(c->from, id)->locs;
    if (!c->single) {
        NodeId before = tg_load(b, (uint32_t)buffer);
        NodeId sum = tg_binary(b, combiner(tg_node(c->from, id)->op), before, value);
        uint32_t scalar = tg_scalar_add(c->out, (Scalar){.name = "lane_start", .class = SCALAR_BUILTIN});
        NodeId start = tg_binary(b, OP_ne, tg_scalar(b, scalar), tg_const(b, scalar_type(c->out, DT_F64), 0));
        TypeId truth = tg_type_with(c->out, b->func->nodes.at[value].type, DT_BOOL);
        value = tg_select(b, tg_broadcast_like(b, start, truth), value, sum);
    }
    tg_result_store(b, (uint32_t)buffer, value);
}

/* A function that goes over rows: the sums of one level (pre), or all that are left (micro; `level` = levels). */
static Status cut_rows(Cut *c, FuncKind kind, const char *name, uint32_t level) {
    const Func *from = c->from;
    Builder b = tg_pass_builder(c->context, c->out, tg_func_new(c->out, kind, name));
    b.func->args = from->args;
    Copy copy = tg_copy(c->context->arena, &b, c->in, from);
    copy.replace = replace_in_rows;
    copy.context = c;
    bool *target = TG_ALLOC(c->context->arena, bool, from->nodes.count);
    for (NodeId id = 1; id < from->nodes.count; id++) {
        bool in_pre = !c->single && c->couples[id];
        if (in_pre && c->level[id] < level)
            copy.map[id] = read_sum(c, &b, id, c->own[id]);
        target[id] = c->sum[id] && (c->own[id] >= 0 || c->wide[id] >= 0) &&
                     (level < c->levels ? in_pre && c->level[id] == level : true);
        if (target[id] && copy.map[id] == 0)
            tg_copy_need(&copy, id);
        if (target[id] && c->wide[id] >= 0)
            for (uint32_t i = 0; i < tg_node(from, id)->operand_count; i++)
                tg_copy_need(&copy, tg_operand(from, tg_node(from, id), i));
    }
    tg_copy_run(&copy);
    for (NodeId id = 1; id < from->nodes.count; id++) {
        if (!target[id])
            continue;
        bool done = level == c->levels && !c->single && c->couples[id];
        b.locs = tg_node(from, id)->locs;
        if (c->own[id] >= 0 && !done)
            store_sum(c, &b, id, c->own[id], copy.map[id]);
        if (c->wide[id] >= 0 && level == c->levels)
            store_sum(c, &b, id, c->wide[id], wide_sum(c, &copy, id));
    }
    return tg_builder_status(&b, c->context->diags);
}

/* A copy of what follows the sums, reading them from `buffers`. */
static Copy copy_after(Cut *c, Builder *b, const int32_t *buffers) {
    Copy copy = tg_copy(c->context->arena, b, c->in, c->from);
    copy.replace = replace_after;
    copy.context = c;
    for (NodeId id = 1; id < c->from->nodes.count; id++)
        if (buffers[id] >= 0) {
            b->locs = tg_node(c->from, id)->locs;
            copy.map[id] = read_sum(c, b, id, buffers[id]);
        }
    return copy;
}

static Status cut_fields(Cut *c, FuncKind kind, const char *name) {
    Builder b = tg_pass_builder(c->context, c->out, tg_func_new(c->out, kind, name));
    Copy copy = copy_after(c, &b, c->wide);
    for (uint32_t i = 0; i < c->from->results.count; i++)
        if (is_field(&c->from->results.at[i]))
            tg_copy_need(&copy, c->from->results.at[i].node);
    tg_copy_run(&copy);
    for (uint32_t i = 0; i < c->from->results.count; i++) {
        const Result *result = &c->from->results.at[i];
        b.locs = result->locs;
        if (is_field(result))
            tg_result_value(&b, result->name, copy.map[result->node]);
    }
    return tg_builder_status(&b, c->context->diags);
}

/* What `update` reads in the tail: gradients by buffer, the loss, and whether it is over nothing (0: it never is). */
typedef struct Bindings {
    const Cut *c;
    const uint32_t *hoisted;
    const Func *update;
    NodeId *gradient;
    NodeId loss, empty;
} Bindings;

static NodeId replace_in_update(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)operands;
    const Bindings *bindings = context;
    const Node *node = tg_node(bindings->update, id);
    if (node->op == OP_gradient)
        return bindings->gradient[node->attr->ref];
    if (node->op == OP_arg)
        return tg_attr_int(node->attr, 0, 0) == 0 ? bindings->loss : bindings->empty;
    return bindings->hoisted[id] ? tg_scalar(copy->b, bindings->hoisted[id] - 1) : 0;
}

static void store_states(const Cut *c, Builder *b, const Copy *copy, NodeId open) {
    for (uint32_t i = 0; i < c->from->results.count; i++) {
        const Result *result = &c->from->results.at[i];
        if (result->kind != RESULT_STORE)
            continue;
        b->locs = result->locs;
        NodeId fresh = copy->map[result->node];
        TypeId truth = tg_type_with(c->out, b->func->nodes.at[fresh].type, DT_BOOL);
        NodeId kept = tg_select(b, tg_broadcast_like(b, open, truth), fresh, tg_load(b, result->buffer));
        tg_result_store(b, result->buffer, kept);
    }
}

static NodeId loss_value(Cut *c, Builder *b) {
    Copy copy = copy_after(c, b, c->wide);
    NodeId loss = 0;
    for (uint32_t i = 0; i < c->from->results.count; i++)
        if (tg_is_loss(c->in, &c->from->results.at[i]))
            loss = c->from->results.at[i].node;
    tg_copy_need(&copy, loss);
    tg_copy_run(&copy);
    return tg_convert(b, copy.map[loss], DT_F32);
}

static Status cut_tail(Cut *c, const Func *update, const uint32_t *update_hoisted) {
    Builder b = tg_pass_builder(c->context, c->out, tg_func_new(c->out, FUNC_TAIL, "tail"));
    Copy copy = copy_after(c, &b, c->own);
    for (uint32_t i = 0; i < c->from->results.count; i++)
        if (!is_field(&c->from->results.at[i]))
            tg_copy_need(&copy, c->from->results.at[i].node);
    tg_copy_run(&copy);
    Bindings bindings = {.c = c, .hoisted = update_hoisted, .update = update, .loss = loss_value(c, &b)};
    bindings.gradient = TG_ALLOC(c->context->arena, NodeId, c->out->buffers.count);
    for (uint32_t i = 0; i < c->from->results.count; i++)
        if (is_gradient(&c->from->results.at[i])) {
            int32_t buffer = tg_buffer_find(c->out, c->from->results.at[i].name + strlen("gradient."));
            bindings.gradient[buffer] = copy.map[c->from->results.at[i].node];
        } else if (is_empty(&c->from->results.at[i])) {
            bindings.empty = copy.map[c->from->results.at[i].node];
        }
    Copy updates = tg_copy(c->context->arena, &b, c->in, update);
    updates.replace = replace_in_update;
    updates.context = &bindings;
    NodeId open = 0; /* `open`, or `finite` alone */
    for (uint32_t i = 0; i < update->results.count; i++) {
        const Result *result = &update->results.at[i];
        tg_copy_need(&updates, result->node);
        bool is_gate = result->kind == RESULT_VALUE && (strcmp(result->name, "open") == 0 || strcmp(result->name, "finite") == 0);
        open = is_gate ? result->node : open;
    }
    tg_copy_run(&updates);
    tg_copy_results(&updates);
    store_states(c, &b, &copy, updates.map[open]);
    return tg_builder_status(&b, c->context->diags);
}

static Cut cut_of(PassContext *context, Hoist *hoist, const Graph *in, Graph *out, const Func *from) {
    uint32_t count = from->nodes.count;
    Arena *arena = context->arena;
    Cut c = {.context = context, .in = in, .out = out, .from = from, .prefix = "", .lanes = 1, .split = 1};
    c.hoisted = tg_hoist_func(hoist, in, from);
    c.rows = TG_ALLOC(arena, bool, count);
    c.sum = TG_ALLOC(arena, bool, count);
    c.couples = TG_ALLOC(arena, bool, count);
    c.trained = TG_ALLOC(arena, bool, count);
    c.level = TG_ALLOC(arena, uint32_t, count);
    c.own = TG_ALLOC(arena, int32_t, count);
    c.wide = TG_ALLOC(arena, int32_t, count);
    for (NodeId id = 0; id < count; id++)
        c.own[id] = c.wide[id] = -1;
    classify(&c);
    find_couplings(&c);
    return c;
}

/* What is no batch sum is there once, however many micro-batches add to it, as is one that rows depend on; and lanes combine every sum by
   itself. */
static bool stands_apart(const Cut *c, const Node *node) {
    if (!scatters_to(c, node))
        return false;
    NodeId table = tg_operand(c->from, node, 2);
    return c->in->training.lanes > 1 || !c->sum[table] || c->couples[table];
}

static NodeId replace_apart(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    const Cut *c = context;
    const Node *node = tg_node(c->from, id);
    if (!stands_apart(c, node))
        return 0;
    NodeId rows = tg_build(copy->b, OP_scatter_add, node->attr, operands, 2, node->type);
    return tg_binary(copy->b, OP_add, operands[2], rows);
}

static Status check_batch(PassContext *context, const Training *training) {
    if (tg_has_batch(training))
        return TG_OK;
    tg_error(context->diags, (Loc){0}, "batch = %lld, micro = %lld and lanes = %lld cannot be: each is at least 1",
             (long long)training->batch, (long long)training->micro, (long long)training->lanes);
    return TG_MODEL;
}

static Status begin_cut(PassContext *context, Hoist *hoist, const Graph *in, Graph *out, const Func *from, Cut *c) {
    TG_TRY(check_batch(context, &in->training));
    *c = cut_of(context, hoist, in, out, from);
    bool any = false;
    for (NodeId id = 1; id < from->nodes.count; id++)
        any |= stands_apart(c, tg_node(from, id));
    if (!any)
        return TG_OK;
    Graph *apart = tg_graph_like(context->arena, in, in->level);
    TG_TRY(tg_copy_replacing(context, in, from, apart, replace_apart, c));
    *c = cut_of(context, hoist, apart, out, apart->funcs.at[0]);
    return TG_OK;
}

/* Micro-batches and lanes of a training step. */
static Status divide_batch(Cut *c) {
    const Training *training = &c->in->training;
    int64_t micros = (training->batch + training->micro - 1) / training->micro;
    c->single = micros == 1;
    c->lanes = micros < training->lanes ? micros : training->lanes;
    c->split = training->lanes / c->lanes;
    int64_t uneven = micros < training->lanes ? training->lanes % micros : micros % training->lanes;
    if (uneven != 0 || (c->split > 1 && training->micro % c->split != 0)) {
        tg_error(c->context->diags, (Loc){0},
                 "lanes = %lld does not divide the batch: it has %lld micro-batches of %lld records",
                 (long long)training->lanes, (long long)micros, (long long)training->micro);
        return TG_MODEL;
    }
    return TG_OK;
}

/* The loss is there, and what is called a gradient is a parameter's. */
static Status check_objective(PassContext *context, const Graph *in, const Func *from) {
    bool has_loss = false;
    for (uint32_t i = 0; i < from->results.count; i++) {
        const Result *result = &from->results.at[i];
        has_loss |= tg_is_loss(in, result);
        if (!is_gradient(result))
            continue;
        int32_t buffer = tg_buffer_find(in, result->name + strlen("gradient."));
        if (buffer < 0 || in->buffers.at[buffer].class != BUFFER_PARAM ||
            in->buffers.at[buffer].type != tg_node(from, result->node)->type) {
            tg_error(context->diags, (Loc){0}, "'%s' of the objective is no gradient of a parameter", result->name);
            return TG_MODEL;
        }
    }
    if (!has_loss)
        tg_error(context->diags, (Loc){0}, "the objective gives no loss");
    return has_loss ? TG_OK : TG_MODEL;
}

static Status cut_training(PassContext *context, Hoist *hoist, const Graph *in, Graph *out, const Func *from) {
    const Func *update = tg_func_find(in, FUNC_UPDATE, NULL);
    if (update == NULL) {
        tg_error(context->diags, (Loc){0}, "there is an objective, but no update that would follow it");
        return TG_MODEL;
    }
    TG_TRY(check_objective(context, in, from));
    Cut c;
    TG_TRY(begin_cut(context, hoist, in, out, from, &c));
    TG_TRY(divide_batch(&c));
    assign_buffers(&c, false);
    assign_buffers(&c, true);
    TG_TRY(assign_levels(&c));
    for (uint32_t level = 0; level < c.levels; level++)
        TG_TRY(cut_rows(&c, FUNC_PRE, tg_arena_printf(out->arena, "pre.%u", level), level));
    TG_TRY(cut_rows(&c, FUNC_MICRO, "micro", c.levels));
    TG_TRY(cut_tail(&c, update, tg_hoist_func(hoist, in, update)));
    return cut_fields(&c, FUNC_FIELDS, "fields");
}

static Status cut_evaluation(PassContext *context, Hoist *hoist, const Graph *in, Graph *out, const Func *from) {
    Cut c;
    TG_TRY(begin_cut(context, hoist, in, out, from, &c));
    c.prefix = "eval.";
    c.lanes = in->training.lanes;
    assign_buffers(&c, true);
    for (NodeId id = 1; id < from->nodes.count; id++)
        if (c.couples[id] && c.sum[id]) {
            Loc loc = tg_locs_first(in, tg_node(from, id)->locs);
            tg_error(context->diags, loc, "in validation rows depend on this sum over the batch: that is not built yet");
            tg_note(context->diags, loc, "compute it only `if training`, and keep it as a state");
            return TG_MODEL;
        }
    TG_TRY(cut_rows(&c, FUNC_EVAL_MICRO, "eval.micro", c.levels));
    return cut_fields(&c, FUNC_EVAL_FIELDS, "eval.fields");
}

/* init and exports: as they are, with their scalars hoisted. */
static Status copy_whole(PassContext *context, Hoist *hoist, const Graph *in, Graph *out, const Func *from) {
    Cut c = {.context = context, .in = in, .out = out, .from = from};
    c.hoisted = tg_hoist_func(hoist, in, from);
    return tg_copy_replacing(context, in, from, out, replace_after, &c);
}

Status run_batch(PassContext *context, const Graph *whole, Graph **out) {
    const Graph *in;
    TG_TRY(tg_split_bias(context, whole, &in));
    *out = tg_graph_like(context->arena, in, LEVEL_STEP);
    tg_scalar_add(*out, (Scalar){.name = "lane_start", .class = SCALAR_BUILTIN}); /* computed scalars come after all others */
    Hoist hoist;
    tg_hoist_init(&hoist, context, *out);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *from = in->funcs.at[f];
        switch (from->kind) {
        case FUNC_OBJECTIVE: TG_TRY(cut_training(context, &hoist, in, *out, from)); break;
        case FUNC_OBJECTIVE_EVAL: TG_TRY(cut_evaluation(context, &hoist, in, *out, from)); break;
        case FUNC_UPDATE: break; /* in the tail */
        case FUNC_MONITOR: /* it reads what validation gives, not what each step's scalars are: nothing is hoisted */
            TG_TRY(tg_copy_replacing(context, in, from, *out, NULL, NULL));
            break;
        default: TG_TRY(copy_whole(context, &hoist, in, *out, from)); break;
        }
    }
    return tg_builder_status(&hoist.b, context->diags);
}
