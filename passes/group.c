/* Nodes are met in order. One that needs memory (a result, an operand of a library call) or is dear becomes a member of a group;
   cheap ones over memory are computed again in every kernel that reads them. A node joins the group of its latest operand when
   that group's loops can hold it, or a group of its shape that reads the same memory; else it opens a new one. A group's
   position never changes, and a node joins only a group that runs no earlier than all that the node reads: so the order of
   groups is free of cycles by construction, and grouping takes linear time. */
#include "passes/group.h"
#include "passes/group_shape.h"

#include "ir/base/map.h"
#include "passes/rewrite.h"
#include "ir/dot.h"

#include <string.h>

enum { MOST_MEMBERS = 256, MOST_READS = 24, MOST_INLINED = 8 };

typedef struct Grouper {
    PassContext *context;
    Arena *arena;
    const Graph *graph;
    const Func *func;
    bool fuse;
    Grouping *out;
    bool *needed, *memory; /* memory: must be in memory */
    uint32_t *readers;     /* nodes and results that read it */
    uint32_t *ready;   /* 2 x the step that makes it readable; + 1: not inside that step's own group */
    uint32_t *home;    /* inlined views of a group's row scalars: 1 + the group */
    bool *rests;       /* inlined nodes: made of nothing but leaves and what is in memory */
    uint32_t *inlined; /* ops that an inlined node repeats */
    uint32_t *library; /* per step: the latest step up to it that is a library call */
    Map by_shape;      /* of ROWS and COLUMN groups: the newest group + 1 */
} Grouper;

bool tg_is_cheap(uint16_t op) {
    enum { CHEAP_free = 1, CHEAP_one = 1, CHEAP_root = 0, CHEAP_maths = 0, CHEAP_random = 0, CHEAP_dot = 0, CHEAP_attention = 0,
           CHEAP_call = 0, CHEAP_scatter = 0 };
    static const bool table[] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen) CHEAP_##cost,
#include "ir/ops.def"
#undef OP
    };
    return table[op];
}

static const Type *type_of(const Grouper *g, NodeId id) { return tg_node_type(g->graph, g->func, id); }
static FuseKind fuse_kind(const Node *node) { return tg_op((Op)node->op)->fuse; }

/* Descending: what results, library calls and lone kernels read, and what index maps other than a broadcast's look at. */
static void mark_memory(Grouper *g) {
    const Func *func = g->func;
    for (uint32_t i = 0; i < func->results.count; i++)
        g->needed[func->results.at[i].node] = g->memory[func->results.at[i].node] = true;
    for (uint32_t i = 0; i < func->results.count; i++)
        g->readers[func->results.at[i].node]++;
    for (NodeId id = func->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(func, id);
        if (!g->needed[id])
            continue;
        FuseKind kind = fuse_kind(node);
        bool views = node->op == OP_transpose || node->op == OP_slice || node->op == OP_again;
        if (node->op == OP_reshape)
            views = g->memory[id] || !tg_is_unit_reshape(type_of(g, tg_operand(func, node, 0)), type_of(g, id));
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(func, node, i);
            g->needed[operand] = true;
            g->readers[operand]++;
            g->memory[operand] |= kind == FUSE_library || kind == FUSE_alone || views ||
                                  (!g->fuse && fuse_kind(tg_node(func, operand)) != FUSE_leaf);
        }
    }
}

static Group *group_of(const Grouper *g, NodeId id) {
    return g->out->place[id] == PLACE_GROUP ? &g->out->groups.at[g->out->group[id]] : NULL;
}

static bool lies_in_memory(const Grouper *g, NodeId id) {
    Place place = g->out->place[id];
    return place == PLACE_MEMORY || place == PLACE_LIBRARY || place == PLACE_ALIAS;
}

static uint32_t latest(const Grouper *g, const Node *node) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        uint32_t operand = g->ready[tg_operand(g->func, node, i)];
        ready = operand > ready ? operand : ready;
    }
    return ready;
}

/* The group, if any, inside which `node`, a view, may stand in that group's own kernel: 1 + its index. */
static uint32_t view_home(const Grouper *g, NodeId id, const Node *node) {
    NodeId operand = tg_operand(g->func, node, 0);
    uint32_t home = group_of(g, operand) ? 1 + g->out->group[operand] : g->home[operand];
    if (home == 0)
        return 0;
    const Group *group = &g->out->groups.at[home - 1];
    if (group->kind != GROUP_ROWS || !tg_is_row_shape(type_of(g, operand), &group->domain))
        return 0;
    if (node->op == OP_reshape)
        return tg_is_row_shape(type_of(g, id), &group->domain) ? home : 0;
    if (node->op != OP_broadcast || !tg_shape_equal(type_of(g, id), &group->domain))
        return 0;
    for (uint32_t i = 0; i < node->attr->list[0].count; i++)
        if (node->attr->list[0].at[i] != (int64_t)i)
            return 0;
    return home;
}

/* What `id` is made of lies in memory once the groups that it reads have run. */
static bool rests_on_memory(const Grouper *g, NodeId id) {
    switch (g->out->place[id]) {
    case PLACE_INLINE: return g->rests[id];
    case PLACE_GROUP: return g->memory[id];
    default: return true;
    }
}

/* A transpose that alone reads a dot is the order in which the dot is written. */
/* One column is written as it lies: the library's bits depend on how far apart its elements are. */
static bool is_written_order(const Grouper *g, const Node *node) {
    NodeId operand = tg_operand(g->func, node, 0);
    const Node *dot = tg_node(g->func, operand);
    DotGeometry geometry;
    return node->op == OP_transpose && g->fuse && dot->op == OP_dot && g->readers[operand] == 1 &&
           !tg_dot_adds(g->graph, g->func, dot) &&
           tg_dot_geometry(g->graph, g->func, dot, node, g->graph->training.micro, &geometry) == 0 &&
           (geometry.n != 1 || geometry.out_m == 1);
}

/* Memory as it is, but read only by what runs after all that has a place by now. */
static void place_again(Grouper *g, NodeId id, const Node *node) {
    NodeId operand = tg_operand(g->func, node, 0);
    uint32_t made = g->ready[operand] | (group_of(g, operand) != NULL), now = 2 * g->out->steps;
    g->out->place[id] = PLACE_ALIAS;
    g->ready[id] = made > now ? made : now;
}

static void place_view(Grouper *g, NodeId id, const Node *node) {
    NodeId operand = tg_operand(g->func, node, 0);
    if (is_written_order(g, node) || (node->op == OP_reshape && (g->memory[id] || lies_in_memory(g, operand)))) {
        g->out->place[id] = PLACE_ALIAS;
        g->ready[id] = g->ready[operand] | (group_of(g, operand) != NULL);
        return;
    }
    g->out->place[id] = PLACE_INLINE;
    g->inlined[id] = lies_in_memory(g, operand) ? 0 : g->inlined[operand];
    g->home[id] = view_home(g, id, node);
    g->rests[id] = rests_on_memory(g, operand) && !g->home[id];
    bool over_group = group_of(g, operand) || g->home[operand];
    g->ready[id] = over_group && !g->home[id] ? g->ready[operand] | 1 : g->ready[operand];
}

/* 1 when an operand is a group's member: what repeats the node must not run in that group itself. */
static uint32_t reads_group(const Grouper *g, const Node *node) {
    uint32_t latest_ready = latest(g, node);
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(g->func, node, i);
        if (g->out->place[operand] == PLACE_GROUP && g->ready[operand] == latest_ready)
            return 1;
    }
    return 0;
}

/* How many low values of `id`'s size lie in memory under it; -1: a wide one does. */
static int low_bases(const Grouper *g, NodeId id, int64_t size) {
    const Node *node = tg_node(g->func, id);
    int count = 0;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(g->func, node, i);
        if (g->out->place[operand] == PLACE_INLINE) {
            int below = low_bases(g, operand, size);
            if (below < 0)
                return -1;
            count += below;
        } else if (tg_type_count(type_of(g, operand), 2) == size) {
            if (!tg_is_low(type_of(g, operand)->dtype))
                return -1;
            count++;
        }
    }
    return count;
}

/* An activation over low values would be stored in f32, twice as large as what it is made of: its kernels compute it again instead.
   (exp is no such function: it stands in rows, between sums.) */
static bool is_smaller_beneath(const Grouper *g, NodeId id) {
    const Node *node = tg_node(g->func, id);
    bool activates = node->op == OP_erf || node->op == OP_tanh || node->op == OP_sigmoid;
    return activates && type_of(g, id)->dtype == DT_F32 && low_bases(g, id, tg_type_count(type_of(g, id), 2)) > 0;
}

/* May every kernel that reads it compute it again? Only over memory and other repeated nodes. */
static bool may_inline(const Grouper *g, NodeId id) {
    const Node *node = tg_node(g->func, id);
    uint32_t repeated = 1;
    bool leaves_only = true;
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(g->func, node, i);
        bool repeats = g->out->place[operand] == PLACE_INLINE;
        if (!rests_on_memory(g, operand))
            return false;
        leaves_only &= repeats && g->ready[operand] == 0 && g->inlined[operand] == 0;
        repeated += repeats ? g->inlined[operand] : 0;
    }
    if (leaves_only)
        return true;
    return repeated <= MOST_INLINED && (tg_is_cheap(node->op) || is_smaller_beneath(g, id));
}

/* Appends what `id` reads from memory, through what is computed again, to `reads`. */
static void gather_reads(const Grouper *g, NodeId id, Group *group) {
    if (group->reads.count >= MOST_READS)
        return;
    if (g->out->place[id] == PLACE_INLINE) {
        const Node *node = tg_node(g->func, id);
        for (uint32_t i = 0; i < node->operand_count; i++)
            gather_reads(g, tg_operand(g->func, node, i), group);
        return;
    }
    if (type_of(g, id)->rank == 0 || group_of(g, id) == group)
        return;
    for (uint32_t i = 0; i < group->reads.count; i++)
        if (group->reads.at[i] == id)
            return;
    tg_push(g->arena, &group->reads, id);
}

static bool shares_reads(const Grouper *g, const Node *node, const Group *group) {
    Group mine = {0};
    for (uint32_t i = 0; i < node->operand_count; i++)
        gather_reads(g, tg_operand(g->func, node, i), &mine);
    for (uint32_t i = 0; i < mine.reads.count; i++)
        for (uint32_t j = 0; j < group->reads.count; j++)
            if (mine.reads.at[i] == group->reads.at[j])
                return true;
    return false;
}

typedef struct Reduction {
    bool is, row;
    int64_t axis, split;
    Type domain;
} Reduction;

static Reduction reduction_of(const Grouper *g, const Node *node) {
    if (fuse_kind(node) != FUSE_reduce)
        return (Reduction){0};
    Reduction r = {.is = true, .domain = *type_of(g, tg_operand(g->func, node, 0))};
    r.axis = node->attr->list[0].at[0];
    r.split = node->op != OP_argmax && node->attr->list[1].count ? node->attr->list[1].at[0] : 0;
    r.row = r.axis == r.domain.rank - 1 && !r.domain.dims[r.axis].batch;
    return r;
}

/* Itself, or through a view of a row scalar. */
static bool reads_member(const Grouper *g, const Node *node, uint32_t group) {
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(g->func, node, i);
        if (g->home[operand] == group + 1 || (g->out->place[operand] == PLACE_GROUP && g->out->group[operand] == group))
            return true;
    }
    return false;
}

/* Why a node stays out of a group. */
typedef enum Refusal {
    JOINS,
    REFUSED_LATER,
    REFUSED_LIBRARY,
    REFUSED_MEMBERS,
    REFUSED_READS,
    REFUSED_VIEW,
    REFUSED_SHAPE,
    REFUSED_AXIS,
    REFUSED_SUM,
    REFUSED_ALONE,
    REFUSED_CALL,
} Refusal;

static const char *refusal_text(Refusal refusal) {
    static const char *const texts[] = {
        [JOINS] = "",
        [REFUSED_LATER] = "it reads something that runs later",
        [REFUSED_LIBRARY] = "a library call between",
        [REFUSED_MEMBERS] = "too many members",
        [REFUSED_READS] = "too many inputs",
        [REFUSED_VIEW] = "it moves elements",
        [REFUSED_SHAPE] = "another shape",
        [REFUSED_AXIS] = "a reduction over another axis",
        [REFUSED_SUM] = "it reads what the kernel has only at its end",
        [REFUSED_ALONE] = "that kernel takes nothing else",
        [REFUSED_CALL] = "one of them is a library call",
    };
    return texts[refusal];
}

static Refusal rows_accept(const Grouper *g, const Group *group, uint32_t index, NodeId id, const Node *node,
                           const Reduction *reduction) {
    if (reduction->is && !reduction->row)
        return REFUSED_AXIS;
    if (tg_shape_equal(reduction->is ? &reduction->domain : type_of(g, id), &group->domain))
        return JOINS;
    bool row_scalar = !reduction->is && group->has_rows && tg_is_row_shape(type_of(g, id), &group->domain);
    return row_scalar && reads_member(g, node, index) ? JOINS : REFUSED_SHAPE;
}

static Refusal columns_accept(const Grouper *g, const Group *group, uint32_t index, NodeId id, const Node *node,
                              const Reduction *reduction) {
    bool reads = reads_member(g, node, index);
    if (!reduction->is)
        return reads && tg_shape_equal(type_of(g, id), type_of(g, group->members.at[0])) ? JOINS : REFUSED_SHAPE;
    if (reads)
        return REFUSED_SUM;
    if (!tg_shape_equal(&reduction->domain, &group->domain))
        return REFUSED_SHAPE;
    bool same = !reduction->row && reduction->axis == group->axis && reduction->split == group->split;
    return same ? JOINS : REFUSED_AXIS;
}

static Refusal accepts(const Grouper *g, uint32_t index, NodeId id, const Node *node, const Reduction *reduction) {
    const Group *group = &g->out->groups.at[index];
    uint32_t ready = latest(g, node);
    if (ready > 2 * g->out->step[group->members.at[0]])
        return g->library[ready / 2] > g->out->step[group->members.at[0]] ? REFUSED_LIBRARY : REFUSED_LATER;
    if (group->members.count >= MOST_MEMBERS)
        return REFUSED_MEMBERS;
    if (group->reads.count + node->operand_count > MOST_READS)
        return REFUSED_READS;
    if (fuse_kind(node) == FUSE_view)
        return REFUSED_VIEW;
    if (group->kind == GROUP_ALONE)
        return REFUSED_ALONE;
    return group->kind == GROUP_ROWS ? rows_accept(g, group, index, id, node, reduction)
                                     : columns_accept(g, group, index, id, node, reduction);
}

/* "mul stays out of the kernel of add: another shape", at `node`. */
static void miss(const Grouper *g, const Node *node, const Node *other, Refusal refusal) {
    if (!tg_says_missed(g->context))
        return;
    const char *format = refusal == REFUSED_CALL ? "%s and %s are no kernel together: %s" : "%s stays out of the kernel of %s: %s";
    Str text = tg_str(g->arena);
    tg_str_printf(&text, format, tg_op((Op)node->op)->name, tg_op((Op)other->op)->name, refusal_text(refusal));
    tg_pass_missed(g->context, node->locs, text.text);
}

static void miss_group(const Grouper *g, const Node *node, uint32_t index, Refusal refusal) {
    miss(g, node, tg_node(g->func, g->out->groups.at[index].members.at[0]), refusal);
}

/* Key of by_shape: the loops that a group of this kind over this domain has. */
static uint64_t *newest(Grouper *g, GroupKind kind, const Type *domain, const Reduction *reduction) {
    struct {
        Type domain;
        int64_t kind, axis, split;
    } key;
    memset(&key, 0, sizeof key);
    key.domain.rank = domain->rank;
    for (int i = 0; i < domain->rank; i++) {
        key.domain.dims[i].size = domain->dims[i].size;
        key.domain.dims[i].batch = domain->dims[i].batch;
    }
    key.kind = kind;
    key.axis = kind == GROUP_COLUMN ? reduction->axis : 0;
    key.split = kind == GROUP_COLUMN ? reduction->split : 0;
    return tg_map_put(&g->by_shape, &key, sizeof key, NULL);
}

/* What `id` begins is read together with a member of the group, by one of the next nodes: both are branches of one value. */
static bool meets(const Grouper *g, NodeId id, uint32_t index) {
    enum { NODES_AHEAD = 8 };
    NodeId end = id + NODES_AHEAD < g->func->nodes.count ? id + NODES_AHEAD : g->func->nodes.count - 1, branch = id;
    for (NodeId next = id + 1; next <= end; next++) {
        const Node *node = tg_node(g->func, next);
        bool reads_branch = false, reads_group = false;
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(g->func, node, i);
            reads_branch |= operand == branch;
            reads_group |= operand < id && group_of(g, operand) == &g->out->groups.at[index];
        }
        if (reads_branch && reads_group)
            return true;
        branch = reads_branch ? next : branch;
    }
    return false;
}

/* Nothing stands between: in a chain of one shape the node's other operands follow. Updates and first values of unlike parameters
   stay apart, so that layers share kernels. */
static bool follows_on(const Grouper *g, NodeId id, uint32_t index) {
    bool last = g->out->step[g->out->groups.at[index].members.at[0]] == g->out->steps;
    bool by_parameter = g->func->kind == FUNC_TAIL || g->func->kind == FUNC_INIT;
    return last && (!by_parameter || meets(g, id, index));
}

/* The newest group with the same loops, if it reads the same memory or is the last so far: kernels side by side. */
static uint32_t find_beside(Grouper *g, NodeId id, const Node *node, GroupKind kind, const Type *domain,
                            const Reduction *reduction) {
    uint64_t last = *newest(g, kind, domain, reduction);
    if (last == 0 || accepts(g, (uint32_t)last - 1, id, node, reduction) != JOINS)
        return UINT32_MAX;
    if (kind != GROUP_COLUMN && !follows_on(g, id, (uint32_t)last - 1) &&
        !shares_reads(g, node, &g->out->groups.at[last - 1]))
        return UINT32_MAX;
    return tg_rewrite(g->context, "beside", node->locs) ? (uint32_t)last - 1 : UINT32_MAX;
}

static uint32_t find_group(Grouper *g, NodeId id, const Node *node, GroupKind kind, const Type *domain,
                           const Reduction *reduction) {
    if (!g->fuse || kind == GROUP_ALONE)
        return UINT32_MAX;
    uint32_t refused = 0; /* 1 + the group that a remark has named last */
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(g->func, node, i);
        uint32_t home = group_of(g, operand) ? 1 + g->out->group[operand] : g->home[operand];
        if (home == 0 || home == refused)
            continue;
        Refusal refusal = accepts(g, home - 1, id, node, reduction);
        if (refusal == JOINS && tg_rewrite(g->context, "join", node->locs))
            return home - 1;
        if (refusal != JOINS)
            miss_group(g, node, home - 1, refusal);
        refused = home;
    }
    return find_beside(g, id, node, kind, domain, reduction);
}

/* A node over a member of a group that can hold it is better a member too: what reads it may follow it there. */
static bool joins_operand(const Grouper *g, NodeId id, const Node *node) {
    Reduction none = {0};
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(g->func, node, i);
        if (g->out->place[operand] == PLACE_GROUP && accepts(g, g->out->group[operand], id, node, &none) == JOINS)
            return true;
    }
    return false;
}

static void place_member(Grouper *g, NodeId id, const Node *node) {
    Reduction reduction = reduction_of(g, node);
    GroupKind kind = fuse_kind(node) == FUSE_alone ? GROUP_ALONE : reduction.is && !reduction.row ? GROUP_COLUMN : GROUP_ROWS;
    const Type *domain = reduction.is ? &reduction.domain : type_of(g, id);
    uint32_t index = find_group(g, id, node, kind, domain, &reduction);
    Grouping *out = g->out;
    if (index == UINT32_MAX) {
        index = out->groups.count;
        tg_push(g->arena, &out->groups,
                (Group){.kind = kind, .domain = *domain, .axis = reduction.axis, .split = reduction.split});
        if (kind != GROUP_ALONE)
            *newest(g, kind, domain, &reduction) = 1 + index;
        out->step[id] = ++out->steps;
        g->library[out->steps] = g->library[out->steps - 1];
    }
    Group *group = &out->groups.at[index];
    if (group->members.count)
        out->step[id] = out->step[group->members.at[0]];
    out->place[id] = PLACE_GROUP;
    out->group[id] = index;
    g->ready[id] = 2 * out->step[id];
    group->has_rows |= reduction.is && reduction.row;
    for (uint32_t i = 0; i < node->operand_count; i++)
        gather_reads(g, tg_operand(g->func, node, i), group);
    tg_push(g->arena, &group->members, id);
}

static void place(Grouper *g, NodeId id) {
    const Node *node = tg_node(g->func, id);
    Place *where = &g->out->place[id];
    switch (fuse_kind(node)) {
    case FUSE_leaf:
        if (node->op == OP_arg || node->op == OP_load)
            *where = PLACE_MEMORY;
        else if (g->memory[id])
            place_member(g, id, node);
        else {
            *where = PLACE_INLINE;
            g->rests[id] = true;
        }
        break;
    case FUSE_view:
        if (node->op == OP_again)
            place_again(g, id, node);
        else if (node->op == OP_reshape || (!g->memory[id] && g->fuse) || is_written_order(g, node))
            place_view(g, id, node);
        else
            place_member(g, id, node);
        break;
    case FUSE_library:
        *where = PLACE_LIBRARY;
        g->out->step[id] = ++g->out->steps;
        g->ready[id] = 2 * g->out->step[id];
        g->library[g->out->step[id]] = g->out->step[id];
        break;
    case FUSE_point:
        if (g->fuse && !g->memory[id] && may_inline(g, id) && !joins_operand(g, id, node)) {
            *where = PLACE_INLINE;
            g->rests[id] = true;
            g->ready[id] = latest(g, node) + reads_group(g, node);
            for (uint32_t i = 0; i < node->operand_count; i++)
                g->inlined[id] += g->inlined[tg_operand(g->func, node, i)];
            g->inlined[id] += type_of(g, id)->rank > 0 || g->ready[id] > 0;
            break;
        }
        place_member(g, id, node);
        break;
    case FUSE_reduce:
    case FUSE_alone:
    case FUSE_call: place_member(g, id, node); break;
    }
}

/* Marks members that `id`, read from outside `group` (UINT32_MAX: from outside of all), makes outputs. */
static void mark_output(Grouper *g, NodeId id, uint32_t group) {
    Grouping *out = g->out;
    if (out->place[id] == PLACE_GROUP) {
        out->output[id] |= out->group[id] != group;
        return;
    }
    if (out->place[id] != PLACE_INLINE && out->place[id] != PLACE_ALIAS)
        return;
    const Node *node = tg_node(g->func, id);
    for (uint32_t i = 0; i < node->operand_count; i++)
        mark_output(g, tg_operand(g->func, node, i), out->place[id] == PLACE_ALIAS ? UINT32_MAX : group);
}

static void mark_outputs(Grouper *g) {
    const Func *func = g->func;
    for (NodeId id = 1; id < func->nodes.count; id++) {
        Place where = g->out->place[id];
        if (where != PLACE_GROUP && where != PLACE_LIBRARY)
            continue;
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; i < node->operand_count; i++)
            mark_output(g, tg_operand(func, node, i), where == PLACE_GROUP ? g->out->group[id] : UINT32_MAX);
    }
    for (uint32_t i = 0; i < func->results.count; i++)
        mark_output(g, func->results.at[i].node, UINT32_MAX);
}

/* The kernels on both sides of a library call. */
static void miss_libraries(const Grouper *g) {
    const Func *func = g->func;
    for (NodeId id = 1; id < func->nodes.count; id++) {
        const Node *node = tg_node(func, id);
        bool library = g->out->place[id] == PLACE_LIBRARY;
        for (uint32_t i = 0; i < node->operand_count && (library || group_of(g, id)); i++) {
            NodeId operand = tg_operand(func, node, i);
            if (library ? group_of(g, operand) != NULL : g->out->place[operand] == PLACE_LIBRARY)
                miss(g, node, tg_node(func, operand), REFUSED_CALL);
        }
    }
}

Grouping tg_group(PassContext *context, const Graph *graph, const Func *func) {
    Arena *arena = context->arena;
    uint32_t count = func->nodes.count;
    Grouping out = {
        .place = TG_ALLOC(arena, Place, count),
        .group = TG_ALLOC(arena, uint32_t, count),
        .step = TG_ALLOC(arena, uint32_t, count),
        .output = TG_ALLOC(arena, bool, count),
        .again = TG_ALLOC(arena, bool, count),
    };
    Grouper g = {
        .context = context, .arena = arena, .graph = graph, .func = func, .fuse = context->fuse, .out = &out,
        .readers = TG_ALLOC(arena, uint32_t, count), .needed = TG_ALLOC(arena, bool, count), .memory = TG_ALLOC(arena, bool, count),
        .ready = TG_ALLOC(arena, uint32_t, count), .home = TG_ALLOC(arena, uint32_t, count),
        .rests = TG_ALLOC(arena, bool, count),
        .inlined = TG_ALLOC(arena, uint32_t, count), .library = TG_ALLOC(arena, uint32_t, count + 1),
        .by_shape = tg_map(arena),
    };
    mark_memory(&g);
    for (NodeId id = 1; id < count; id++)
        if (g.needed[id])
            place(&g, id);
    mark_outputs(&g);
    if (context->fuse)
        tg_group_replay(context, graph, func, g.memory, &out);
    if (tg_says_missed(context))
        miss_libraries(&g);
    return out;
}
