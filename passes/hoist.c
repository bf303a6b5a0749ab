#include "passes/hoist.h"

#include "passes/rewrite.h"

#include <string.h>

void tg_hoist_init(Hoist *hoist, PassContext *context, Graph *out) {
    *hoist = (Hoist){.arena = context->arena, .out = out, .first = out->scalars.count};
    hoist->numbers = tg_map(context->arena);
    hoist->b = tg_pass_builder(context, out, tg_func_new(out, FUNC_SCALARS, "scalars"));
}

/* `records` and `lane_start` change within a step. */
static bool is_constant_in_step(const Scalar *scalar) {
    return scalar->class == SCALAR_SETTING || strcmp(scalar->name, "step") == 0 ||
           strcmp(scalar->name, "total_steps") == 0 || strcmp(scalar->name, "epoch") == 0 ||
           strncmp(scalar->name, "plateaus.", 9) == 0;
}

static bool *scalar_nodes(Hoist *hoist, const Graph *graph, const Func *from) {
    bool *is = TG_ALLOC(hoist->arena, bool, from->nodes.count);
    for (NodeId id = 1; id < from->nodes.count; id++) {
        const Node *node = tg_node(from, id);
        const Type *type = tg_node_type(graph, from, id);
        bool all = type->rank == 0 && (type->dtype == DT_F64 || type->dtype == DT_BOOL);
        if (node->operand_count == 0)
            all &= node->op == OP_const || (node->op == OP_scalar && is_constant_in_step(&graph->scalars.at[node->attr->ref]));
        for (uint32_t i = 0; i < node->operand_count; i++)
            all &= is[tg_operand(from, node, i)];
        is[id] = all;
    }
    return is;
}

static uint32_t computed(Hoist *hoist, NodeId value) {
    uint32_t number = hoist->numbers.count;
    bool is_new;
    uint64_t *known = tg_map_put(&hoist->numbers, &value, sizeof value, &is_new);
    if (!is_new)
        return hoist->first + (uint32_t)*known;
    *known = number;
    const char *name = tg_arena_printf(hoist->out->arena, "computed.%u", number);
    tg_result_value(&hoist->b, name, value);
    return tg_scalar_add(hoist->out, (Scalar){.name = name, .class = SCALAR_COMPUTED});
}

uint32_t *tg_hoist_func(Hoist *hoist, const Graph *graph, const Func *from) {
    bool *is = scalar_nodes(hoist, graph, from);
    bool *root = TG_ALLOC(hoist->arena, bool, from->nodes.count);
    for (NodeId id = 1; id < from->nodes.count; id++)
        for (uint32_t i = 0; !is[id] && i < tg_node(from, id)->operand_count; i++)
            root[tg_operand(from, tg_node(from, id), i)] = true;
    Copy copy = tg_copy(hoist->arena, &hoist->b, graph, from);
    for (NodeId id = 1; id < from->nodes.count; id++) {
        const Node *node = tg_node(from, id);
        root[id] &= is[id] && node->operand_count > 0 && tg_node_type(graph, from, id)->dtype == DT_F64;
        if (root[id])
            tg_copy_need(&copy, id);
    }
    tg_copy_run(&copy);
    uint32_t *scalar = TG_ALLOC(hoist->arena, uint32_t, from->nodes.count);
    for (NodeId id = 1; id < from->nodes.count; id++)
        if (root[id])
            scalar[id] = 1 + computed(hoist, copy.map[id]);
    return scalar;
}
