/* The rules of a graph's level. A violation is a bug of the pass before: it is reported with the node's text. */
#include "ir/build.h"

#include <string.h>

typedef struct Verifier {
    const Graph *graph;
    Graph *scratch; /* shape rules intern types here */
    Diags *diags;
    bool is_input; /* someone wrote the graph: no pass is to blame */
    const Func *func;
    uint8_t *stored; /* per buffer: the function stores it already */
} Verifier;

static Status bad(const Verifier *v, LocsId locs, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static Status bad(const Verifier *v, LocsId locs, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *why = tg_arena_vprintf(v->graph->arena, format, args);
    va_end(args);
    tg_error(v->diags, tg_locs_first(v->graph, locs), "%sthe graph is not well formed: %s: %s",
             v->is_input ? "" : "internal error: ", where, why);
    return v->is_input ? TG_MODEL : TG_INTERNAL;
}

static const char *in_func(const Verifier *v) { return tg_arena_printf(v->graph->arena, "in `%s`", v->func->name); }

#define bad_node(v, id, ...) bad((v), tg_node((v)->func, (id))->locs, node_text((v), (id)), __VA_ARGS__)

static bool known_nodes(const Verifier *v, const Node *node, NodeId limit) {
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = v->func->operands.at[node->operands + i];
        if (operand == 0 || operand >= limit)
            return false;
    }
    return true;
}

static const char *node_text(const Verifier *v, NodeId id) {
    Str text = tg_str(v->graph->arena);
    tg_str_printf(&text, "in `%s`, `", v->func->name);
    tg_node_print(&text, v->graph, v->func, id);
    tg_str_printf(&text, "`");
    return text.text;
}

/* ---- nodes ---- */

static char level_letter(const Verifier *v) {
    switch (v->graph->level) {
    case LEVEL_MODEL:
        return 'M';
    case LEVEL_STEP:
        return 'S';
    default:
        return v->func->kind == FUNC_KERNEL ? 'B' : 'K';
    }
}

static bool is_reduce(const Node *node) {
    return node->op == OP_reduce_sum || node->op == OP_reduce_max || node->op == OP_reduce_min;
}

static bool good_reference(const Verifier *v, const Node *node) {
    const char *attrs = tg_op((Op)node->op)->attrs;
    if (*attrs == '\0')
        return true;
    if (node->attr == NULL)
        return false;
    uint32_t ref = node->attr->ref;
    return (strchr(attrs, '@') == NULL || ref < v->graph->buffers.count) &&
           (strchr(attrs, '$') == NULL || ref < v->graph->scalars.count) &&
           (strchr(attrs, '&') == NULL || ref < v->graph->funcs.count);
}

/* Without it the node cannot even be printed. */
static Status verify_form(const Verifier *v, NodeId id) {
    const Node *node = tg_node(v->func, id);
    bool form = node->op < OP_COUNT && node->operands + (uint64_t)node->operand_count <= v->func->operands.count &&
                node->type < v->graph->types.all.count && node->locs < v->graph->loc_items.count;
    if (!form)
        return bad(v, 0, in_func(v), "node %u is damaged", id);
    if (!good_reference(v, node))
        return bad(v, node->locs, in_func(v), "node %u (%s) refers to nothing", id, tg_op((Op)node->op)->name);
    return TG_OK;
}

static Status verify_type(const Verifier *v, NodeId id) {
    const Node *node = tg_node(v->func, id);
    const char *why;
    TypeId type = tg_infer(v->scratch, v->func, (Op)node->op, node->attr, v->func->operands.at + node->operands,
                           node->operand_count, node->type, &why);
    if (why != NULL)
        return bad_node(v, id, "%s", why);
    if (type == node->type)
        return TG_OK;
    Str text = tg_str(v->graph->arena);
    tg_type_print(&text, tg_type_of(&v->scratch->types, type));
    return bad_node(v, id, "its type should be %s", text.text);
}

static Status verify_node(const Verifier *v, NodeId id) {
    const Node *node = tg_node(v->func, id);
    TG_TRY(verify_form(v, id));
    if (!known_nodes(v, node, id))
        return bad_node(v, id, "an operand does not stand before it");
    if (strchr(tg_op((Op)node->op)->levels, level_letter(v)) == NULL)
        return bad_node(v, id, "the operation cannot stand %s",
                        level_letter(v) == 'B' ? "in a kernel" : "at this level");
    TG_TRY(verify_type(v, id));
    if (node->op == OP_arg && (uint64_t)node->attr->list[0].at[0] >= v->func->args.count)
        return bad_node(v, id, "the function has %u arguments", v->func->args.count);
    if (level_letter(v) == 'B' && is_reduce(node) && node->attr->list[0].count != 1)
        return bad_node(v, id, "a reduction in a kernel has one axis");
    if (node->op == OP_call && v->graph->funcs.at[node->attr->ref]->kind != FUNC_KERNEL)
        return bad_node(v, id, "only kernels are called");
    if (node->op == OP_gradient && v->graph->buffers.at[node->attr->ref].class != BUFFER_PARAM)
        return bad_node(v, id, "only parameters have gradients");
    return TG_OK;
}

/* ---- functions ---- */

static Status verify_store(const Verifier *v, const Result *result) {
    if (result->buffer >= v->graph->buffers.count)
        return bad(v, result->locs, in_func(v), "it stores to no buffer");
    const Buffer *buffer = &v->graph->buffers.at[result->buffer];
    if (v->func->kind == FUNC_KERNEL)
        return bad(v, result->locs, in_func(v), "a kernel does not store to `%s` by name", buffer->name);
    if (v->stored[result->buffer]++)
        return bad(v, result->locs, in_func(v), "`%s` is updated twice", buffer->name);
    if (tg_node(v->func, result->node)->type == buffer->type)
        return TG_OK;
    Str text = tg_str(v->graph->arena);
    tg_type_print(&text, tg_node_type(v->graph, v->func, result->node));
    tg_str_printf(&text, " is stored to a buffer of ");
    tg_type_print(&text, tg_type_of(&v->graph->types, buffer->type));
    return bad(v, result->locs, in_func(v), "`%s`: %s", buffer->name, text.text);
}

static Status verify_value(const Verifier *v, uint32_t index) {
    const Result *result = &v->func->results.at[index];
    if (result->name == NULL)
        return bad(v, result->locs, in_func(v), "result %u has no name", index);
    for (uint32_t i = 0; i < index; i++) {
        const Result *other = &v->func->results.at[i];
        if (other->kind == RESULT_VALUE && other->name != NULL && strcmp(other->name, result->name) == 0)
            return bad(v, result->locs, in_func(v), "there are two results `%s`", result->name);
    }
    return TG_OK;
}

static Status verify_results(const Verifier *v) {
    memset(v->stored, 0, v->graph->buffers.count);
    for (uint32_t i = 0; i < v->func->results.count; i++) {
        const Result *result = &v->func->results.at[i];
        if (result->node == 0 || result->node >= v->func->nodes.count || tg_node(v->func, result->node)->type == 0)
            return bad(v, result->locs, in_func(v), "result %u has no value", i);
        TG_TRY(result->kind == RESULT_STORE ? verify_store(v, result) : verify_value(v, i));
    }
    return TG_OK;
}

static Status verify_func(const Verifier *v) {
    bool kernel = v->func->kind == FUNC_KERNEL;
    if (kernel && v->graph->level != LEVEL_KERNEL)
        return bad(v, 0, in_func(v), "there are no kernels at level %s", tg_level_name((int)v->graph->level));
    for (uint32_t i = 0; i < v->func->args.count; i++)
        if (v->func->args.at[i].type == 0 || v->func->args.at[i].type >= v->graph->types.all.count)
            return bad(v, 0, in_func(v), "argument %u has no type", i);
    for (NodeId id = 1; id < v->func->nodes.count; id++)
        TG_TRY(verify_node(v, id));
    return verify_results(v);
}

/* ---- the graph ---- */

static Status verify_buffers(const Verifier *v) {
    for (uint32_t i = 0; i < v->graph->buffers.count; i++) {
        const Buffer *buffer = &v->graph->buffers.at[i];
        if (buffer->type == 0 || buffer->type >= v->graph->types.all.count)
            return bad(v, 0, buffer->name, "the buffer has no type");
        if (tg_type_batch_axis(tg_type_of(&v->graph->types, buffer->type)) >= 0)
            return bad(v, 0, buffer->name, "a buffer cannot have the batch in its type");
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(v->graph->buffers.at[j].name, buffer->name) == 0)
                return bad(v, 0, buffer->name, "there are two buffers of this name");
    }
    return TG_OK;
}

static Status verify_names(const Verifier *v) {
    for (uint32_t i = 0; i < v->graph->funcs.count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(v->graph->funcs.at[i]->name, v->graph->funcs.at[j]->name) == 0)
                return bad(v, 0, v->graph->funcs.at[i]->name, "there are two functions of this name");
    return TG_OK;
}

static Status verify(const Graph *graph, Diags *diags, bool is_input) {
    Verifier v = {
        .is_input = is_input,
        .graph = graph,
        .scratch = tg_graph_like(graph->arena, graph, graph->level),
        .diags = diags,
        .stored = TG_ALLOC(graph->arena, uint8_t, graph->buffers.count),
    };
    v.scratch->funcs.at = graph->funcs.at;
    v.scratch->funcs.count = graph->funcs.count;
    TG_TRY(verify_buffers(&v));
    TG_TRY(verify_names(&v));
    for (uint32_t i = 0; i < graph->funcs.count; i++) {
        v.func = graph->funcs.at[i];
        TG_TRY(verify_func(&v));
    }
    return TG_OK;
}

Status tg_graph_verify(const Graph *graph, Diags *diags) { return verify(graph, diags, false); }

Status tg_graph_verify_input(const Graph *graph, Diags *diags) { return verify(graph, diags, true); }
