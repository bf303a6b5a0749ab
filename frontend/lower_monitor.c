/* What validation decides: the settings `stop` and `keep_best` become the function `monitor` over run-time scalars. */
#include "frontend/value.h"

#include <string.h>

static RecordValue *new_record(Lower *l, uint32_t room) {
    RecordValue *record = TG_ALLOC(l->arena, RecordValue, 1);
    record->names = TG_ALLOC(l->arena, const char *, room);
    record->values = TG_ALLOC(l->arena, Value, room);
    return record;
}

/* The scalars `PREFIX.FIELD`. */
static Value fields_of_one(Lower *l, const char *prefix, Loc loc) {
    const Func *eval = tg_func_find(l->graph, FUNC_OBJECTIVE_EVAL, NULL);
    RecordValue *record = new_record(l, eval->results.count);
    for (uint32_t i = 0; i < eval->results.count; i++) {
        if (eval->results.at[i].kind != RESULT_VALUE)
            continue;
        const char *name = eval->results.at[i].name;
        record->names[record->count] = name;
        record->values[record->count++] =
            lower_runtime_scalar(l, tg_arena_printf(l->arena, "%s.%s", prefix, name), SCALAR_BUILTIN, 0, loc);
    }
    return (Value){.kind = VAL_RECORD, .record = record};
}

static const char *scalar_prefix(Lower *l, const DataSet *set) {
    return set->as ? tg_arena_printf(l->arena, "val.%s", set->as) : "val";
}

/* `val`: the fields of the only set, or a record of them per set. */
static Value validated_fields(Lower *l, Loc loc) {
    const Training *t = &l->graph->training;
    if (!t->validate.at[0].as)
        return fields_of_one(l, scalar_prefix(l, &t->validate.at[0]), loc);
    RecordValue *record = new_record(l, t->validate.count);
    for (uint32_t i = 0; i < t->validate.count; i++) {
        record->names[record->count] = t->validate.at[i].as;
        record->values[record->count++] = fields_of_one(l, scalar_prefix(l, &t->validate.at[i]), loc);
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

static Value needs_validation(Lower *l, Loc loc, const char *what) {
    return lower_fail(l, loc, "'%s' needs the setting 'validate': it is decided by what validation gives", what);
}

static const char plateau_scalar[] = "plateaus.";

Value builtin_plateaus(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    Value patience = arguments[0];
    if (!lower_force(l, &patience))
        return lower_error_value();
    if (patience.kind != VAL_INT || patience.batch || patience.integer < 0)
        return lower_fail(l, call->loc, "'patience' is a number of validations, from 0, not %s",
                          lower_kind_text(l, patience));
    if (!l->func || l->func->func->kind != FUNC_UPDATE)
        return lower_fail(l, call->loc, "'plateaus' follows validation from step to step: it stands in schedules only");
    if (!l->graph->training.validate.count)
        return needs_validation(l, call->loc, "plateau");
    const char *name = tg_arena_printf(l->arena, "%s%lld", plateau_scalar, (long long)patience.integer);
    return lower_runtime_scalar(l, name, SCALAR_BUILTIN, 0, call->loc);
}

/* The scalar of a plateau that is counted, from `i` on; `count` of them: none. */
static uint32_t next_plateau(const Graph *graph, uint32_t i) {
    while (i < graph->scalars.count && strncmp(graph->scalars.at[i].name, plateau_scalar, sizeof plateau_scalar - 1) != 0)
        i++;
    return i;
}

/* Each watches the validation loss, of several sets the first one's. */
static void give_plateaus(Lower *l) {
    const char *name = tg_arena_printf(l->arena, "%s.loss", scalar_prefix(l, &l->graph->training.validate.at[0]));
    for (uint32_t i = next_plateau(l->graph, 0); i < l->graph->scalars.count; i = next_plateau(l->graph, i + 1)) {
        const char *patience = l->graph->scalars.at[i].name + sizeof plateau_scalar - 1;
        Value loss = lower_runtime_scalar(l, name, SCALAR_BUILTIN, 0, l->graph->scalars.at[i].loc);
        tg_result_value(lower_builder(l), tg_intern(l->graph, tg_arena_printf(l->arena, "plateau.%s", patience)),
                        loss.tensor->node);
    }
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
    uint32_t plateau = next_plateau(l->graph, 0);
    if (!either && plateau == l->graph->scalars.count)
        return true;
    if (!l->graph->training.validate.count)
        return !lower_is_error(needs_validation(l, either->loc, either->name));
    Loc loc = either ? either->loc : l->graph->scalars.at[plateau].loc;
    FuncState *state = lower_func_begin(l, FUNC_MONITOR, "monitor", false, false);
    Env *env = lower_env(l, l->file_env);
    lower_bind(l, env, "val", validated_fields(l, loc), loc, "value");
    give_plateaus(l);
    bool ok = (!keep || give_keep(l, env, keep)) && (!stop || give_stop(l, env, stop));
    return lower_func_end(l, state) && ok;
}
