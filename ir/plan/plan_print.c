#include "ir/plan/plan.h"

#include <inttypes.h>
#include <string.h>

static const char *class_name(PlanBufferClass class) {
    static const char *const names[] = {"param",  "state", "optimizer", "copy", "sum", "input",
                                        "output", "const", "temp",      "scratch"};
    return names[class];
}

static const char *func_kind_name(PlanFuncKind kind) {
    static const char *const names[] = {"init",   "scalars",    "pre",         "micro", "tail",
                                        "fields", "eval.micro", "eval.fields", "monitor", "copies", "export"};
    return names[kind];
}

/* A text in quotes; what would break the line is escaped. */
static void print_text(Str *to, const char *text) {
    tg_str_add(to, "\"", 1);
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            tg_str_printf(to, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            tg_str_printf(to, "\\x%02x", c);
        else
            tg_str_add(to, text, 1);
    }
    tg_str_add(to, "\"", 1);
}

static void print_number(Str *to, const char *name, double value) {
    char text[TG_NUMBER_TEXT];
    tg_str_printf(to, " %s=%s", name, tg_number_text(value, text));
}

static void print_dims(Str *to, DType dtype, const int64_t *dims, uint32_t rank) {
    tg_str_printf(to, "%s[", tg_dtype(dtype)->name);
    for (uint32_t i = 0; i < rank; i++)
        tg_str_printf(to, "%s%" PRId64, i ? ", " : "", dims[i]);
    tg_str_printf(to, "]");
}

static void print_buffer(Str *to, const PlanBuffer *b, uint32_t index) {
    tg_str_printf(to, "buffer %u %s ", index, class_name(b->class));
    print_dims(to, b->dtype, b->dims, b->rank);
    tg_str_printf(to, " at %" PRId64 " bytes %" PRId64, b->offset, b->bytes);
    if (b->batch_axis >= 0)
        tg_str_printf(to, " batch %d x %" PRId64, b->batch_axis, b->row_size);
    if (b->class == PLAN_SUM)
        tg_str_printf(to, " lanes %" PRId64 " of %" PRId64, b->lanes, b->lane_bytes);
    if (b->class == PLAN_CONST)
        tg_str_printf(to, " data %" PRId64, b->data_offset);
    if (b->frozen)
        tg_str_printf(to, " frozen");
    if (b->name && b->name[0]) {
        tg_str_add(to, " ", 1);
        print_text(to, b->name);
    }
    tg_str_add(to, "\n", 1);
}

static void print_operand(Str *to, const TgPlan *plan, const PlanOperand *o) {
    tg_str_printf(to, "%u", o->buffer);
    if (o->lane == TG_LANE_CURRENT)
        tg_str_printf(to, ".current");
    else if (plan->buffers[o->buffer].class == PLAN_SUM)
        tg_str_printf(to, ".%d", o->lane);
    if (o->byte_offset)
        tg_str_printf(to, "+%" PRId64, o->byte_offset);
}

static void print_dot(Str *to, const PlanDot *d, uint32_t index) {
    tg_str_printf(to, "dot %u %s -> %s %" PRId64 "/%" PRId64 " x [%" PRId64 ", %" PRId64 ", %" PRId64 "]", index,
                  tg_dtype(d->dtype)->name, tg_dtype(d->out_dtype)->name, d->groups, d->inner, d->m, d->n, d->k);
    const int64_t strides[] = {d->a_group, d->a_inner, d->a_m, d->a_k, d->b_group, d->b_inner,
                               d->b_k, d->b_n, d->out_group, d->out_inner, d->out_m};
    static const char *const before[] = {" a ", ",", ",", ",", " b ", ",", ",", ",", " out ", ",", ","};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        tg_str_printf(to, "%s%" PRId64, before[i], strides[i]);
    tg_str_printf(to, "%s%s%s%s%s%s pieces %" PRId64 " tile %" PRId64 " x %" PRId64 " variant %u\n", d->bias ? " bias" : "",
                  d->rows_m ? " rows_m" : "", d->rows_k ? " rows_k" : "", d->adds ? " adds" : "", d->continues ? " continues" : "",
                  d->open ? " open" : "", d->pieces, d->tile_m, d->tile_n, d->variant);
}

static void print_attention(Str *to, const PlanAttention *a, uint32_t index) {
    tg_str_printf(to, "attention %u %s%s %s -> %s %" PRId64 " x %" PRId64 " x [%" PRId64 ", %" PRId64 "] depth %" PRId64 ", %" PRId64
                  "%s%s%s kernels %u", index, a->backward ? "backward" : "forward", a->causal ? " causal" : "", tg_dtype(a->dtype)->name, tg_dtype(a->out_dtype)->name, a->keys, a->heads,
                  a->queries, a->positions, a->depth, a->value_depth, a->dq ? " dq" : "", a->dk ? " dk" : "", a->dv ? " dv" : "",
                  a->weights);
    if (a->backward)
        tg_str_printf(to, ", %u", a->score_gradient);
    tg_str_add(to, "\n", 1);
}

static const char *const works[] = {
#define X(id, text) text,
    TG_PLAN_WORKS(X)
#undef X
};

const char *tg_plan_kind(const PlanFunc *func, const PlanStep *step) {
    return func->kind == PLAN_TAIL && step->work != WORK_DOT ? "optimizer" : works[step->work];
}

const char *tg_plan_step_kind(PlanStepKind kind) {
    static const char *const kinds[] = {
        [STEP_KERNEL] = "kernel", [STEP_DOT] = "dot", [STEP_ATTENTION] = "attention", [STEP_COPY] = "copy"};
    return kinds[kind];
}

static void print_step(Str *to, const TgPlan *plan, uint32_t index) {
    const PlanStep *s = &plan->steps[index];
    tg_str_printf(to, "  step %u %s", index, tg_plan_step_kind(s->kind));
    if (s->kind != STEP_COPY)
        tg_str_printf(to, " %u", s->index);
    if (s->kind == STEP_KERNEL)
        tg_str_printf(to, " (%s) tiles %" PRId64, works[s->work], s->tiles);
    tg_str_printf(to, " (");
    for (uint32_t i = 0; i < s->buffer_count; i++) {
        tg_str_printf(to, "%s", i ? ", " : "");
        print_operand(to, plan, &plan->step_buffers[s->buffer_first + i]);
    }
    tg_str_printf(to, ")");
    print_number(to, "bytes", s->bytes);
    print_number(to, "flops", s->flops);
    tg_str_add(to, " ", 1);
    print_text(to, s->label);
    for (uint32_t i = 0; i < s->line_count; i++)
        tg_str_printf(to, " %s:%u:%u", s->lines[i].file, s->lines[i].line, s->lines[i].column);
    tg_str_add(to, "\n", 1);
}

/* The chain that begins with this step. */
static void print_chain(Str *to, const TgPlan *plan, uint32_t step) {
    for (uint32_t i = 0; i < plan->chain_count; i++)
        if (plan->chains[i].step_first == step)
            tg_str_printf(to, "  chain %u of %u steps in %" PRId64 " parts\n", i, plan->chains[i].step_count, plan->chains[i].parts);
}

static void print_func(Str *to, const TgPlan *plan, const PlanFunc *f) {
    tg_str_printf(to, "func %s ", func_kind_name(f->kind));
    print_text(to, f->name);
    tg_str_printf(to, " capacity %" PRId64 " (", f->capacity);
    for (uint32_t i = 0; i < f->input_count; i++)
        tg_str_printf(to, "%s%u", i ? ", " : "", plan->inputs[f->input_first + i]);
    tg_str_printf(to, ")\n");
    for (uint32_t i = 0; i < f->step_count; i++) {
        print_chain(to, plan, f->step_first + i);
        print_step(to, plan, f->step_first + i);
    }
    for (uint32_t i = 0; i < f->result_count; i++) {
        const PlanResult *r = &plan->results[f->result_first + i];
        tg_str_printf(to, "  result ");
        print_text(to, r->name);
        tg_str_printf(to, " %u\n", r->buffer);
    }
}

static void print_scalars(Str *to, const TgPlan *plan) {
    static const char *const classes[] = {"builtin", "setting", "computed"};
    for (uint32_t i = 0; i < plan->scalar_count; i++) {
        const PlanScalar *s = &plan->scalars[i];
        tg_str_printf(to, "scalar %u %s ", i, classes[s->class]);
        print_text(to, s->name);
        if (s->class == PLAN_SCALAR_SETTING)
            print_number(to, "default", s->value);
        tg_str_add(to, "\n", 1);
    }
}

static void print_field(Str *to, const PlanField *f) {
    tg_str_printf(to, "  field ");
    print_text(to, f->name);
    tg_str_add(to, " ", 1);
    print_dims(to, f->dtype, f->dims, f->rank);
    tg_str_printf(to, " %s ", f->reader);
    print_text(to, f->path);
    if (f->columns && f->columns[0]) {
        tg_str_printf(to, " columns ");
        print_text(to, f->columns);
    }
    if (f->options && f->options[0]) {
        tg_str_printf(to, " options ");
        print_text(to, f->options);
    }
    if (f->bounded)
        tg_str_printf(to, " in [%" PRId64 ", %" PRId64 ")", f->low, f->high);
    if (f->has_also)
        tg_str_printf(to, " or %" PRId64, f->also);
    tg_str_add(to, "\n", 1);
}

static void print_key(Str *to, const TgPlan *plan, const PlanDataSet *set, const char *what, uint32_t field) {
    if (!field)
        return;
    tg_str_printf(to, " %s ", what);
    print_text(to, plan->fields[set->field_first + field - 1].name);
}

static void print_set(Str *to, const TgPlan *plan, const PlanDataSet *set, const char *use) {
    if (set->name == NULL || set->name[0] == '\0')
        return;
    tg_str_printf(to, "%s ", use);
    print_text(to, set->name);
    if (set->as && set->as[0]) {
        tg_str_printf(to, " as ");
        print_text(to, set->as);
    }
    if (set->split && set->split[0]) {
        tg_str_printf(to, " split ");
        print_text(to, set->split);
    }
    tg_str_printf(to, "%s", set->by_runs ? " by runs" : "");
    print_key(to, plan, set, "by", set->by);
    print_key(to, plan, set, "stratify", set->stratify);
    tg_str_add(to, "\n", 1);
    for (uint32_t i = 0; i < set->field_count; i++)
        print_field(to, &plan->fields[set->field_first + i]);
    for (uint32_t i = 0; i < set->split_count; i++) {
        tg_str_printf(to, "  split ");
        print_text(to, plan->splits[set->split_first + i].name);
        print_number(to, "share", plan->splits[set->split_first + i].share);
        tg_str_add(to, "\n", 1);
    }
}

static void print_named_text(Str *to, const char *name, const char *text) {
    tg_str_printf(to, "%s ", name);
    print_text(to, text);
    tg_str_add(to, "\n", 1);
}

/* Neither the model's text nor constants: the plan's text is read by people. */
static void print_head(Str *to, const TgPlan *p) {
    tg_str_printf(to, "plan version %d\n", TG_PLAN_VERSION);
    tg_str_printf(to, "memory %" PRId64 " persistent %" PRId64 " constants %" PRIu64 "\n", p->arena_bytes,
                  p->persistent_bytes, p->data_bytes);
    tg_str_printf(to,
                  "batch %" PRId64 " micro %" PRId64 " lanes %" PRId64 " steps %" PRId64 " epochs %" PRId64
                  " validate_every %" PRId64 "%s seed %" PRIu64 "\n",
                  p->batch, p->micro, p->lanes, p->steps_wanted, p->epochs, p->validate_every, p->shuffle ? " shuffle" : "", p->seed);
    print_named_text(to, "source", p->source_path);
    print_named_text(to, "loss", p->loss);
    print_named_text(to, "cpu", p->cpu);
    for (uint32_t i = 0; i < p->setting_count; i++) {
        const PlanSetting *s = &p->settings[i];
        tg_str_printf(to, "setting %s = %s%s from ", s->name, s->value, s->runtime ? " at run time" : "");
        print_text(to, s->origin);
        tg_str_add(to, "\n", 1);
    }
}

void tg_plan_print(Str *to, const TgPlan *plan) {
    print_head(to, plan);
    print_set(to, plan, &plan->train, "train");
    for (uint32_t i = 0; i < plan->validate_count; i++)
        print_set(to, plan, &plan->validate[i], "validate");
    print_scalars(to, plan);
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        print_buffer(to, &plan->buffers[i], i);
    for (uint32_t i = 0; i < plan->dot_count; i++)
        print_dot(to, &plan->dots[i], i);
    for (uint32_t i = 0; i < plan->attention_count; i++)
        print_attention(to, &plan->attentions[i], i);
    for (uint32_t i = 0; i < plan->func_count; i++)
        print_func(to, plan, &plan->funcs[i]);
}
