/* Calls: arguments are bound to parameters, shapes to the names in the signature, the body is evaluated in place. */
#include "frontend/value.h"

#include <string.h>

enum { MAX_CALL_DEPTH = 200, MAX_TRACE = 4 };

const char *lower_callee_name(Lower *l, const Closure *closure) {
    if (closure->ast->name)
        return closure->ast->name;
    if (closure->self)
        return closure->self->path;
    (void)l;
    return "this function";
}

const char *lower_subpath(Lower *l, const char *path, const char *name) {
    return *path ? tg_arena_printf(l->arena, "%s.%s", path, name) : name;
}

Value lower_shape_list(Lower *l, const Type *type) {
    Value dims[TG_MAX_RANK];
    for (uint32_t i = 0; i < type->rank; i++) {
        dims[i] = lower_int(type->dims[i].size);
        dims[i].batch = type->dims[i].batch;
    }
    return lower_list(l, dims, type->rank);
}

/* ---- binding arguments ---- */

static const Ast *named_argument(const Ast *call, const char *name) {
    for (uint32_t i = 1; i < call->kid_count; i++)
        if (call->kid[i]->kind == AST_NAMED && strcmp(call->kid[i]->name, name) == 0)
            return call->kid[i];
    return NULL;
}

static const Ast *positional_argument(const Ast *call, uint32_t index) {
    for (uint32_t i = 1; i < call->kid_count; i++)
        if (call->kid[i]->kind != AST_NAMED && index-- == 0)
            return call->kid[i];
    return NULL;
}

static bool check_names(Lower *l, const Ast *call, const Ast *params, const char *callee) {
    uint32_t positional = 0;
    for (uint32_t i = 1; i < call->kid_count; i++) {
        const Ast *argument = call->kid[i];
        if (argument->kind != AST_NAMED) {
            if (positional++ >= params->kid_count) {
                lower_fail(l, argument->loc, "'%s' takes %u argument%s, this is one more", callee, params->kid_count,
                           params->kid_count == 1 ? "" : "s");
                lower_note(l, params->loc, "the parameters are declared here");
                return false;
            }
            continue;
        }
        const char **names = TG_ALLOC(l->arena, const char *, params->kid_count + 1);
        bool found = false;
        for (uint32_t k = 0; k < params->kid_count; k++) {
            names[k] = params->kid[k]->name;
            found |= strcmp(names[k], argument->name) == 0;
        }
        for (uint32_t k = 1; k < i; k++)
            if (call->kid[k]->kind == AST_NAMED && strcmp(call->kid[k]->name, argument->name) == 0) {
                lower_fail(l, argument->loc, "the argument '%s' is given twice", argument->name);
                return false;
            }
        if (found)
            continue;
        const char *closest = tg_closest(argument->name, names, params->kid_count);
        lower_fail(l, argument->name_loc.line ? argument->name_loc : argument->loc,
                   closest ? "'%s' has no argument '%s'; did you mean '%s'?" : "'%s' has no argument '%s'", callee,
                   argument->name, closest);
        lower_note(l, params->loc, "the parameters are declared here");
        return false;
    }
    return true;
}

static Value one_argument(Lower *l, Env *env, const Ast *expr, const char *name, bool is_default, Env *target) {
    const char *setting = l->setting, *path = l->path;
    Value value;
    if (path)
        l->path = lower_subpath(l, path, name);
    if (setting) {
        value = lower_setting(l, is_default ? target : env, expr, lower_subpath(l, setting, name), is_default);
    } else {
        value = lower_eval(l, is_default ? target : env, expr);
    }
    l->setting = setting;
    l->path = path;
    return value;
}

static bool bind_values(Lower *l, Env *env, const Ast *call, const Ast *params, Env *target, const char *callee,
                        const Type *initial) {
    for (uint32_t i = 0; i < params->kid_count; i++) {
        const Ast *param = params->kid[i], *named = named_argument(call, param->name);
        const Ast *given = positional_argument(call, i);
        if (named && given) {
            lower_fail(l, named->loc, "the argument '%s' is given twice", param->name);
            return false;
        }
        const Ast *expr = named ? named->kid[0] : given;
        Value value;
        if (expr)
            value = one_argument(l, env, expr, param->name, false, target);
        else if (initial && strcmp(param->name, "shape") == 0)
            value = lower_shape_list(l, initial);
        else if (param->kid_count > 1 && param->kid[1])
            value = one_argument(l, env, param->kid[1], param->name, true, target);
        else {
            lower_fail(l, call->loc, "'%s' needs the argument '%s'", callee, param->name);
            lower_note(l, param->loc, "declared here");
            return false;
        }
        if (lower_is_error(value))
            return false;
        lower_bind(l, target, param->name, value, expr ? expr->loc : param->loc, expr ? "argument" : "default");
    }
    return true;
}

/* `per_parameter`: a `p -> e` is checked when it is evaluated for a parameter. */
static bool match_arguments(Lower *l, const Ast *params, Env *target, Env *module, const char *callee, Loc call,
                            bool per_parameter) {
    for (int compound = 0; compound < 2; compound++)
        for (uint32_t i = 0; i < params->kid_count; i++) {
            const Ast *param = params->kid[i];
            if (!param->kid_count || !param->kid[0])
                continue;
            Binding *binding = lower_find_here(target, param->name);
            Signature s = {.env = target,
                           .module = module,
                           .what = tg_arena_printf(l->arena, "argument '%s' of '%s'", param->name, callee),
                           .loc = strcmp(binding->role, "argument") == 0 ? binding->loc : call,
                           .compound = compound};
            Value value = binding->value;
            if (per_parameter && value.kind == VAL_LAMBDA)
                continue;
            if (!lower_match(l, &s, param->kid[0], &value))
                return false;
            binding->value = value;
        }
    return true;
}

static bool bind_all(Lower *l, Env *env, const Ast *call, const Ast *params, Env *target, Env *module,
                     const char *callee, bool per_parameter) {
    const Type *initial = l->initial;
    l->initial = NULL;
    bool ok = check_names(l, call, params, callee) && bind_values(l, env, call, params, target, callee, initial) &&
              match_arguments(l, params, target, module, callee, call->loc, per_parameter);
    l->initial = initial;
    return ok;
}

bool lower_arguments(Lower *l, Env *env, const Ast *call, const Ast *params, Env *target, const char *callee) {
    return bind_all(l, env, call, params, target, NULL, callee, false);
}

/* ---- functions ---- */

static uint64_t next_call(Lower *l, const char *path) {
    if (!l->func)
        return 0;
    return (*tg_map_put(&l->func->calls, path, strlen(path), NULL))++;
}

static bool match_result(Lower *l, const Closure *closure, Env *arguments, Value *value) {
    const Ast *type = closure->ast->kid[1];
    if (!type)
        return true;
    Signature s = {.env = arguments,
                   .module = closure->self ? closure->self->arguments : NULL,
                   .what = tg_arena_printf(l->arena, "the result of '%s'", lower_callee_name(l, closure)),
                   .loc = type->loc,
                   .result = true};
    for (int compound = 0; compound < 2; compound++) {
        s.compound = compound;
        if (!lower_match(l, &s, type, value))
            return false;
    }
    return true;
}

/* Outside of a function its names of dimensions mean nothing; B does. */
static Value forget_names(Lower *l, Value value) {
    if (value.kind != VAL_TENSOR || value.tensor->scalar || value.tensor->func != l->func->func)
        return value;
    return lower_tensor(l, value.tensor->node, NULL);
}

Value lower_call_bound(Lower *l, const Closure *closure, Env *arguments, const Ast *at) {
    if (l->depth >= MAX_CALL_DEPTH)
        return lower_fail(l, at->loc, "calls are nested more than %d deep; does '%s' call itself without end?",
                          MAX_CALL_DEPTH, lower_callee_name(l, closure));
    Frame *frame = l->frame, own = {0};
    uint32_t instance = l->instance;
    if (closure->self) {
        const char *path = closure->self->path;
        own.key = tg_hash(path, strlen(path), next_call(l, path));
        l->frame = &own;
        instance = lower_enter_instance(l, closure->self);
    }
    const Type *initial = l->initial;
    const char *setting = l->setting, *path = l->path;
    Precision precision = lower_enter_precision(l, closure->self);
    l->initial = NULL;
    l->setting = NULL;
    l->depth++;
    l->shown = false;
    lower_see_arguments(l, closure, arguments);
    Value result;
    bool returned = false;
    bool ok = lower_block(l, lower_env(l, arguments), closure->ast->kid[2], &result, &returned) &&
              match_result(l, closure, arguments, &result);
    l->depth--;
    l->frame = frame;
    l->instance = instance;
    l->initial = initial;
    l->setting = setting;
    l->path = path;
    lower_leave_precision(l, precision);
    if (ok)
        return forget_names(l, result);
    bool repeats = l->trace && l->last_trace == at;
    l->last_trace = at;
    if (at->kind == AST_CALL && !repeats && !lower_in_std(l, at->loc) && !lower_in_std(l, closure->ast->loc) &&
        l->trace++ < MAX_TRACE)
        lower_note(l, at->loc, "in this call of '%s'", lower_callee_name(l, closure));
    return lower_error_value();
}

static Value call_function(Lower *l, Env *env, const Ast *call, const Closure *closure) {
    Env *arguments = lower_env(l, closure->env);
    if (!bind_all(l, env, call, closure->ast->kid[0], arguments, closure->self ? closure->self->arguments : NULL,
                  lower_callee_name(l, closure), false))
        return lower_error_value();
    return lower_call_bound(l, closure, arguments, call);
}

static Value apply_function(Lower *l, const Closure *closure, const Value *values, uint32_t count, const Ast *at) {
    const Ast *params = closure->ast->kid[0];
    const char *name = lower_callee_name(l, closure);
    Env *arguments = lower_env(l, closure->env);
    if (count > params->kid_count)
        return lower_fail(l, at->loc, "'%s' takes %u arguments, not %u", name, params->kid_count, count);
    for (uint32_t i = 0; i < params->kid_count; i++) {
        const Ast *param = params->kid[i];
        Value value;
        if (i < count)
            value = values[i];
        else if (l->initial && strcmp(param->name, "shape") == 0)
            value = lower_shape_list(l, l->initial);
        else if (param->kid_count > 1 && param->kid[1])
            value = lower_eval(l, arguments, param->kid[1]);
        else
            return lower_fail(l, at->loc, "'%s' needs the argument '%s'", name, param->name);
        if (lower_is_error(value))
            return value;
        lower_bind(l, arguments, param->name, value, at->loc, "argument");
    }
    if (!match_arguments(l, params, arguments, closure->self ? closure->self->arguments : NULL, name, at->loc, false))
        return lower_error_value();
    return lower_call_bound(l, closure, arguments, at);
}

static Value apply_lambda(Lower *l, const Closure *lambda, Value value, const Ast *at) {
    if (l->depth >= MAX_CALL_DEPTH)
        return lower_fail(l, at->loc, "calls are nested more than %d deep", MAX_CALL_DEPTH);
    Env *env = lower_env(l, lambda->env);
    lower_bind(l, env, lambda->ast->name, value, at->loc, "argument");
    l->depth++;
    Value result = lower_eval(l, env, lambda->ast->kid[0]);
    l->depth--;
    return result;
}

static const Closure *call_of_instance(const Instance *instance) {
    Binding *binding = lower_find_here(instance->members, "()");
    return binding ? binding->value.closure : NULL;
}

Value lower_apply(Lower *l, Value callee, const Value *arguments, uint32_t count, const Ast *at) {
    switch ((ValueKind)callee.kind) {
    case VAL_FN:
        return apply_function(l, callee.closure, arguments, count, at);
    case VAL_LAMBDA:
        if (count != 1)
            return lower_fail(l, at->loc, "this function takes 1 argument, not %u", count);
        return apply_lambda(l, callee.closure, arguments[0], at);
    case VAL_BUILTIN:
        return lower_builtin_apply(l, l->std_env, at, callee.builtin, arguments, count);
    case VAL_INSTANCE: {
        const Closure *call = call_of_instance(callee.instance);
        if (call)
            return apply_function(l, call, arguments, count, at);
        break;
    }
    case VAL_ERROR:
        return callee;
    default:
        break;
    }
    return lower_fail(l, at->loc, "%s is no function", lower_kind_text(l, callee));
}

static Value call_optimizer(Lower *l, Env *env, const Ast *call, const Closure *declaration) {
    Instance *instance = TG_ALLOC(l->arena, Instance, 1);
    instance->module = declaration;
    instance->arguments = lower_env(l, declaration->env);
    instance->path = "optimizer";
    if (!bind_all(l, env, call, declaration->ast->kid[0], instance->arguments, NULL, declaration->ast->name, true))
        return lower_error_value();
    return (Value){.kind = VAL_OPTIMIZER_INSTANCE, .instance = instance};
}

static Value call_value(Lower *l, Env *env, const Ast *call, Value callee) {
    switch ((ValueKind)callee.kind) {
    case VAL_ERROR:
        return callee;
    case VAL_FN:
        return call_function(l, env, call, callee.closure);
    case VAL_LAMBDA: {
        if (call->kid_count != 2 || call->kid[1]->kind == AST_NAMED)
            return lower_fail(l, call->loc, "this function takes one argument without a name");
        Value argument = lower_eval(l, env, call->kid[1]);
        return lower_is_error(argument) ? argument : apply_lambda(l, callee.closure, argument, call);
    }
    case VAL_BUILTIN:
        return lower_builtin_call(l, env, call, callee.builtin);
    case VAL_MODULE:
        return lower_instantiate(l, env, call, callee.closure);
    case VAL_OPTIMIZER:
        return call_optimizer(l, env, call, callee.closure);
    case VAL_DATA:
        return lower_data_call(l, env, call, callee.data);
    case VAL_INSTANCE: {
        const Closure *closure = call_of_instance(callee.instance);
        if (!closure)
            return lower_fail(l, call->loc, "the module of '%s' has no unnamed 'fn': it cannot be called",
                              callee.instance->path);
        return call_function(l, env, call, closure);
    }
    case VAL_DTYPE: {
        Value argument = call->kid_count == 2 ? lower_eval(l, env, call->kid[1]) : lower_none();
        return lower_cast(l, call, argument, callee.dtype);
    }
    default:
        return lower_fail(l, call->loc, "%s cannot be called", lower_kind_text(l, callee));
    }
}

/* Only the arguments of functions and optimizers are settings of their own; those of builtins are plain values. */
Value lower_call(Lower *l, Env *env, const Ast *call) {
    const char *setting = l->setting, *path = l->path;
    l->setting = NULL;
    l->path = NULL;
    Value callee = lower_eval(l, env, call->kid[0]);
    l->path = path;
    l->setting = callee.kind == VAL_FN || callee.kind == VAL_OPTIMIZER || callee.kind == VAL_INSTANCE ? setting : NULL;
    Value result = call_value(l, env, call, callee);
    l->setting = setting;
    return result;
}
