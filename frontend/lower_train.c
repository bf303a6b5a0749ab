/* train { }: its settings, the objective for training and validation, the optimizer once per parameter; exports. */
#include "frontend/value.h"

#include <string.h>

static const Ast *setting_of(const Ast *train, const char *name) {
    for (uint32_t i = 0; i < train->kid_count; i++)
        if (strcmp(train->kid[i]->name, name) == 0)
            return train->kid[i];
    return NULL;
}

/* ---- plain settings ---- */

static bool plain(Lower *l, const Ast *train, const char *name, Value standard, Value *value, Loc *loc) {
    const Ast *setting = setting_of(train, name);
    const char *text = lower_set(l, name);
    *loc = setting ? setting->loc : train->loc;
    *value = text ? lower_set_value(text) : setting ? lower_eval(l, l->file_env, setting->kid[0]) : standard;
    if (lower_is_error(*value))
        return false;
    lower_record_setting(l, name, *value, text ? "--set" : setting ? lower_origin(l, setting->loc) : "default", false);
    return true;
}

static bool count_setting(Lower *l, const Ast *train, const char *name, int64_t standard, int64_t least,
                          int64_t *count) {
    Value value;
    Loc loc;
    if (!plain(l, train, name, lower_int(standard), &value, &loc))
        return false;
    if (value.kind != VAL_INT || value.batch || value.integer < least || value.integer > INT32_MAX) {
        bool large = value.kind == VAL_INT && !value.batch && value.integer > INT32_MAX;
        lower_fail(l, loc, "'%s' is an integer from %lld%s, not %s", name, (long long)least,
                   large ? " to 2147483647" : "", lower_kind_text(l, value));
        return false;
    }
    *count = value.integer;
    return true;
}

static bool read_lengths(Lower *l, const Ast *train, Training *t) {
    const Ast *epochs = setting_of(train, "epochs"), *steps = setting_of(train, "steps");
    bool set_epochs = lower_set(l, "epochs") != NULL, set_steps = lower_set(l, "steps") != NULL;
    if ((epochs && steps) || (set_epochs && set_steps)) {
        lower_fail(l, (steps ? steps : train)->loc, "'epochs' and 'steps' both say how long to train: give one");
        if (epochs)
            lower_note(l, epochs->loc, "'epochs' is here");
        return false;
    }
    bool by_steps = set_steps || (steps && !set_epochs);
    if (by_steps)
        return count_setting(l, train, "steps", 0, 1, &t->steps);
    return count_setting(l, train, "epochs", 1, 1, &t->epochs);
}

static bool read_batch(Lower *l, const Ast *train, Training *t) {
    if (!count_setting(l, train, "batch", 32, 1, &t->batch) ||
        !count_setting(l, train, "micro", t->batch, 1, &t->micro) || !count_setting(l, train, "lanes", 1, 1, &t->lanes))
        return false;
    if (t->micro > t->batch) {
        lower_fail(l, train->loc, "'micro' is %lld, more than 'batch', which is %lld", (long long)t->micro,
                   (long long)t->batch);
        return false;
    }
    int64_t micros = (t->batch + t->micro - 1) / t->micro;
    bool fits =
        (t->lanes & (t->lanes - 1)) == 0 && (micros >= t->lanes ? micros % t->lanes == 0 : t->lanes % micros == 0);
    if (fits)
        return true;
    lower_fail(l, train->loc,
               "'lanes' is %lld; it must be a power of two that divides the %lld micro-batches, or a multiple "
               "of them",
               (long long)t->lanes, (long long)micros);
    return false;
}

static bool read_clip(Lower *l, const Ast *train, Training *t) {
    const Ast *clip = setting_of(train, "clip_norm");
    t->clip_scalar = -1;
    static const Ast none = {.kind = AST_INT};
    if (!clip && !lower_set(l, "clip_norm"))
        return true;
    Value value = lower_setting(l, l->file_env, clip ? clip->kid[0] : &none, "clip_norm", !clip);
    if (lower_is_error(value))
        return false;
    if (!lower_is_number(value) || lower_number(value) < 0) {
        lower_fail(l, (clip ? clip : train)->loc, "'clip_norm' is a number from 0, not %s", lower_kind_text(l, value));
        return false;
    }
    t->clip_norm = lower_number(value);
    t->clip_scalar = value.runtime ? tg_scalar_find(l->graph, "clip_norm") : -1;
    return true;
}

static bool read_loss_scale(Lower *l, const Ast *train, Training *t) {
    Value value;
    Loc loc;
    if (!plain(l, train, "loss_scale", lower_float(0), &value, &loc))
        return false;
    t->loss_scale = lower_is_number(value) ? lower_number(value) : -1;
    if (t->loss_scale == 0 || t->loss_scale >= 1)
        return true;
    lower_fail(l, loc, "'loss_scale' is a number from 1 (1: none), or 0 for one that follows overflows, not %s", lower_show(l, value));
    return false;
}

static bool read_set(Lower *l, const char *name, Value value, Loc loc, DataSet *set) {
    if (lower_is_error(value))
        return false;
    if (value.kind != VAL_DATA) {
        lower_fail(l, loc, "'%s' is a data block, as in 'Digits.train', not %s", name, lower_kind_text(l, value));
        return false;
    }
    l->user_loc = loc;
    bool ok = lower_data_set(l, value.data, set);
    l->user_loc = (Loc){0};
    return ok;
}

static bool read_data(Lower *l, const Ast *train, Training *t) {
    const Ast *setting = setting_of(train, "data");
    return read_set(l, "data", lower_eval(l, l->file_env, setting->kid[0]), setting->loc, &t->train);
}

static const DataField *field_named(const DataSet *set, const char *name) {
    for (uint32_t i = 0; i < set->fields.count; i++)
        if (strcmp(set->fields.at[i].name, name) == 0)
            return &set->fields.at[i];
    return NULL;
}

/* The objective is compiled once for all sets. */
static bool all_fields_in(Lower *l, const DataSet *wanted, const DataSet *set, Loc loc) {
    for (uint32_t i = 0; i < wanted->fields.count; i++) {
        const DataField *field = &wanted->fields.at[i], *other = field_named(set, field->name);
        if (other && other->type == field->type)
            continue;
        if (!other)
            lower_fail(l, loc, "the validation set '%s' has no field '%s', but '%s' has; the objective reads all alike",
                       set->as, field->name, wanted->as);
        else
            lower_fail(l, other->loc, "the field '%s' of the validation set '%s' is %s, but that of '%s' is %s",
                       field->name, set->as, lower_type_text(l, tg_type_of(&l->graph->types, other->type)), wanted->as,
                       lower_type_text(l, tg_type_of(&l->graph->types, field->type)));
        lower_note(l, field->loc, "the field of '%s' is declared here", wanted->as);
        return false;
    }
    return true;
}

static bool read_named_sets(Lower *l, const Ast *setting, const RecordValue *record, Training *t) {
    if (record->count == 0)
        lower_fail(l, setting->loc, "'validate' names no set: '{ test: Digits.test, hard: Digits.hard }' names two");
    for (uint32_t i = 0; i < record->count; i++) {
        DataSet set;
        const char *name = tg_arena_printf(l->arena, "validate.%s", record->names[i]);
        Loc loc = setting->kid[0]->kind == AST_RECORD ? setting->kid[0]->kid[i]->loc : setting->loc;
        if (!read_set(l, name, record->values[i], loc, &set))
            return false;
        set.as = tg_intern(l->graph, record->names[i]);
        tg_push(l->graph->arena, &t->validate, set);
        const DataSet *first = &t->validate.at[0], *last = &t->validate.at[i];
        if (!all_fields_in(l, first, last, loc) || !all_fields_in(l, last, first, loc))
            return false;
    }
    return record->count > 0;
}

/* A data block, or a record of several by name. */
static bool read_validation(Lower *l, const Ast *train, Training *t) {
    const Ast *setting = setting_of(train, "validate");
    if (!setting)
        return true;
    Value value = lower_eval(l, l->file_env, setting->kid[0]);
    if (value.kind == VAL_RECORD)
        return read_named_sets(l, setting, value.record, t);
    DataSet set;
    if (!read_set(l, "validate", value, setting->loc, &set))
        return false;
    tg_push(l->graph->arena, &t->validate, set);
    return true;
}

static bool read_settings(Lower *l, const Ast *train, Training *t) {
    static const char *const built[] = {"data",    "validate", "objective",      "batch",    "micro",     "lanes",
                                        "epochs",  "steps",    "optimizer",      "seed",     "clip_norm", "shuffle",
                                        "average", "stop",     "validate_every", "keep_best", "loss_scale"};
    for (uint32_t i = 0; i < train->kid_count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < sizeof built / sizeof *built; k++)
            known |= strcmp(train->kid[i]->name, built[k]) == 0;
        if (!known) {
            lower_fail(l, train->kid[i]->loc, "the setting '%s' is not built yet", train->kid[i]->name);
            return false;
        }
    }
    int64_t seed;
    Value shuffle;
    Loc loc;
    if (!read_batch(l, train, t) || !read_lengths(l, train, t) || !count_setting(l, train, "seed", 0, 0, &seed) ||
        !plain(l, train, "shuffle", lower_bool(true), &shuffle, &loc) ||
        !read_clip(l, train, t) || !read_loss_scale(l, train, t))
        return false;
    bool every = setting_of(train, "validate_every") || lower_set(l, "validate_every");
    if (every && !count_setting(l, train, "validate_every", 0, 1, &t->validate_every))
        return false;
    if (shuffle.kind != VAL_BOOL) {
        lower_fail(l, loc, "'shuffle' is true or false, not %s", lower_kind_text(l, shuffle));
        return false;
    }
    t->seed = (uint64_t)seed;
    t->shuffle = shuffle.truth;
    t->loss = "loss";
    static const char *const needed[] = {"data", "objective", "optimizer"};
    for (uint32_t i = 0; i < 3; i++)
        if (!setting_of(train, needed[i])) {
            lower_fail(l, train->loc, "'train' needs the setting '%s'", needed[i]);
            return false;
        }
    return read_data(l, train, t) && read_validation(l, train, t);
}

/* ---- the objective ---- */

static NodeId add_argument(Lower *l, const char *name, TypeId type, Loc loc) {
    Func *func = l->func->func;
    const char *interned = tg_intern(l->graph, name);
    tg_push(l->graph->arena, &func->args, (FuncArg){interned, type, loc});
    lower_builder(l)->locs = tg_locs_one(l->graph, loc);
    return tg_arg(lower_builder(l), func->args.count - 1, interned, type);
}

static Value record_arguments(Lower *l, const DataSet *set) {
    RecordValue *record = TG_ALLOC(l->arena, RecordValue, 1);
    record->names = TG_ALLOC(l->arena, const char *, set->fields.count);
    record->values = TG_ALLOC(l->arena, Value, set->fields.count);
    record->count = set->fields.count;
    for (uint32_t i = 0; i < set->fields.count; i++) {
        const DataField *field = &set->fields.at[i];
        record->names[i] = field->name;
        record->values[i] = lower_tensor(l, add_argument(l, field->name, field->type, field->loc), NULL);
    }
    return (Value){.kind = VAL_RECORD, .record = record};
}

static bool give_field(Lower *l, const char *name, Value value, const Ast *at, bool single) {
    if (value.kind == VAL_BOOL)
        value = lower_float(value.truth);
    bool number = lower_is_number(value) || (value.kind == VAL_TENSOR && !lower_type(l, value)->rank);
    bool tensor = number || (!single && (value.kind == VAL_TENSOR || value.kind == VAL_LIST));
    if (!tensor) {
        lower_fail(l, at->loc, "field '%s' of %s is %s; each is a %s", name,
                   single ? "the objective" : "an 'export fn'",
                   value.kind == VAL_TENSOR ? lower_show(l, value) : lower_kind_text(l, value),
                   single ? "single number, as 'mean(...)' gives" : "tensor: a record's fields lie side by side");
        return false;
    }
    if (single && lower_is_tensor(value) && lower_type(l, value)->dtype != DT_F32)
        value = lower_cast(l, at, value, DT_F32);
    if (value.kind == VAL_INT && !single) {
        value = lower_tensor(l, lower_operand(l, at, value, DT_I32), NULL);
    } else if (!lower_is_tensor(value)) {
        value = lower_tensor(l, lower_operand(l, at, value, DT_F32), NULL);
    }
    if (lower_is_error(value))
        return false;
    LocsId locs = tg_node(l->func->func, value.tensor->node)->locs;
    lower_builder(l)->locs = locs ? locs : tg_locs_one(l->graph, at->loc);
    tg_result_value(lower_builder(l), name, value.tensor->node);
    return true;
}

static bool give_objective(Lower *l, Value result, const Ast *at) {
    bool has_loss = result.kind != VAL_RECORD;
    if (result.kind != VAL_RECORD)
        return give_field(l, "loss", result, at, true);
    for (uint32_t i = 0; i < result.record->count; i++) {
        has_loss |= strcmp(result.record->names[i], "loss") == 0;
        if (!give_field(l, result.record->names[i], result.record->values[i], at, true))
            return false;
    }
    if (!has_loss)
        lower_fail(l, at->loc, "the objective gives no field 'loss': that is what training minimises");
    return has_loss;
}

static bool store_states(Lower *l, bool keep) {
    for (uint32_t i = 0; keep && i < l->func->stored_count; i++) {
        Stored *stored = &l->func->stored[i];
        if (!stored->node)
            continue;
        const Buffer *buffer = &l->graph->buffers.at[i];
        bool twice = l->func->func->kind == FUNC_OBJECTIVE && buffer->class == BUFFER_PARAM && !buffer->frozen;
        if (twice) {
            lower_fail(l, stored->loc, "the parameter '%s' is updated twice in one step: here and by the optimizer",
                       buffer->name);
            lower_note(l, buffer->loc, "mark it 'frozen', or make it a 'state'");
            return false;
        }
        lower_builder(l)->locs = tg_locs_one(l->graph, stored->loc);
        tg_result_store(lower_builder(l), i, stored->node);
    }
    return true;
}

static bool lower_objective(Lower *l, const Ast *setting, const DataSet *set, bool training) {
    FuncState *state = lower_func_begin(l, training ? FUNC_OBJECTIVE : FUNC_OBJECTIVE_EVAL,
                                        training ? "objective" : "objective.eval", training, training);
    Value fn = lower_eval(l, l->file_env, setting->kid[0]);
    Value batch = record_arguments(l, set);
    Value result = lower_is_error(fn) ? fn : lower_apply(l, fn, &batch, 1, setting->kid[0]);
    const Ast *at = fn.kind == VAL_FN ? fn.closure->ast : setting;
    if (result.kind == VAL_NONE) {
        lower_fail(l, at->loc, "the objective returns nothing; it gives a record with the field 'loss'");
        return false;
    }
    bool ok = !lower_is_error(result) && give_objective(l, result, at) && store_states(l, training);
    if (ok && training)
        lower_empty_loss(l);
    return lower_func_end(l, state) && ok;
}

/* ---- the optimizer ---- */

static const Ast *update_of(const Ast *optimizer) {
    for (uint32_t i = 1; i < optimizer->kid_count; i++)
        if (optimizer->kid[i]->kind == AST_FN && optimizer->kid[i]->name &&
            strcmp(optimizer->kid[i]->name, "update") == 0)
            return optimizer->kid[i];
    return NULL;
}

static bool optimizer_state(Lower *l, const Ast *member, Env *members, uint32_t param) {
    const Buffer *of = &l->graph->buffers.at[param];
    Type type = *tg_type_of(&l->graph->types, of->type);
    type.dtype = DT_F32;
    if (member->kid[0] && !lower_declared_type(l, members, member->kid[0], false, &type))
        return false;
    const Ast *init = member->kid[1];
    while (init->kind == AST_MARK)
        init = init->kid[0];
    const char *path = tg_arena_printf(l->arena, "optimizer.%s.%s", of->name, member->name);
    uint32_t buffer = tg_buffer_add(l->graph, (Buffer){.name = tg_intern(l->graph, path),
                                                       .type = tg_type(&l->graph->types, &type),
                                                       .class = BUFFER_OPTIMIZER,
                                                       .loc = of->loc});
    lower_bind(l, members, member->name, (Value){.kind = VAL_BUFFER, .buffer = buffer}, member->loc, "state");
    tg_push(l->arena, &l->initials, (Initial){buffer, init, members});
    return true;
}

static bool optimizer_members(Lower *l, const Ast *optimizer, Env *members, uint32_t param) {
    for (uint32_t i = 1; i < optimizer->kid_count; i++) {
        const Ast *member = optimizer->kid[i];
        if (member->kind == AST_FN) {
            Closure *closure = TG_ALLOC(l->arena, Closure, 1);
            *closure = (Closure){member, members, NULL};
            if (member->name)
                lower_bind(l, members, member->name, (Value){.kind = VAL_FN, .closure = closure}, member->loc,
                           "member");
            continue;
        }
        if (member->kind != AST_STATE && member->kind != AST_BIND) {
            lower_fail(l, member->loc, "an optimizer has states and functions, no parameters");
            return false;
        }
        const Ast *guard = member->kid_count > 2 ? member->kid[2] : NULL;
        bool ok = true, there = !guard || lower_condition(l, members, guard, &ok);
        if (!ok)
            return false;
        if (!there) {
            const char *name = member->kind == AST_STATE ? member->name : member->kid[0]->kid[0]->name;
            lower_bind(l, members, name, (Value){.kind = VAL_ABSENT}, guard->loc, "member");
        } else if (member->kind == AST_STATE) {
            if (!optimizer_state(l, member, members, param))
                return false;
        } else if (!lower_bind_names(l, members, member->kid[0], lower_eval(l, members, member->kid[1]), member->loc,
                                     "member")) {
            return false;
        }
    }
    return true;
}

static const Ast *type_of_argument(const Ast *params, const char *name) {
    for (uint32_t i = 0; i < params->kid_count; i++)
        if (strcmp(params->kid[i]->name, name) == 0)
            return params->kid[i]->kid_count ? params->kid[i]->kid[0] : NULL;
    return NULL;
}

/* What is chosen per parameter is reported per parameter: weight_decay(net.fc1.weight). */
static void record_choice(Lower *l, const char *what, uint32_t param, Value value, Loc loc) {
    const char *name = tg_arena_printf(l->arena, "%s(%s)", what, l->graph->buffers.at[param].name);
    lower_record_setting(l, tg_intern(l->graph, name), value, lower_origin(l, loc), false);
}

/* The arguments with every `p -> e` evaluated for this parameter. */
static Env *own_arguments(Lower *l, const Instance *instance, uint32_t param, const Ast *at) {
    Env *own = lower_env(l, instance->module->env);
    for (uint32_t i = 0; i < instance->arguments->names.count; i++) {
        Binding *binding = instance->arguments->names.at[i];
        Value value = binding->value;
        if (value.kind == VAL_LAMBDA) {
            Value parameter = lower_read_buffer(l, param, at->loc);
            value = lower_apply(l, value, &parameter, 1, at);
            const Ast *type = type_of_argument(instance->module->ast->kid[0], binding->name);
            Signature s = {.env = own, .what = tg_arena_printf(l->arena, "'%s'", binding->name), .loc = binding->loc};
            if (type && !lower_match(l, &s, type, &value))
                return NULL;
            record_choice(l, binding->name, param, value, binding->loc);
        }
        if (lower_is_error(value))
            return NULL;
        lower_bind(l, own, binding->name, value, binding->loc, binding->role);
    }
    return own;
}

/* Gives `param` what the optimizer's `update` makes of it and of `other`: its gradient. */
static bool update_one(Lower *l, const Instance *instance, uint32_t param, Value other, const Ast *at) {
    const Ast *optimizer = instance->module->ast, *update = update_of(optimizer);
    if (!update || update->kid[0]->kid_count != 2) {
        lower_fail(l, optimizer->loc, "an optimizer has 'fn update(p, g)': the parameter and its gradient");
        return false;
    }
    Env *arguments = own_arguments(l, instance, param, at);
    if (!arguments)
        return false;
    const char *p = update->kid[0]->kid[0]->name, *g = update->kid[0]->kid[1]->name;
    Value parameter = {.kind = VAL_BUFFER, .buffer = param};
    Env *named = lower_env(l, arguments), *members = lower_env(l, named), *call = lower_env(l, members);
    lower_bind(l, named, p, parameter, at->loc, "argument");
    if (!optimizer_members(l, optimizer, members, param))
        return false;
    lower_bind(l, call, p, parameter, at->loc, "argument");
    lower_bind(l, call, g, other, at->loc, "argument");
    Closure closure = {update, members, NULL};
    if (lower_is_error(lower_call_bound(l, &closure, call, at)))
        return false;
    if (param < l->func->stored_count && l->func->stored[param].node)
        return true;
    lower_fail(l, update->loc, "'update' does not give the parameter a value: '%s := ...' is missing", p);
    return false;
}

static Value gradient_of(Lower *l, uint32_t param) {
    Type type = *tg_type_of(&l->graph->types, l->graph->buffers.at[param].type);
    type.dtype = DT_F32;
    Attr attr = {.ref = param};
    lower_builder(l)->locs = tg_locs_one(l->graph, l->graph->buffers.at[param].loc);
    return lower_tensor(l, tg_build(lower_builder(l), OP_gradient, &attr, NULL, 0, tg_type(&l->graph->types, &type)),
                        NULL);
}

/* Runs `update` of what the setting says for each of the first `count` buffers that is a trained parameter. */
static bool for_parameters(Lower *l, const Ast *setting, uint32_t count, const char *example,
                           bool (*update)(Lower *, const Instance *, uint32_t, const Ast *)) {
    const Ast *at = setting->kid[0];
    l->user_loc = at->loc;
    l->setting = at->kind == AST_CALL ? setting->name : NULL;
    Value optimizer = lower_eval(l, l->file_env, at);
    l->setting = NULL;
    bool ok = !lower_is_error(optimizer);
    for (uint32_t i = 0; ok && i < count; i++) {
        if (l->graph->buffers.at[i].class != BUFFER_PARAM || l->graph->buffers.at[i].frozen)
            continue;
        Value own = optimizer;
        if (optimizer.kind == VAL_LAMBDA) {
            Value parameter = lower_read_buffer(l, i, at->loc);
            own = lower_apply(l, optimizer, &parameter, 1, at);
        }
        if (!lower_is_error(own) && own.kind != VAL_OPTIMIZER_INSTANCE)
            lower_fail(l, at->loc, "'%s' is an optimizer with its arguments, as in '%s', not %s", setting->name,
                       example, lower_kind_text(l, own));
        if (optimizer.kind == VAL_LAMBDA && own.kind == VAL_OPTIMIZER_INSTANCE)
            record_choice(l, setting->name, i, lower_string(own.instance->module->ast->name), at->loc);
        ok = own.kind == VAL_OPTIMIZER_INSTANCE && update(l, own.instance, i, at);
    }
    l->user_loc = (Loc){0};
    return ok;
}

static bool update_parameter(Lower *l, const Instance *instance, uint32_t param, const Ast *at) {
    return update_one(l, instance, param, gradient_of(l, param), at);
}

/* An average is a state beside the parameter; its `update` gets the parameter's new value in place of a gradient. */
static bool update_average(Lower *l, const Instance *instance, uint32_t param, const Ast *at) {
    const Buffer of = l->graph->buffers.at[param];
    const char *name = tg_intern(l->graph, tg_arena_printf(l->arena, "average.%s", of.name));
    uint32_t average =
        tg_buffer_add(l->graph, (Buffer){.name = name, .type = of.type, .class = BUFFER_STATE, .loc = of.loc});
    *tg_map_put(&l->averages, &param, sizeof param, NULL) = average + 1;
    return update_one(l, instance, average, lower_read_buffer(l, param, at->loc), at);
}

/* Says so when training changes nothing. */
static void warn_untrained(Lower *l, const Ast *optimizer) {
    uint32_t frozen = 0;
    for (uint32_t i = 0; i < l->graph->buffers.count; i++) {
        const Buffer *buffer = &l->graph->buffers.at[i];
        if (buffer->class == BUFFER_PARAM && !buffer->frozen)
            return;
        frozen += buffer->class == BUFFER_PARAM;
    }
    lower_warn(l, WARN_untrained, optimizer->loc, "nothing is trained: %s",
               frozen ? "every parameter is frozen" : "the model has no parameter");
}

bool lower_update(Lower *l, const Ast *optimizer, const Ast *average) {
    FuncState *state = lower_func_begin(l, FUNC_UPDATE, "update", true, false);
    uint32_t count = l->graph->buffers.count;
    warn_untrained(l, optimizer);
    bool ok = for_parameters(l, optimizer, count, "AdamW(lr = 1e-3)", update_parameter) &&
              (!average || for_parameters(l, average, count, "ema(0.999)", update_average)) && store_states(l, true);
    return lower_func_end(l, state) && ok;
}

bool lower_train(Lower *l, const Ast *train) {
    Training *t = &l->graph->training;
    if (!read_settings(l, train, t))
        return false;
    const Ast *objective = setting_of(train, "objective");
    bool ok = lower_update(l, setting_of(train, "optimizer"), setting_of(train, "average"));
    ok = !l->restart && lower_objective(l, objective, &t->train, true) && ok;
    return ok && lower_objective(l, objective, t->validate.count ? &t->validate.at[0] : &t->train, false) &&
           lower_monitor(l, setting_of(train, "stop"), setting_of(train, "keep_best"));
}

/* ---- exports ---- */

static bool export_argument(Lower *l, Env *env, const Ast *arg, Value *value) {
    const Ast *type_ast = arg->kid_count ? arg->kid[0] : NULL;
    if (!type_ast) {
        lower_fail(l, arg->loc, "the argument '%s' of an 'export fn' needs a type", arg->name);
        return false;
    }
    Binding *named = type_ast->kind == AST_TYPE ? lower_find(env, type_ast->name) : NULL;
    if (named && named->value.kind == VAL_DATA) {
        DataSet set;
        if (!lower_data_set(l, named->value.data, &set))
            return false;
        *value = record_arguments(l, &set);
        return true;
    }
    Type type;
    if (!lower_declared_type(l, env, type_ast, false, &type))
        return false;
    *value = lower_tensor(l, add_argument(l, arg->name, tg_type(&l->graph->types, &type), arg->loc), NULL);
    return true;
}

bool lower_export(Lower *l, const Ast *fn, Env *env) {
    FuncState *state =
        lower_func_begin(l, FUNC_EXPORT, tg_arena_printf(l->graph->arena, "export.%s", fn->name), false, false);
    const Ast *params = fn->kid[0];
    Closure closure = {fn, env, NULL};
    Env *arguments = lower_env(l, env);
    bool ok = true;
    for (uint32_t i = 0; ok && i < params->kid_count; i++) {
        Value value;
        ok = export_argument(l, env, params->kid[i], &value);
        if (ok)
            lower_bind(l, arguments, params->kid[i]->name, value, params->kid[i]->loc, "argument");
    }
    l->user_loc = fn->loc;
    Value result = ok ? lower_call_bound(l, &closure, arguments, fn) : lower_error_value();
    l->user_loc = (Loc){0};
    ok = !lower_is_error(result);
    if (ok && result.kind == VAL_NONE) {
        lower_fail(l, fn->loc, "'export fn %s' returns nothing", fn->name);
        ok = false;
    }
    if (ok && result.kind != VAL_RECORD)
        ok = give_field(l, "value", result, fn, false);
    for (uint32_t i = 0; ok && result.kind == VAL_RECORD && i < result.record->count; i++)
        ok = give_field(l, result.record->names[i], result.record->values[i], fn, false);
    return lower_func_end(l, state) && ok;
}
