/* Index maps: the place in an operand that a place in the result reads. */
#include "codegen/lower.h"

typedef Place *PlaceRule(Lower *l, const Node *node, uint32_t i, const Place *place);

static const Type *type_of(const Lower *l, NodeId node) { return tg_node_type(l->graph, l->func, node); }

static const Type *operand_type(const Lower *l, const Node *node, uint32_t i) {
    return type_of(l, tg_operand(l->func, node, i));
}

static Place *new_place(Lower *l, uint32_t rank) {
    Place *place = TG_ALLOC(l->arena, Place, 1);
    place->rank = rank;
    return place;
}

static Place *place_reshape(Lower *l, const Node *node, uint32_t i, const Place *place) {
    Index flat = tg_place_flatten(l, place, tg_type_of(&l->graph->types, node->type));
    return tg_index_unflatten(l, &flat, operand_type(l, node, i));
}

static Place *place_transpose(Lower *l, const Node *node, uint32_t i, const Place *place) {
    (void)i;
    Place *from = new_place(l, place->rank);
    for (uint32_t d = 0; d < place->rank; d++)
        from->at[node->attr->list[0].at[d]] = place->at[d];
    return from;
}

static Place *place_broadcast(Lower *l, const Node *node, uint32_t i, const Place *place) {
    const Type *type = operand_type(l, node, i);
    Place *from = new_place(l, type->rank);
    for (uint32_t d = 0; d < type->rank; d++)
        if (type->dims[d].batch || type->dims[d].size != 1)
            from->at[d] = place->at[node->attr->list[0].at[d]];
    return from;
}

static Place *place_slice(Lower *l, const Node *node, uint32_t i, const Place *place) {
    (void)i;
    Place *from = new_place(l, place->rank);
    for (uint32_t d = 0; d < place->rank; d++) {
        from->at[d] = tg_index_const(node->attr->list[0].at[d]);
        tg_index_add(l, &from->at[d], &place->at[d], node->attr->list[2].at[d]);
    }
    return from;
}

static Place *place_reverse(Lower *l, const Node *node, uint32_t i, const Place *place) {
    const Type *type = operand_type(l, node, i);
    Place *from = tg_arena_copy(l->arena, place, sizeof *place);
    Ints axes = node->attr->list[0];
    for (uint32_t a = 0; a < axes.count; a++) {
        int64_t axis = axes.at[a];
        from->at[axis] = tg_index_const(tg_dim_extent(l, type->dims[axis]) - 1);
        tg_index_add(l, &from->at[axis], &place->at[axis], -1);
    }
    return from;
}

static Index new_var(Lower *l, Var var) {
    for (uint32_t i = 1; i < l->vars.count; i++) {
        const Var *old = &l->vars.at[i];
        bool same_of = old->of == var.of || (old->of && var.of && tg_index_equal(old->of, var.of));
        if (old->kind == var.kind && old->by == var.by && old->step == var.step && old->node == var.node &&
            old->place == var.place && same_of)
            return tg_index_var(l, i);
    }
    tg_push(l->arena, &l->vars, var);
    return tg_index_var(l, l->vars.count - 1);
}

/* Places in the padding read some element; emit_pad drops it. */
static Place *place_pad(Lower *l, const Node *node, uint32_t i, const Place *place) {
    const Type *type = operand_type(l, node, i);
    Place *from = new_place(l, place->rank);
    for (uint32_t d = 0; d < place->rank; d++) {
        int64_t low = node->attr->list[0].at[d], high = node->attr->list[1].at[d], step = node->attr->list[2].at[d] + 1;
        if (low == 0 && high == 0 && step == 1) {
            from->at[d] = place->at[d];
            continue;
        }
        Index shifted = tg_index_const(-low);
        tg_index_add(l, &shifted, &place->at[d], 1);
        int64_t extent = tg_dim_extent(l, type->dims[d]);
        from->at[d] = new_var(l, (Var){.kind = VAR_CLAMPED,
                                       .extent = extent,
                                       .by = extent,
                                       .step = step,
                                       .depth = tg_index_depth(l, &shifted),
                                       .of = tg_arena_copy(l->arena, &shifted, sizeof shifted)});
    }
    return from;
}

static Place *place_take(Lower *l, const Node *node, uint32_t i, const Place *place) {
    const Type *table = operand_type(l, node, 0), *indices = operand_type(l, node, 1);
    int64_t axis = tg_lower_int(node, 0, 0);
    Place *index_place = new_place(l, indices->rank);
    for (uint32_t d = 0; d < indices->rank; d++)
        index_place->at[d] = place->at[axis + d];
    if (i == 1)
        return index_place;
    Place *from = new_place(l, table->rank);
    for (int d = 0; d < table->rank; d++)
        if (d != axis)
            from->at[d] = place->at[d < axis ? d : d + indices->rank - 1];
    NodeId index = tg_operand(l->func, node, 1);
    const Place *known = tg_lower_entry(l, index, index_place)->place;
    int64_t extent = tg_dim_extent(l, table->dims[axis]);
    from->at[axis] = new_var(l, (Var){.kind = VAR_TAKEN,
                                      .extent = extent,
                                      .by = extent,
                                      .node = index,
                                      .place = known,
                                      .depth = tg_place_depth(l, known)});
    return from;
}

/* ---- picks ---- */

bool tg_lower_made_once(const Lower *l, NodeId id) {
    const Node *node = tg_node(l->func, id);
    if (node->op != OP_broadcast)
        return false;
    const Type *from = operand_type(l, node, 0), *to = type_of(l, id);
    uint32_t last = from->rank;
    return last == 0 || node->attr->list[0].at[last - 1] != to->rank - 1 || tg_dim_extent(l, from->dims[last - 1]) == 1;
}

/* 0, 1, 2, ... along the last axis. */
static bool counts_columns(const Lower *l, NodeId id) {
    const Node *node = tg_node(l->func, id);
    if (node->op == OP_broadcast && !tg_lower_made_once(l, id))
        node = tg_node(l->func, tg_operand(l->func, node, 0));
    return node->op == OP_iota && tg_lower_int(node, 0, 0) == tg_type_of(&l->graph->types, node->type)->rank - 1;
}

/* Of `a == b` with the number of the column on one side and a whole number of the row on the other: that one. */
static NodeId label_of(const Lower *l, const Node *equal) {
    NodeId a = tg_operand(l->func, equal, 0), b = tg_operand(l->func, equal, 1);
    if (!tg_is_integer((DType)type_of(l, a)->dtype))
        return 0;
    if (counts_columns(l, a) && tg_lower_made_once(l, b))
        return b;
    return counts_columns(l, b) && tg_lower_made_once(l, a) ? a : 0;
}

/* Sums of `select(number == column, value, 0)`, or of its negative. Adding zeros to +0 and to any number changes nothing. */
static NodeId picked_label(const Lower *l, const Node *sum) {
    const Type *type = operand_type(l, sum, 0);
    int64_t axis = tg_lower_int(sum, 0, 0);
    const Node *picks = tg_node(l->func, tg_operand(l->func, sum, 0));
    if (axis != type->rank - 1 || type->dims[axis].batch || tg_lower_int(sum, 1, 1) > 1 || tg_dim_extent(l, type->dims[axis]) == 0)
        return 0;
    if (picks->op == OP_neg)
        picks = tg_node(l->func, tg_operand(l->func, picks, 0));
    if (picks->op != OP_select)
        return 0;
    const Node *hit = tg_node(l->func, tg_operand(l->func, picks, 0)), *rest = tg_node(l->func, tg_operand(l->func, picks, 2));
    bool zero = rest->op == OP_const && rest->attr->dense == NULL && rest->attr->number == 0;
    return hit->op == OP_eq && zero ? label_of(l, hit) : 0;
}

void tg_lower_find_picks(Lower *l) {
    l->label = TG_ALLOC(l->arena, NodeId, l->func->nodes.count);
    for (NodeId id = 1; id < l->func->nodes.count; id++)
        if (tg_node(l->func, id)->op == OP_reduce_sum)
            l->label[id] = picked_label(l, tg_node(l->func, id));
}

bool tg_lower_is_reduction(const Lower *l, NodeId id) {
    return tg_op((Op)tg_node(l->func, id)->op)->fuse == FUSE_reduce && l->label[id] == 0;
}

/* The row's element at its label; where that is none of its columns, one that differs from it and is 0. */
static Place *place_pick(Lower *l, NodeId id, const Place *place) {
    const Type *type = operand_type(l, tg_node(l->func, id), 0);
    Place at = *place;
    at.rank = type->rank;
    at.at[at.rank - 1] = tg_index_const(0);
    const Place *known = tg_lower_entry(l, l->label[id], &at)->place;
    int64_t extent = tg_dim_extent(l, type->dims[at.rank - 1]);
    Place *from = tg_arena_copy(l->arena, &at, sizeof at);
    from->at[at.rank - 1] = new_var(l, (Var){.kind = VAR_TAKEN,
                                             .extent = extent,
                                             .by = extent,
                                             .node = l->label[id],
                                             .place = known,
                                             .depth = tg_place_depth(l, known)});
    return from;
}

/* Absent: every operand is read at the result's own place. */
static PlaceRule *const RULES[OP_COUNT] = {
    [OP_reshape] = place_reshape, [OP_transpose] = place_transpose, [OP_broadcast] = place_broadcast,
    [OP_slice] = place_slice,     [OP_reverse] = place_reverse,     [OP_pad] = place_pad,
    [OP_take] = place_take,
};

const Place *tg_lower_operand_place(Lower *l, NodeId id, uint32_t i, const Place *place) {
    const Node *node = tg_node(l->func, id);
    PlaceRule *rule = RULES[node->op];
    if (l->label[id] != 0)
        return place_pick(l, id, place);
    return rule ? rule(l, node, i, place) : place;
}

void tg_lower_random_counter(Lower *l, NodeId id, const Place *place, Index *row, Index *index) {
    const Type *type = type_of(l, id);
    *row = tg_index_const(0);
    int batch = tg_type_batch_axis(type);
    if (batch < 0) {
        *index = tg_place_flatten(l, place, type);
        return;
    }
    Type others = *type;
    others.dims[batch] = (Dim){.size = type->dims[batch].size};
    Place rest = *place;
    tg_index_split(l, &place->at[batch], type->dims[batch].size, row, &rest.at[batch]);
    *index = tg_place_flatten(l, &rest, &others);
}
