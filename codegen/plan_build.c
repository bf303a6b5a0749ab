#include "codegen/plan_build.h"

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

uint32_t tg_plan_add_buffer(Planner *p, PlanBufferClass class, const char *name, const Type *type, int64_t capacity) {
    PlanBuffer buffer = {.name = name ? name : "", .class = class, .dtype = type->dtype, .rank = type->rank,
                         .batch_axis = -1, .lanes = 1};
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++) {
        buffer.dims[i] = type->dims[i].size * (type->dims[i].batch ? capacity : 1);
        count *= buffer.dims[i];
        if (type->dims[i].batch) {
            buffer.batch_axis = i;
            buffer.row_size = type->dims[i].size;
        }
    }
    buffer.bytes = count * tg_dtype(type->dtype)->bytes;
    tg_push(p->arena, &p->buffers, (Draft){.buffer = buffer});
    return p->buffers.count - 1;
}

/* Buffer i of the plan is buffer i of the graph. */
static void add_persistent(Planner *p) {
    static const PlanBufferClass class_of[] = {
        [BUFFER_PARAM] = PLAN_PARAM, [BUFFER_STATE] = PLAN_STATE, [BUFFER_OPTIMIZER] = PLAN_OPTIMIZER, [BUFFER_COPY] = PLAN_COPY, [BUFFER_SUM] = PLAN_SUM};
    for (uint32_t i = 0; i < p->graph->buffers.count; i++) {
        const Buffer *from = &p->graph->buffers.at[i];
        uint32_t index = tg_plan_add_buffer(p, class_of[from->class], from->name, tg_type_of(&p->graph->types, from->type), 1);
        PlanBuffer *buffer = &p->buffers.at[index].buffer;
        buffer->frozen = from->frozen;
        if (from->class == BUFFER_SUM) {
            buffer->lanes = from->lanes;
            buffer->lane_bytes = round_up(buffer->bytes);
        }
    }
}

static bool plan_kind(FuncKind kind, PlanFuncKind *out) {
    switch (kind) {
    case FUNC_INIT: *out = PLAN_INIT; return true;
    case FUNC_SCALARS: *out = PLAN_SCALARS; return true;
    case FUNC_PRE: *out = PLAN_PRE; return true;
    case FUNC_MICRO: *out = PLAN_MICRO; return true;
    case FUNC_TAIL: *out = PLAN_TAIL; return true;
    case FUNC_FIELDS: *out = PLAN_FIELDS; return true;
    case FUNC_EVAL_MICRO: *out = PLAN_EVAL_MICRO; return true;
    case FUNC_EVAL_FIELDS: *out = PLAN_EVAL_FIELDS; return true;
    case FUNC_MONITOR: *out = PLAN_MONITOR; return true;
    case FUNC_COPIES: *out = PLAN_COPIES; return true;
    case FUNC_EXPORT: *out = PLAN_EXPORT; return true;
    default: return false;
    }
}

static void hand_over(const Planner *p, TgPlan *plan) {
    PlanBuffer *buffers = TG_ALLOC(p->arena, PlanBuffer, p->buffers.count);
    for (uint32_t i = 0; i < p->buffers.count; i++)
        buffers[i] = p->buffers.at[i].buffer;
    plan->buffers = buffers, plan->buffer_count = p->buffers.count;
    plan->steps = p->steps.at, plan->step_count = p->steps.count;
    plan->step_buffers = p->operands.at, plan->step_buffer_count = p->operands.count;
    plan->dots = p->dots.at, plan->dot_count = p->dots.count;
    plan->attentions = p->attentions.at, plan->attention_count = p->attentions.count;
    plan->chains = p->chains.at, plan->chain_count = p->chains.count;
    plan->funcs = p->funcs.at, plan->func_count = p->funcs.count;
    plan->inputs = p->inputs.at, plan->input_count = p->inputs.count;
    plan->results = p->results.at, plan->result_count = p->results.count;
    plan->fields = p->fields.at, plan->field_count = p->fields.count;
    plan->splits = p->splits.at, plan->split_count = p->splits.count;
    plan->kernel_count = p->out->kernels.count;
}

Status tg_plan_build(Arena *arena, Diags *diags, const Graph *graph, const char *step_text, LoopTarget target,
                     Lowered *out) {
    TgPlan *plan = TG_ALLOC(arena, TgPlan, 1);
    *out = (Lowered){.plan = plan, .target = target};
    Planner p = {.arena = arena, .diags = diags, .graph = graph, .out = out, .kernels = tg_map(arena),
                 .attention_kernels = tg_map(arena), .row_args = TG_ALLOC(arena, bool *, graph->funcs.count + 1)};
    add_persistent(&p);
    for (uint32_t i = 0; i < graph->funcs.count; i++) {
        const Func *func = graph->funcs.at[i];
        PlanFuncKind kind;
        if (!plan_kind(func->kind, &kind))
            continue;
        if (kind == PLAN_EXPORT && graph->training.micro > 1)
            TG_TRY(tg_plan_func_steps(&p, func, kind, 1));
        TG_TRY(tg_plan_func_steps(&p, func, kind, graph->training.micro));
    }
    tg_plan_place(&p, plan);
    tg_plan_describe(&p, plan);
    hand_over(&p, plan);
    plan->model_text = step_text;
    out->nodes = p.nodes.at;
    return TG_OK;
}
