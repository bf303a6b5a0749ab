/* The steps of one function: kernels and library calls in the order of the graph, copies where a result is not where it must be. */
#include "codegen/plan_func.h"

#include "codegen/attention.h"
#include "ir/cost.h"
#include "ir/attention.h"

#include <string.h>

NodeId tg_step_base(const FuncPlan *f, NodeId id) {
    while (tg_step_node(f, id)->op == OP_reshape || tg_step_node(f, id)->op == OP_transpose ||
           tg_step_node(f, id)->op == OP_again)
        id = tg_operand(f->func, tg_step_node(f, id), 0);
    return id;
}

bool tg_step_makes(const FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    return node->op == OP_result || tg_op((Op)node->op)->fuse == FUSE_library;
}

static bool is_attention_gradient(const Node *node) {
    return node->op == OP_attention_dq || node->op == OP_attention_dk || node->op == OP_attention_dv;
}

static bool same_attention(const FuncPlan *f, const Node *x, const Node *y) {
    bool same = x->attr->list[0].at[0] == y->attr->list[0].at[0] && x->attr->number == y->attr->number &&
                tg_type_of(&f->p->graph->types, x->type)->dtype == tg_type_of(&f->p->graph->types, y->type)->dtype;
    for (uint32_t i = 0; same && i < x->operand_count; i++)
        same = tg_operand(f->func, x, i) == tg_operand(f->func, y, i);
    return same;
}

/* Those of one attention stand near each other. */
static NodeId first_gradient(const FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    for (NodeId other = id - 1; other > tg_operand(f->func, node, 3); other--)
        if (is_attention_gradient(tg_step_node(f, other)) && same_attention(f, node, tg_step_node(f, other)))
            return f->attention[other];
    return id;
}

/* Numbers the steps ahead: what writes each node, and when each persistent buffer is read last. */
static void number_steps(FuncPlan *f) {
    uint32_t step = 0;
    for (NodeId id = 1; id < f->func->nodes.count; id++) {
        const Node *node = tg_step_node(f, id);
        bool runs = node->op == OP_call || tg_op((Op)node->op)->fuse == FUSE_library;
        if (node->op == OP_transpose)
            f->written_as[tg_operand(f->func, node, 0)] = id;
        if (node->op == OP_result)
            f->made_at[id] = f->made_at[tg_operand(f->func, node, 0)];
        if (!runs)
            continue;
        f->attention[id] = is_attention_gradient(node) ? first_gradient(f, id) : id;
        if (is_attention_gradient(node))
            f->gradients[f->attention[id]][node->op - OP_attention_dq] = id;
        f->made_at[id] = f->attention[id] == id ? ++step : f->made_at[f->attention[id]];
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId base = tg_step_base(f, tg_operand(f->func, node, i));
            const Node *read = tg_step_node(f, base);
            f->readers[base]++;
            if (read->op == OP_load)
                f->last_read[read->attr->ref] = f->made_at[id];
        }
    }
    for (uint32_t i = 0; i < f->func->results.count; i++)
        f->readers[tg_step_base(f, f->func->results.at[i].node)]++;
}

/* May `output` of a kernel be written over the input `arg`? When every value made of it is pointwise in its shape, and it reaches
   this output alone or the kernel is one pointwise loop: then an element is read before it is overwritten, and never again. */
static bool may_overwrite(const FuncPlan *f, const Func *kernel, int64_t arg, uint32_t output) {
    const Graph *graph = f->p->graph;
    bool *reached = TG_ALLOC(f->p->arena, bool, kernel->nodes.count);
    bool pointwise = true;
    NodeId self = 0;
    for (NodeId id = 1; id < kernel->nodes.count; id++) {
        const Node *node = tg_node(kernel, id);
        FuseKind kind = tg_op((Op)node->op)->fuse;
        pointwise &= kind == FUSE_point || kind == FUSE_leaf || node->op == OP_broadcast;
        if (node->op == OP_arg && node->attr->list[0].at[0] == arg) {
            self = id;
            reached[id] = true;
        }
        for (uint32_t i = 0; i < node->operand_count; i++)
            if (reached[tg_operand(kernel, node, i)]) {
                reached[id] = true;
                if (kind != FUSE_point || !tg_shape_equal(tg_node_type(graph, kernel, id), tg_node_type(graph, kernel, self)))
                    return false;
            }
    }
    uint32_t others = 0;
    for (uint32_t i = 0; i < kernel->results.count; i++)
        others += i != output && reached[kernel->results.at[i].node];
    NodeId value = kernel->results.at[output].node;
    return tg_shape_equal(tg_node_type(graph, kernel, value), tg_node_type(graph, kernel, self)) && (others == 0 || pointwise);
}

/* May the step that makes `id` write straight into the persistent buffer? */
static bool may_store(const FuncPlan *f, NodeId id, uint32_t buffer) {
    uint32_t made = f->made_at[id];
    if (f->last_read[buffer] < made)
        return true;
    const Node *node = tg_step_node(f, id);
    if (f->last_read[buffer] > made || node->op != OP_result)
        return false;
    const Node *call = tg_step_node(f, tg_operand(f->func, node, 0));
    const Func *kernel = f->p->graph->funcs.at[call->attr->ref];
    for (uint32_t i = 0; i < call->operand_count; i++) {
        const Node *read = tg_step_node(f, tg_step_base(f, tg_operand(f->func, call, i)));
        if (read->op == OP_load && read->attr->ref == buffer &&
            !may_overwrite(f, kernel, i, (uint32_t)node->attr->list[0].at[0]))
            return false;
    }
    return true;
}

/* The table that a step makes for `call` alone to add rows to: the call's result may be written over it. 0: there is none. */
static NodeId table_for(const FuncPlan *f, NodeId call) {
    const Func *kernel = f->p->graph->funcs.at[tg_step_node(f, call)->attr->ref];
    const Node *scatter = kernel->results.count == 1 ? tg_node(kernel, kernel->results.at[0].node) : NULL;
    if (scatter == NULL || scatter->op != OP_scatter_add || scatter->operand_count != 3)
        return 0;
    const Node *arg = tg_node(kernel, tg_operand(kernel, scatter, 2));
    if (arg->op != OP_arg)
        return 0;
    NodeId table = tg_step_base(f, tg_operand(f->func, tg_step_node(f, call), (uint32_t)arg->attr->list[0].at[0]));
    return tg_step_makes(f, table) && f->readers[table] == 1 ? table : 0;
}

/* Tables are made where the rows that are added to them are wanted, and sums where what is added to them is. */
static void place_tables(FuncPlan *f) {
    for (NodeId id = f->func->nodes.count - 1; id > 0; id--) {
        if ((tg_step_node(f, id)->op != OP_result && tg_step_node(f, id)->op != OP_dot) || f->target[id] == 0)
            continue;
        NodeId table = tg_step_node(f, id)->op == OP_dot ? tg_dot_sum(f, id) : table_for(f, tg_operand(f->func, tg_step_node(f, id), 0));
        uint32_t buffer = (uint32_t)(f->target[id] - 1);
        if (table && (buffer >= f->p->graph->buffers.count || may_store(f, table, buffer)))
            f->target[table] = f->target[id];
    }
}

uint32_t tg_step_temporary(FuncPlan *f, PlanBufferClass class, const Type *type) {
    uint32_t index = tg_plan_add_buffer(f->p, class, "", type, f->capacity);
    Draft *draft = &f->p->buffers.at[index];
    draft->first = draft->last = f->step;
    draft->frame = f->frame;
    return index;
}

PlanOperand tg_step_read(FuncPlan *f, NodeId id) {
    PlanOperand operand = f->where[tg_step_base(f, id)];
    Draft *draft = &f->p->buffers.at[operand.buffer];
    if (draft->frame)
        draft->last = f->step;
    return operand;
}

PlanOperand tg_step_written(FuncPlan *f, NodeId id) {
    PlanOperand operand = {.lane = 0};
    if (f->target[id]) {
        operand.buffer = (uint32_t)(f->target[id] - 1);
        if (f->p->buffers.at[operand.buffer].buffer.class == PLAN_SUM)
            operand.lane = TG_LANE_CURRENT;
    } else {
        operand.buffer = tg_step_temporary(f, PLAN_TEMP, tg_step_type(f, id));
    }
    f->where[id] = operand;
    return operand;
}

void tg_step_push(FuncPlan *f, PlanStep *step, PlanOperand operand) {
    tg_push(f->p->arena, &f->p->operands, operand);
    step->buffer_count++;
    const PlanBuffer *buffer = &f->p->buffers.at[operand.buffer].buffer;
    step->bytes += (double)buffer->bytes;
}

static void set_lines(const FuncPlan *f, PlanStep *step, LocsId locs) {
    Loc places[TG_PLAN_LINES];
    uint32_t count = tg_locs_list(f->p->graph, locs, places, TG_PLAN_LINES);
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < i && !known; k++)
            known = places[k].file == places[i].file && places[k].line == places[i].line;
        if (!known)
            step->lines[step->line_count++] =
                (PlanLine){f->p->graph->sources->files.at[places[i].file].path, places[i].line, places[i].column};
    }
}

PlanStep tg_step_begin(FuncPlan *f, PlanStepKind kind, const char *label, LocsId locs) {
    PlanStep step = {.kind = kind, .label = label, .buffer_first = f->p->operands.count};
    f->step++;
    set_lines(f, &step, locs);
    return step;
}

void tg_step_end(FuncPlan *f, const PlanStep *step) { tg_push(f->p->arena, &f->p->steps, *step); }

/* "exp+reduce_sum": the ops that do the work, each once, at most four. */
static const char *label_of(const FuncPlan *f, const Func *kernel) {
    Str text = tg_str(f->p->arena);
    bool seen[OP_COUNT] = {false};
    uint32_t named = 0;
    for (NodeId id = 1; id < kernel->nodes.count && named < 4; id++) {
        uint16_t op = tg_node(kernel, id)->op;
        FuseKind kind = tg_op((Op)op)->fuse;
        if (seen[op] || kind == FUSE_leaf || op == OP_broadcast || op == OP_reshape || op == OP_convert)
            continue;
        seen[op] = true;
        tg_str_printf(&text, "%s%s", named++ ? "+" : "", tg_op((Op)op)->name);
    }
    return named ? text.text : "copy";
}

/* By the reduction or the op of its own that decides how the loops run. */
static PlanWork work_of(const Graph *graph, const Func *kernel) {
    PlanWork work = WORK_POINT;
    for (NodeId id = 1; id < kernel->nodes.count; id++) {
        const Node *node = tg_node(kernel, id);
        FuseKind kind = tg_op((Op)node->op)->fuse;
        if (kind == FUSE_alone)
            return WORK_INDEX;
        if (kind != FUSE_reduce || work == WORK_COLUMNS)
            continue;
        Ints axes = node->attr->list[0];
        int last = tg_node_type(graph, kernel, tg_operand(kernel, node, 0))->rank - 1;
        work = axes.count && axes.at[axes.count - 1] == last ? WORK_ROWS : WORK_COLUMNS;
    }
    return work;
}

static bool has_batch(const Graph *graph, const Func *func) {
    for (NodeId id = 1; id < func->nodes.count; id++)
        if (tg_type_batch_axis(tg_node_type(graph, func, id)) >= 0)
            return true;
    return false;
}

/* Results from this size on are streamed: nothing larger stays in cache until it is read. */
enum { STREAMED_BYTES = 64 << 20, MOST_STREAMED = 32 };

/* The results of the step, a bit each from the first on, that are streamed. One that lies on an input is in cache anyway. */
static uint32_t streamed_results(const FuncPlan *f, const PlanStep *step, uint32_t inputs) {
    const PlanOperand *operands = f->p->operands.at + step->buffer_first;
    uint32_t streamed = 0;
    for (uint32_t i = inputs; i < step->buffer_count && i < inputs + MOST_STREAMED; i++) {
        bool over_input = false;
        for (uint32_t k = 0; k < inputs; k++)
            over_input |= operands[k].buffer == operands[i].buffer;
        if (!over_input && f->p->buffers.at[operands[i].buffer].buffer.bytes >= STREAMED_BYTES)
            streamed |= 1u << (i - inputs);
    }
    return streamed;
}

/* Loops of the kernel for this capacity, made once for each choice of streamed results, of a table in its place, and of parts. */
static Status loops_of(FuncPlan *f, uint32_t kernel, uint32_t streamed, bool in_place, int64_t parts, uint32_t *index) {
    const Func *body = f->p->graph->funcs.at[kernel];
    int64_t key[] = {kernel, has_batch(f->p->graph, body) ? f->capacity : 0, streamed, in_place, parts};
    uint64_t *known = tg_map_put(&f->p->kernels, key, sizeof key, NULL);
    if (*known == 0) {
        const char *name = tg_arena_printf(f->p->arena, "k%u", f->p->out->kernels.count);
        LoopKernel *loops;
        TG_TRY(tg_lower_kernel(f->p->arena, f->p->diags, f->p->graph, body, f->capacity, f->p->out->target, in_place,
                               parts, name, &loops));
        for (uint32_t i = 0; i < body->results.count && i < MOST_STREAMED; i++)
            loops->buffers.at[body->args.count + i].streamed = streamed >> i & 1;
        tg_push(f->p->arena, &f->p->out->kernels, loops);
        *known = f->p->out->kernels.count;
    }
    *index = (uint32_t)*known - 1;
    return TG_OK;
}

/* Bytes of an input that the kernel leaves alone: it reads rows of a table, or a part that is cut out. */
static double unread_bytes(const FuncPlan *f, const Func *kernel, uint32_t input, double bytes) {
    double read = 0;
    for (NodeId id = 1; id < kernel->nodes.count; id++) {
        const Node *node = tg_node(kernel, id);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            const Node *arg = tg_node(kernel, tg_operand(kernel, node, i));
            if (arg->op != OP_arg || arg->attr->list[0].at[0] != input)
                continue;
            if (node->op != OP_slice && (node->op != OP_take || i > 0))
                return 0;
            const Type *type = tg_node_type(f->p->graph, kernel, id);
            read += (double)tg_type_count(type, f->capacity) * tg_dtype(type->dtype)->bytes;
        }
    }
    return bytes > read ? bytes - read : 0;
}

/* Of the rows that a kernel's scatter_add adds. */
static double added_bytes(const FuncPlan *f, const Func *kernel) {
    const Node *scatter = tg_node(kernel, kernel->results.at[0].node);
    const Type *rows = tg_node_type(f->p->graph, kernel, tg_operand(kernel, scatter, 1));
    return (double)tg_type_count(rows, f->capacity) * tg_dtype(rows->dtype)->bytes;
}

static Status plan_call(FuncPlan *f, NodeId id) {
    const Node *call = tg_step_node(f, id);
    const Func *kernel = f->p->graph->funcs.at[call->attr->ref];
    PlanStep step = tg_step_begin(f, STEP_KERNEL, label_of(f, kernel), call->locs);
    step.work = work_of(f->p->graph, kernel);
    for (uint32_t i = 0; i < call->operand_count; i++) {
        double before = step.bytes;
        tg_step_push(f, &step, tg_step_read(f, tg_operand(f->func, call, i)));
        step.bytes -= unread_bytes(f, kernel, i, step.bytes - before);
    }
    NodeId table = table_for(f, id);
    /* Results follow their call; one that nothing reads is written all the same. */
    uint32_t written = 0;
    bool in_place = false;
    for (NodeId r = id + 1; r < f->func->nodes.count && written < kernel->results.count; r++) {
        const Node *result = tg_step_node(f, r);
        if (result->op == OP_result && tg_operand(f->func, result, 0) == id) {
            in_place = table && f->target[r] == f->target[table];
            if (in_place)
                f->where[r] = f->where[table];
            tg_step_push(f, &step, in_place ? f->where[r] : tg_step_written(f, r));
            written++;
        }
    }
    if (in_place) /* of the table only rows are read and written */
        step.bytes += 2 * (added_bytes(f, kernel) - (double)f->p->buffers.at[f->where[table].buffer].buffer.bytes);
    TG_TRY(loops_of(f, call->attr->ref, streamed_results(f, &step, call->operand_count), in_place, tg_chain_parts(f, id), &step.index));
    step.tiles = f->p->out->kernels.at[step.index]->tiles;
    for (NodeId k = 1; k < kernel->nodes.count; k++)
        step.flops += tg_node_flops(f->p->graph, kernel, k, f->capacity);
    tg_step_end(f, &step);
    tg_chain_link(f, id);
    return TG_OK;
}

void tg_step_copy(FuncPlan *f, PlanOperand from, PlanOperand to, LocsId locs) {
    PlanStep step = tg_step_begin(f, STEP_COPY, "copy", locs);
    step.work = WORK_COPY;
    Draft *read = &f->p->buffers.at[from.buffer];
    if (read->frame)
        read->last = f->step;
    tg_step_push(f, &step, from);
    tg_step_push(f, &step, to);
    tg_step_end(f, &step);
}

typedef LoopKernel *AttentionKernel(Arena *arena, const char *name, const PlanAttention *a, double scale);

/* Equal loops are made once: they are the same but for the scale and these sizes. */
static uint32_t attention_kernel(FuncPlan *f, const PlanAttention *a, double scale, AttentionKernel *make, bool gradient) {
    struct { int64_t gradient, causal, queries, positions, dtype; double scale; } key = {gradient, a->causal, a->queries, a->positions,
                                                                                       a->dtype, scale};
    uint64_t *known = tg_map_put(&f->p->attention_kernels, &key, sizeof key, NULL);
    if (*known == 0) {
        const char *name = tg_arena_printf(f->p->arena, "k%u", f->p->out->kernels.count);
        tg_push(f->p->arena, &f->p->out->kernels, make(f->p->arena, name, a, scale));
        *known = f->p->out->kernels.count;
    }
    return (uint32_t)*known - 1;
}

PlanAttention tg_step_attention(const FuncPlan *f, const Node *node) {
    const Type *q = tg_step_type(f, tg_operand(f->func, node, 0)), *k = tg_step_type(f, tg_operand(f->func, node, 1)),
               *v = tg_step_type(f, tg_operand(f->func, node, 2));
    int rank = q->rank;
    PlanAttention a = {.dtype = q->dtype, .out_dtype = tg_type_of(&f->p->graph->types, node->type)->dtype, .keys = 1,
                       .queries = q->dims[rank - 2].size, .positions = k->dims[rank - 2].size,
                       .depth = q->dims[rank - 1].size, .value_depth = v->dims[rank - 1].size,
                       .causal = tg_attr_int(node->attr, 0, 0) != 0, .backward = node->op != OP_attention};
    for (int i = 0; i < rank - 2; i++)
        a.keys *= k->dims[i].size * (k->dims[i].batch ? f->capacity : 1);
    a.heads = q->dims[rank - 3].size / k->dims[rank - 3].size;
    return a;
}

/* Multiplications and additions of a block's products: scores and values, and backward the scores again and four gradients. */
static double attention_flops(const PlanAttention *a) {
    double pairs = 0;
    for (int64_t i = 0; i < tg_attention_blocks(a); i++)
        pairs += (double)tg_attention_rows(a, i) * (double)tg_attention_columns(a, i);
    double depth = (double)a->depth, value_depth = (double)a->value_depth;
    double products = depth + value_depth;
    if (a->backward)
        products = depth + (a->dq || a->dk ? value_depth : 0) + a->dv * value_depth + (a->dq + a->dk) * depth;
    return 2 * pairs * products * (double)a->keys * (double)a->heads;
}

/* The three gradients are one step, at the place of the first: they read the same. */
static Status plan_attention(FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    if (!tg_attention_is_by_blocks(f->p->graph, f->func, node)) {
        tg_error(f->p->diags, tg_locs_first(f->p->graph, node->locs), "%s of this kind must be expanded (--passes=attention)",
                 tg_op((Op)node->op)->name);
        return TG_MODEL;
    }
    if (f->attention[id] != id)
        return TG_OK;
    PlanAttention a = tg_step_attention(f, node);
    NodeId outputs[3] = {id};
    if (a.backward) {
        memcpy(outputs, f->gradients[id], sizeof outputs);
        a.dq = outputs[0] != 0, a.dk = outputs[1] != 0, a.dv = outputs[2] != 0;
        a.score_gradient = attention_kernel(f, &a, node->attr->number, tg_attention_score_gradient, true);
    }
    a.weights = attention_kernel(f, &a, node->attr->number, tg_attention_weights, false);
    PlanStep step = tg_step_begin(f, STEP_ATTENTION, a.backward ? "attention gradient" : "attention", node->locs);
    step.work = WORK_ATTENTION;
    step.index = f->p->attentions.count;
    tg_push(f->p->arena, &f->p->attentions, a);
    for (uint32_t i = 0; i < node->operand_count; i++)
        tg_step_push(f, &step, tg_step_read(f, tg_operand(f->func, node, i)));
    for (int i = 0; i < 3; i++)
        if (outputs[i])
            tg_step_push(f, &step, tg_step_written(f, outputs[i]));
    step.flops = attention_flops(&a);
    tg_step_end(f, &step);
    tg_chain_link(f, id);
    return TG_OK;
}

/* The argument's buffer: pre and micro read the same fields, so they share theirs. */
static uint32_t input_buffer(FuncPlan *f, PlanFuncKind kind, uint32_t index) {
    const FuncArg *arg = &f->func->args.at[index];
    for (uint32_t i = 0; (kind == PLAN_MICRO || kind == PLAN_PRE) && i < f->p->funcs.count; i++) {
        const PlanFunc *other = &f->p->funcs.at[i];
        if (other->kind == PLAN_PRE || other->kind == PLAN_MICRO)
            return f->p->inputs.at[other->input_first + index];
    }
    return tg_plan_add_buffer(f->p, PLAN_INPUT, arg->name, tg_type_of(&f->p->graph->types, arg->type), f->capacity);
}

/* A load of a sum that names no lane reads the micro-batch's own. */
static PlanOperand loaded_operand(const FuncPlan *f, const Node *load) {
    bool sum = f->p->graph->buffers.at[load->attr->ref].class == BUFFER_SUM;
    Ints lane = load->attr->list[0];
    return (PlanOperand){.buffer = load->attr->ref, .lane = lane.count ? (int32_t)lane.at[0] : sum ? TG_LANE_CURRENT : 0};
}

/* A copy that waits for the function's end. */
typedef struct Late {
    NodeId from;
    PlanOperand to;
    LocsId locs;
} Late;
typedef Vec(Late) Lates;

static PlanOperand result_operand(FuncPlan *f, const Result *result) {
    if (result->kind == RESULT_STORE) {
        bool sum = f->p->buffers.at[result->buffer].buffer.class == PLAN_SUM;
        return (PlanOperand){.buffer = result->buffer, .lane = sum ? TG_LANE_CURRENT : 0};
    }
    uint32_t buffer = tg_plan_add_buffer(f->p, PLAN_OUTPUT, result->name, tg_step_type(f, result->node), f->capacity);
    tg_push(f->p->arena, &f->p->results, (PlanResult){result->name, buffer});
    return (PlanOperand){.buffer = buffer};
}

/* Decides where results are made. What a step makes goes straight to the first result that may take it; other results are copied
   at the end. A result that is an old value or an argument is copied first, by way of a temporary if it is stored, before
   anything overwrites what it is. */
static void plan_results(FuncPlan *f, Lates *late) {
    for (uint32_t i = 0; i < f->func->results.count; i++) {
        const Result *result = &f->func->results.at[i];
        NodeId base = tg_step_base(f, result->node);
        PlanOperand to = result_operand(f, result);
        bool made = tg_step_makes(f, base);
        if (made && f->target[base] == 0 && (result->kind == RESULT_VALUE || may_store(f, base, result->buffer)))
            f->target[base] = 1 + (int64_t)to.buffer;
        else if (!made && result->kind == RESULT_VALUE)
            tg_step_copy(f, f->where[base], to, result->locs);
        else
            tg_push(f->p->arena, late, (Late){base, to, result->locs});
    }
    for (uint32_t i = 0; i < late->count; i++) {
        NodeId from = late->at[i].from;
        if (tg_step_makes(f, from))
            continue;
        PlanOperand kept = {.buffer = tg_step_temporary(f, PLAN_TEMP, tg_step_type(f, from))};
        tg_step_copy(f, f->where[from], kept, late->at[i].locs);
        f->where[from] = kept;
    }
}

/* The steps that were made last are of `node`. */
static void name_steps(Planner *p, NodeId node) {
    while (p->nodes.count < p->steps.count)
        tg_push(p->arena, &p->nodes, node);
}

Status tg_plan_func_steps(Planner *p, const Func *func, PlanFuncKind kind, int64_t capacity) {
    uint32_t count = func->nodes.count;
    FuncPlan f = {.p = p, .func = func, .capacity = capacity, .frame = p->funcs.count + 1};
    f.where = TG_ALLOC(p->arena, PlanOperand, count);
    f.attention = TG_ALLOC(p->arena, NodeId, count);
    f.gradients = tg_arena_alloc(p->arena, count * sizeof *f.gradients);
    f.written_as = TG_ALLOC(p->arena, NodeId, count);
    f.made_at = TG_ALLOC(p->arena, uint32_t, count);
    f.target = TG_ALLOC(p->arena, int64_t, count);
    f.readers = TG_ALLOC(p->arena, uint32_t, count);
    f.pieces = TG_ALLOC(p->arena, uint32_t, count);
    f.last_read = TG_ALLOC(p->arena, uint32_t, p->graph->buffers.count + 1);
    f.chain = TG_ALLOC(p->arena, uint32_t, count);
    uint32_t first_buffer = p->buffers.count, first_chain = p->chains.count;
    PlanFunc plan = {.kind = kind, .name = func->name, .capacity = capacity, .step_first = p->steps.count,
                     .input_first = p->inputs.count, .input_count = func->args.count, .result_first = p->results.count};
    for (uint32_t i = 0; i < func->args.count; i++)
        tg_push(p->arena, &p->inputs, input_buffer(&f, kind, i));
    number_steps(&f);
    for (NodeId id = 1; id < count; id++) {
        const Node *node = tg_node(func, id);
        if (node->op == OP_arg)
            f.where[id] = (PlanOperand){.buffer = p->inputs.at[plan.input_first + (uint32_t)node->attr->list[0].at[0]]};
        else if (node->op == OP_load)
            f.where[id] = loaded_operand(&f, node);
    }
    tg_chains_find(&f);
    Lates late = {0};
    plan_results(&f, &late);
    place_tables(&f);
    tg_dot_find_open(&f);
    for (NodeId id = 1; id < count; id++) {
        const Node *node = tg_node(func, id);
        if (node->op == OP_call)
            TG_TRY(plan_call(&f, id));
        else if (node->op == OP_dot)
            TG_TRY(tg_plan_dot(&f, id));
        else if (node->op == OP_attention || is_attention_gradient(node))
            TG_TRY(plan_attention(&f, id));
        else if (tg_op((Op)node->op)->fuse == FUSE_library) {
            tg_error(p->diags, tg_locs_first(p->graph, node->locs), "%s is not built yet", tg_op((Op)node->op)->name);
            return TG_MODEL;
        }
        name_steps(p, id);
    }
    for (uint32_t i = 0; i < late.count; i++)
        tg_step_copy(&f, f.where[late.at[i].from], late.at[i].to, late.at[i].locs);
    name_steps(p, 0);
    plan.step_count = p->steps.count - plan.step_first;
    tg_chains_keep_apart(p, &plan, first_chain, first_buffer);
    plan.result_count = p->results.count - plan.result_first;
    tg_push(p->arena, &p->funcs, plan);
    return TG_OK;
}
