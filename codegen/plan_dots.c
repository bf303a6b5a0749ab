/* The steps of dots: library calls, over what they add to where they can. */
#include "codegen/plan_func.h"

#include "codegen/dnn.h"
#include "ir/dot.h"

NodeId tg_dot_sum(const FuncPlan *f, NodeId dot) {
    const Node *node = tg_step_node(f, dot);
    if (node->op != OP_dot || !tg_dot_adds(f->p->graph, f->func, node))
        return 0;
    NodeId sum = tg_step_base(f, tg_operand(f->func, node, 2));
    return tg_step_makes(f, sum) && f->readers[sum] == 1 ? sum : 0;
}

static PlanDot dot_of(const FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    const Node *transpose = f->written_as[id] ? tg_step_node(f, f->written_as[id]) : NULL;
    DotGeometry g;
    (void)tg_dot_geometry(f->p->graph, f->func, node, transpose, f->capacity, &g);
    int64_t split = node->attr->list[4].count ? node->attr->list[4].at[0] : 1;
    bool adds = tg_dot_adds(f->p->graph, f->func, node);
    return (PlanDot){
        .dtype = tg_step_type(f, tg_operand(f->func, node, 0))->dtype, .out_dtype = tg_step_type(f, id)->dtype,
        .groups = g.groups, .inner = g.inner, .m = g.m, .n = g.n, .k = g.k,
        .a_group = g.a.group, .a_inner = g.a.inner, .a_m = g.a_m, .a_k = g.a_k,
        .b_group = g.b.group, .b_inner = g.b.inner, .b_k = g.b_k, .b_n = g.b_n,
        .out_group = g.out.group, .out_inner = g.out.inner, .out_m = g.out_m,
        .bias = node->operand_count == 3 && !adds, .adds = adds, .rows_m = g.rows_m, .rows_k = g.rows_k,
        .pieces = g.rows_k && split > 1 ? split : 1,
    };
}

/* `id` adds to `sum` piece by piece, so that a sum over several dots has the bits that it has where each piece is a micro-batch. */
static bool goes_on(const FuncPlan *f, NodeId sum, const PlanDot *dot) {
    if (sum == 0 || tg_step_node(f, sum)->op != OP_dot || dot->pieces == 1)
        return false;
    PlanDot before = dot_of(f, sum);
    return before.pieces == dot->pieces && before.out_dtype == dot->out_dtype;
}

void tg_dot_find_open(FuncPlan *f) {
    for (NodeId id = 1; id < f->func->nodes.count; id++) {
        NodeId sum = tg_dot_sum(f, id);
        PlanDot dot = sum ? dot_of(f, id) : (PlanDot){0};
        if (sum && goes_on(f, sum, &dot))
            f->pieces[sum] = 1;
    }
}

/* Where a dot that adds writes: over what it adds to, or where that has been copied; nothing is there yet if pieces go on. */
static PlanOperand sum_operand(FuncPlan *f, NodeId id, bool continues) {
    NodeId sum = tg_dot_sum(f, id), read = tg_operand(f->func, tg_step_node(f, id), 2);
    if (sum && f->target[sum] == f->target[id]) {
        f->where[id] = tg_step_read(f, read);
        return f->where[id];
    }
    PlanOperand to = tg_step_written(f, id);
    if (!continues)
        tg_step_copy(f, f->where[tg_step_base(f, read)], to, tg_step_node(f, id)->locs);
    return to;
}

static PlanOperand pieces_operand(FuncPlan *f, NodeId id, const PlanDot *dot) {
    uint32_t scratch;
    if (dot->continues) {
        scratch = f->pieces[tg_dot_sum(f, id)] - 1;
        f->p->buffers.at[scratch].last = f->step;
    } else {
        Type type = {.dtype = dot->out_dtype == DT_F64 ? DT_F64 : DT_F32, .rank = 4,
                     .dims = {{dot->pieces, false}, {dot->groups, false}, {dot->m, false}, {dot->n, false}}};
        scratch = tg_step_temporary(f, PLAN_SCRATCH, &type);
    }
    f->pieces[id] = 1 + scratch;
    return (PlanOperand){.buffer = scratch};
}

static void choose_variant(const FuncPlan *f, PlanDot *dot) {
    DnnChoice choice = tg_dnn_variant(dot, dot->rows_m && f->capacity > 0 ? dot->m / f->capacity : 0);
    dot->variant = choice.variant, dot->tile_m = choice.tile_m, dot->tile_n = choice.tile_n;
}

PlanDot tg_dot_of(const FuncPlan *f, NodeId id) {
    PlanDot dot = dot_of(f, id);
    choose_variant(f, &dot);
    return dot;
}

Status tg_plan_dot(FuncPlan *f, NodeId id) {
    const Node *node = tg_step_node(f, id);
    PlanDot dot = dot_of(f, id);
    dot.open = f->pieces[id] != 0;
    dot.continues = dot.adds && goes_on(f, tg_dot_sum(f, id), &dot);
    PlanOperand out = dot.adds ? sum_operand(f, id, dot.continues) : (PlanOperand){0};
    dot.adds &= !dot.continues;
    choose_variant(f, &dot);
    PlanStep step = tg_step_begin(f, STEP_DOT, "dot", node->locs);
    step.work = WORK_DOT;
    step.index = f->p->dots.count;
    tg_push(f->p->arena, &f->p->dots, dot);
    for (uint32_t i = 0; i < 2u + dot.bias; i++)
        tg_step_push(f, &step, tg_step_read(f, tg_operand(f->func, node, i)));
    if (dot.adds || dot.continues) {
        (void)tg_step_read(f, id);
        tg_step_push(f, &step, out);
    } else {
        tg_step_push(f, &step, tg_step_written(f, id));
    }
    if (dot.pieces > 1)
        tg_step_push(f, &step, pieces_operand(f, id, &dot));
    step.flops = 2.0 * (double)dot.groups * (double)dot.m * (double)dot.n * (double)dot.k;
    tg_step_end(f, &step);
    tg_chain_link(f, id);
    return TG_OK;
}
