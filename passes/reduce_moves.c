/* What reduce tries, the most promising first. A list is made anew whenever something was accepted. */
#include "passes/reduce_edit.h"

#include "ir/attrs.h"

#include <math.h>
#include <string.h>

static void add(Arena *arena, Items *items, uint32_t func, uint32_t index, uint32_t choice) {
    tg_push(arena, items, (Item){.func = func, .index = index, .choice = choice});
}

/* The later a value, the more goes with it. */
#define EACH_NODE(graph, func, f, id)                                    \
    for (uint32_t f = 0; f < (graph)->funcs.count; f++)                  \
        for (const Func *func = (graph)->funcs.at[f]; func; func = NULL) \
            for (NodeId id = func->nodes.count - 1; id > 0; id--)

/* ---- functions and results ---- */

static void list_funcs(Arena *arena, const Graph *graph, Items *items) {
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        add(arena, items, f, 0, 0);
}
static void drop_func(Edits *edits, Item item) { edits->func[item.func].drop = true; }

static void list_results(Arena *arena, const Graph *graph, Items *items) {
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (uint32_t i = 0; i < graph->funcs.at[f]->results.count; i++)
            add(arena, items, f, i, 0);
}
static void drop_result(Edits *edits, Item item) { edits->func[item.func].drop_result[item.index] = true; }

/* A result gives what the value that it gives was made of. */
static void list_earlier_results(Arena *arena, const Graph *graph, Items *items) {
    for (uint32_t f = 0; f < graph->funcs.count; f++) {
        const Func *func = graph->funcs.at[f];
        for (uint32_t i = 0; i < func->results.count; i++) {
            const Node *node = tg_node(func, func->results.at[i].node);
            for (uint32_t k = 0; k < node->operand_count; k++)
                if (tg_node(func, tg_operand(func, node, k))->type)
                    add(arena, items, f, i, tg_operand(func, node, k));
        }
    }
}
static void change_result(Edits *edits, Item item) { edits->func[item.func].result[item.index] = item.choice; }

/* ---- buffers and scalars ---- */

/* Everything that a buffer is to the functions goes at once: a parameter without a gradient is an error, for one. */
static void list_buffers(Arena *arena, const Graph *graph, Items *items, Swap swap) {
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        add(arena, items, 0, i, swap);
}
static void list_buffers_as_ones(Arena *arena, const Graph *graph, Items *items) {
    list_buffers(arena, graph, items, SWAP_NUMBER);
}
static void list_buffers_as_args(Arena *arena, const Graph *graph, Items *items) {
    list_buffers(arena, graph, items, SWAP_ARG);
}

static void swap_leaves(Edits *edits, const char *mark, uint32_t ref, Swap swap) {
    EACH_NODE(edits->graph, func, f, id) {
        const Node *node = tg_node(func, id);
        if (strstr(tg_op((Op)node->op)->attrs, mark) && node->attr->ref == ref)
            edits->func[f].node[id] = (NodeEdit){.swap = swap, .number = 1};
    }
}

static void drop_buffer(Edits *edits, Item item) {
    const Graph *graph = edits->graph;
    edits->drop_buffer[item.index] = true;
    swap_leaves(edits, "@", item.index, (Swap)item.choice);
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (uint32_t i = 0; i < graph->funcs.at[f]->results.count; i++) {
            const Result *result = &graph->funcs.at[f]->results.at[i];
            if (result->kind == RESULT_STORE && result->buffer == item.index)
                edits->func[f].drop_result[i] = true;
        }
}

static void list_scalars(Arena *arena, const Graph *graph, Items *items) {
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        add(arena, items, 0, i, 0);
}
static void drop_scalar(Edits *edits, Item item) {
    edits->drop_scalar[item.index] = true;
    swap_leaves(edits, "$", item.index, SWAP_NUMBER);
}

/* ---- values ---- */

static void list_values(Arena *arena, const Graph *graph, Items *items) {
    EACH_NODE(graph, func, f, id)
        if (tg_node(func, id)->op != OP_arg && tg_node(func, id)->type != 0)
            add(arena, items, f, id, 0);
}
static void make_arg(Edits *edits, Item item) { edits->func[item.func].node[item.index].swap = SWAP_ARG; }

static void list_operands(Arena *arena, const Graph *graph, Items *items) {
    EACH_NODE(graph, func, f, id) {
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; i < node->operand_count; i++)
            if (node->type != 0 && tg_node(func, tg_operand(func, node, i))->type == node->type)
                add(arena, items, f, id, tg_operand(func, node, i));
    }
}
static void make_operand(Edits *edits, Item item) {
    NodeEdit *edit = &edits->func[item.func].node[item.index];
    edit->swap = SWAP_VALUE;
    edit->value = item.choice;
}

static bool is_number(const Node *node, double number) {
    return node->op == OP_const && node->attr->dense == NULL && node->attr->number == number;
}

static void list_constants(Arena *arena, const Graph *graph, Items *items, uint32_t number) {
    EACH_NODE(graph, func, f, id) {
        const Node *node = tg_node(func, id);
        if (node->type != 0 && node->op != OP_arg && !is_number(node, 0) && !is_number(node, number))
            add(arena, items, f, id, number);
    }
}
static void list_zeros(Arena *arena, const Graph *graph, Items *items) { list_constants(arena, graph, items, 0); }
static void list_ones(Arena *arena, const Graph *graph, Items *items) { list_constants(arena, graph, items, 1); }
static void make_constant(Edits *edits, Item item) {
    NodeEdit *edit = &edits->func[item.func].node[item.index];
    edit->swap = SWAP_NUMBER;
    edit->number = item.choice;
}

/* ---- uses ---- */

static NodeId first_like(const Func *func, NodeId id) {
    for (NodeId other = 1; other < id; other++)
        if (tg_node(func, other)->type == tg_node(func, id)->type)
            return other;
    return 0;
}

static void list_uses(Arena *arena, const Graph *graph, Items *items) {
    EACH_NODE(graph, func, f, id) {
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            NodeId operand = tg_operand(func, node, i), other = tg_node(func, operand)->type ? first_like(func, operand) : 0;
            if (other)
                add(arena, items, f, node->operands + i, other);
        }
    }
}

/* A value is left out between its reader and what it was made of, whatever their types are. */
static void list_skips(Arena *arena, const Graph *graph, Items *items) {
    EACH_NODE(graph, func, f, id) {
        const Node *node = tg_node(func, id);
        for (uint32_t i = 0; i < node->operand_count; i++) {
            const Node *operand = tg_node(func, tg_operand(func, node, i));
            for (uint32_t k = 0; k < operand->operand_count; k++)
                if (operand->type && tg_node(func, tg_operand(func, operand, k))->type)
                    add(arena, items, f, node->operands + i, tg_operand(func, operand, k));
        }
    }
}
static void change_use(Edits *edits, Item item) { edits->func[item.func].use[item.index] = item.choice; }

/* What is reduced to a scalar is reduced one value earlier, over all axes of that. */
static void list_whole_reductions(Arena *arena, const Graph *graph, Items *items) {
    EACH_NODE(graph, func, f, id) {
        const Node *node = tg_node(func, id);
        if (node->op < OP_reduce_sum || node->op > OP_reduce_min || tg_node_type(graph, func, id)->rank != 0)
            continue;
        const Node *operand = tg_node(func, tg_operand(func, node, 0));
        for (uint32_t k = 0; k < operand->operand_count; k++)
            if (tg_node(func, tg_operand(func, operand, k))->type)
                add(arena, items, f, id, tg_operand(func, operand, k));
    }
}
static void reduce_whole(Edits *edits, Item item) {
    const Func *func = edits->graph->funcs.at[item.func];
    const Node *node = tg_node(func, item.index);
    uint32_t rank = tg_node_type(edits->graph, func, item.choice)->rank;
    Attr *attr = tg_arena_copy(edits->arena, node->attr, sizeof *attr);
    int64_t *axes = TG_ALLOC(edits->arena, int64_t, rank);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    attr->list[0] = (Ints){axes, rank};
    edits->func[item.func].node[item.index].attr = attr;
    edits->func[item.func].use[node->operands] = item.choice;
}

/* ---- declarations ---- */

typedef enum Declared { DECL_ARG, DECL_BUFFER, DECL_SCALAR, DECL_SETTING, DECL_TRAINING, DECL_TRAIN, DECL_VALIDATE } Declared;

/* Marks what the functions refer to. */
static void mark_used(const Graph *graph, bool *buffers, bool *scalars) {
    EACH_NODE(graph, func, f, id) {
        const Node *node = tg_node(func, id);
        const char *words = tg_op((Op)node->op)->attrs;
        if (strchr(words, '@'))
            buffers[node->attr->ref] = true;
        if (strchr(words, '$'))
            scalars[node->attr->ref] = true;
    }
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (uint32_t i = 0; i < graph->funcs.at[f]->results.count; i++)
            if (graph->funcs.at[f]->results.at[i].kind == RESULT_STORE)
                buffers[graph->funcs.at[f]->results.at[i].buffer] = true;
}

static void list_unread_args(Arena *arena, const Graph *graph, Items *items) {
    for (uint32_t f = 0; f < graph->funcs.count; f++) {
        const Func *func = graph->funcs.at[f];
        bool *read = TG_ALLOC(arena, bool, func->args.count);
        for (NodeId id = 1; id < func->nodes.count; id++)
            if (tg_node(func, id)->op == OP_arg)
                read[tg_node(func, id)->attr->list[0].at[0]] = true;
        for (uint32_t i = 0; i < func->args.count; i++)
            if (!read[i])
                tg_push(arena, items, (Item){.func = f, .index = i, .choice = DECL_ARG});
    }
}

static void list_declarations(Arena *arena, const Graph *graph, Items *items) {
    bool *buffers = TG_ALLOC(arena, bool, graph->buffers.count), *scalars = TG_ALLOC(arena, bool, graph->scalars.count);
    mark_used(graph, buffers, scalars);
    const Training *training = &graph->training;
    for (uint32_t i = 0; i < graph->settings.count; i++)
        add(arena, items, 0, i, DECL_SETTING);
    for (uint32_t i = 0; i < training->validate.count; i++)
        add(arena, items, 0, i, DECL_VALIDATE);
    if (training->train.name)
        add(arena, items, 0, 0, DECL_TRAIN);
    if (training->batch || training->micro || training->lanes || training->loss)
        add(arena, items, 0, 0, DECL_TRAINING);
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        if (!buffers[i])
            add(arena, items, 0, i, DECL_BUFFER);
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        if (!scalars[i])
            add(arena, items, 0, i, DECL_SCALAR);
    list_unread_args(arena, graph, items);
}

static void drop_declaration(Edits *edits, Item item) {
    switch ((Declared)item.choice) {
    case DECL_ARG: edits->func[item.func].drop_arg[item.index] = true; break;
    case DECL_BUFFER: edits->drop_buffer[item.index] = true; break;
    case DECL_SCALAR: edits->drop_scalar[item.index] = true; break;
    case DECL_SETTING: edits->drop_setting[item.index] = true; break;
    case DECL_TRAINING: edits->drop_training = true; break;
    case DECL_TRAIN: edits->drop_train = true; break;
    case DECL_VALIDATE: edits->drop_validate[item.index] = true; break;
    }
}

/* ---- sizes and element types ---- */

/* Types that some value, argument or buffer has. */
static bool *used_types(Arena *arena, const Graph *graph) {
    bool *used = TG_ALLOC(arena, bool, graph->types.all.count);
    EACH_NODE(graph, func, f, id)
        used[tg_node(func, id)->type] = true;
    for (uint32_t f = 0; f < graph->funcs.count; f++)
        for (uint32_t i = 0; i < graph->funcs.at[f]->args.count; i++)
            used[graph->funcs.at[f]->args.at[i].type] = true;
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        used[graph->buffers.at[i].type] = true;
    return used;
}

static bool is_known(const Items *items, uint32_t choice, int64_t from, int64_t to) {
    for (uint32_t i = 0; i < items->count; i++)
        if (items->at[i].choice == choice && items->at[i].from == from && items->at[i].to == to)
            return true;
    return false;
}

static void add_size(Arena *arena, Items *items, int64_t size) {
    const int64_t smaller[] = {1, 2, size / 2};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t how = SIZE_EXACT; how <= SIZE_FACTORS; how++)
            if (smaller[i] < size && smaller[i] > 0 && !is_known(items, how, size, smaller[i]))
                tg_push(arena, items, (Item){.choice = how, .from = size, .to = smaller[i]});
}

static void list_sizes(Arena *arena, const Graph *graph, Items *items) {
    bool *used = used_types(arena, graph), batch = false;
    for (TypeId id = 1; id < graph->types.all.count; id++)
        for (int i = 0; used[id] && i < tg_type_of(&graph->types, id)->rank; i++) {
            Dim dim = tg_type_of(&graph->types, id)->dims[i];
            batch = batch || dim.batch;
            add_size(arena, items, dim.size);
            for (int64_t factor = 2; factor <= 7; factor++)
                if (dim.size % factor == 0 && !is_known(items, SIZE_FACTORS, factor, 1))
                    tg_push(arena, items, (Item){.choice = SIZE_FACTORS, .from = factor, .to = 1});
        }
    if (batch)
        tg_push(arena, items, (Item){.choice = SIZE_BATCH});
}
static void change_size(Edits *edits, Item item) {
    edits->size = (SizeEdit)item.choice;
    edits->from = item.from;
    edits->to = item.to;
}

static void list_dtypes(Arena *arena, const Graph *graph, Items *items) {
    bool *used = used_types(arena, graph), known[DT_COUNT] = {false};
    for (TypeId id = 1; id < graph->types.all.count; id++) {
        DType dtype = tg_type_of(&graph->types, id)->dtype, plain = tg_is_float(dtype) ? DT_F32 : DT_I32;
        if (!used[id] || known[dtype] || dtype == plain || dtype == DT_BOOL)
            continue;
        known[dtype] = true;
        tg_push(arena, items, (Item){.from = dtype, .to = plain});
    }
}
static void change_dtype(Edits *edits, Item item) {
    edits->dtype_from = (DType)item.from;
    edits->dtype_to = (DType)item.to;
}

/* ---- attributes ---- */

/* The plain value of a number or of a list that has one; NULL: it is plain already, or means the structure. */
static const Attr *plainer(Arena *arena, const Node *node) {
    if (node->attr == NULL || node->op == OP_const)
        return NULL;
    Attr attr = *node->attr;
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t count = tg_attr_fields((Op)node->op, fields);
    bool changed = false;
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].kind == ATTR_NUMBER && attr.number != 1 && attr.number != 0) {
            attr.number = 1;
            changed = true;
        }
        Ints *list = fields[i].kind == ATTR_LIST && fields[i].standard ? &attr.list[fields[i].list] : NULL;
        if (list && list->count == 1 && list->at[0] != *fields[i].standard) {
            *list = (Ints){fields[i].standard, 1};
            changed = true;
        }
    }
    return changed ? tg_arena_copy(arena, &attr, sizeof attr) : NULL;
}

static void list_attrs(Arena *arena, const Graph *graph, Items *items) {
    EACH_NODE(graph, func, f, id)
        if (plainer(arena, tg_node(func, id)))
            add(arena, items, f, id, 0);
}
static void change_attr(Edits *edits, Item item) {
    const Node *node = tg_node(edits->graph->funcs.at[item.func], item.index);
    edits->func[item.func].node[item.index].attr = plainer(edits->arena, node);
}

const MoveKind reduce_moves[] = {
    {list_funcs, drop_func, true},
    {list_results, drop_result, true},
    {list_earlier_results, change_result, true},
    {list_buffers_as_ones, drop_buffer, true},
    {list_buffers_as_args, drop_buffer, true},
    {list_scalars, drop_scalar, true},
    {list_values, make_arg, true},
    {list_operands, make_operand, true},
    {list_zeros, make_constant, true},
    {list_ones, make_constant, true},
    {list_skips, change_use, true},
    {list_whole_reductions, reduce_whole, false},
    {list_uses, change_use, true},
    {list_declarations, drop_declaration, true},
    {list_sizes, change_size, false},
    {list_dtypes, change_dtype, false},
    {list_attrs, change_attr, true},
};
const uint32_t reduce_move_count = sizeof reduce_moves / sizeof *reduce_moves;
