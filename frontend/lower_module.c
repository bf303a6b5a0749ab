/* Module instances: their parameters and states are buffers named by path, made where the instance is made. */
#include "frontend/value.h"

#include <string.h>

/* The expression under the marks. */
static const Ast *unmarked(const Ast *ast) {
    while (ast && ast->kind == AST_MARK)
        ast = ast->kid[0];
    return ast;
}

/* A guard sees the arguments before the members. */
static Env *guard_env(Lower *l, const Instance *instance) {
    Env *env = lower_env(l, instance->members);
    for (uint32_t i = 0; i < instance->arguments->names.count; i++)
        tg_push(l->arena, &env->names, instance->arguments->names.at[i]);
    return env;
}

static bool guarded(Lower *l, Instance *instance, const Ast *guard, bool *there) {
    *there = true;
    if (!guard)
        return true;
    bool ok;
    *there = lower_condition(l, guard_env(l, instance), guard, &ok);
    return ok;
}

static bool known_dim(const Instance *instance, const Ast *dim) {
    if (dim->kind != AST_NAME)
        return false;
    if (lower_find_here(instance->arguments, dim->name))
        return true;
    const Ast *body = instance->module->ast;
    for (uint32_t i = 1; i < body->kid_count; i++)
        for (uint32_t k = 0; body->kid[i]->kind == AST_PARAM && k < body->kid[i]->kid[0]->kid_count; k++) {
            const Ast *own = body->kid[i]->kid[0]->kid[k];
            if (own->kind == AST_NAME && strcmp(own->name, dim->name) == 0)
                return true;
        }
    return false;
}

static bool add_buffer(Lower *l, Instance *instance, const Ast *member, BufferClass class, const Ast *type_ast,
                       const Ast *init) {
    Type type;
    if (!type_ast || !init) {
        lower_fail(l, member->loc,
                   type_ast ? "'%s' has no first value: write '= zeros' or another one"
                            : "the state '%s' of a module needs a type",
                   member->name);
        return false;
    }
    if (!lower_declared_type(l, instance->members, type_ast, false, &type))
        return false;
    if (tg_type_batch_axis(&type) >= 0) {
        lower_fail(l, type_ast->loc, "the size of '%s' cannot depend on the batch B", member->name);
        return false;
    }
    if (class == BUFFER_PARAM && type.dtype != DT_F32) {
        lower_fail(l, type_ast->loc, "the parameter '%s' is %s; parameters are f32, a cast computes in another type",
                   member->name, tg_dtype(type.dtype)->name);
        return false;
    }
    const char *path = lower_subpath(l, instance->path, member->name);
    if (tg_buffer_find(l->graph, path) >= 0) {
        lower_fail(l, member->loc, "there are two parameters with the path '%s'", path);
        return false;
    }
    Loc loc = lower_in_std(l, member->loc) && l->user_loc.line ? l->user_loc : member->loc;
    uint32_t buffer = tg_buffer_add(l->graph, (Buffer){.name = tg_intern(l->graph, path),
                                                       .type = tg_type(&l->graph->types, &type),
                                                       .class = class,
                                                       .loc = loc});
    for (const Ast *mark = init; mark->kind == AST_MARK; mark = mark->kid[0]) {
        bool shard = strcmp(mark->name, "shard") == 0, frozen = strcmp(mark->name, "frozen") == 0;
        if (frozen)
            l->graph->buffers.at[buffer].frozen = true;
        else if (!shard || mark->kid_count != 2 || !known_dim(instance, mark->kid[1])) {
            lower_fail(l, mark->loc,
                       "a parameter is marked 'shard(dimension)', with one of its dimensions, or 'frozen'");
            return false;
        }
    }
    lower_bind(l, instance->members, member->name, (Value){.kind = VAL_BUFFER, .buffer = buffer}, member->loc,
               "member");
    tg_push(l->arena, &l->initials, (Initial){buffer, unmarked(init), instance->members});
    return true;
}

static bool make_bind(Lower *l, Instance *instance, const Ast *member) {
    const Ast *names = member->kid[0];
    l->path = lower_subpath(l, instance->path, names->kid[0]->name);
    if (names->kid_count > 1)
        l->path = instance->path;
    Value value = lower_eval(l, instance->members, member->kid[1]);
    l->path = NULL;
    if (!lower_bind_names(l, instance->members, names, value, member->loc, "member"))
        return false;
    for (uint32_t i = 0; i < names->kid_count; i++) {
        Binding *binding = lower_find_here(instance->members, names->kid[i]->name);
        binding->has_tensor = lower_has_tensor(binding->value);
        binding->func = l->func ? l->func->func : NULL;
        binding->item = binding->has_tensor ? member : NULL;
    }
    return true;
}

static bool make_member(Lower *l, Instance *instance, const Ast *member) {
    static const uint8_t guard_at[AST_KIND_COUNT] = {[AST_PARAM] = 2, [AST_STATE] = 2, [AST_BIND] = 2};
    if (!guard_at[member->kind])
        return true;
    bool there;
    uint32_t at = guard_at[member->kind];
    if (!guarded(l, instance, at < member->kid_count ? member->kid[at] : NULL, &there))
        return false;
    if (!there) {
        Loc loc = member->kid[at]->loc;
        if (member->kind == AST_BIND)
            for (uint32_t i = 0; i < member->kid[0]->kid_count; i++)
                lower_bind(l, instance->members, member->kid[0]->kid[i]->name, (Value){.kind = VAL_ABSENT}, loc,
                           "member");
        else
            lower_bind(l, instance->members, member->name, (Value){.kind = VAL_ABSENT}, loc, "member");
        return true;
    }
    if (member->kind == AST_BIND)
        return make_bind(l, instance, member);
    return add_buffer(l, instance, member, member->kind == AST_PARAM ? BUFFER_PARAM : BUFFER_STATE, member->kid[0],
                      member->kid[1]);
}

static void bind_functions(Lower *l, Instance *instance) {
    const Ast *module = instance->module->ast;
    for (uint32_t i = 1; i < module->kid_count; i++) {
        const Ast *member = module->kid[i];
        if (member->kind != AST_FN)
            continue;
        Closure *closure = TG_ALLOC(l->arena, Closure, 1);
        *closure = (Closure){member, instance->members, instance};
        lower_bind(l, instance->members, member->name ? member->name : "()",
                   (Value){.kind = VAL_FN, .closure = closure}, member->loc, "member");
    }
}

Value lower_instantiate(Lower *l, Env *env, const Ast *call, const Closure *module) {
    if (!l->path)
        return lower_fail(l, call->loc,
                          "an instance of '%s' is made at file level or as a member of a module, where it has "
                          "a name",
                          module->ast->name);
    if (l->depth >= 100)
        return lower_fail(l, call->loc, "modules are nested more than 100 deep; does '%s' hold itself?",
                          module->ast->name);
    Instance *instance = TG_ALLOC(l->arena, Instance, 1);
    instance->module = module;
    instance->path = l->path;
    lower_rule_precision(l, instance);
    instance->arguments = lower_env(l, module->env);
    instance->members = lower_env(l, instance->arguments);
    if (!lower_arguments(l, env, call, module->ast->kid[0], instance->arguments, module->ast->name))
        return lower_error_value();
    bind_functions(l, instance);
    const char *path = l->path;
    l->path = NULL;
    l->depth++;
    l->shown = false;
    bool ok = true;
    for (uint32_t i = 1; ok && i < module->ast->kid_count; i++)
        ok = make_member(l, instance, module->ast->kid[i]);
    l->depth--;
    l->path = path;
    if (!ok) {
        if (!lower_in_std(l, call->loc) && l->trace++ < 4)
            lower_note(l, call->loc, "in this instance of '%s'", module->ast->name);
        return lower_error_value();
    }
    return (Value){.kind = VAL_INSTANCE, .instance = instance};
}

/* ---- marks ---- */

static bool below(const char *name, const char *path) {
    size_t length = strlen(path);
    return strncmp(name, path, length) == 0 && name[length] == '.';
}

static void freeze(Lower *l, Value value) {
    for (uint32_t i = 0; value.kind == VAL_LIST && i < value.list->count; i++)
        freeze(l, value.list->at[i]);
    for (uint32_t i = 0; value.kind == VAL_INSTANCE && i < l->graph->buffers.count; i++)
        if (l->graph->buffers.at[i].class == BUFFER_PARAM && below(l->graph->buffers.at[i].name, value.instance->path))
            l->graph->buffers.at[i].frozen = true;
}

Value lower_mark(Lower *l, Env *env, const Ast *mark) {
    Value value = lower_eval(l, env, mark->kid[0]);
    if (lower_is_error(value))
        return value;
    if (value.kind != VAL_INSTANCE && value.kind != VAL_LIST)
        return lower_fail(l, mark->loc, "the mark '%s' stands after %s, not after a module instance", mark->name,
                          lower_kind_text(l, value));
    if (strcmp(mark->name, "frozen") == 0 && mark->kid_count == 1) {
        freeze(l, value);
        return value;
    }
    if (strcmp(mark->name, "precision") == 0 && mark->kid_count == 2) {
        lower_mark_f32(value);
        return value;
    }
    if (strcmp(mark->name, "shard") == 0 && mark->kid_count == 2) {
        if (value.kind != VAL_INSTANCE || known_dim(value.instance, mark->kid[1]))
            return value;
        return lower_fail(l, mark->kid[1]->loc, "'shard' names a dimension of the parameters of '%s'",
                          value.instance->module->ast->name);
    }
    if (strcmp(mark->name, "stage") == 0 && mark->kid_count == 2) {
        Value stage = lower_eval(l, env, mark->kid[1]);
        if (stage.kind == VAL_INT && !stage.batch && stage.integer >= 0)
            return value;
        return lower_is_error(stage) ? stage : lower_fail(l, mark->kid[1]->loc, "'stage' takes an integer from 0");
    }
    return lower_fail(l, mark->loc, "there is no mark '%s'; marks are shard(dimension), frozen, stage(number), precision(f32)",
                      mark->name);
}

/* ---- reading and updating ---- */

static Stored *stored(Lower *l, uint32_t buffer) {
    FuncState *state = l->func;
    if (buffer >= state->stored_count) {
        uint32_t count = l->graph->buffers.count;
        Stored *grown = TG_ALLOC(l->arena, Stored, count);
        if (state->stored_count)
            memcpy(grown, state->stored, state->stored_count * sizeof *grown);
        state->stored = grown;
        state->stored_count = count;
    }
    return &state->stored[buffer];
}

/* Validation and exports see a parameter's average, if the program keeps one. */
static uint32_t seen_buffer(const Lower *l, uint32_t buffer) {
    bool averaged = l->func && (l->func->func->kind == FUNC_OBJECTIVE_EVAL || l->func->func->kind == FUNC_EXPORT);
    const uint64_t *average = averaged ? tg_map_find(&l->averages, &buffer, sizeof buffer) : NULL;
    return average ? (uint32_t)*average - 1 : buffer;
}

Value lower_read_buffer(Lower *l, uint32_t buffer, Loc loc) {
    buffer = seen_buffer(l, buffer);
    const Buffer *info = &l->graph->buffers.at[buffer];
    if (!l->func)
        return lower_fail(l, loc, "the value of '%s' is known only at run time", info->name);
    NodeId node = stored(l, buffer)->node;
    if (!node && l->func->func->kind == FUNC_INIT)
        return lower_fail(l, loc, "'%s' has no value yet where it is read", info->name);
    lower_builder(l)->locs = tg_locs_one(l->graph, lower_in_std(l, loc) && l->user_loc.line ? l->user_loc : loc);
    if (!node) {
        node = tg_load(lower_builder(l), buffer);
    } else if (info->class == BUFFER_STATE && tg_is_float(tg_type_of(&l->graph->types, info->type)->dtype))
        node = tg_unary(lower_builder(l), OP_detach, node); /* to autodiff a state is a constant */
    Value value = lower_tensor(l, node, NULL);
    if (!lower_is_error(value)) {
        value.tensor->is_buffer = true;
        value.tensor->buffer = buffer;
    }
    return value;
}

void lower_store(Lower *l, uint32_t buffer, NodeId node, Loc loc) { *stored(l, buffer) = (Stored){node, loc}; }

static Binding *assigned_binding(Lower *l, Env *env, const Ast *ast) {
    Binding *binding = lower_find(env, ast->name);
    if (binding && binding->value.kind == VAL_BUFFER)
        return binding;
    lower_fail(l, ast->loc,
               binding ? "':=' updates a state or a parameter; '%s' is a value: write '='"
                       : "there is no state or parameter '%s' to update",
               ast->name);
    return NULL;
}

bool lower_assign(Lower *l, Env *env, const Ast *ast) {
    Binding *binding = assigned_binding(l, env, ast);
    if (!binding)
        return false;
    uint32_t buffer = binding->value.buffer;
    Value value = lower_eval(l, env, ast->kid[0]);
    if (lower_is_error(value))
        return false;
    Type type = *tg_type_of(&l->graph->types, l->graph->buffers.at[buffer].type);
    const char *name = l->graph->buffers.at[buffer].name;
    if (lower_is_tensor(value) && tg_type_batch_axis(lower_type(l, value)) >= 0) {
        lower_fail(l, ast->kid[0]->loc, "what is stored in '%s' has no batch B, this is %s", name,
                   lower_show(l, value));
        return false;
    }
    if (!l->func) {
        lower_fail(l, ast->loc, "'%s' cannot be updated here", name);
        return false;
    }
    NodeId node = lower_filled(l, ast->kid[0], value, &type);
    if (!node)
        return false;
    Loc loc = lower_in_std(l, ast->loc) && l->user_loc.line ? l->user_loc : ast->loc;
    Stored *before = stored(l, buffer);
    if (before->node) {
        lower_fail(l, loc, "'%s' is updated twice in one step", name);
        lower_note(l, before->loc, "the first update is here");
        return false;
    }
    *before = (Stored){node, loc};
    return true;
}

bool lower_initial(Lower *l, const Initial *initial) {
    const Buffer *buffer = &l->graph->buffers.at[initial->buffer];
    const Type type = *tg_type_of(&l->graph->types, buffer->type);
    Frame frame = {.key = tg_hash(buffer->name, strlen(buffer->name), 1)};
    l->frame = &frame;
    l->initial = &type;
    l->user_loc = buffer->loc;
    Value value = lower_eval(l, initial->env, initial->ast);
    if (value.kind == VAL_FN || value.kind == VAL_LAMBDA || value.kind == VAL_BUILTIN) {
        Value shape = lower_shape_list(l, &type);
        bool bound = value.kind == VAL_FN;
        value = lower_apply(l, value, &shape, bound ? 0 : 1, initial->ast);
    }
    l->initial = NULL;
    l->frame = NULL;
    if (lower_is_error(value))
        return false;
    if (lower_is_tensor(value) && lower_type(l, value)->dtype != type.dtype && tg_is_float(lower_type(l, value)->dtype))
        value = lower_cast(l, initial->ast, value, type.dtype);
    NodeId node = lower_filled(l, initial->ast, value, &type);
    if (!node) {
        lower_note(l, buffer->loc, "in the first value of '%s'", buffer->name);
        return false;
    }
    lower_store(l, initial->buffer, node, buffer->loc);
    l->user_loc = (Loc){0};
    return true;
}
