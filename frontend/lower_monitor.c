/* What validation decides: the settings `stop` and `keep_best` become the function `monitor` over run-time scalars. */
#include "frontend/value.h"

#include <string.h>

static Value validated_fields(Lower *l, Loc loc) {
    const Func *eval = tg_func_find(l->graph, FUNC_OBJECTIVE_EVAL, NULL);
    RecordValue *record = TG_ALLOC(l->arena, RecordValue, 1);
    record->names = TG_ALLOC(l->arena, const char *, eval->results.count);
    record->values = TG_ALLOC(l->arena, Value, eval->results.count);
    for (uint32_t i = 0; i < eval->results.count; i++) {
        if (eval->results.at[i].kind != RESULT_VALUE)
            continue;
        const char *name = eval->results.at[i].name;
        record->names[record->count] = name;
        record->values[record->count++] =
            lower_runtime_scalar(l, tg_arena_printf(l->arena, "val.%s", name), SCALAR_BUILTIN, 0, loc);
    }
    return (Value){.kind = VAL_RECORD, .record = record};
}

static bool is_call_of(const Ast *ast, const char *name) {
    return ast->kind == AST_CALL && ast->kid_count == 2 && ast->kid[0]->kind == AST_NAME &&
           strcmp(ast->kid[0]->name, name) == 0 && ast->kid[1]->kind != AST_NAMED;
}

/* A value whose least is the best: `max(e)` asks for the most of e, `min(e)` and `e` for the least. */
static Value least_is_best(Lower *l, Env *env, const Ast *ast) {
    bool most = is_call_of(ast, "max");
    const Ast *of = most || is_call_of(ast, "min") ? ast->kid[1] : ast;
    Value value = lower_eval(l, env, of);
    if (lower_is_error(value))
        return value;
    if (!lower_is_scalar(value) || lower_type(l, value)->dtype != DT_F64)
        return lower_fail(l, of->loc, "this is %s; the best is chosen by a number that validation gives, as 'val.loss'",
                          lower_kind_text(l, value));
    return most ? lower_unary(l, ast, OP_neg, value) : value;
}

Value builtin_since_best(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)arguments, (void)detail;
    if (!l->func || l->func->func->kind != FUNC_MONITOR)
        return lower_fail(l, call->loc, "'since_best' counts validations: it stands in the setting 'stop' only");
    Value value = least_is_best(l, env, call->kid[1]->kind == AST_NAMED ? call->kid[1]->kid[0] : call->kid[1]);
    if (lower_is_error(value))
        return value;
    uint32_t count = l->func->func->results.count;
    lower_at(l, call);
    tg_result_value(lower_builder(l), tg_intern(l->graph, tg_arena_printf(l->arena, "best.%u", count)),
                    value.tensor->node);
    return lower_runtime_scalar(l, tg_arena_printf(l->arena, "since_best.%u", count), SCALAR_BUILTIN, 0, call->loc);
}

static bool give_keep(Lower *l, Env *env, const Ast *setting) {
    Value value = least_is_best(l, env, setting->kid[0]);
    if (!lower_is_error(value))
        tg_result_value(lower_builder(l), tg_intern(l->graph, "keep"), value.tensor->node);
    return !lower_is_error(value);
}

static bool give_stop(Lower *l, Env *env, const Ast *setting) {
    Value value = lower_eval(l, env, setting->kid[0]);
    if (lower_is_error(value))
        return false;
    if (!lower_is_scalar(value) || lower_type(l, value)->dtype != DT_BOOL) {
        lower_fail(l, setting->kid[0]->loc,
                   "'stop' is a condition on what validation gives, as 'since_best(val.loss) >= 5', "
                   "not %s",
                   lower_kind_text(l, value));
        return false;
    }
    tg_result_value(lower_builder(l), tg_intern(l->graph, "stop"), value.tensor->node);
    return true;
}

bool lower_monitor(Lower *l, const Ast *stop, const Ast *keep) {
    const Ast *either = stop ? stop : keep;
    if (!either)
        return true;
    if (!l->graph->training.validate.name) {
        lower_fail(l, either->loc, "'%s' needs the setting 'validate': it is decided by what validation gives",
                   either->name);
        return false;
    }
    FuncState *state = lower_func_begin(l, FUNC_MONITOR, "monitor", false, false);
    Env *env = lower_env(l, l->file_env);
    lower_bind(l, env, "val", validated_fields(l, either->loc), either->loc, "value");
    bool ok = (!keep || give_keep(l, env, keep)) && (!stop || give_stop(l, env, stop));
    return lower_func_end(l, state) && ok;
}
