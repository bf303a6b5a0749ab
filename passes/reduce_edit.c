#include "passes/reduce_edit.h"

#include <string.h>

typedef struct Rebuild {
    const Edits *edits;
    const Graph *in;
    Graph *out;
    uint32_t *buffer, *scalar, *func; /* in the new graph; UINT32_MAX: gone */
    Builder b;
    const Func *from;
    const FuncEdit *edit;
    NodeId *map;
    bool *needed;
    uint32_t *arg;
} Rebuild;

Edits reduce_edits(Arena *arena, const Graph *graph) {
    Edits edits = {
        .arena = arena, .graph = graph, .func = TG_ALLOC(arena, FuncEdit, graph->funcs.count),
        .drop_buffer = TG_ALLOC(arena, bool, graph->buffers.count),
        .drop_scalar = TG_ALLOC(arena, bool, graph->scalars.count),
        .drop_setting = TG_ALLOC(arena, bool, graph->settings.count),
        .drop_validate = TG_ALLOC(arena, bool, graph->training.validate.count),
    };
    for (uint32_t f = 0; f < graph->funcs.count; f++) {
        const Func *func = graph->funcs.at[f];
        edits.func[f] = (FuncEdit){
            .drop_arg = TG_ALLOC(arena, bool, func->args.count), .drop_result = TG_ALLOC(arena, bool, func->results.count),
            .result = TG_ALLOC(arena, NodeId, func->results.count),
            .node = TG_ALLOC(arena, NodeEdit, func->nodes.count), .use = TG_ALLOC(arena, NodeId, func->operands.count)};
    }
    return edits;
}

/* ---- types ---- */

/* A product of sizes stays the product of what they become, as reshapes need it. */
static int64_t changed_factors(int64_t size, int64_t from, int64_t to) {
    int64_t rest = size, made = 1;
    for (; rest && rest % from == 0; rest /= from)
        made *= to;
    return rest * made;
}

static Dim changed_dim(const Edits *edits, Dim dim) {
    if (edits->size == SIZE_BATCH)
        dim.batch = false;
    else if (edits->size == SIZE_EXACT && dim.size == edits->from)
        dim.size = edits->to;
    else if (edits->size == SIZE_FACTORS)
        dim.size = changed_factors(dim.size, edits->from, edits->to);
    return dim;
}

static TypeId changed_type(const Rebuild *r, TypeId id) {
    if (id == 0)
        return 0;
    Type type = *tg_type_of(&r->in->types, id);
    for (int i = 0; i < type.rank; i++)
        type.dims[i] = changed_dim(r->edits, type.dims[i]);
    if (type.dtype == r->edits->dtype_from)
        type.dtype = r->edits->dtype_to;
    return tg_type(&r->out->types, &type);
}

/* ---- declarations ---- */

static void keep_buffers(Rebuild *r) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->in->buffers.count; i++) {
        r->buffer[i] = r->edits->drop_buffer[i] ? UINT32_MAX : kept;
        if (r->edits->drop_buffer[i])
            continue;
        r->out->buffers.at[kept] = r->in->buffers.at[i];
        r->out->buffers.at[kept].type = changed_type(r, r->in->buffers.at[i].type);
        kept++;
    }
    r->out->buffers.count = kept;
}

static void keep_scalars(Rebuild *r) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->in->scalars.count; i++) {
        r->scalar[i] = r->edits->drop_scalar[i] ? UINT32_MAX : kept;
        if (!r->edits->drop_scalar[i])
            r->out->scalars.at[kept++] = r->in->scalars.at[i];
    }
    r->out->scalars.count = kept;
}

static void keep_data(Rebuild *r, DataSet *set) {
    DataField *fields = tg_arena_copy(r->out->arena, set->fields.at, set->fields.count * sizeof *fields);
    for (uint32_t i = 0; i < set->fields.count; i++)
        fields[i].type = changed_type(r, fields[i].type);
    set->fields.at = fields;
    set->fields.capacity = set->fields.count;
}

static void keep_training(Rebuild *r) {
    const Training *in = &r->in->training;
    Training *out = &r->out->training;
    if (r->edits->drop_training) {
        *out = (Training){.train = in->train, .validate = in->validate, .clip_scalar = -1};
    } else if (out->clip_scalar >= 0) {
        uint32_t kept = r->scalar[out->clip_scalar];
        out->clip_scalar = kept == UINT32_MAX ? -1 : (int32_t)kept;
    }
    if (r->edits->drop_train)
        out->train = (DataSet){0};
    keep_data(r, &out->train);
    DataSet *sets = TG_ALLOC(r->out->arena, DataSet, in->validate.count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < in->validate.count; i++)
        if (!r->edits->drop_validate[i]) {
            sets[kept] = in->validate.at[i];
            keep_data(r, &sets[kept++]);
        }
    out->validate.at = sets;
    out->validate.count = kept;
    out->validate.capacity = in->validate.count;
}

static void keep_settings(Rebuild *r) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->in->settings.count; i++)
        if (!r->edits->drop_setting[i])
            r->out->settings.at[kept++] = r->in->settings.at[i];
    r->out->settings.count = kept;
}

/* ---- functions ---- */

static NodeId resolve(const Rebuild *r, NodeId id) {
    while (r->edit->node[id].swap == SWAP_VALUE)
        id = r->edit->node[id].value;
    return id;
}

static NodeId operand_of(const Rebuild *r, const Node *node, uint32_t i) {
    NodeId other = r->edit->use[node->operands + i];
    return resolve(r, other ? other : tg_operand(r->from, node, i));
}

static NodeId result_of(const Rebuild *r, uint32_t i) {
    NodeId other = r->edit->result[i];
    return resolve(r, other ? other : r->from->results.at[i].node);
}

static void mark(Rebuild *r) {
    for (uint32_t i = 0; i < r->from->results.count; i++)
        if (!r->edit->drop_result[i])
            r->needed[result_of(r, i)] = true;
    for (NodeId id = r->from->nodes.count - 1; id > 0; id--) {
        const Node *node = tg_node(r->from, id);
        if (r->needed[id] && r->edit->node[id].swap == SWAP_NOTHING)
            for (uint32_t i = 0; i < node->operand_count; i++)
                r->needed[operand_of(r, node, i)] = true;
    }
}

static bool is_taken(const Func *func, const char *name) {
    for (uint32_t i = 0; i < func->args.count; i++)
        if (func->args.at[i].name && strcmp(func->args.at[i].name, name) == 0)
            return true;
    return false;
}

static NodeId new_arg(Rebuild *r, TypeId type) {
    Func *func = r->b.func;
    uint32_t index = func->args.count, number = index;
    const char *name;
    do
        name = tg_arena_printf(r->out->arena, "a%u", number++);
    while (is_taken(func, name));
    tg_push(r->out->arena, &func->args, (FuncArg){.name = tg_intern(r->out, name), .type = type});
    return tg_arg(&r->b, index, name, type);
}

/* What a slice leaves of a dimension that became smaller. */
static void changed_slice(Rebuild *r, const Node *node, Attr *attr) {
    const Type *old = tg_node_type(r->in, r->from, tg_operand(r->from, node, 0));
    int64_t *starts = tg_arena_copy(r->out->arena, attr->list[0].at, attr->list[0].count * sizeof *starts);
    int64_t *limits = tg_arena_copy(r->out->arena, attr->list[1].at, attr->list[1].count * sizeof *limits);
    for (uint32_t i = 0; i < attr->list[1].count && i < old->rank; i++) {
        int64_t size = changed_dim(r->edits, old->dims[i]).size;
        if (size == old->dims[i].size)
            continue;
        limits[i] = limits[i] < size ? limits[i] : size;
        starts[i] = starts[i] < limits[i] ? starts[i] : limits[i] > 0 ? limits[i] - 1 : 0;
    }
    attr->list[0].at = starts;
    attr->list[1].at = limits;
}

static void changed_values(Rebuild *r, TypeId old, TypeId new, Attr *attr) {
    int64_t had = tg_type_count(tg_type_of(&r->in->types, old), 1), count = tg_type_count(tg_type_of(&r->out->types, new), 1);
    if (had == count)
        return;
    double *values = TG_ALLOC(r->out->arena, double, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = attr->dense[i % had];
    attr->dense = values;
}

static bool changed_attr(Rebuild *r, const Node *node, TypeId type, const Attr *other, Attr *attr) {
    *attr = other ? *other : node->attr ? *node->attr : (Attr){0};
    const char *words = tg_op((Op)node->op)->attrs;
    const uint32_t *table = strchr(words, '@')   ? r->buffer
                            : strchr(words, '$') ? r->scalar
                            : strchr(words, '&') ? r->func
                                                 : NULL;
    if (table)
        attr->ref = table[attr->ref];
    int64_t *index = node->op == OP_arg ? TG_ALLOC(r->out->arena, int64_t, 1) : NULL;
    if (index) {
        *index = r->arg[attr->list[0].at[0]];
        attr->list[0].at = index;
    }
    if (node->op == OP_slice && r->edits->size != SIZE_SAME)
        changed_slice(r, node, attr);
    if (attr->dense)
        changed_values(r, node->type, type, attr);
    return !(table && attr->ref == UINT32_MAX) && !(index && *index == UINT32_MAX);
}

static bool rebuild_node(Rebuild *r, NodeId id) {
    const Node *node = tg_node(r->from, id);
    const NodeEdit *edit = &r->edit->node[id];
    TypeId type = changed_type(r, node->type);
    r->b.locs = node->locs;
    if (edit->swap == SWAP_NUMBER)
        r->map[id] = tg_const(&r->b, type, edit->number);
    else if (edit->swap == SWAP_ARG)
        r->map[id] = new_arg(r, type);
    else {
        Attr attr;
        if (!changed_attr(r, node, type, edit->attr, &attr))
            return false;
        NodeId *operands = TG_ALLOC(r->out->arena, NodeId, node->operand_count);
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = r->map[operand_of(r, node, i)];
        r->map[id] = tg_build(&r->b, (Op)node->op, &attr, operands, node->operand_count, type);
    }
    return r->b.error == NULL;
}

static bool keep_results(Rebuild *r) {
    for (uint32_t i = 0; i < r->from->results.count; i++) {
        const Result *result = &r->from->results.at[i];
        if (r->edit->drop_result[i])
            continue;
        if (result->kind == RESULT_STORE && r->buffer[result->buffer] == UINT32_MAX)
            return false;
        r->b.locs = result->locs;
        NodeId node = r->map[result_of(r, i)];
        if (result->kind == RESULT_STORE)
            tg_result_store(&r->b, r->buffer[result->buffer], node);
        else
            tg_result_value(&r->b, result->name, node);
    }
    return true;
}

static bool rebuild_func(Rebuild *r, uint32_t index) {
    Arena *arena = r->out->arena;
    r->from = r->in->funcs.at[index];
    r->edit = &r->edits->func[index];
    r->b = tg_builder(r->out, r->out->funcs.at[r->func[index]], false);
    r->map = TG_ALLOC(arena, NodeId, r->from->nodes.count);
    r->needed = TG_ALLOC(arena, bool, r->from->nodes.count);
    r->arg = TG_ALLOC(arena, uint32_t, r->from->args.count);
    for (uint32_t i = 0; i < r->from->args.count; i++) {
        FuncArg arg = r->from->args.at[i];
        arg.type = changed_type(r, arg.type);
        r->arg[i] = r->edit->drop_arg[i] ? UINT32_MAX : r->b.func->args.count;
        if (!r->edit->drop_arg[i])
            tg_push(arena, &r->b.func->args, arg);
    }
    mark(r);
    for (NodeId id = 1; id < r->from->nodes.count; id++)
        if (r->needed[id] && !rebuild_node(r, id))
            return false;
    return keep_results(r);
}

Graph *reduce_apply(const Edits *edits) {
    const Graph *in = edits->graph;
    Arena *arena = edits->arena;
    Rebuild r = {.edits = edits, .in = in, .out = tg_graph_like(arena, in, in->level)};
    r.out->path = in->path;
    r.buffer = TG_ALLOC(arena, uint32_t, in->buffers.count);
    r.scalar = TG_ALLOC(arena, uint32_t, in->scalars.count);
    r.func = TG_ALLOC(arena, uint32_t, in->funcs.count);
    keep_buffers(&r);
    keep_scalars(&r);
    keep_settings(&r);
    keep_training(&r);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        r.func[f] = edits->func[f].drop ? UINT32_MAX : r.out->funcs.count;
        if (!edits->func[f].drop)
            tg_func_new(r.out, in->funcs.at[f]->kind, in->funcs.at[f]->name);
    }
    for (int kernels = 1; kernels >= 0; kernels--) /* calls look at the kernels that they name */
        for (uint32_t f = 0; f < in->funcs.count; f++)
            if (!edits->func[f].drop && (in->funcs.at[f]->kind == FUNC_KERNEL) == kernels && !rebuild_func(&r, f))
                return NULL;
    return r.out;
}
