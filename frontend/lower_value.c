/* Values, scopes and diagnostics of the evaluator. */
#include "frontend/value.h"

#include <string.h>

Value lower_list(Lower *l, const Value *values, uint32_t count) {
    ListValue *list = TG_ALLOC(l->arena, ListValue, 1);
    list->at = TG_ALLOC(l->arena, Value, count ? count : 1);
    if (count)
        memcpy(list->at, values, count * sizeof *values);
    list->count = count;
    return (Value){.kind = VAL_LIST, .list = list};
}

Value lower_tensor(Lower *l, NodeId node, const TensorValue *names_from) {
    if (!node)
        return lower_error_value();
    TensorValue *tensor = TG_ALLOC(l->arena, TensorValue, 1);
    tensor->func = l->func->func;
    tensor->node = node;
    const Type *type = tg_node_type(l->graph, tensor->func, node);
    for (uint32_t i = 0; i < type->rank; i++) {
        if (names_from)
            tensor->names[i] = names_from->names[i];
        if (type->dims[i].batch && type->dims[i].size == 1)
            tensor->names[i] = "B";
    }
    return (Value){.kind = VAL_TENSOR, .tensor = tensor};
}

Value lower_scalar(Lower *l, NodeId node) {
    Value value = lower_tensor(l, node, NULL);
    if (!lower_is_error(value))
        value.tensor->scalar = true;
    return value;
}

const Type *lower_type(const Lower *l, Value tensor) {
    return tg_node_type(l->graph, tensor.tensor->func, tensor.tensor->node);
}

const char *lower_type_text(Lower *l, const Type *type) {
    Str text = tg_str(l->arena);
    tg_type_print(&text, type);
    return text.text;
}

const char *lower_show(Lower *l, Value value) {
    if (value.kind != VAL_TENSOR)
        return lower_kind_text(l, value);
    const Type *type = lower_type(l, value);
    Str text = tg_str(l->arena);
    tg_str_printf(&text, "%s[", tg_dtype(type->dtype)->name);
    for (uint32_t i = 0; i < type->rank; i++) {
        const char *name = value.tensor->names[i];
        Dim dim = type->dims[i];
        tg_str_printf(&text, "%s", i ? ", " : "");
        if (dim.batch)
            tg_str_printf(&text, dim.size == 1 ? "B" : "B*%lld", (long long)dim.size);
        else if (name)
            tg_str_printf(&text, "%s=%lld", name, (long long)dim.size);
        else
            tg_str_printf(&text, "%lld", (long long)dim.size);
    }
    tg_str_add(&text, "]", 1);
    return text.text;
}

const char *lower_kind_text(Lower *l, Value value) {
    char number[TG_NUMBER_TEXT];
    switch ((ValueKind)value.kind) {
    case VAL_INT:
        return tg_arena_printf(l->arena, value.batch ? "%lld * B" : "the integer %lld", (long long)value.integer);
    case VAL_FLOAT:
        return tg_arena_printf(l->arena, "the number %s", tg_number_text(value.number, number));
    case VAL_BOOL:
        return value.truth ? "true" : "false";
    case VAL_STRING:
        return "a string";
    case VAL_LIST:
        return "a list";
    case VAL_RECORD:
        return "a record";
    case VAL_TENSOR:
        return value.tensor->scalar ? "a run-time number" : lower_type_text(l, lower_type(l, value));
    case VAL_FN:
    case VAL_LAMBDA:
    case VAL_BUILTIN:
        return "a function";
    case VAL_MODULE:
        return "a module";
    case VAL_INSTANCE:
        return tg_arena_printf(l->arena, "the module instance '%s'", value.instance->path);
    case VAL_OPTIMIZER:
    case VAL_OPTIMIZER_INSTANCE:
        return "an optimizer";
    case VAL_DATA:
        return "a data block";
    case VAL_UNIT:
        return "an imported file";
    case VAL_DTYPE:
        return "an element type";
    case VAL_BUFFER:
        return "a parameter";
    case VAL_ABSENT:
        return "a member that is not there";
    case VAL_NONE:
        return "none";
    case VAL_ERROR:
        break;
    }
    return "an error";
}

bool lower_has_tensor(Value value) {
    switch ((ValueKind)value.kind) {
    case VAL_TENSOR:
        return true;
    case VAL_INT:
    case VAL_FLOAT:
    case VAL_BOOL:
        return value.runtime != NULL;
    case VAL_LIST:
        for (uint32_t i = 0; i < value.list->count; i++)
            if (lower_has_tensor(value.list->at[i]))
                return true;
        return false;
    case VAL_RECORD:
        for (uint32_t i = 0; i < value.record->count; i++)
            if (lower_has_tensor(value.record->values[i]))
                return true;
        return false;
    default:
        return false;
    }
}

bool lower_same(Value x, Value y) {
    if (lower_is_number(x) && lower_is_number(y))
        return lower_number(x) == lower_number(y);
    if (x.kind != y.kind)
        return false;
    switch ((ValueKind)x.kind) {
    case VAL_NONE:
        return true;
    case VAL_INT:
        return x.integer == y.integer && x.batch == y.batch;
    case VAL_BOOL:
        return x.truth == y.truth;
    case VAL_STRING:
        return strcmp(x.text, y.text) == 0;
    case VAL_DTYPE:
        return x.dtype == y.dtype;
    case VAL_INSTANCE:
        return x.instance == y.instance;
    case VAL_LIST:
        if (x.list->count != y.list->count)
            return false;
        for (uint32_t i = 0; i < x.list->count; i++)
            if (!lower_same(x.list->at[i], y.list->at[i]))
                return false;
        return true;
    default:
        return false;
    }
}

/* ---- diagnostics ---- */

bool lower_in_std(const Lower *l, Loc loc) {
    return loc.line && loc.file < l->sources->files.count &&
           strncmp(l->sources->files.at[loc.file].path, "<std>/", 6) == 0;
}

static bool is_new(Lower *l, Loc loc, const char *text) {
    const char *key = tg_arena_printf(l->arena, "%u:%u:%u:%s", loc.file, loc.line, loc.column, text);
    bool fresh;
    tg_map_put(&l->reported, key, strlen(key), &fresh);
    return fresh;
}

Value lower_fail(Lower *l, Loc loc, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(l->arena, format, args);
    va_end(args);
    bool library = lower_in_std(l, loc) && l->user_loc.line;
    Loc place = library ? l->user_loc : loc;
    l->shown = is_new(l, place, text);
    l->trace = 0;
    if (l->shown) {
        tg_error(l->diags, place, "%s", text);
        if (library)
            tg_note(l->diags, loc, "in the library, here");
    }
    return lower_error_value();
}

void lower_note(Lower *l, Loc loc, const char *format, ...) {
    if (!l->shown || !loc.line)
        return;
    va_list args;
    va_start(args, format);
    tg_note(l->diags, loc, "%s", tg_arena_vprintf(l->arena, format, args));
    va_end(args);
}

void lower_warn(Lower *l, Warning warning, Loc loc, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(l->arena, format, args);
    va_end(args);
    l->shown = !lower_in_std(l, loc) && is_new(l, loc, text);
    if (l->shown)
        tg_warn(l->diags, warning, loc, "%s", text);
}

/* ---- scopes ---- */

Env *lower_env(Lower *l, Env *parent) {
    Env *env = TG_ALLOC(l->arena, Env, 1);
    env->parent = parent;
    return env;
}

Binding *lower_find_here(const Env *env, const char *name) {
    for (uint32_t i = env->names.count; i > 0; i--) {
        Binding *binding = env->names.at[i - 1];
        if (binding->name == name || strcmp(binding->name, name) == 0)
            return binding;
    }
    return NULL;
}

static Binding *find_with_env(Env *env, const char *name, Env **where) {
    for (; env; env = env->parent) {
        Binding *binding = lower_find_here(env, name);
        *where = env;
        for (uint32_t i = 0; !binding && i < env->imports.count; i++) {
            binding = lower_find_here(env->imports.at[i], name);
            *where = env->imports.at[i];
        }
        if (binding)
            return binding;
    }
    return NULL;
}

Binding *lower_find(const Env *env, const char *name) {
    Env *where;
    return find_with_env((Env *)env, name, &where);
}

Binding *lower_bind(Lower *l, Env *env, const char *name, Value value, Loc loc, const char *role) {
    Binding *binding = lower_find_here(env, name);
    if (!binding) {
        binding = TG_ALLOC(l->arena, Binding, 1);
        tg_push(l->arena, &env->names, binding);
    }
    *binding = (Binding){.name = name, .value = value, .loc = loc, .role = role, .state = BOUND};
    return binding;
}

static void collect_names(Lower *l, const Env *env, const char ***names, uint32_t *count) {
    Vec(const char *) all = {0};
    for (; env; env = env->parent)
        for (uint32_t i = 0; i < env->names.count; i++)
            tg_push(l->arena, &all, env->names.at[i]->name);
    for (uint32_t i = 0; i < lower_builtin_count(); i++)
        tg_push(l->arena, &all, lower_builtin_name(i));
    *names = all.at;
    *count = all.count;
}

/* A value that holds nodes of another function is made again in this one. */
static void make_lazy_again(Lower *l, Binding *binding) {
    if (binding->state == BOUND && binding->item && binding->has_tensor && l->func && binding->func != l->func->func)
        binding->state = LAZY;
}

Value lower_binding_value(Lower *l, Env *env, Binding *binding, Loc use) {
    make_lazy_again(l, binding);
    if (binding->state == EVALUATING)
        return lower_fail(l, use, "'%s' is defined by itself", binding->name);
    if (binding->state == BOUND)
        return binding->value;
    binding->state = EVALUATING;
    const Ast *item = binding->item;
    const char *path = l->path, *setting = l->setting;
    const Type *initial = l->initial;
    l->path = binding->name;
    l->setting = NULL;
    l->initial = NULL;
    const char *text = binding->compile_time_setting ? lower_set(l, binding->name) : NULL;
    Value value = text ? lower_set_value(text) : lower_eval(l, env, item->kid[1]);
    if (item->kind == AST_CONST && item->kid[0]) {
        Signature s = {.env = env, .what = tg_arena_printf(l->arena, "'%s'", binding->name), .loc = item->loc};
        if (!lower_match(l, &s, item->kid[0], &value))
            value = lower_error_value();
    }
    if (binding->compile_time_setting && !lower_is_error(value))
        lower_record_setting(l, binding->name, value, text ? "--set" : lower_origin(l, binding->loc), false);
    l->path = path;
    l->setting = setting;
    l->initial = initial;
    if (item->kind == AST_BIND && item->kid[0]->kid_count > 1) {
        binding->state = BOUND;
        if (!lower_bind_names(l, env, item->kid[0], value, binding->loc, binding->role))
            return lower_error_value();
        for (uint32_t i = 0; i < item->kid[0]->kid_count; i++) {
            Binding *part = lower_find_here(env, item->kid[0]->kid[i]->name);
            part->item = item;
            part->has_tensor = lower_has_tensor(part->value);
            part->func = l->func ? l->func->func : NULL;
        }
        return lower_find_here(env, binding->name)->value;
    }
    binding->state = BOUND;
    binding->value = value;
    binding->has_tensor = lower_has_tensor(value);
    binding->func = l->func ? l->func->func : NULL;
    return value;
}

Value lower_name(Lower *l, Env *env, const char *name, Loc loc) {
    Env *where;
    Binding *binding = find_with_env(env, name, &where);
    if (!binding) {
        int builtin = lower_builtin(name);
        if (builtin >= 0)
            return lower_builtin_value(l, (uint32_t)builtin, loc);
        const char **names;
        uint32_t count;
        collect_names(l, env, &names, &count);
        const char *closest = tg_closest(name, names, count);
        lower_fail(l, loc, closest ? "there is no '%s'; did you mean '%s'?" : "there is no '%s'", name, closest);
        return lower_error_value();
    }
    Value value = lower_binding_value(l, where, binding, loc);
    if (value.kind == VAL_BUFFER)
        return lower_read_buffer(l, value.buffer, loc);
    if (value.kind == VAL_ABSENT) {
        lower_fail(l, loc, "'%s' is not there: its guard is false; ask 'defined(%s)' first", name, name);
        lower_note(l, binding->loc, "the guard is here");
        return lower_error_value();
    }
    return value;
}

Value lower_peek(Lower *l, Env *env, const Ast *ast) {
    if (ast->kind == AST_NAME) {
        Env *where;
        Binding *binding = find_with_env(env, ast->name, &where);
        if (!binding)
            return lower_name(l, env, ast->name, ast->loc);
        return lower_binding_value(l, where, binding, ast->loc);
    }
    if (ast->kind == AST_DOT) {
        Value of = lower_peek(l, env, ast->kid[0]);
        if (of.kind == VAL_INSTANCE) {
            Binding *binding = lower_find_here(of.instance->members, ast->name);
            if (binding)
                return binding->value;
        }
    }
    return lower_eval(l, env, ast);
}
