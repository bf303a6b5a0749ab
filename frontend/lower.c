/* The program as a whole: files become scopes, file-level values are made in order, then the functions of the graph. */
#include "frontend/value.h"

#include <string.h>

/* ---- functions of the graph ---- */

static FuncState *func_state(Lower *l, Func *func, bool training, bool regularise) {
    FuncState *state = TG_ALLOC(l->arena, FuncState, 1);
    state->func = func;
    state->builder = tg_builder(l->graph, func, l->options->fold);
    state->training = training;
    state->regularise = regularise;
    state->calls = tg_map(l->arena);
    return state;
}

/* Holds what is evaluated outside of any function: it is left out of the graph. */
static FuncState *scratch(Lower *l) {
    Func *func = tg_func_new(l->graph, FUNC_INIT, "file");
    l->graph->funcs.count--;
    return func_state(l, func, false, false);
}

FuncState *lower_func_begin(Lower *l, FuncKind kind, const char *name, bool training, bool regularise) {
    FuncState *state = func_state(l, tg_func_new(l->graph, kind, name), training, regularise);
    l->func = state;
    l->frame = NULL;
    l->depth = 0;
    return state;
}

bool lower_func_end(Lower *l, FuncState *state) {
    l->func = scratch(l);
    if (l->restart)
        return false;
    return tg_builder_status(&state->builder, l->diags) == TG_OK;
}

/* ---- files ---- */

static void bind_lazy(Lower *l, Env *env, const char *name, Loc loc, const Ast *item) {
    Binding *binding = lower_bind(l, env, name, lower_none(), loc, "binding");
    binding->state = LAZY;
    binding->item = item;
    binding->compile_time_setting = item->kind == AST_CONST;
}

static void bind_declaration(Lower *l, Env *env, const Ast *item) {
    static const uint8_t kinds[AST_KIND_COUNT] = {
        [AST_MODULE] = VAL_MODULE, [AST_OPTIMIZER] = VAL_OPTIMIZER, [AST_FN] = VAL_FN, [AST_DATA] = VAL_DATA};
    if (!kinds[item->kind] || !item->name)
        return;
    Closure *closure = TG_ALLOC(l->arena, Closure, 1);
    *closure = (Closure){item, env, NULL};
    Value value = {.kind = kinds[item->kind], .closure = closure};
    if (item->kind == AST_DATA) {
        value.data = TG_ALLOC(l->arena, DataValue, 1);
        *value.data = (DataValue){closure, NULL, ""};
    }
    lower_bind(l, env, item->name, value, item->loc, "declaration");
}

static Env *unit_env(Lower *l, const Unit *unit, Env *parent) {
    for (uint32_t i = 0; i < l->units.count; i++)
        if (l->units.at[i].unit == unit)
            return l->units.at[i].env;
    Env *env = lower_env(l, parent);
    tg_push(l->arena, &l->units, (UnitEnv){unit, env});
    uint32_t import = 0;
    for (uint32_t i = 0; i < unit->file->kid_count; i++) {
        const Ast *item = unit->file->kid[i];
        if (item->kind == AST_IMPORT && import < unit->import_count) {
            Env *other = unit_env(l, unit->imports[import++], parent);
            if (item->name)
                lower_bind(l, env, item->name, (Value){.kind = VAL_UNIT, .unit = other}, item->loc, "import");
            else
                tg_push(l->arena, &env->imports, other);
        } else if (item->kind == AST_CONST) {
            bind_lazy(l, env, item->name, item->loc, item);
        } else if (item->kind == AST_BIND) {
            for (uint32_t k = 0; k < item->kid[0]->kid_count; k++)
                bind_lazy(l, env, item->kid[0]->kid[k]->name, item->loc, item);
        } else {
            bind_declaration(l, env, item);
        }
    }
    return env;
}

/* File-level values in the order of the files, so that parameters have the order of the source. */
static bool make_values(Lower *l) {
    bool ok = true;
    for (uint32_t u = l->units.count; u > 0; u--) {
        Env *env = l->units.at[u - 1].env;
        for (uint32_t i = 0; i < env->names.count && env != l->std_env; i++) {
            Binding *binding = env->names.at[i];
            if (binding->state == LAZY && lower_is_error(lower_binding_value(l, env, binding, binding->loc)))
                ok = false;
        }
    }
    return ok;
}

static bool make_initials(Lower *l) {
    FuncState *state = lower_func_begin(l, FUNC_INIT, "init", false, false);
    bool ok = true;
    for (uint32_t i = 0; i < l->initials.count; i++)
        ok = lower_initial(l, &l->initials.at[i]) && ok;
    for (uint32_t i = 0; ok && i < l->graph->buffers.count; i++) {
        const uint64_t *average = tg_map_find(&l->averages, &i, sizeof i);
        if (average) /* begins where its parameter does */
            lower_store(l, (uint32_t)*average - 1, state->stored[i].node, state->stored[i].loc);
    }
    for (uint32_t i = 0; ok && i < state->stored_count; i++) {
        if (!state->stored[i].node)
            continue;
        lower_builder(l)->locs = tg_locs_one(l->graph, state->stored[i].loc);
        tg_result_store(lower_builder(l), i, state->stored[i].node);
    }
    return lower_func_end(l, state) && ok;
}

/* Functions are made in an order that suits the evaluator and kept in the order of docs/lowering.md. */
static void sort_functions(Graph *graph) {
    for (uint32_t i = 1; i < graph->funcs.count; i++)
        for (uint32_t k = i; k > 0 && graph->funcs.at[k]->kind < graph->funcs.at[k - 1]->kind; k--) {
            Func *func = graph->funcs.at[k];
            graph->funcs.at[k] = graph->funcs.at[k - 1];
            graph->funcs.at[k - 1] = func;
        }
}

static bool make_functions(Lower *l) {
    const Ast *file = l->unit->file, *train = NULL;
    for (uint32_t i = 0; i < file->kid_count; i++)
        if (file->kid[i]->kind == AST_TRAIN)
            train = file->kid[i];
    if (!train) {
        lower_fail(l, file->loc, "the file has no 'train { }': there is nothing to compile");
        return false;
    }
    bool ok = lower_train(l, train);
    for (uint32_t i = 0; i < file->kid_count && !l->restart; i++)
        if (file->kid[i]->kind == AST_FN && file->kid[i]->flag)
            ok = lower_export(l, file->kid[i], l->file_env) && ok;
    return ok && make_initials(l);
}

static bool lower_once(Lower *l) {
    l->restart = false;
    l->graph = tg_graph_new(l->arena, l->sources, LEVEL_MODEL);
    l->graph->path = l->unit->path;
    memset(&l->units, 0, sizeof l->units);
    memset(&l->initials, 0, sizeof l->initials);
    l->averages = tg_map(l->arena);
    l->frame = NULL;
    l->user_loc = (Loc){0};
    l->path = l->setting = NULL;
    l->initial = NULL;
    l->depth = l->eval_depth = 0;
    l->std_env = unit_env(l, l->std, NULL);
    l->file_env = unit_env(l, l->unit, l->std_env);
    l->func = scratch(l);
    return make_values(l) && make_functions(l);
}

Status tg_lower(Arena *arena, Diags *diags, const Sources *sources, const Unit *unit, const Unit *std,
                const LowerOptions *options, Graph **graph) {
    Lower *l = TG_ALLOC(arena, Lower, 1);
    *l = (Lower){.arena = arena,
                 .diags = diags,
                 .sources = sources,
                 .unit = unit,
                 .std = std,
                 .options = options,
                 .reported = tg_map(arena)};
    l->set_used = TG_ALLOC(arena, bool, options->set_count + 1);
    l->rule_used = TG_ALLOC(arena, bool, options->precision_rule_count + 1);
    bool ok;
    do
        ok = lower_once(l);
    while (l->restart);
    *graph = l->graph;
    if (!ok)
        return diags->errors ? TG_MODEL : TG_INTERNAL;
    sort_functions(l->graph);
    bool known = lower_settings_known(l);
    if (!lower_check_rules(l) || !known)
        return TG_USAGE;
    return diags->errors ? TG_MODEL : TG_OK;
}
