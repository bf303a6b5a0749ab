/* The table of builtins, how their arguments are bound, and those that are values or are asked while compiling. */
#include "frontend/value.h"

#include <math.h>
#include <string.h>

#define BUILTIN(name, parameters, rule, detail) BuiltinRule builtin_##rule;
#include "frontend/builtins.def"
#undef BUILTIN

static const Builtin builtins[] = {
#define BUILTIN(name, parameters, rule, detail) {#name, parameters, builtin_##rule, detail},
#include "frontend/builtins.def"
#undef BUILTIN
};

enum { BUILTIN_COUNT = sizeof builtins / sizeof *builtins, MAX_PARAMETERS = 8 };

int lower_builtin(const char *name) {
    for (int i = 0; i < BUILTIN_COUNT; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return i;
    return -1;
}

const char *lower_builtin_name(uint32_t builtin) { return builtins[builtin].name; }
uint32_t lower_builtin_count(void) { return BUILTIN_COUNT; }

Value lower_builtin_value(Lower *l, uint32_t builtin, Loc loc) {
    if (builtins[builtin].parameters)
        return (Value){.kind = VAL_BUILTIN, .builtin = builtin};
    const Ast at = {.kind = AST_NAME, .loc = loc, .name = builtins[builtin].name};
    return builtins[builtin].rule(l, NULL, &at, NULL, builtins[builtin].detail);
}

/* ---- arguments ---- */

typedef struct Parameters {
    const char *names[MAX_PARAMETERS];
    bool optional[MAX_PARAMETERS];
    uint32_t count;
} Parameters;

static Parameters parameters_of(Lower *l, const Builtin *builtin) {
    Parameters all = {0};
    for (const char *at = builtin->parameters; *at;) {
        size_t length = strcspn(at, " ");
        bool optional = at[length - 1] == '?';
        all.names[all.count] = tg_arena_str(l->arena, at, length - optional);
        all.optional[all.count++] = optional;
        at += length + strspn(at + length, " ");
    }
    return all;
}

static int parameter_named(Lower *l, const Builtin *builtin, const Parameters *all, const Ast *argument) {
    for (uint32_t i = 0; i < all->count; i++)
        if (strcmp(all->names[i], argument->name) == 0)
            return (int)i;
    const char *closest = tg_closest(argument->name, all->names, all->count);
    lower_fail(l, argument->loc,
               closest ? "'%s' has no argument '%s'; did you mean '%s'?" : "'%s' has no argument '%s'", builtin->name,
               argument->name, closest);
    return -1;
}

static bool fill_absent(Lower *l, const Builtin *builtin, const Parameters *all, Value *values, const bool *given,
                        Loc loc) {
    for (uint32_t i = 0; i < all->count; i++) {
        if (given[i])
            continue;
        values[i] = lower_none();
        if (!all->optional[i] && l->initial && strcmp(all->names[i], "shape") == 0) {
            values[i] = lower_shape_list(l, l->initial);
        } else if (!all->optional[i]) {
            lower_fail(l, loc, "'%s' needs the argument '%s'", builtin->name, all->names[i]);
            return false;
        }
    }
    return true;
}

Value lower_builtin_call(Lower *l, Env *env, const Ast *call, uint32_t index) {
    const Builtin *builtin = &builtins[index];
    Parameters all = parameters_of(l, builtin);
    Value values[MAX_PARAMETERS];
    bool given[MAX_PARAMETERS] = {0};
    uint32_t position = 0;
    bool unevaluated = builtin->rule == builtin_defined || builtin->rule == builtin_since_best;
    for (uint32_t i = 1; i < call->kid_count; i++) {
        const Ast *argument = call->kid[i];
        bool named = argument->kind == AST_NAMED;
        int to = named ? parameter_named(l, builtin, &all, argument) : (int)position++;
        if (to < 0)
            return lower_error_value();
        if (to >= (int)all.count)
            return lower_fail(l, argument->loc, "'%s' takes %u argument%s, this is one more", builtin->name, all.count,
                              all.count == 1 ? "" : "s");
        if (given[to])
            return lower_fail(l, argument->loc, "the argument '%s' is given twice", all.names[to]);
        given[to] = true;
        const Ast *expr = named ? argument->kid[0] : argument;
        const Type *initial = l->initial;
        l->initial = NULL;
        values[to] = unevaluated || expr->kind == AST_PATTERN ? lower_none() : lower_eval(l, env, expr);
        l->initial = initial;
        if (lower_is_error(values[to]))
            return values[to];
    }
    if (!fill_absent(l, builtin, &all, values, given, call->loc))
        return lower_error_value();
    return builtin->rule(l, env, call, values, builtin->detail);
}

Value lower_builtin_apply(Lower *l, Env *env, const Ast *at, uint32_t index, const Value *arguments, uint32_t count) {
    const Builtin *builtin = &builtins[index];
    Parameters all = parameters_of(l, builtin);
    Value values[MAX_PARAMETERS];
    bool given[MAX_PARAMETERS] = {0};
    if (count > all.count)
        return lower_fail(l, at->loc, "'%s' takes %u arguments, not %u", builtin->name, all.count, count);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = arguments[i];
        given[i] = true;
    }
    if (!fill_absent(l, builtin, &all, values, given, at->loc))
        return lower_error_value();
    return builtin->rule(l, env, at, values, builtin->detail);
}

/* ---- values ---- */

Value builtin_batch(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)l, (void)env, (void)call, (void)arguments, (void)detail;
    Value value = lower_int(1);
    value.batch = true;
    return value;
}

Value builtin_runtime(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)arguments, (void)detail;
    if (l->func && l->func->func->kind == FUNC_INIT)
        return lower_fail(l, call->loc, "a first value cannot depend on '%s', which is known only while a program trains",
                          call->name);
    return lower_runtime_scalar(l, call->name, SCALAR_BUILTIN, 0, call->loc);
}

Value builtin_training(Lower *l, Env *env, const Ast *call, Value *arguments, int regularise) {
    (void)env, (void)arguments;
    if (!l->func)
        return lower_fail(l, call->loc, "'%s' is known only inside of a function", call->name);
    return lower_bool(regularise ? l->func->regularise : l->func->training);
}

Value builtin_none(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)l, (void)env, (void)call, (void)arguments, (void)detail;
    return lower_none();
}

Value builtin_pi(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)l, (void)env, (void)call, (void)arguments, (void)detail;
    return lower_float(3.14159265358979323846);
}

Value builtin_infinity(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)l, (void)env, (void)call, (void)arguments, (void)detail;
    return lower_float(INFINITY);
}

Value builtin_nan(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)l, (void)env, (void)call, (void)arguments, (void)detail;
    return lower_float(NAN);
}

/* ---- asked while compiling ---- */

Value builtin_rank(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    if (lower_is_tensor(arguments[0]))
        return lower_int(lower_type(l, arguments[0])->rank);
    if (lower_is_number(arguments[0]) || lower_is_scalar(arguments[0]))
        return lower_int(0);
    return lower_fail(l, call->loc, "'rank' of %s", lower_kind_text(l, arguments[0]));
}

Value builtin_shape(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    if (lower_is_tensor(arguments[0]))
        return lower_shape_list(l, lower_type(l, arguments[0]));
    if (lower_is_number(arguments[0]) || lower_is_scalar(arguments[0]))
        return lower_list(l, NULL, 0);
    return lower_fail(l, call->loc, "'shape' of %s", lower_kind_text(l, arguments[0]));
}

Value builtin_name(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    if (arguments[0].kind == VAL_TENSOR && arguments[0].tensor->is_buffer)
        return lower_string(l->graph->buffers.at[arguments[0].tensor->buffer].name);
    if (arguments[0].kind == VAL_INSTANCE)
        return lower_string(arguments[0].instance->path);
    return lower_fail(l, call->loc, "'name' gives the path of a parameter, state or module, not of %s",
                      lower_kind_text(l, arguments[0]));
}

Value builtin_len(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    if (arguments[0].kind == VAL_LIST)
        return lower_int(arguments[0].list->count);
    return lower_fail(l, call->loc, "'len' of %s", lower_kind_text(l, arguments[0]));
}

Value builtin_defined(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)arguments, (void)detail;
    const Ast *what = call->kid_count > 1 ? call->kid[1] : NULL;
    if (!what || (what->kind != AST_NAME && what->kind != AST_DOT))
        return lower_fail(l, call->loc, "'defined' asks for a member: a name, or 'instance.member'");
    Value value = lower_peek(l, env, what);
    return lower_is_error(value) ? value : lower_bool(value.kind != VAL_ABSENT);
}

Value builtin_assert(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    (void)env, (void)detail;
    if (!lower_force(l, &arguments[0]))
        return lower_error_value();
    if (arguments[0].kind != VAL_BOOL)
        return lower_fail(l, call->loc, "'assert' checks a condition known when compiling, not %s",
                          lower_kind_text(l, arguments[0]));
    if (arguments[0].truth)
        return arguments[0];
    return lower_fail(l, call->loc, "%s",
                      arguments[1].kind == VAL_STRING ? arguments[1].text : "the assertion does not hold");
}

Value builtin_number(Lower *l, Env *env, const Ast *call, Value *arguments, int whole) {
    (void)env;
    Value x = arguments[0];
    if (!lower_force(l, &x))
        return x;
    if (x.kind == VAL_BOOL)
        x = lower_int(x.truth);
    if (!lower_is_number(x) || (whole && !(fabs(lower_number(x)) < 9.2e18)))
        return lower_fail(l, call->loc, "'%s' of %s", whole ? "int" : "float", lower_kind_text(l, x));
    return whole ? lower_int((int64_t)lower_number(x)) : lower_float(lower_number(x));
}
