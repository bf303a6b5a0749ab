/* einsum([x, w], [[B, T, C], [C, D]] -> [B, T, D]): products summed over the names that the right side leaves out.
   Operands are joined from left to right; two that share a summed name meet in a dot, others in a product. */
#include "frontend/value.h"

#include <string.h>

/* A tensor whose dimensions have names. */
typedef struct Named {
    NodeId node;
    const char *name[TG_MAX_RANK];
    uint32_t rank;
} Named;

typedef struct Einsum {
    Lower *l;
    const Ast *call, *right;
    const Ast *left; /* the lists of the operands' names */
    Env *env;
    uint32_t joined; /* operands that are joined already */
    Vec(Binding) sizes;
} Einsum;

static const char *size_text(Lower *l, Value size) {
    return size.batch && size.integer == 1
               ? "B"
               : tg_arena_printf(l->arena, "%lld%s", (long long)size.integer, size.batch ? " * B" : "");
}

static int where(const Named *x, const char *name) {
    for (uint32_t i = 0; i < x->rank; i++)
        if (strcmp(x->name[i], name) == 0)
            return (int)i;
    return -1;
}

static bool in_list(const Ast *list, const char *name) {
    for (uint32_t i = 0; i < list->kid_count; i++)
        if (list->kid[i]->kind == AST_NAME && strcmp(list->kid[i]->name, name) == 0)
            return true;
    return false;
}

/* Whether the result or an operand that is still to come has this name. */
static bool needed(const Einsum *e, const char *name) {
    bool found = in_list(e->right, name);
    for (uint32_t i = e->joined; i < e->left->kid_count; i++)
        found |= in_list(e->left->kid[i], name);
    return found;
}

static const Type *type_of(const Einsum *e, const Named *x) {
    return tg_node_type(e->l->graph, e->l->func->func, x->node);
}

/* Sums over what nobody else reads. */
static bool sum_alone(const Einsum *e, Named *x, const Named *other) {
    bool axes[TG_MAX_RANK] = {0}, any = false;
    Named kept = {.node = x->node};
    for (uint32_t i = 0; i < x->rank; i++) {
        axes[i] = !needed(e, x->name[i]) && (!other || where(other, x->name[i]) < 0);
        any |= axes[i];
        if (!axes[i])
            kept.name[kept.rank++] = x->name[i];
    }
    if (any)
        kept.node = lower_reduce(e->l, e->call, OP_reduce_sum, x->node, axes);
    *x = kept;
    return x->node != 0;
}

/* `x` with its dimensions where `to` has them, and 1 for those that it lacks: ready to broadcast. */
static Value spread(const Einsum *e, const Named *x, const Named *to) {
    int64_t perm[TG_MAX_RANK];
    uint32_t count = 0;
    bool moves = false;
    Type type = {.rank = (uint8_t)to->rank};
    for (uint32_t i = 0; i < to->rank; i++) {
        int at = where(x, to->name[i]);
        type.dims[i] = at < 0 ? (Dim){1, false} : type_of(e, x)->dims[at];
        if (at < 0)
            continue;
        moves |= at != (int)count;
        perm[count++] = at;
    }
    NodeId node = x->node;
    Attr attr = {.list = {{perm, count}}};
    if (moves)
        node = lower_emit(e->l, e->call, OP_transpose, &attr, &node, 1, 0);
    return lower_tensor(e->l, node ? lower_reshape(e->l, e->call, node, &type) : 0, NULL);
}

static bool multiply(const Einsum *e, Named *x, const Named *y) {
    Named all = *x;
    for (uint32_t i = 0; i < y->rank; i++) {
        if (where(x, y->name[i]) >= 0)
            continue;
        if (all.rank == TG_MAX_RANK) {
            lower_fail(e->l, e->call->loc, "the product has more than %d dimensions", TG_MAX_RANK);
            return false;
        }
        all.name[all.rank++] = y->name[i];
    }
    Value product = lower_binary(e->l, e->call, OP_mul, spread(e, x, &all), spread(e, y, &all));
    if (lower_is_error(product))
        return false;
    all.node = product.tensor->node;
    *x = all;
    return true;
}

/* Result dimensions of a dot: shared, free of x, free of y. */
static bool join(const Einsum *e, Named *x, const Named *y) {
    int64_t shared_x[TG_MAX_RANK], shared_y[TG_MAX_RANK], summed_x[TG_MAX_RANK], summed_y[TG_MAX_RANK];
    uint32_t shared = 0, summed = 0;
    Named result = {0};
    for (uint32_t i = 0; i < x->rank; i++) {
        int at = where(y, x->name[i]);
        if (at >= 0 && needed(e, x->name[i])) {
            shared_x[shared] = i;
            shared_y[shared++] = at;
            result.name[result.rank++] = x->name[i];
        } else if (at >= 0) {
            summed_x[summed] = i;
            summed_y[summed++] = at;
        }
    }
    if (!summed)
        return multiply(e, x, y);
    const Named *both[] = {x, y};
    for (int v = 0; v < 2; v++)
        for (uint32_t i = 0; i < both[v]->rank && result.rank < TG_MAX_RANK; i++)
            if (where(both[1 - v], both[v]->name[i]) < 0)
                result.name[result.rank++] = both[v]->name[i];
    static const int64_t no_split[1] = {0};
    Attr attr = {
        .list = {{shared_x, shared}, {shared_y, shared}, {summed_x, summed}, {summed_y, summed}, {no_split, 0}}};
    NodeId operands[2] = {x->node, y->node};
    result.node = lower_emit(e->l, e->call, OP_dot, &attr, operands, 2, 0);
    *x = result;
    return x->node != 0;
}

/* The size that a name has had so far: of an earlier operand, or an integer in scope. NULL: it is new. */
static const Binding *size_before(Einsum *e, const Ast *name) {
    for (uint32_t i = 0; i < e->sizes.count; i++)
        if (strcmp(e->sizes.at[i].name, name->name) == 0)
            return &e->sizes.at[i];
    Binding *there = lower_find(e->env, name->name);
    if (!there && strcmp(name->name, "B") != 0)
        return NULL;
    Value value = lower_name(e->l, e->env, name->name, name->loc);
    if (value.kind != VAL_INT)
        return NULL;
    tg_push(e->l->arena, &e->sizes,
            (Binding){.name = name->name, .value = value, .loc = there ? there->loc : name->loc});
    return &e->sizes.at[e->sizes.count - 1];
}

static bool agrees(Einsum *e, const Ast *name, Dim dim) {
    const Binding *before = size_before(e, name);
    Value size = lower_int(dim.size);
    size.batch = dim.batch;
    if (!before)
        tg_push(e->l->arena, &e->sizes, (Binding){.name = name->name, .value = size, .loc = name->loc});
    if (!before || (before->value.integer == dim.size && before->value.batch == dim.batch))
        return true;
    lower_fail(e->l, name->loc, "'%s' is %s, this dimension is %s", name->name, size_text(e->l, before->value),
               size_text(e->l, size));
    if (!before->value.batch)
        lower_note(e->l, before->loc, "'%s' is %s because of this", name->name, size_text(e->l, before->value));
    return false;
}

/* The names of an operand; equal names have equal sizes. */
static bool name_dims(Einsum *e, const Ast *list, Value value, Named *x) {
    Lower *l = e->l;
    const Type *type = lower_type(l, value);
    if (list->kid_count != type->rank) {
        lower_fail(l, list->loc, "the pattern has %u dimensions, the operand is %s", list->kid_count,
                   lower_show(l, value));
        return false;
    }
    *x = (Named){.node = value.tensor->node};
    for (uint32_t i = 0; i < type->rank; i++) {
        const Ast *name = list->kid[i];
        if (name->kind != AST_NAME || where(x, name->name) >= 0) {
            lower_fail(l, name->loc,
                       name->kind == AST_NAME ? "'%s' stands twice in one operand; 'einsum' takes no diagonals"
                                              : "the pattern of 'einsum' holds names only",
                       name->name);
            return false;
        }
        if (!agrees(e, name, type->dims[i]))
            return false;
        x->name[x->rank++] = name->name;
    }
    return true;
}

static bool known_result(const Einsum *e) {
    for (uint32_t i = 0; i < e->right->kid_count; i++) {
        const Ast *name = e->right->kid[i];
        bool there = false, twice = false;
        for (uint32_t k = 0; name->kind == AST_NAME && k < e->left->kid_count; k++)
            there |= in_list(e->left->kid[k], name->name);
        for (uint32_t k = 0; there && k < i; k++)
            twice |= strcmp(e->right->kid[k]->name, name->name) == 0;
        if (there && !twice)
            continue;
        lower_fail(e->l, name->loc,
                   twice ? "this stands here twice" : "this does not stand on the left of the pattern");
        return false;
    }
    return true;
}

/* The result's dimensions in the order of the right side. */
static Value in_order(const Einsum *e, const Named *x) {
    int64_t perm[TG_MAX_RANK];
    TensorValue names = {0};
    bool moves = false;
    for (uint32_t i = 0; i < e->right->kid_count; i++) {
        names.names[i] = e->right->kid[i]->name;
        perm[i] = where(x, names.names[i]);
        moves |= perm[i] != i;
    }
    Attr attr = {.list = {{perm, x->rank}}};
    NodeId node = moves ? lower_emit(e->l, e->call, OP_transpose, &attr, &x->node, 1, 0) : x->node;
    return lower_tensor(e->l, node, &names);
}

Value lower_einsum(Lower *l, Env *env, const Ast *call, const ListValue *operands, const Ast *pattern) {
    Einsum e = {.l = l, .call = call, .left = pattern->kid[0], .right = pattern->kid[1], .env = env};
    for (uint32_t i = 0; i < e.left->kid_count; i++)
        if (e.left->kid[i]->kind != AST_LIST)
            return lower_fail(l, e.left->loc,
                              "the left side of the pattern has a list of names for each operand: [[B, T, C], [C, D]]");
    if (e.left->kid_count != operands->count)
        return lower_fail(l, pattern->loc, "the pattern is for %u operand%s, the list has %u", e.left->kid_count,
                          e.left->kid_count == 1 ? "" : "s", operands->count);
    Named *x = TG_ALLOC(l->arena, Named, operands->count);
    for (uint32_t i = 0; i < operands->count; i++) {
        Value value = operands->at[i];
        if (!lower_as_tensor(l, call, &value, "einsum") || !name_dims(&e, e.left->kid[i], value, &x[i]))
            return lower_error_value();
        if (lower_type(l, value)->dtype != tg_node_type(l->graph, l->func->func, x[0].node)->dtype)
            return lower_fail(l, call->loc, "'einsum' of %s and %s: two element types need a cast",
                              lower_show(l, operands->at[0]), lower_show(l, value));
    }
    if (!known_result(&e))
        return lower_error_value();
    for (e.joined = 1; e.joined < operands->count;) {
        Named *next = &x[e.joined++];
        if (!sum_alone(&e, next, &x[0]) || !sum_alone(&e, &x[0], next) || !join(&e, &x[0], next))
            return lower_error_value();
    }
    return sum_alone(&e, &x[0], NULL) ? in_order(&e, &x[0]) : lower_error_value();
}
