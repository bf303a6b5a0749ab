#include "passes/copy.h"

#include "passes/rewrite.h"

Copy tg_copy(Arena *arena, Builder *b, const Graph *graph, const Func *from) {
    return (Copy){
        .b = b,
        .graph = graph,
        .from = from,
        .map = TG_ALLOC(arena, NodeId, from->nodes.count),
        .needed = TG_ALLOC(arena, bool, from->nodes.count),
    };
}

void tg_copy_need(Copy *copy, NodeId id) { copy->needed[id] = true; }

void tg_copy_mark(Copy *copy) {
    const Func *from = copy->from;
    for (NodeId id = from->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(from, id);
        if (copy->needed[id] && copy->map[id] == 0)
            for (uint32_t i = 0; i < node->operand_count; i++)
                copy->needed[tg_operand(from, node, i)] = true;
    }
}

void tg_copy_run(Copy *copy) {
    const Func *from = copy->from;
    tg_copy_mark(copy);
    Vec(NodeId) operands = {0};
    uint32_t count = copy->order ? copy->ordered : from->nodes.count - 1;
    for (uint32_t at = 0; at < count; at++) {
        NodeId id = copy->order ? copy->order[at] : at + 1;
        if (!copy->needed[id] || copy->map[id] != 0)
            continue;
        const Node *node = tg_node(from, id);
        operands.count = 0;
        for (uint32_t i = 0; i < node->operand_count; i++)
            tg_push(copy->b->graph->arena, &operands, copy->map[tg_operand(from, node, i)]);
        copy->b->locs = node->locs;
        if (copy->replace)
            copy->map[id] = copy->replace(copy->context, copy, id, operands.at);
        if (copy->map[id] == 0)
            copy->map[id] = tg_build_like(copy->b, copy->graph, from, id, operands.at);
    }
}

void tg_copy_results(Copy *copy) {
    for (uint32_t i = 0; i < copy->from->results.count; i++) {
        const Result *result = &copy->from->results.at[i];
        copy->b->locs = result->locs;
        if (result->kind == RESULT_STORE)
            tg_result_store(copy->b, result->buffer, copy->map[result->node]);
        else
            tg_result_value(copy->b, result->name, copy->map[result->node]);
    }
}

void tg_copy_func(Arena *arena, Builder *b, const Graph *graph, const Func *from) {
    b->func->args = from->args;
    Copy copy = tg_copy(arena, b, graph, from);
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
}

Status tg_copy_replacing(PassContext *context, const Graph *graph, const Func *from, Graph *out,
                         NodeId (*replace)(void *, const Copy *, NodeId, const NodeId *), void *replace_context) {
    Builder b = tg_pass_builder(context, out, tg_func_new(out, from->kind, from->name));
    b.func->args = from->args;
    Copy copy = tg_copy(context->arena, &b, graph, from);
    copy.replace = replace;
    copy.context = replace_context;
    for (uint32_t i = 0; i < from->results.count; i++)
        tg_copy_need(&copy, from->results.at[i].node);
    tg_copy_run(&copy);
    tg_copy_results(&copy);
    tg_pass_map(context, from, b.func, copy.map);
    return tg_builder_status(&b, context->diags);
}
