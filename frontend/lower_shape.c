/* Reshaping, indexing and rearranging. */
#include "frontend/value.h"

#include <string.h>

NodeId lower_reshape(Lower *l, const Ast *at, NodeId x, const Type *shape) {
    Type type = *shape;
    const Type *own = tg_node_type(l->graph, l->func->func, x);
    type.dtype = own->dtype;
    if (tg_shape_equal(own, &type))
        return x;
    return lower_emit(l, at, OP_reshape, NULL, &x, 1, tg_type(&l->graph->types, &type));
}

bool lower_dims(Lower *l, Loc loc, Value value, Type *type) {
    type->rank = 0;
    uint32_t count = value.kind == VAL_LIST ? value.list->count : 1;
    if (count > TG_MAX_RANK) {
        lower_fail(l, loc, "%u dimensions; %d are the most", count, TG_MAX_RANK);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        Value dim = value.kind == VAL_LIST ? value.list->at[i] : value;
        if (!lower_force(l, &dim) || lower_is_error(dim))
            return false;
        if (dim.kind != VAL_INT) {
            lower_fail(l, loc, "a dimension is an integer known when compiling, not %s", lower_kind_text(l, dim));
            return false;
        }
        type->dims[type->rank++] = (Dim){dim.integer, dim.batch};
    }
    return lower_check_type(l, loc, type);
}

/* ---- indexing ---- */

typedef struct Subscripts {
    int64_t start[TG_MAX_RANK], limit[TG_MAX_RANK], stride[TG_MAX_RANK];
    bool dropped[TG_MAX_RANK];
    bool cut; /* anything but whole dimensions */
} Subscripts;

static bool index_number(Lower *l, Env *env, const Ast *ast, int64_t absent, int64_t size, int64_t *number) {
    if (!ast) {
        *number = absent;
        return true;
    }
    Value value = lower_eval(l, env, ast);
    if (!lower_force(l, &value) || lower_is_error(value))
        return false;
    if (value.kind != VAL_INT || value.batch) {
        lower_fail(l, ast->loc, "an index is an integer known when compiling, not %s; 'take' looks up run-time indices",
                   lower_kind_text(l, value));
        return false;
    }
    *number = value.integer < 0 ? value.integer + size : value.integer;
    return true;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

static bool one_subscript(Lower *l, Env *env, const Ast *ast, const Type *type, uint32_t axis, Subscripts *to) {
    Dim dim = type->dims[axis];
    to->start[axis] = 0;
    to->limit[axis] = dim.size;
    to->stride[axis] = 1;
    if (ast->kind == AST_SLICE && !ast->kid[0] && !ast->kid[1] && !ast->kid[2])
        return true;
    if (dim.batch) {
        lower_fail(l, ast->loc, "the batch dimension cannot be indexed or sliced; dimension %u of %s holds B", axis,
                   lower_type_text(l, type));
        return false;
    }
    to->cut = true;
    if (ast->kind != AST_SLICE) {
        int64_t at;
        if (!index_number(l, env, ast, 0, dim.size, &at))
            return false;
        if (at < 0 || at >= dim.size) {
            lower_fail(l, ast->loc, "index %lld is outside of dimension %u of %s", (long long)at, axis,
                       lower_type_text(l, type));
            return false;
        }
        to->start[axis] = at;
        to->limit[axis] = at + 1;
        to->dropped[axis] = true;
        return true;
    }
    int64_t start, limit, stride;
    if (!index_number(l, env, ast->kid[0], 0, dim.size, &start) ||
        !index_number(l, env, ast->kid[1], dim.size, dim.size, &limit) ||
        !index_number(l, env, ast->kid[2], 1, 0, &stride))
        return false;
    if (stride < 1) {
        lower_fail(l, ast->loc, "the step of a slice is at least 1; 'reverse' turns a dimension around");
        return false;
    }
    start = clamp(start, 0, dim.size);
    limit = clamp(limit, 0, dim.size);
    if (start >= limit) {
        lower_fail(l, ast->loc, "the slice %lld:%lld of dimension %u of %s is empty", (long long)start,
                   (long long)limit, axis, lower_type_text(l, type));
        return false;
    }
    to->start[axis] = start;
    to->limit[axis] = limit;
    to->stride[axis] = stride;
    return true;
}

static Value index_tensor(Lower *l, Env *env, const Ast *ast, Value x) {
    Type type = *lower_type(l, x);
    Subscripts subscripts = {0};
    uint32_t given = 0, axis = 0;
    for (uint32_t i = 1; i < ast->kid_count; i++)
        given += ast->kid[i]->kind != AST_ELLIPSIS;
    if (given > type.rank)
        return lower_fail(l, ast->loc, "%u subscripts for %s", given, lower_show(l, x));
    for (uint32_t i = 0; i < type.rank; i++) {
        subscripts.limit[i] = type.dims[i].size;
        subscripts.stride[i] = 1;
    }
    for (uint32_t i = 1; i < ast->kid_count; i++) {
        if (ast->kid[i]->kind == AST_ELLIPSIS) {
            axis += type.rank - given;
            continue;
        }
        if (!one_subscript(l, env, ast->kid[i], &type, axis++, &subscripts))
            return lower_error_value();
    }
    if (!subscripts.cut)
        return x;
    Attr attr = {
        .list = {{subscripts.start, type.rank}, {subscripts.limit, type.rank}, {subscripts.stride, type.rank}}};
    NodeId node = lower_emit(l, ast, OP_slice, &attr, &x.tensor->node, 1, 0);
    if (!node)
        return lower_error_value();
    Type sliced = *tg_node_type(l->graph, l->func->func, node), kept = sliced;
    TensorValue names = {0};
    kept.rank = 0;
    for (uint32_t i = 0; i < sliced.rank; i++) {
        if (subscripts.dropped[i])
            continue;
        if (tg_dim_equal(sliced.dims[i], type.dims[i]))
            names.names[kept.rank] = x.tensor->names[i];
        kept.dims[kept.rank++] = sliced.dims[i];
    }
    return lower_tensor(l, lower_reshape(l, ast, node, &kept), &names);
}

static Value index_list(Lower *l, Env *env, const Ast *ast, const ListValue *list) {
    if (ast->kid_count != 2)
        return lower_fail(l, ast->loc, "a list takes one subscript");
    const Ast *sub = ast->kid[1];
    int64_t start, limit, stride;
    if (sub->kind != AST_SLICE) {
        if (!index_number(l, env, sub, 0, list->count, &start))
            return lower_error_value();
        if (start < 0 || start >= list->count)
            return lower_fail(l, sub->loc, "index %lld is outside of a list of %u", (long long)start, list->count);
        return list->at[start];
    }
    if (!index_number(l, env, sub->kid[0], 0, list->count, &start) ||
        !index_number(l, env, sub->kid[1], list->count, list->count, &limit) ||
        !index_number(l, env, sub->kid[2], 1, 0, &stride))
        return lower_error_value();
    if (stride < 1)
        return lower_fail(l, sub->loc, "the step of a slice is at least 1");
    Vec(Value) all = {0};
    for (int64_t i = clamp(start, 0, list->count); i < clamp(limit, 0, list->count); i += stride)
        tg_push(l->arena, &all, list->at[i]);
    return lower_list(l, all.at, all.count);
}

Value lower_index(Lower *l, Env *env, const Ast *ast) {
    Value x = lower_eval(l, env, ast->kid[0]);
    if (lower_is_error(x))
        return x;
    if (x.kind == VAL_LIST)
        return index_list(l, env, ast, x.list);
    if (lower_is_tensor(x))
        return index_tensor(l, env, ast, x);
    return lower_fail(l, ast->loc, "%s cannot be indexed", lower_kind_text(l, x));
}

/* ---- rearrange(x, [B, T, (H, D)] -> [B, H, T, D]) ---- */

typedef struct Atom {
    const char *name; /* NULL: a number of the right side, or one of the dimensions of `...` */
    Dim dim;
    bool known;
} Atom;

typedef struct Atoms {
    Atom at[TG_MAX_RANK];
    uint32_t count;
    uint32_t ellipsis, ellipsis_count;
} Atoms;

static bool known_size(Lower *l, Env *env, const Ast *name, Atom *atom) {
    *atom = (Atom){.name = name->name};
    if (name->kind == AST_INT) {
        *atom = (Atom){.dim = {name->integer, false}, .known = true};
        return true;
    }
    if (name->kind != AST_NAME) {
        lower_fail(l, name->loc, "a pattern holds names, groups of names and numbers");
        return false;
    }
    Binding *binding = lower_find(env, name->name);
    if (!binding && strcmp(name->name, "B") != 0)
        return true;
    Value value = lower_name(l, env, name->name, name->loc);
    if (value.kind == VAL_INT) {
        atom->dim = (Dim){value.integer, value.batch};
        atom->known = true;
    }
    return !lower_is_error(value);
}

/* Splits one dimension into the atoms of a group, solving one unknown. */
static bool split_group(Lower *l, Env *env, const Ast *group, Dim whole, Atoms *atoms, const char *shape) {
    Dim product = {1, false};
    int unknown = -1;
    uint32_t parts = group->kind == AST_TUPLE ? group->kid_count : 1;
    for (uint32_t i = 0; i < parts; i++) {
        if (atoms->count == TG_MAX_RANK) {
            lower_fail(l, group->loc, "the pattern has more than %d dimensions", TG_MAX_RANK);
            return false;
        }
        Atom *atom = &atoms->at[atoms->count];
        const Ast *name = group->kind == AST_TUPLE ? group->kid[i] : group;
        if (!known_size(l, env, name, atom))
            return false;
        if (!atom->known && unknown >= 0) {
            lower_fail(l, group->loc, "both '%s' and '%s' are unknown in this group; one can be solved",
                       atoms->at[unknown].name, atom->name);
            return false;
        }
        if (!atom->known)
            unknown = (int)atoms->count;
        else {
            product.size *= atom->dim.size;
            product.batch |= atom->dim.batch;
        }
        atoms->count++;
    }
    bool divides = product.size > 0 && whole.size % product.size == 0 && (!product.batch || whole.batch);
    if (unknown >= 0 && divides) {
        atoms->at[unknown].dim = (Dim){whole.size / product.size, whole.batch && !product.batch};
        atoms->at[unknown].known = true;
        return true;
    }
    if (unknown < 0 && tg_dim_equal(product, whole))
        return true;
    lower_fail(l, group->loc, "the pattern does not fit %s: %lld%s is not %s %lld%s", shape, (long long)whole.size,
               whole.batch ? " * B" : "", unknown >= 0 ? "a multiple of" : "equal to", (long long)product.size,
               product.batch ? " * B" : "");
    return false;
}

static bool left_side(Lower *l, Env *env, const Ast *list, Value x, Atoms *atoms) {
    const Type *type = lower_type(l, x);
    uint32_t given = 0, axis = 0;
    for (uint32_t i = 0; i < list->kid_count; i++)
        given += list->kid[i]->kind != AST_ELLIPSIS;
    bool open = given < list->kid_count;
    if (open ? given > type->rank : given != type->rank) {
        lower_fail(l, list->loc, "the pattern has %u dimensions, the value is %s", given, lower_show(l, x));
        return false;
    }
    for (uint32_t i = 0; i < list->kid_count; i++) {
        if (list->kid[i]->kind != AST_ELLIPSIS) {
            if (!split_group(l, env, list->kid[i], type->dims[axis++], atoms, lower_show(l, x)))
                return false;
            continue;
        }
        atoms->ellipsis = atoms->count;
        atoms->ellipsis_count = type->rank - given;
        for (uint32_t k = 0; k < type->rank - given && atoms->count < TG_MAX_RANK; k++)
            atoms->at[atoms->count++] = (Atom){.dim = type->dims[axis++], .known = true};
    }
    return true;
}

static int find_atom(const Atoms *atoms, const char *name) {
    for (uint32_t i = 0; i < atoms->count; i++)
        if (atoms->at[i].name && strcmp(atoms->at[i].name, name) == 0)
            return (int)i;
    return -1;
}

typedef struct Rearranged {
    int64_t perm[TG_MAX_RANK];
    uint32_t count;
    Type result;
    TensorValue names;
    bool used[TG_MAX_RANK];
} Rearranged;

static bool place(Lower *l, const Ast *name, const Atoms *atoms, Rearranged *to, Dim *dim) {
    if (name->kind == AST_INT && name->integer == 1)
        return true;
    int at = name->kind == AST_NAME ? find_atom(atoms, name->name) : -1;
    if (at < 0 || to->used[at]) {
        lower_fail(l, name->loc, at < 0 ? "this does not stand on the left of the pattern" : "this stands here twice");
        return false;
    }
    to->used[at] = true;
    to->perm[to->count++] = at;
    dim->size *= atoms->at[at].dim.size;
    dim->batch |= atoms->at[at].dim.batch;
    return true;
}

static bool right_side(Lower *l, const Ast *list, const Atoms *atoms, Rearranged *to) {
    for (uint32_t i = 0; i < list->kid_count; i++) {
        const Ast *group = list->kid[i];
        uint32_t before = to->count;
        if (to->result.rank == TG_MAX_RANK) {
            lower_fail(l, list->loc, "the pattern has more than %d dimensions", TG_MAX_RANK);
            return false;
        }
        if (group->kind == AST_ELLIPSIS) {
            for (uint32_t k = 0; k < atoms->ellipsis_count; k++) {
                to->used[atoms->ellipsis + k] = true;
                to->perm[to->count++] = atoms->ellipsis + k;
                to->result.dims[to->result.rank++] = atoms->at[atoms->ellipsis + k].dim;
            }
            continue;
        }
        Dim dim = {1, false};
        uint32_t parts = group->kind == AST_TUPLE ? group->kid_count : 1;
        for (uint32_t k = 0; k < parts; k++)
            if (!place(l, group->kind == AST_TUPLE ? group->kid[k] : group, atoms, to, &dim))
                return false;
        if (dim.batch && to->count > before && !atoms->at[to->perm[before]].dim.batch) {
            lower_fail(l, group->loc, "B is the first of its group: B * n, not n * B");
            return false;
        }
        to->names.names[to->result.rank] = group->kind == AST_NAME ? group->name : NULL;
        to->result.dims[to->result.rank++] = dim;
    }
    for (uint32_t i = 0; i < atoms->count; i++)
        if (!to->used[i]) {
            lower_fail(l, list->loc, "'%s' of the left side is missing on the right",
                       atoms->at[i].name ? atoms->at[i].name : "...");
            return false;
        }
    return true;
}

Value lower_rearrange(Lower *l, Env *env, const Ast *call, Value x, const Ast *pattern) {
    Atoms atoms = {0};
    Rearranged to = {0};
    if (!left_side(l, env, pattern->kid[0], x, &atoms) || !right_side(l, pattern->kid[1], &atoms, &to))
        return lower_error_value();
    Type split = {.rank = (uint8_t)atoms.count};
    for (uint32_t i = 0; i < atoms.count; i++)
        split.dims[i] = atoms.at[i].dim;
    NodeId node = lower_reshape(l, call, x.tensor->node, &split);
    bool moves = false;
    for (uint32_t i = 0; i < to.count; i++)
        moves |= to.perm[i] != i;
    Attr attr = {.list = {{to.perm, to.count}}};
    if (moves)
        node = lower_emit(l, call, OP_transpose, &attr, &node, 1, 0);
    if (node)
        node = lower_reshape(l, call, node, &to.result);
    return lower_tensor(l, node, &to.names);
}
