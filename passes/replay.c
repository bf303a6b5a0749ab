/* A member that another kernel reads must be stored, and a row as long as the layer's width written and read costs more than an
   operation. So a cheap member that is made of one value of its size, which is in memory anyway, and of row scalars, parameters and
   constants is computed again where it is read: x - mean and (x - mean) * rstd of a layer norm leave only x, mean and rstd. The bits are
   the same. */
#include "passes/group.h"
#include "passes/rewrite.h"

enum { MOST_OPS = 8, MOST_BASES = 8 };

typedef struct Replay {
    const Graph *graph;
    const Func *func;
    const bool *memory;
    Grouping *grouping;
    /* of the candidate at hand */
    uint32_t group;
    int64_t size;            /* its elements */
    NodeId ops[MOST_OPS];    /* members to compute again */
    NodeId rows[MOST_BASES]; /* row scalars to store */
    NodeId full;             /* the one value of its size; 0: none yet */
    uint32_t op_count, row_count;
} Replay;

static int64_t size_of(const Replay *r, NodeId id) {
    return tg_type_count(tg_node_type(r->graph, r->func, id), r->graph->training.micro);
}

static bool rests_on(Replay *r, NodeId id);

static bool operands_rest(Replay *r, NodeId id) {
    const Node *node = tg_node(r->func, id);
    for (uint32_t i = 0; i < node->operand_count; i++)
        if (!rests_on(r, tg_operand(r->func, node, i)))
            return false;
    return true;
}

/* A value in memory: the one of full size, or a small one. */
static bool is_base(Replay *r, NodeId id) {
    if (2 * size_of(r, id) < r->size)
        return true;
    bool same = r->full == 0 || r->full == id;
    r->full = id;
    return same;
}

static bool is_listed(const NodeId *list, uint32_t count, NodeId id) {
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return false;
}

/* A member of the candidate's own group: a row scalar that can be stored, something stored anyway, or cheap in its turn. */
static bool member_rests(Replay *r, NodeId id) {
    const Grouping *grouping = r->grouping;
    if (2 * size_of(r, id) < r->size) {
        if (is_listed(r->rows, r->row_count, id))
            return true;
        if (r->row_count == MOST_BASES)
            return false;
        r->rows[r->row_count++] = id;
        return true;
    }
    if (r->memory[id] || (grouping->output[id] && !grouping->again[id])) /* its own turn is over: it is stored */
        return is_base(r, id);
    if (is_listed(r->ops, r->op_count, id))
        return true;
    if (!tg_is_cheap(tg_node(r->func, id)->op) || tg_op((Op)tg_node(r->func, id)->op)->fuse != FUSE_point)
        return false;
    if (r->op_count == MOST_OPS)
        return false;
    r->ops[r->op_count++] = id;
    return operands_rest(r, id);
}

static bool rests_on(Replay *r, NodeId id) {
    const Grouping *grouping = r->grouping;
    switch (grouping->place[id]) {
    case PLACE_INLINE: return operands_rest(r, id);
    case PLACE_GROUP: return grouping->group[id] == r->group ? member_rests(r, id) : !grouping->again[id] && is_base(r, id);
    default: return is_base(r, id);
    }
}

void tg_group_replay(PassContext *context, const Graph *graph, const Func *func, const bool *memory, Grouping *grouping) {
    for (NodeId id = 1; id < func->nodes.count; id++) {
        if (grouping->place[id] != PLACE_GROUP || !grouping->output[id] || memory[id] ||
            tg_op((Op)tg_node(func, id)->op)->fuse != FUSE_point || !tg_is_cheap(tg_node(func, id)->op))
            continue;
        const Group *group = &grouping->groups.at[grouping->group[id]];
        Replay r = {.graph = graph, .func = func, .memory = memory, .grouping = grouping, .group = grouping->group[id]};
        r.size = size_of(&r, id);
        if (group->kind != GROUP_ROWS || !tg_shape_equal(tg_node_type(graph, func, id), &group->domain) || r.size < 2)
            continue;
        r.ops[r.op_count++] = id;
        if (!operands_rest(&r, id) || !tg_rewrite(context, "replay", tg_node(func, id)->locs))
            continue;
        for (uint32_t i = 0; i < r.op_count; i++) {
            grouping->again[r.ops[i]] = true;
            grouping->output[r.ops[i]] = false;
        }
        for (uint32_t i = 0; i < r.row_count; i++)
            grouping->output[r.rows[i]] = true;
    }
}
