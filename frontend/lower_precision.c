/* What the user says about mixed precision: f32(x), precision(f32), --autocast. Values are marked; the pass autocast follows. */
#include "frontend/value.h"

#include <fnmatch.h>

/* A star stands for one step of a path: names with slashes in the place of dots. */
static char *as_file_path(Lower *l, const char *path) {
    char *copy = tg_arena_printf(l->arena, "%s", path);
    for (char *at = copy; *at; at++)
        if (*at == '.')
            *at = '/';
    return copy;
}

void lower_rule_precision(Lower *l, Instance *instance) {
    for (uint32_t i = 0; instance->path && i < l->options->precision_rule_count; i++) {
        const PrecisionRule *rule = &l->options->precision_rules[i];
        if (fnmatch(as_file_path(l, rule->pattern), as_file_path(l, instance->path), FNM_PATHNAME) != 0)
            continue;
        instance->precision = rule->in_f32 ? PRECISION_F32 : PRECISION_LOW;
        instance->rule = rule;
        l->rule_used[i] = true;
    }
}

void lower_mark_f32(Value value) {
    for (uint32_t i = 0; value.kind == VAL_LIST && i < value.list->count; i++)
        lower_mark_f32(value.list->at[i]);
    if (value.kind == VAL_INSTANCE && value.instance->rule == NULL)
        value.instance->precision = PRECISION_F32;
}

void lower_mark_value(Lower *l, const Ast *at, Value x) {
    if (l->func && x.tensor->func == l->func->func && !lower_in_std(l, at->loc))
        l->func->func->nodes.at[x.tensor->node].precision = PRECISION_F32;
}

Precision lower_enter_precision(Lower *l, const Instance *self) {
    if (!l->func)
        return PRECISION_BY_CLASS;
    Builder *b = lower_builder(l);
    Precision outer = b->precision;
    if (self && self->precision != PRECISION_BY_CLASS)
        b->precision = self->precision;
    return outer;
}

/* Of an instance in f32. */
static const char *said_of(Lower *l, const Instance *self) {
    const PrecisionRule *rule = self->rule;
    if (rule == NULL)
        return "precision(f32)";
    return tg_arena_printf(l->graph->arena, "'%s: f32' in %s:%u", rule->pattern, l->sources->files.at[rule->loc.file].path, rule->loc.line);
}

uint32_t lower_enter_instance(Lower *l, const Instance *self) {
    uint32_t outer = l->instance;
    l->instance = tg_instance(l->graph, self->path);
    InstanceInfo *infos = l->graph->instances.at;
    if (self->precision == PRECISION_BY_CLASS)
        infos[l->instance].said = infos[outer].said;
    else
        infos[l->instance].said = self->precision == PRECISION_F32 ? said_of(l, self) : NULL;
    return outer;
}

void lower_leave_precision(Lower *l, Precision outer) {
    if (l->func)
        lower_builder(l)->precision = outer;
}

bool lower_check_rules(Lower *l) {
    bool ok = true;
    for (uint32_t i = 0; i < l->options->precision_rule_count; i++) {
        if (l->rule_used[i])
            continue;
        const PrecisionRule *rule = &l->options->precision_rules[i];
        tg_error(l->diags, rule->loc, "no instance is named '%s'; a star stands for one part of a name", rule->pattern);
        ok = false;
    }
    return ok;
}
