/* What the plan says beside steps: data sets and the bounds of their fields, settings, scalars, training. */
#include "codegen/plan_build.h"

#include <string.h>

static PlanLine line_of(const Graph *graph, Loc loc) {
    if (loc.line == 0)
        return (PlanLine){.file = ""};
    return (PlanLine){.file = graph->sources->files.at[loc.file].path, .line = loc.line, .column = loc.column};
}

static const char *joined(Arena *arena, const DataField *field) {
    Str text = tg_str(arena);
    for (uint32_t i = 0; i < field->column_count; i++)
        tg_str_printf(&text, "%s%s", i ? "\n" : "", field->columns[i]);
    return text.text;
}

/* 1 + the field's place, 0: `name` is NULL. */
static uint32_t field_named(const DataSet *set, const char *name) {
    for (uint32_t i = 0; name && i < set->fields.count; i++)
        if (strcmp(set->fields.at[i].name, name) == 0)
            return i + 1;
    return 0;
}

static PlanDataSet describe_set(Planner *p, const DataSet *set) {
    PlanDataSet out = {.name = set->name ? set->name : "", .as = set->as ? set->as : "", .split = set->split ? set->split : "", .by_runs = set->by_runs,
                       .field_first = p->fields.count, .split_first = p->splits.count};
    for (uint32_t i = 0; set->name && i < set->fields.count; i++) {
        const DataField *field = &set->fields.at[i];
        const Type *type = tg_type_of(&p->graph->types, field->type);
        PlanField made = {.name = field->name,
                          .reader = field->reader,
                          .path = field->path ? field->path : "",
                          .columns = joined(p->arena, field),
                          .options = field->options ? field->options : "",
                          .dtype = type->dtype,
                          .rank = (uint8_t)(type->rank - 1),
                          .line = line_of(p->graph, field->loc)};
        for (int d = 1; d < type->rank; d++)
            made.dims[d - 1] = type->dims[d].size;
        tg_push(p->arena, &p->fields, made);
    }
    out.by = field_named(set, set->by);
    out.stratify = field_named(set, set->stratify);
    for (uint32_t i = 0; set->name && i < set->splits.count; i++)
        tg_push(p->arena, &p->splits, (PlanSplit){.name = set->splits.at[i].name, .share = set->splits.at[i].share});
    out.field_count = p->fields.count - out.field_first;
    out.split_count = p->splits.count - out.split_first;
    return out;
}

/* What `id` is, or the whole of which it is a part, through reshapes and conversions. `cut`: it is a part. */
static const Node *origin_of(const Func *func, NodeId id, bool *cut) {
    const Node *node = tg_node(func, id);
    while (node->op == OP_convert || node->op == OP_detach || node->op == OP_reshape || node->op == OP_bounded ||
           node->op == OP_broadcast || node->op == OP_slice || node->op == OP_again) {
        *cut |= node->op == OP_slice;
        node = tg_node(func, tg_operand(func, node, 0));
    }
    return node;
}

static int64_t index_of(const Node *node) { return node->attr->list[0].at[0]; }

/* The argument of a function that calls kernels, through kernels that only pass it on; -1: something else. */
static int64_t argument_of(const Graph *graph, const Func *func, NodeId id, bool *cut) {
    const Node *node = origin_of(func, id, cut);
    while (node->op == OP_result) {
        const Node *call = tg_node(func, tg_operand(func, node, 0));
        const Func *kernel = call->op == OP_call ? graph->funcs.at[call->attr->ref] : NULL;
        const Node *input = kernel ? origin_of(kernel, kernel->results.at[index_of(node)].node, cut) : NULL;
        if (!input || input->op != OP_arg)
            return -1;
        node = origin_of(func, tg_operand(func, call, (uint32_t)index_of(input)), cut);
    }
    return node->op == OP_arg ? index_of(node) : -1;
}

static PlanField *plan_field(Planner *p, const PlanDataSet *set, const char *name) {
    for (uint32_t i = set->field_first; i < set->field_first + set->field_count; i++)
        if (strcmp(p->fields.at[i].name, name) == 0)
            return &p->fields.at[i];
    return NULL;
}

/* `bounded` nodes inside the kernels that `func` calls say what values its arguments may have. */
static void find_bounds(Planner *p, const Func *func, const PlanDataSet *set) {
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *call = tg_node(func, id);
        if (call->op != OP_call)
            continue;
        const Func *kernel = p->graph->funcs.at[call->attr->ref];
        for (NodeId k = 1; k < kernel->nodes.count; k++) {
            const Node *bounded = tg_node(kernel, k);
            if (bounded->op != OP_bounded)
                continue;
            bool cut = false;
            const Node *input = origin_of(kernel, tg_operand(kernel, bounded, 0), &cut);
            if (input->op != OP_arg)
                continue;
            int64_t argument = argument_of(p->graph, func, tg_operand(func, call, (uint32_t)index_of(input)), &cut);
            PlanField *field = argument >= 0 ? plan_field(p, set, func->args.at[argument].name) : NULL;
            /* What holds for a part of a window holds for the text: its tokens take all places. */
            if (field == NULL || (cut && strcmp(field->reader, "text") != 0))
                continue;
            field->bounded = true;
            field->low = bounded->attr->list[0].at[0];
            field->high = bounded->attr->list[1].at[0];
            field->has_also = bounded->attr->list[2].count > 0;
            field->also = field->has_also ? bounded->attr->list[2].at[0] : 0;
        }
    }
}

static void describe_scalars(const Planner *p, TgPlan *plan) {
    static const PlanScalarClass class_of[] = {[SCALAR_BUILTIN] = PLAN_SCALAR_BUILTIN,
                                               [SCALAR_SETTING] = PLAN_SCALAR_SETTING,
                                               [SCALAR_COMPUTED] = PLAN_SCALAR_COMPUTED};
    plan->scalar_count = p->graph->scalars.count;
    plan->scalars = TG_ALLOC(p->arena, PlanScalar, plan->scalar_count);
    for (uint32_t i = 0; i < plan->scalar_count; i++) {
        const Scalar *from = &p->graph->scalars.at[i];
        plan->scalars[i] = (PlanScalar){.name = from->name, .class = class_of[from->class], .value = from->value};
    }
}

static void describe_settings(const Planner *p, TgPlan *plan) {
    plan->setting_count = p->graph->settings.count;
    plan->settings = TG_ALLOC(p->arena, PlanSetting, plan->setting_count);
    for (uint32_t i = 0; i < plan->setting_count; i++) {
        const Setting *from = &p->graph->settings.at[i];
        plan->settings[i] = (PlanSetting){from->name, from->value, from->origin, from->runtime};
    }
}

static const char *directory_of(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? tg_arena_str(arena, path, slash == path ? 1 : (size_t)(slash - path)) : ".";
}

void tg_plan_describe(Planner *p, TgPlan *plan) {
    const Training *training = &p->graph->training;
    plan->train = describe_set(p, &training->train);
    plan->validate_count = training->validate.count;
    plan->validate = TG_ALLOC(p->arena, PlanDataSet, plan->validate_count);
    for (uint32_t i = 0; i < plan->validate_count; i++)
        plan->validate[i] = describe_set(p, &training->validate.at[i]);
    for (uint32_t i = 0; i < p->graph->funcs.count; i++) {
        const Func *func = p->graph->funcs.at[i];
        if (func->kind == FUNC_MICRO || func->kind == FUNC_PRE)
            find_bounds(p, func, &plan->train);
        if (func->kind == FUNC_EVAL_MICRO && plan->validate_count == 0)
            find_bounds(p, func, &plan->train);
        for (uint32_t s = 0; func->kind == FUNC_EVAL_MICRO && s < plan->validate_count; s++)
            find_bounds(p, func, &plan->validate[s]);
    }
    describe_scalars(p, plan);
    describe_settings(p, plan);
    plan->batch = training->batch;
    plan->micro = training->micro;
    plan->lanes = training->lanes;
    plan->steps_wanted = training->steps;
    plan->epochs = training->epochs;
    plan->validate_every = training->validate_every;
    plan->shuffle = training->shuffle;
    plan->seed = training->seed;
    plan->loss = training->loss;
    plan->clip_setting = training->clip_scalar >= 0 ? p->graph->scalars.at[training->clip_scalar].name : "";
    plan->source_path = p->graph->path ? p->graph->path : "";
    plan->source_directory = directory_of(p->arena, plan->source_path);
    plan->tgc = plan->library_directory = plan->cpu = "";
}
