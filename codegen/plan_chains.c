/* Chains: runs of steps in which the records that a part of a step writes are made of the same records, whatever the chain has
   written before. A thread that keeps its records from step to step waits for nobody, and finds them in its cache. A chain is found by shape
   alone, so tasks, and with them bits, are the same for any number of threads. */
#include "codegen/divisor.h"
#include "codegen/plan_func.h"

#include "ir/attention.h"
#include "ir/axes.h"

/* More parts than this cost more calls than they are worth to any thread. */
enum { MOST_PARTS = 16 };
/* A larger result is found in no cache again, and to keep it to the chain's end would cost memory. */
enum { MOST_BYTES = 16 << 20 };

/* The chain that grows. */
typedef struct Growing {
    NodeId first, last; /* 0: there is none */
    uint32_t count;
    int64_t parts;
    bool *written; /* per node that is a step: by this chain */
} Growing;

/* Records one after the other, none empty. */
static bool is_by_records(const Type *type) {
    int batch = tg_type_batch_axis(type);
    for (int i = 0; i < batch; i++)
        if (type->dims[i].size != 1)
            return false;
    return batch >= 0 && tg_type_count(type, 1) > 0;
}

/* ---- kernels ---- */

/* Is a record of the node's value made of the same record of this operand, or is the operand the same for all? */
static bool keeps_records(const Axes *axes, const Type *result, const Type *operand, uint32_t index) {
    int from = tg_type_batch_axis(operand), to = tg_type_batch_axis(result);
    if (from < 0 || to < 0)
        return from < 0;
    const DimParts *read = tg_dim_parts(axes, 1 + index, (uint32_t)from), *made = tg_dim_parts(axes, 0, (uint32_t)to);
    if (read->count == 0 || made->count == 0 || read->parts[0].kind != PART_AXIS || made->parts[0].kind != PART_AXIS)
        return false;
    return read->parts[0].axis == made->parts[0].axis && axes->axes[made->parts[0].axis].size.batch;
}

/* Whether its loops have records outermost. */
static bool runs_by_records(const Graph *graph, const Func *kernel, const Node *node) {
    FuseKind kind = tg_op((Op)node->op)->fuse;
    if (node->op == OP_cumsum || node->op == OP_scatter_add)
        return false;
    if (kind != FUSE_reduce)
        return true;
    const Type *type = tg_node_type(graph, kernel, tg_operand(kernel, node, 0));
    return is_by_records(type) && node->attr->list[0].at[0] > tg_type_batch_axis(type);
}

/* Per argument of a kernel: whether a record of what it writes is made of the same record of it. NULL: the kernel is not cut by
   records. */
static bool *find_row_args(const Planner *p, const Func *kernel) {
    bool *mixed = TG_ALLOC(p->arena, bool, kernel->nodes.count), *args = TG_ALLOC(p->arena, bool, kernel->args.count + 1);
    for (uint32_t i = 0; i < kernel->results.count; i++)
        if (!is_by_records(tg_node_type(p->graph, kernel, kernel->results.at[i].node)))
            return NULL;
    for (NodeId id = kernel->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(kernel, id);
        if (!runs_by_records(p->graph, kernel, node))
            return NULL;
        if (node->op == OP_arg)
            args[node->attr->list[0].at[0]] = !mixed[id] && is_by_records(tg_node_type(p->graph, kernel, id));
        if (node->operand_count == 0)
            continue;
        const Axes *axes = tg_node_axes(p->arena, p->graph, kernel, id);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(kernel, node, i);
            mixed[operand] |= mixed[id] || !keeps_records(axes, tg_node_type(p->graph, kernel, id),
                                                          tg_node_type(p->graph, kernel, operand), i);
        }
    }
    return args;
}

static const bool *row_args(const Planner *p, uint32_t kernel) {
    static const bool none;
    if (p->row_args[kernel] == NULL) {
        bool *found = find_row_args(p, p->graph->funcs.at[kernel]);
        p->row_args[kernel] = found ? found : (bool *)(uintptr_t)&none;
    }
    return p->row_args[kernel] == &none ? NULL : p->row_args[kernel];
}

/* ---- steps ---- */

/* The node whose step writes `id`. */
static NodeId maker_of(const FuncPlan *f, NodeId id) {
    NodeId base = tg_step_base(f, id);
    return tg_step_node(f, base)->op == OP_result ? tg_operand(f->func, tg_step_node(f, base), 0) : f->attention[base];
}

static bool is_written(const FuncPlan *f, const Growing *g, NodeId id) { return g->written[maker_of(f, id)]; }

/* In the order of its memory: a dot may have written it in another. */
static const Type *stored_type(const FuncPlan *f, NodeId id) {
    NodeId base = tg_step_base(f, id);
    return tg_step_type(f, f->written_as[base] ? f->written_as[base] : base);
}

static int64_t record_elements(const FuncPlan *f, NodeId id) { return tg_type_count(stored_type(f, id), 1); }

/* Each of these functions: into how many parts the step may be cut as a link of the chain, a divisor of the chain's; 0: it is none. */
static int64_t parts_of_call(const FuncPlan *f, const Growing *g, NodeId id) {
    const Node *call = tg_step_node(f, id);
    const bool *args = row_args(f->p, (uint32_t)call->attr->ref);
    for (uint32_t i = 0; args && i < call->operand_count; i++)
        if (is_written(f, g, tg_operand(f->func, call, i)) && !args[i])
            return 0;
    return args ? g->parts : 0;
}

/* Rows of one product, cut where tiles end. */
static int64_t parts_of_rows(const FuncPlan *f, const Growing *g, NodeId id, const PlanDot *dot) {
    NodeId a = tg_operand(f->func, tg_step_node(f, id), 0);
    int64_t rows = dot->m / f->capacity;
    bool fits = dot->groups == 1 && dot->m % dot->tile_m == 0 && dot->out_m * rows == record_elements(f, id) &&
                !is_written(f, g, tg_operand(f->func, tg_step_node(f, id), 1)) &&
                (!is_written(f, g, a) || dot->a_m * rows == record_elements(f, a));
    return fits ? tg_common_divisor(g->parts, dot->m / dot->tile_m) : 0;
}

/* Whether a record's groups of this operand lie in its own record. */
static bool has_groups(const FuncPlan *f, NodeId id, const PlanDot *dot, int64_t groups, int64_t group, int64_t inner) {
    return tg_dot_group(dot, groups, group, inner) == record_elements(f, id);
}

static int64_t parts_of_groups(const FuncPlan *f, const Growing *g, NodeId id, const PlanDot *dot) {
    NodeId a = tg_operand(f->func, tg_step_node(f, id), 0), b = tg_operand(f->func, tg_step_node(f, id), 1);
    int64_t groups = dot->groups / f->capacity;
    bool fits = dot->groups % f->capacity == 0 && groups % dot->inner == 0 &&
                has_groups(f, id, dot, groups, dot->out_group, dot->out_inner) &&
                (!is_written(f, g, a) || has_groups(f, a, dot, groups, dot->a_group, dot->a_inner)) &&
                (!is_written(f, g, b) || has_groups(f, b, dot, groups, dot->b_group, dot->b_inner));
    return fits ? g->parts : 0;
}

static int64_t parts_of_dot(const FuncPlan *f, const Growing *g, NodeId id) {
    const Node *node = tg_step_node(f, id);
    const PlanDot dot = tg_dot_of(f, id);
    bool empty = dot.groups == 0 || dot.m == 0 || dot.n == 0 || dot.k == 0;
    if (empty || dot.rows_k || dot.pieces > 1 || dot.adds || !is_by_records(stored_type(f, id)))
        return 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(f->func, node, i);
        if (is_written(f, g, operand) && (i > 1 || !is_by_records(stored_type(f, operand))))
            return 0;
    }
    return dot.rows_m ? parts_of_rows(f, g, id, &dot) : parts_of_groups(f, g, id, &dot);
}

static int64_t parts_of_attention(const FuncPlan *f, const Growing *g, NodeId id) {
    const Node *node = tg_step_node(f, id);
    if (!tg_attention_is_by_blocks(f->p->graph, f->func, node) || f->attention[id] != id)
        return 0;
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (!is_by_records(tg_step_type(f, tg_operand(f->func, node, i))))
            return 0;
    return tg_step_attention(f, node).keys % f->capacity == 0 ? g->parts : 0;
}

/* A sum over micro-batches lies in another place for each lane. */
static bool reads_sum(const FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        const Node *read = tg_step_node(f, tg_step_base(f, tg_operand(f->func, node, i)));
        if (read->op == OP_load && f->p->graph->buffers.at[read->attr->ref].class == BUFFER_SUM)
            return true;
    }
    return false;
}

static bool is_large(const FuncPlan *f, const Type *type) {
    return tg_type_count(type, f->capacity) > MOST_BYTES / tg_dtype(type->dtype)->bytes;
}

static bool writes_large(const FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    if (node->op != OP_call)
        return is_large(f, tg_step_type(f, id));
    const Func *kernel = f->p->graph->funcs.at[node->attr->ref];
    for (uint32_t i = 0; i < kernel->results.count; i++)
        if (is_large(f, tg_node_type(f->p->graph, kernel, kernel->results.at[i].node)))
            return true;
    return false;
}

static int64_t parts_of_step(const FuncPlan *f, const Growing *g, NodeId id) {
    uint16_t op = tg_step_node(f, id)->op;
    if (reads_sum(f, id) || writes_large(f, id))
        return 0;
    return op == OP_call ? parts_of_call(f, g, id) : op == OP_dot ? parts_of_dot(f, g, id) : parts_of_attention(f, g, id);
}

/* ---- chains ---- */

static int64_t most_parts(int64_t capacity) {
    int64_t parts = capacity < MOST_PARTS ? capacity : MOST_PARTS;
    while (parts > 1 && capacity % parts != 0)
        parts--;
    return parts;
}

static bool is_step(const FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    return node->op == OP_call || (tg_op((Op)node->op)->fuse == FUSE_library && f->attention[id] == id);
}

static void begin(const FuncPlan *f, Growing *g) {
    for (NodeId id = g->first; id != 0 && id <= g->last; id++)
        g->written[id] = false;
    g->first = g->last = 0;
    g->count = 0;
    g->parts = most_parts(f->capacity);
}

static void end(FuncPlan *f, Growing *g) {
    if (g->count >= 2) {
        tg_push(f->p->arena, &f->p->chains, (PlanChain){.parts = g->parts});
        for (NodeId id = g->first; id <= g->last; id++)
            if (g->written[id])
                f->chain[id] = f->p->chains.count;
    }
    begin(f, g);
}

static bool join(const FuncPlan *f, Growing *g, NodeId id) {
    int64_t parts = parts_of_step(f, g, id);
    if (parts < 2)
        return false;
    g->parts = parts;
    g->first = g->first ? g->first : id;
    g->last = id;
    g->count++;
    g->written[id] = true;
    return true;
}

void tg_chains_find(FuncPlan *f) {
    if (f->p->out->target != LOOPS_CPU || most_parts(f->capacity) < 2)
        return;
    Growing g = {.written = TG_ALLOC(f->p->arena, bool, f->func->nodes.count)};
    begin(f, &g);
    for (NodeId id = 1; id < f->func->nodes.count; id++) {
        if (!is_step(f, id) || join(f, &g, id))
            continue;
        end(f, &g);
        (void)join(f, &g, id);
    }
    end(f, &g);
}

int64_t tg_chain_parts(const FuncPlan *f, NodeId id) { return f->chain[id] ? f->p->chains.at[f->chain[id] - 1].parts : 0; }

void tg_chain_link(FuncPlan *f, NodeId id) {
    if (f->chain[id] == 0)
        return;
    PlanChain *chain = &f->p->chains.at[f->chain[id] - 1];
    if (chain->step_count++ == 0)
        chain->step_first = f->p->steps.count - 1;
}

void tg_chains_keep_apart(Planner *p, const PlanFunc *func, uint32_t first_chain, uint32_t first_buffer) {
    /* Per step, from 1: its chain, from 1, and the last step of it. */
    uint32_t *chain_of = TG_ALLOC(p->arena, uint32_t, func->step_count + 1), *end = TG_ALLOC(p->arena, uint32_t, func->step_count + 1);
    for (uint32_t c = first_chain; c < p->chains.count; c++) {
        const PlanChain *chain = &p->chains.at[c];
        uint32_t first = chain->step_first - func->step_first + 1;
        for (uint32_t i = 0; i < chain->step_count; i++) {
            chain_of[first + i] = c + 1;
            end[first + i] = first + chain->step_count - 1;
        }
    }
    for (uint32_t i = first_buffer; i < p->buffers.count; i++) {
        Draft *draft = &p->buffers.at[i];
        if (draft->frame == 0)
            continue;
        draft->chain = chain_of[draft->first];
        draft->dies = draft->last;
        if (end[draft->last])
            draft->last = end[draft->last];
    }
}
