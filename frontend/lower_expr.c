/* Evaluates expressions and statements. */
#include "frontend/value.h"

#include <string.h>

enum { MAX_EVAL_DEPTH = 3000 }; /* what the stack holds, sanitizers included */

bool lower_force(Lower *l, Value *value) {
    if (!value->runtime)
        return true;
    if (value->runtime->func != (l->func ? l->func->func : NULL)) {
        value->runtime = NULL;
        return true;
    }
    for (uint32_t i = 0; i < value->runtime->setting_count; i++)
        tg_push(l->arena, &l->compile_time, value->runtime->settings[i]);
    l->restart = true;
    l->shown = false;
    *value = lower_error_value();
    return false;
}

bool lower_condition(Lower *l, Env *env, const Ast *ast, bool *ok) {
    Value value = lower_eval(l, env, ast);
    *ok = lower_force(l, &value) && !lower_is_error(value);
    if (!*ok)
        return false;
    if (value.kind == VAL_BOOL)
        return value.truth;
    *ok = false;
    if (value.kind == VAL_TENSOR)
        lower_fail(l, ast->loc,
                   "this condition is known only at run time; 'if' decides when compiling: use "
                   "'select(condition, yes, no)'");
    else
        lower_fail(l, ast->loc, "a condition is a bool, not %s", lower_kind_text(l, value));
    return false;
}

/* ---- expressions ---- */

static Value eval_int(Lower *l, Env *env, const Ast *ast) {
    (void)l, (void)env;
    return lower_int(ast->integer);
}

static Value eval_float(Lower *l, Env *env, const Ast *ast) {
    (void)l, (void)env;
    return lower_float(ast->number);
}

static Value eval_string(Lower *l, Env *env, const Ast *ast) {
    (void)l, (void)env;
    return lower_string(ast->text);
}

static Value eval_bool(Lower *l, Env *env, const Ast *ast) {
    (void)l, (void)env;
    return lower_bool(ast->flag);
}

static Value eval_name(Lower *l, Env *env, const Ast *ast) { return lower_name(l, env, ast->name, ast->loc); }

static Value eval_unary(Lower *l, Env *env, const Ast *ast) {
    Value x = lower_eval(l, env, ast->kid[0]);
    if (lower_is_error(x))
        return x;
    if (ast->op == '-')
        return lower_unary(l, ast, OP_neg, x);
    if (x.kind != VAL_BOOL && !(x.kind == VAL_TENSOR && lower_type(l, x)->dtype == DT_BOOL))
        return lower_fail(l, ast->loc, "'not' of %s", lower_kind_text(l, x));
    return lower_unary(l, ast, OP_not, x);
}

static Value eval_binary(Lower *l, Env *env, const Ast *ast) {
    Value x = lower_eval(l, env, ast->kid[0]);
    if (lower_is_error(x))
        return x;
    /* What stands behind a compile-time `and` or `or` that is decided is not evaluated. */
    if (x.kind == VAL_BOOL && !x.runtime && (ast->op == AST_AND ? !x.truth : ast->op == AST_OR && x.truth))
        return x;
    return lower_operator(l, ast, ast->op, x, lower_eval(l, env, ast->kid[1]));
}

static Value eval_cond(Lower *l, Env *env, const Ast *ast) {
    bool ok, yes = lower_condition(l, env, ast->kid[0], &ok);
    return ok ? lower_eval(l, env, ast->kid[yes ? 1 : 2]) : lower_error_value();
}

static Value eval_lambda(Lower *l, Env *env, const Ast *ast) {
    Closure *closure = TG_ALLOC(l->arena, Closure, 1);
    *closure = (Closure){ast, env, NULL};
    return (Value){.kind = VAL_LAMBDA, .closure = closure};
}

static Value no_field(Lower *l, Loc loc, const RecordValue *record, const char *name) {
    const char *closest = tg_closest(name, record->names, record->count);
    if (closest)
        return lower_fail(l, loc, "the record has no field '%s'; did you mean '%s'?", name, closest);
    Str all = tg_str(l->arena);
    for (uint32_t i = 0; i < record->count; i++)
        tg_str_printf(&all, "%s'%s'", i ? ", " : "", record->names[i]);
    return lower_fail(l, loc, "the record has no field '%s'; it has %s", name, record->count ? all.text : "none");
}

static Value eval_dot(Lower *l, Env *env, const Ast *ast) {
    Value of = lower_eval(l, env, ast->kid[0]);
    Loc loc = ast->name_loc.line ? ast->name_loc : ast->loc;
    switch ((ValueKind)of.kind) {
    case VAL_ERROR:
        return of;
    case VAL_RECORD:
        for (uint32_t i = 0; i < of.record->count; i++)
            if (strcmp(of.record->names[i], ast->name) == 0)
                return of.record->values[i];
        return no_field(l, loc, of.record, ast->name);
    case VAL_INSTANCE:
        if (lower_find_here(of.instance->members, ast->name))
            return lower_name(l, of.instance->members, ast->name, loc);
        return lower_fail(l, loc, "'%s' has no member '%s'", of.instance->path, ast->name);
    case VAL_UNIT:
        if (lower_find_here(of.unit, ast->name))
            return lower_name(l, of.unit, ast->name, loc);
        return lower_fail(l, loc, "the imported file has no '%s'", ast->name);
    case VAL_DATA: {
        DataValue *data = tg_arena_copy(l->arena, of.data, sizeof *data);
        data->split = ast->name;
        return (Value){.kind = VAL_DATA, .data = data};
    }
    default:
        return lower_fail(l, loc, "%s has no fields", lower_kind_text(l, of));
    }
}

static Value eval_item(Lower *l, Env *env, const Ast *ast, const char *path, uint32_t index) {
    l->path = path ? lower_subpath(l, path, tg_arena_printf(l->arena, "%u", index)) : NULL;
    Value value = lower_eval(l, env, ast);
    l->path = path;
    return value;
}

static Value eval_list(Lower *l, Env *env, const Ast *ast) {
    Value *values = TG_ALLOC(l->arena, Value, ast->kid_count + 1);
    for (uint32_t i = 0; i < ast->kid_count; i++) {
        if (ast->kid[i]->kind == AST_ELLIPSIS)
            return lower_fail(l, ast->kid[i]->loc, "'...' stands in shapes and patterns only");
        values[i] = eval_item(l, env, ast->kid[i], l->path, i);
        if (lower_is_error(values[i]))
            return values[i];
    }
    return lower_list(l, values, ast->kid_count);
}

bool lower_iterate(Lower *l, Env *env, const Ast *iterated, ListValue *items) {
    if (iterated->kind != AST_RANGE) {
        Value value = lower_eval(l, env, iterated);
        if (value.kind == VAL_LIST)
            *items = *value.list;
        else if (!lower_is_error(value))
            lower_fail(l, iterated->loc, "'for' goes over a list or a range, not %s", lower_kind_text(l, value));
        return value.kind == VAL_LIST;
    }
    int64_t ends[2];
    for (int i = 0; i < 2; i++) {
        Value value = lower_eval(l, env, iterated->kid[i]);
        if (!lower_force(l, &value) || lower_is_error(value))
            return false;
        if (value.kind != VAL_INT || value.batch) {
            lower_fail(l, iterated->kid[i]->loc, "the end of a range is an integer known when compiling, not %s",
                       lower_kind_text(l, value));
            return false;
        }
        ends[i] = value.integer;
    }
    int64_t count = ends[1] > ends[0] ? ends[1] - ends[0] : 0;
    if (count > 100000) {
        lower_fail(l, iterated->loc, "%lld iterations are unrolled when compiling; 100000 are the most",
                   (long long)count);
        return false;
    }
    items->count = (uint32_t)count;
    items->at = TG_ALLOC(l->arena, Value, count + 1);
    for (int64_t i = 0; i < count; i++)
        items->at[i] = lower_int(ends[0] + i);
    return true;
}

bool lower_bind_names(Lower *l, Env *env, const Ast *names, Value value, Loc loc, const char *role) {
    if (lower_is_error(value))
        return false;
    if (names->kid_count == 1) {
        lower_bind(l, env, names->kid[0]->name, value, loc, role);
        return true;
    }
    if (value.kind != VAL_LIST || value.list->count != names->kid_count) {
        if (value.kind == VAL_LIST)
            lower_fail(l, loc, "%u names for %u values", names->kid_count, value.list->count);
        else
            lower_fail(l, loc, "%u names for %s", names->kid_count, lower_kind_text(l, value));
        return false;
    }
    for (uint32_t i = 0; i < names->kid_count; i++)
        lower_bind(l, env, names->kid[i]->name, value.list->at[i], loc, role);
    return true;
}

static Value eval_comprehension(Lower *l, Env *env, const Ast *ast) {
    ListValue items;
    const char *path = l->path;
    l->path = NULL;
    bool ok = lower_iterate(l, env, ast->kid[2], &items);
    l->path = path;
    if (!ok)
        return lower_error_value();
    Vec(Value) all = {0};
    for (uint32_t i = 0; i < items.count; i++) {
        Env *inner = lower_env(l, env);
        if (!lower_bind_names(l, inner, ast->kid[1], items.at[i], ast->kid[1]->loc, "value"))
            return lower_error_value();
        if (ast->kid_count > 3 && ast->kid[3]) {
            bool yes = lower_condition(l, inner, ast->kid[3], &ok);
            if (!ok)
                return lower_error_value();
            if (!yes)
                continue;
        }
        Value value = eval_item(l, inner, ast->kid[0], path, all.count);
        if (lower_is_error(value))
            return value;
        tg_push(l->arena, &all, value);
    }
    return lower_list(l, all.at, all.count);
}

static Value eval_record(Lower *l, Env *env, const Ast *ast) {
    RecordValue *record = TG_ALLOC(l->arena, RecordValue, 1);
    record->names = TG_ALLOC(l->arena, const char *, ast->kid_count + 1);
    record->values = TG_ALLOC(l->arena, Value, ast->kid_count + 1);
    const char *path = l->path;
    for (uint32_t i = 0; i < ast->kid_count; i++) {
        const Ast *field = ast->kid[i];
        for (uint32_t k = 0; k < record->count; k++)
            if (strcmp(record->names[k], field->name) == 0)
                return lower_fail(l, field->loc, "the field '%s' is given twice", field->name);
        l->path = path ? lower_subpath(l, path, field->name) : NULL;
        Value value = lower_eval(l, env, field->kid[0]);
        l->path = path;
        if (lower_is_error(value))
            return value;
        record->names[record->count] = field->name;
        record->values[record->count++] = value;
    }
    return (Value){.kind = VAL_RECORD, .record = record};
}

static Value eval_range(Lower *l, Env *env, const Ast *ast) {
    ListValue items;
    if (!lower_iterate(l, env, ast, &items))
        return lower_error_value();
    return lower_list(l, items.at, items.count);
}

typedef Value EvalRule(Lower *l, Env *env, const Ast *ast);

static EvalRule *const rules[AST_KIND_COUNT] = {
    [AST_NAME] = eval_name,
    [AST_INT] = eval_int,
    [AST_FLOAT] = eval_float,
    [AST_PERCENT] = eval_float,
    [AST_STRING] = eval_string,
    [AST_BOOL] = eval_bool,
    [AST_UNARY] = eval_unary,
    [AST_BINARY] = eval_binary,
    [AST_COND] = eval_cond,
    [AST_LAMBDA] = eval_lambda,
    [AST_CALL] = lower_call,
    [AST_INDEX] = lower_index,
    [AST_DOT] = eval_dot,
    [AST_TUPLE] = eval_list,
    [AST_LIST] = eval_list,
    [AST_RECORD] = eval_record,
    [AST_COMPREHENSION] = eval_comprehension,
    [AST_MARK] = lower_mark,
    [AST_RANGE] = eval_range,
};

Value lower_eval(Lower *l, Env *env, const Ast *ast) {
    if (l->restart)
        return lower_error_value();
    if (ast->kind == AST_ERROR || !rules[ast->kind]) {
        l->shown = false;
        return ast->kind == AST_ERROR ? lower_error_value() : lower_fail(l, ast->loc, "this is no expression");
    }
    if (l->eval_depth >= MAX_EVAL_DEPTH)
        return lower_fail(l, ast->loc, "expressions and calls are nested too deep here");
    Loc before = l->user_loc;
    if (!lower_in_std(l, ast->loc))
        l->user_loc = ast->loc;
    l->eval_depth++;
    Value value = rules[ast->kind](l, env, ast);
    l->eval_depth--;
    l->user_loc = before;
    return value;
}

/* ---- statements ---- */

static bool run_bind(Lower *l, Env *env, const Ast *ast) {
    Value value = lower_eval(l, env, ast->kid[1]);
    if (lower_is_error(value))
        return false;
    if (ast->kid_count > 3 && ast->kid[3]) {
        Signature s = {.env = env,
                       .what = tg_arena_printf(l->arena, "'%s'", ast->kid[0]->kid[0]->name),
                       .loc = ast->kid[1]->loc,
                       .result = true};
        for (int compound = 0; compound < 2; compound++) {
            s.compound = compound;
            if (!lower_match(l, &s, ast->kid[3], &value))
                return false;
        }
    }
    return lower_bind_names(l, env, ast->kid[0], value, ast->loc, "value");
}

static bool run_for(Lower *l, Env *env, const Ast *ast, Value *result, bool *returned) {
    ListValue items;
    if (!lower_iterate(l, env, ast->kid[1], &items))
        return false;
    for (uint32_t i = 0; i < items.count && !*returned; i++)
        if (!lower_bind_names(l, env, ast->kid[0], items.at[i], ast->kid[0]->loc, "value") ||
            !lower_block(l, env, ast->kid[2], result, returned))
            return false;
    return true;
}

static bool run_if(Lower *l, Env *env, const Ast *ast, Value *result, bool *returned) {
    bool ok, yes = lower_condition(l, env, ast->kid[0], &ok);
    if (!ok)
        return false;
    const Ast *branch = yes ? ast->kid[1] : ast->kid_count > 2 ? ast->kid[2] : NULL;
    if (!branch)
        return true;
    if (branch->kind == AST_IF)
        return run_if(l, env, branch, result, returned);
    return lower_block(l, env, branch, result, returned);
}

static bool run_statement(Lower *l, Env *env, const Ast *ast, Value *result, bool *returned) {
    switch ((AstKind)ast->kind) {
    case AST_BIND:
        return run_bind(l, env, ast);
    case AST_ASSIGN:
        return lower_assign(l, env, ast);
    case AST_RETURN:
        *result = lower_eval(l, env, ast->kid[0]);
        *returned = true;
        return !lower_is_error(*result);
    case AST_FOR:
        return run_for(l, env, ast, result, returned);
    case AST_IF:
        return run_if(l, env, ast, result, returned);
    default:
        return false;
    }
}

bool lower_block(Lower *l, Env *env, const Ast *block, Value *result, bool *returned) {
    if (!*returned)
        *result = lower_none();
    for (uint32_t i = 0; i < block->kid_count && !*returned; i++) {
        const Ast *statement = block->kid[i];
        Loc before = l->user_loc;
        if (!lower_in_std(l, statement->loc))
            l->user_loc = statement->loc;
        bool ok = run_statement(l, env, statement, result, returned);
        l->user_loc = before;
        if (!ok)
            return false;
        lower_see_statement(l, env, statement, *result);
    }
    return true;
}
