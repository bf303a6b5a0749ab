/* Types as they stand in the source: declared ones, and the matching of values against signatures. */
#include "frontend/value.h"

#include <ctype.h>
#include <string.h>

bool lower_check_type(Lower *l, Loc loc, const Type *type) {
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t size = type->dims[i].size;
        if (size >= 1 && size <= INT32_MAX)
            continue;
        lower_fail(l, loc, "dimension %u of %s is %lld; a dimension is 1 to 2147483647", i, lower_type_text(l, type),
                   (long long)size);
        return false;
    }
    if (tg_type_count(type, 1) < 0) {
        lower_fail(l, loc, "%s has more than 2^63 elements", lower_type_text(l, type));
        return false;
    }
    uint32_t batches = 0;
    for (uint32_t i = 0; i < type->rank; i++)
        batches += type->dims[i].batch;
    if (batches > 1) {
        lower_fail(l, loc, "%s has the batch B in two dimensions", lower_type_text(l, type));
        return false;
    }
    return true;
}

static const char *closest_type(const char *name) {
    static const char *const names[] = {
#define X(id, text, bytes, kind, st) text,
        TG_DTYPES(X)
#undef X
            "int",
        "float", "string"};
    return tg_closest(name, names, sizeof names / sizeof *names);
}

static bool unknown_type(Lower *l, const Ast *ast) {
    const char *closest = closest_type(ast->name);
    lower_fail(l, ast->loc, closest ? "there is no type '%s'; did you mean '%s'?" : "there is no type '%s'", ast->name,
               closest);
    return false;
}

static bool dim_value(Lower *l, Env *env, const Ast *ast, Dim *dim) {
    Value value = lower_eval(l, env, ast);
    if (!lower_force(l, &value) || lower_is_error(value))
        return false;
    if (value.kind != VAL_INT) {
        lower_fail(l, ast->loc, "a dimension is an integer known when compiling, not %s", lower_kind_text(l, value));
        return false;
    }
    *dim = (Dim){value.integer, value.batch};
    return true;
}

bool lower_declared_type(Lower *l, Env *env, const Ast *ast, bool batched, Type *type) {
    memset(type, 0, sizeof *type);
    if (ast->kind != AST_TYPE) {
        lower_fail(l, ast->loc, "a tensor type is needed here, like f32[3, 4]");
        return false;
    }
    type->dtype = tg_dtype_named(ast->name);
    if (type->dtype == DT_COUNT)
        return unknown_type(l, ast);
    if (ast->kid_count + batched > TG_MAX_RANK) {
        lower_fail(l, ast->loc, "%u dimensions; %d are the most", ast->kid_count, TG_MAX_RANK - batched);
        return false;
    }
    for (uint32_t i = 0; i < ast->kid_count; i++) {
        if (ast->kid[i]->kind == AST_ELLIPSIS || ast->kid[i]->kind == AST_DIM_NEW) {
            lower_fail(l, ast->kid[i]->loc, "no call binds dimensions here: write their sizes");
            return false;
        }
        if (!dim_value(l, env, ast->kid[i], &type->dims[type->rank++]))
            return false;
    }
    if (!lower_check_type(l, ast->loc, type))
        return false;
    if (batched) {
        memmove(type->dims + 1, type->dims, type->rank * sizeof *type->dims);
        type->dims[0] = (Dim){1, true};
        type->rank++;
    }
    return lower_check_type(l, ast->loc, type);
}

/* ---- matching ---- */

static const char *dims_text(Lower *l, const Dim *dims, uint32_t count) {
    Str text = tg_str(l->arena);
    tg_str_printf(&text, "[");
    for (uint32_t i = 0; i < count; i++) {
        tg_str_printf(&text, "%s", i ? ", " : "");
        if (!dims[i].batch)
            tg_str_printf(&text, "%lld", (long long)dims[i].size);
        else
            tg_str_printf(&text, dims[i].size == 1 ? "B" : "B*%lld", (long long)dims[i].size);
    }
    tg_str_printf(&text, "]");
    return text.text;
}

static const char *dim_text(Lower *l, Dim dim) {
    if (!dim.batch)
        return tg_arena_printf(l->arena, "%lld", (long long)dim.size);
    return dim.size == 1 ? "B" : tg_arena_printf(l->arena, "B*%lld", (long long)dim.size);
}

static void print_dim(Str *to, const Ast *dim) {
    switch (dim->kind) {
    case AST_NAME:
        tg_str_printf(to, "%s", dim->name);
        break;
    case AST_DIM_NEW:
        tg_str_printf(to, "=%s", dim->name);
        break;
    case AST_INT:
        tg_str_printf(to, "%lld", (long long)dim->integer);
        break;
    case AST_ELLIPSIS:
        tg_str_printf(to, "...");
        break;
    case AST_BINARY:
        print_dim(to, dim->kid[0]);
        tg_str_printf(to, " %c ", dim->op < 256 ? dim->op : '?');
        print_dim(to, dim->kid[1]);
        break;
    default:
        tg_str_printf(to, "(...)");
    }
}

static const char *wanted_text(Lower *l, const Ast *type) {
    Str text = tg_str(l->arena);
    tg_str_printf(&text, "%s[", type->name);
    for (uint32_t i = 0; i < type->kid_count; i++) {
        tg_str_printf(&text, "%s", i ? ", " : "");
        print_dim(&text, type->kid[i]);
    }
    tg_str_printf(&text, "]");
    return text.text;
}

static Binding *signature_name(const Signature *s, const char *name) {
    Binding *binding = lower_find_here(s->env, name);
    if (!binding && s->module)
        binding = lower_find_here(s->module, name);
    return binding;
}

static bool mismatch(Lower *l, const Signature *s, const Ast *type, Value value, uint32_t axis, Dim needed,
                     const Binding *binding) {
    Dim has = lower_type(l, value)->dims[axis];
    lower_fail(l, s->loc, "%s is %s, not %s: dimension %u is %s, not %s", s->what, lower_show(l, value),
               wanted_text(l, type), axis, dim_text(l, has), dim_text(l, needed));
    if (binding && !lower_in_std(l, binding->loc))
        lower_note(l, binding->loc, "'%s' is %s because of this %s", binding->name, dim_text(l, needed),
                   binding->role ? binding->role : "value");
    Loc origin = tg_locs_first(l->graph, tg_node(value.tensor->func, value.tensor->node)->locs);
    if (origin.line && (origin.line != s->loc.line || origin.file != s->loc.file) && !lower_in_std(l, origin))
        lower_note(l, origin, "%s comes from here", lower_type_text(l, lower_type(l, value)));
    if (!lower_in_std(l, type->loc))
        lower_note(l, type->loc, "%s is needed here", wanted_text(l, type));
    return false;
}

static bool match_name(Lower *l, const Signature *s, const Ast *type, const Ast *dim, Value value, uint32_t axis) {
    Dim has = lower_type(l, value)->dims[axis];
    if (strcmp(dim->name, "B") == 0) {
        if (has.batch && has.size == 1)
            return true;
        return mismatch(l, s, type, value, axis, (Dim){1, true}, NULL);
    }
    if (strcmp(dim->name, "_") == 0 && s->result)
        return true;
    Binding *binding = dim->kind == AST_DIM_NEW ? lower_find_here(s->env, dim->name) : signature_name(s, dim->name);
    Dim needed;
    if (!binding) {
        if (!s->result) {
            Value size = lower_int(has.size);
            size.batch = has.batch;
            lower_bind(l, s->env, dim->name, size, s->loc, "dimension");
            return true;
        }
        if (!dim_value(l, s->env, dim, &needed))
            return false;
    } else {
        Value known = binding->value;
        if (!lower_force(l, &known) || lower_is_error(known))
            return false;
        if (known.kind != VAL_INT) {
            lower_fail(l, dim->loc, "'%s' is %s, no size of a dimension", dim->name, lower_kind_text(l, known));
            return false;
        }
        needed = (Dim){known.integer, known.batch};
    }
    return tg_dim_equal(needed, has) || mismatch(l, s, type, value, axis, needed, binding);
}

static bool match_rest(Lower *l, const Signature *s, const Ast *type, Value value, uint32_t first, uint32_t count) {
    const Type *own = lower_type(l, value);
    Binding *binding = lower_find_here(s->env, "...");
    if (!binding) {
        Type rest = {.rank = (uint8_t)count};
        memcpy(rest.dims, own->dims + first, count * sizeof *rest.dims);
        lower_bind(l, s->env, "...", lower_shape_list(l, &rest), s->loc, "dimensions");
        return true;
    }
    const ListValue *known = binding->value.list;
    Dim dims[TG_MAX_RANK];
    bool equal = known->count == count;
    for (uint32_t i = 0; i < known->count && i < TG_MAX_RANK; i++)
        dims[i] = (Dim){known->at[i].integer, known->at[i].batch};
    for (uint32_t i = 0; equal && i < count; i++)
        equal = tg_dim_equal(dims[i], own->dims[first + i]);
    if (equal)
        return true;
    lower_fail(l, s->loc, "%s is %s, not %s: '...' is %s, not %s", s->what, lower_show(l, value), wanted_text(l, type),
               dims_text(l, own->dims + first, count), dims_text(l, dims, known->count));
    lower_note(l, binding->loc, "'...' is %s because of this", dims_text(l, dims, known->count));
    return false;
}

static bool match_dims(Lower *l, const Signature *s, const Ast *type, Value value) {
    const Type *own = lower_type(l, value);
    uint32_t given = type->kid_count, axis = 0;
    bool open = false;
    for (uint32_t i = 0; i < type->kid_count; i++)
        if (type->kid[i]->kind == AST_ELLIPSIS) {
            given--;
            open = true;
        }
    if (open ? own->rank < given : own->rank != given) {
        lower_fail(l, s->loc, "%s is %s, not %s: %u dimensions, not %u%s", s->what, lower_show(l, value),
                   wanted_text(l, type), own->rank, given, open ? " or more" : "");
        if (!lower_in_std(l, type->loc))
            lower_note(l, type->loc, "%s is needed here", wanted_text(l, type));
        return false;
    }
    for (uint32_t i = 0; i < type->kid_count; i++) {
        const Ast *dim = type->kid[i];
        if (dim->kind == AST_ELLIPSIS) {
            if (!s->compound && !match_rest(l, s, type, value, axis, own->rank - given))
                return false;
            axis += own->rank - given;
            continue;
        }
        bool simple = dim->kind == AST_NAME || dim->kind == AST_DIM_NEW;
        if (simple && !s->compound) {
            if (!match_name(l, s, type, dim, value, axis))
                return false;
        } else if (!simple && s->compound) {
            Dim needed;
            if (!dim_value(l, s->env, dim, &needed))
                return false;
            if (!tg_dim_equal(needed, own->dims[axis]))
                return mismatch(l, s, type, value, axis, needed, NULL);
        }
        axis++;
    }
    return true;
}

/* Inside of a function dimensions have the names of its signature. */
static void rename_dims(Lower *l, const Signature *s, const Ast *type, Value *value) {
    TensorValue *copy = tg_arena_copy(l->arena, value->tensor, sizeof *copy);
    uint32_t rank = lower_type(l, *value)->rank, axis = 0;
    for (uint32_t i = 0; i < type->kid_count; i++) {
        const Ast *dim = type->kid[i];
        if (dim->kind == AST_ELLIPSIS) {
            axis += rank - (type->kid_count - 1);
            continue;
        }
        bool named = dim->kind == AST_NAME || dim->kind == AST_DIM_NEW;
        if (axis < TG_MAX_RANK && !s->result)
            copy->names[axis] = named && strcmp(dim->name, "_") != 0 ? dim->name : NULL;
        axis++;
    }
    value->tensor = copy;
}

static bool wrong(Lower *l, const Signature *s, const char *needed, Value value) {
    lower_fail(l, s->loc, "%s is %s, not %s", s->what, lower_show(l, value), needed);
    return false;
}

static bool match_element(Lower *l, const Signature *s, const Ast *type, DType dtype, Value *value) {
    if (!type->flag) { /* a single number */
        bool whole = !tg_is_float(dtype) && dtype != DT_BOOL;
        if (lower_is_number(*value) ? !whole || value->kind == VAL_INT : lower_is_scalar(*value) && !whole)
            return true;
        if (dtype == DT_BOOL && value->kind == VAL_BOOL)
            return true;
        if (lower_is_tensor(*value) && lower_type(l, *value)->rank == 0 && lower_type(l, *value)->dtype == dtype)
            return true;
        return wrong(l, s, tg_arena_printf(l->arena, "a single %s", type->name), *value);
    }
    if (value->kind == VAL_LIST || lower_is_number(*value) || lower_is_scalar(*value)) {
        if (!l->func)
            return wrong(l, s, wanted_text(l, type), *value);
        const Ast at = {.loc = s->loc, .kind = AST_NAME};
        *value = lower_tensor(l, lower_operand(l, &at, *value, dtype), NULL);
    }
    if (lower_is_error(*value))
        return false;
    if (!lower_is_tensor(*value))
        return wrong(l, s, wanted_text(l, type), *value);
    if (lower_type(l, *value)->dtype != dtype) {
        lower_fail(l, s->loc, "%s is %s, not %s: two element types need a cast, '%s(...)'", s->what,
                   lower_show(l, *value), wanted_text(l, type), tg_dtype(dtype)->name);
        return false;
    }
    if (!match_dims(l, s, type, *value))
        return false;
    rename_dims(l, s, type, value);
    return true;
}

static bool all_whole(Value value) {
    for (uint32_t i = 0; value.kind == VAL_LIST && i < value.list->count; i++)
        if (!all_whole(value.list->at[i]))
            return false;
    return value.kind == VAL_LIST || value.kind == VAL_INT;
}

static bool match_variable(Lower *l, const Signature *s, const Ast *type, Value *value) {
    Binding *known = lower_find_here(s->env, type->name);
    if (known && known->value.kind == VAL_DTYPE)
        return match_element(l, s, type, known->value.dtype, value);
    const char *closest = closest_type(type->name);
    bool like_type = closest && strlen(type->name) > 1 && isdigit((unsigned char)type->name[strlen(type->name) - 1]);
    if (s->result || like_type)
        return unknown_type(l, type);
    if (!lower_is_tensor(*value)) {
        if (type->flag && value->kind != VAL_LIST)
            return wrong(l, s, wanted_text(l, type), *value);
        DType dtype = value->kind == VAL_LIST && all_whole(*value) ? DT_I32 : DT_F32;
        lower_bind(l, s->env, type->name, (Value){.kind = VAL_DTYPE, .dtype = dtype}, s->loc, "type");
        return !type->flag || match_element(l, s, type, dtype, value);
    }
    DType dtype = lower_type(l, *value)->dtype;
    lower_bind(l, s->env, type->name, (Value){.kind = VAL_DTYPE, .dtype = dtype}, s->loc, "type");
    return match_element(l, s, type, dtype, value);
}

static bool match_record(Lower *l, const Signature *s, const Ast *type, Value *value) {
    if (value->kind != VAL_RECORD)
        return wrong(l, s, "a record", *value);
    for (uint32_t i = 0; i < type->kid_count; i++) {
        const Ast *field = type->kid[i];
        bool found = false;
        for (uint32_t k = 0; k < value->record->count && !found; k++) {
            if (strcmp(value->record->names[k], field->name) != 0)
                continue;
            found = true;
            Signature inner = *s;
            inner.what = tg_arena_printf(l->arena, "field '%s' of %s", field->name, s->what);
            if (!lower_match(l, &inner, field->kid[0], &value->record->values[k]))
                return false;
        }
        if (!found) {
            lower_fail(l, s->loc, "%s has no field '%s'", s->what, field->name);
            return false;
        }
    }
    return true;
}

/* 0 or 1 when the type is one of the compiler's own, -1 otherwise. */
static int match_known(Lower *l, const Signature *s, const char *name, Value *value) {
    if (strcmp(name, "int") == 0) {
        if (!lower_force(l, value) || lower_is_error(*value))
            return 0;
        return (value->kind == VAL_INT) ? 1 : wrong(l, s, "an integer known when compiling", *value);
    }
    if (strcmp(name, "float") == 0)
        return (lower_is_number(*value) || lower_is_scalar(*value)) ? 1 : wrong(l, s, "a number", *value);
    if (strcmp(name, "string") == 0)
        return value->kind == VAL_STRING ? 1 : wrong(l, s, "a string", *value);
    return -1;
}

bool lower_match(Lower *l, const Signature *s, const Ast *type, Value *value) {
    if (lower_is_error(*value))
        return false;
    if (value->kind == VAL_NONE && !s->result)
        return true; /* `= none` says that the argument may be left out */
    if (type->kind == AST_RECORD_TYPE)
        return match_record(l, s, type, value);
    if (type->kind != AST_TYPE)
        return true;
    int known = match_known(l, s, type->name, value);
    if (known >= 0)
        return known;
    DType dtype = tg_dtype_named(type->name);
    if (dtype != DT_COUNT)
        return match_element(l, s, type, dtype, value);
    Binding *named = lower_find(s->env, type->name);
    ValueKind kind = named ? (ValueKind)named->value.kind : VAL_ERROR;
    if (kind == VAL_DATA || kind == VAL_UNIT)
        return value->kind == VAL_RECORD || wrong(l, s, "a record of that data block", *value);
    if (kind == VAL_MODULE)
        return value->kind == VAL_INSTANCE || wrong(l, s, "an instance of that module", *value);
    return match_variable(l, s, type, value);
}
