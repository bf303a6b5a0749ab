#include "growth.h"

#include "passes/copy.h"

#include <string.h>

enum { MODEL_ARGS = 6, MOST_FIELDS = 3, MOST_NODES = 4096 };

/* What a node depends on, as the pass batch sees it. */
enum {
    ON_PARAMETERS = 1,
    ON_SUMS = 2,    /* on batch sums */
    ON_TRAINED = 4, /* on batch sums that depend on parameters */
    AFTER_ROWS = 8, /* on rows that depend on batch sums: not in validation */
};

typedef struct Model {
    Growth w;    /* comes first: hooks get it */
    bool many;   /* several micro-batches */
    bool smooth; /* gradients shall be differences: nothing jumps, no narrow type */
    uint8_t marks[MOST_NODES];
} Model;

static Graph *graph_of(const Model *m) { return m->w.r->graph; }
static Func *func_of(const Model *m) { return m->w.r->func; }
static const Type *type_of(const Model *m, NodeId id) { return tg_node_type(m->w.r->graph, m->w.r->func, id); }
static TypeId type_id(Model *m, const Type *type) { return tg_type(&m->w.r->graph->types, type); }
static TypeId scalar_id(Model *m, DType dtype) { return type_id(m, &(Type){.dtype = dtype}); }
static bool has_rows(const Model *m, NodeId id) { return tg_type_batch_axis(type_of(m, id)) >= 0; }

/* ---- hooks ---- */

static bool is_smooth(const Model *m, const Node *node) {
    DType dtype = tg_type_of(&graph_of(m)->types, node->type)->dtype;
    bool jumps = !tg_op_has_gradient((Op)node->op) && node->operand_count && tg_is_float(dtype);
    return dtype != DT_BF16 && dtype != DT_F16 && !jumps;
}

static bool accepts(Growth *w, NodeId id) {
    Model *m = (Model *)w;
    const Node *node = tg_node(func_of(m), id);
    if (id >= MOST_NODES || (m->smooth && !is_smooth(m, node)))
        return false;
    bool rows = has_rows(m, id), sum = false;
    uint8_t marks = 0;
    if (node->op == OP_load) {
        const Buffer *buffer = &graph_of(m)->buffers.at[node->attr->ref];
        marks = buffer->class == BUFFER_PARAM && !buffer->frozen ? ON_PARAMETERS : 0;
    }
    for (uint32_t i = 0; i < node->operand_count; i++) {
        NodeId operand = tg_operand(func_of(m), node, i);
        sum |= !rows && has_rows(m, operand);
        marks |= m->marks[operand];
    }
    if ((rows || sum) && (marks & ON_SUMS))
        marks |= AFTER_ROWS;
    if ((rows || sum) && m->many && (marks & ON_TRAINED))
        return false;
    if (sum)
        marks |= ON_SUMS | (marks & ON_PARAMETERS ? ON_TRAINED : 0);
    m->marks[id] = marks;
    return true;
}

/* A field of the batch: records come first. */
static NodeId field_leaf(Model *m, const Type *type, Values values) {
    int axis = tg_type_batch_axis(type);
    Type field = {.dtype = type->dtype, .rank = 1, .dims = {{1, true}}}, joined = field;
    int64_t perm[TG_MAX_RANK], next = 1;
    if (type->dims[axis].size != 1)
        field.dims[field.rank++].size = type->dims[axis].size;
    joined.dims[0] = type->dims[axis];
    for (int i = 0; i < type->rank; i++) {
        perm[i] = i == axis ? 0 : next++;
        if (i != axis)
            field.dims[field.rank++] = joined.dims[joined.rank++] = type->dims[i];
    }
    if (field.rank >= TG_MAX_RANK)
        return grow_const(&m->w, type, values);
    NodeId x = tg_reshape(&m->w.g.b, grow_arg(&m->w, &field, values), type_id(m, &joined));
    return axis ? tg_transpose(&m->w.g.b, x, perm, type->rank) : x;
}

static NodeId whole_leaf(Model *m, const Type *type, Values values) {
    Growth *w = &m->w;
    if (graph_of(m)->buffers.count < GROWN_BUFFERS && grow_chance(w, 60)) {
        bool trained = type->dtype == DT_F32 && grow_chance(w, 75), frozen = !trained && grow_chance(w, 30);
        NodeId x = grow_load(w, type, values, trained || frozen ? BUFFER_PARAM : BUFFER_STATE);
        graph_of(m)->buffers.at[graph_of(m)->buffers.count - 1].frozen = frozen;
        return x;
    }
    if (values == VALUES_ANY && tg_is_float(type->dtype) && grow_chance(w, 15))
        return grow_scalar(w, type);
    return grow_const(w, type, values);
}

/* `x` times a parameter, which is as wide as a record or one number. */
static NodeId scaled(Model *m, NodeId x, const Type *type) {
    Builder *b = &m->w.g.b;
    Type wide = {.dtype = DT_F32};
    if (graph_of(m)->buffers.count >= GROWN_BUFFERS)
        return x;
    for (int i = 1; grow_chance(&m->w, 80) && tg_type_batch_axis(type) == 0 && i < type->rank; i++)
        wide.dims[wide.rank++] = type->dims[i];
    if (wide.rank + 1 < type->rank)
        wide.rank = 0;
    NodeId p = grow_load(&m->w, &wide, VALUES_ANY, BUFFER_PARAM);
    p = type->dtype == DT_F32 ? p : tg_convert(b, p, type->dtype);
    return tg_binary(b, OP_mul, x, tg_broadcast_like(b, p, type_id(m, type)));
}

static NodeId leaf(Growth *w, const Type *type, Values values) {
    Model *m = (Model *)w;
    if (tg_type_batch_axis(type) < 0)
        return whole_leaf(m, type, values);
    bool field = func_of(m)->args.count < MODEL_ARGS && grow_chance(w, 85);
    NodeId x = field ? field_leaf(m, type, values) : grow_const(w, type, values);
    bool trains = values == VALUES_ANY && tg_is_float(type->dtype) && grow_chance(w, 45);
    return trains ? scaled(m, x, type) : x;
}

/* ---- the loss ---- */

static NodeId number(Model *m, NodeId like, double value) {
    return tg_const(&m->w.g.b, tg_node(func_of(m), like)->type, value);
}

/* The sum over all elements, in f32, axis by axis in a random order. */
static NodeId whole_sum(Model *m, NodeId x) {
    Builder *b = &m->w.g.b;
    if (type_of(m, x)->dtype != DT_F32)
        x = tg_convert(b, x, DT_F32);
    while (type_of(m, x)->rank) {
        int64_t axis = gen_below(&m->w.g, type_of(m, x)->rank);
        x = tg_reduce(b, OP_reduce_sum, x, &axis, 1, 1);
    }
    return x;
}

/* Some factor of a sum that no parameter reaches. */
static NodeId weighted(Model *m, NodeId sum) {
    Builder *b = &m->w.g.b;
    int32_t records = tg_scalar_find(graph_of(m), "records");
    if (grow_chance(&m->w, 50))
        return tg_binary(b, OP_div, sum, tg_convert(b, tg_scalar(b, (uint32_t)records), DT_F32));
    for (int tries = 0; tries < 8; tries++) {
        NodeId x = grow_any_value(&m->w);
        if ((m->marks[x] & (ON_SUMS | ON_PARAMETERS)) != ON_SUMS || has_rows(m, x) || type_of(m, x)->rank)
            continue;
        NodeId size = tg_unary(b, OP_abs, tg_convert(b, x, DT_F32));
        return tg_binary(b, OP_div, sum, tg_binary(b, OP_add, size, number(m, size, 1)));
    }
    return tg_binary(b, OP_mul, sum, number(m, sum, 0.5));
}

/* What one micro-batch allows: any function of sums. */
static NodeId bent(Model *m, NodeId x) {
    static const Op ops[] = {OP_tanh, OP_sin, OP_abs, OP_sigmoid};
    return tg_unary(&m->w.g.b, ops[gen_below(&m->w.g, 4)], x);
}

/* Adds `term` to the loss if its value is wanted. */
static bool add_term(Model *m, GrowthMark mark, NodeId term, NodeId *loss) {
    NodeId sum = *loss && term ? tg_binary(&m->w.g.b, OP_add, *loss, term) : term;
    if (sum && grow_evaluate(&m->w)) {
        *loss = sum;
        return true;
    }
    grow_back(&m->w, mark);
    return false;
}

static bool add_row_term(Model *m, NodeId x, NodeId *loss) {
    GrowthMark mark = grow_mark(&m->w);
    if (!has_rows(m, x) || !(m->marks[x] & ON_PARAMETERS) || !tg_is_float(type_of(m, x)->dtype))
        return false;
    NodeId term = whole_sum(m, x);
    term = m->many || grow_chance(&m->w, 60) ? weighted(m, term) : bent(m, term);
    return add_term(m, mark, term, loss);
}

/* Of values that nothing reads, so that most of the graph counts, and of some others. */
static void add_row_terms(Model *m, NodeId *loss) {
    uint32_t count = func_of(m)->nodes.count;
    Uses uses = tg_uses(m->w.g.arena, func_of(m));
    for (NodeId id = 1; id < count; id++)
        if (uses.first[id + 1] == uses.first[id] && grow_chance(&m->w, 80))
            add_row_term(m, id, loss);
    for (int tries = 0; tries < 6; tries++)
        if (grow_chance(&m->w, 25))
            add_row_term(m, grow_any_value(&m->w), loss);
}

/* Of the parameter alone, or of its product with something of each record. */
static NodeId parameter_term(Model *m, uint32_t buffer) {
    Builder *b = &m->w.g.b;
    NodeId p = tg_load(b, buffer), x = 0;
    Type line = {.dtype = DT_F32, .rank = 1, .dims = {{1, true}}};
    if (grow_chance(&m->w, 60))
        x = grow_from_values(&m->w, &line);
    if (!x || m->marks[x] & ON_TRAINED)
        return tg_binary(b, OP_mul, whole_sum(m, tg_binary(b, OP_mul, p, p)), tg_const(b, scalar_id(m, DT_F32), 0.1));
    NodeId wide = tg_broadcast(b, whole_sum(m, p), NULL, 0, type_id(m, &line));
    return weighted(m, whole_sum(m, tg_binary(b, OP_mul, wide, x)));
}

static void add_parameter_terms(Model *m, NodeId *loss) {
    for (uint32_t i = 0; i < graph_of(m)->buffers.count; i++) {
        const Buffer *buffer = &graph_of(m)->buffers.at[i];
        bool done = buffer->class != BUFFER_PARAM || buffer->frozen;
        for (int tries = 0; !done && tries < 12; tries++) {
            GrowthMark mark = grow_mark(&m->w);
            done = add_term(m, mark, parameter_term(m, i), loss);
        }
        if (!done)
            graph_of(m)->buffers.at[i].frozen = true;
    }
}

static void add_parameter(Model *m) {
    Type type = {.dtype = DT_F32, .rank = 1, .dims = {{3, false}}};
    grow_load(&m->w, &type, VALUES_ANY, BUFFER_PARAM);
}

static void add_loss(Model *m) {
    NodeId loss = 0;
    if (graph_of(m)->buffers.count < RANDOM_BUFFERS && grow_chance(&m->w, 30))
        add_parameter(m);
    add_row_terms(m, &loss);
    add_parameter_terms(m, &loss);
    if (!loss) { /* no parameter yet */
        add_parameter(m);
        add_parameter_terms(m, &loss);
    }
    tg_result_value(&m->w.g.b, "loss", loss);
}

/* ---- what else the objective gives ---- */

static void add_fields(Model *m) {
    Type scalar = {.dtype = DT_F32};
    for (int i = 0; i < MOST_FIELDS; i++) {
        GrowthMark mark = grow_mark(&m->w);
        NodeId x = grow_chance(&m->w, 70) ? grow_from_values(&m->w, &scalar) : 0;
        if (x && grow_evaluate(&m->w))
            tg_result_value(&m->w.g.b, tg_arena_printf(m->w.g.arena, "field%d", i), x);
        else
            grow_back(&m->w, mark);
    }
}

static void add_states(Model *m) {
    for (uint32_t i = 0; i < graph_of(m)->buffers.count; i++) {
        if (graph_of(m)->buffers.at[i].class != BUFFER_STATE)
            continue;
        GrowthMark mark = grow_mark(&m->w);
        Type type = *tg_type_of(&graph_of(m)->types, graph_of(m)->buffers.at[i].type);
        NodeId x = grow_chance(&m->w, 80) ? grow_from_values(&m->w, &type) : 0;
        if (x && type.dtype != DT_BOOL && grow_chance(&m->w, 50))
            x = tg_binary(&m->w.g.b, OP_maximum, x, tg_load(&m->w.g.b, i));
        if (x && grow_evaluate(&m->w))
            tg_result_store(&m->w.g.b, i, x);
        else
            grow_back(&m->w, mark);
    }
}

/* The loss is over nothing when something of the batch sums to 0. */
static void add_empty(Model *m) {
    Type scalar = {.dtype = DT_F32};
    GrowthMark mark = grow_mark(&m->w);
    NodeId x = grow_from_values(&m->w, &scalar);
    if (x && !(m->marks[x] & ON_PARAMETERS)) {
        NodeId empty = tg_binary(&m->w.g.b, OP_lt, x, number(m, x, grow_chance(&m->w, 80) ? -100 : 0.5));
        if (grow_evaluate(&m->w)) {
            tg_result_value(&m->w.g.b, TG_EMPTY_LOSS, empty);
            return;
        }
    }
    grow_back(&m->w, mark);
}

/* ---- other functions ---- */

/* The fields that validation can have. */
static void add_evaluation(Model *m) {
    const Func *from = func_of(m);
    Vec(const Result *) fields = {0};
    for (uint32_t i = 0; i < from->results.count; i++) {
        const Result *result = &from->results.at[i];
        bool field = result->kind == RESULT_VALUE && strcmp(result->name, TG_EMPTY_LOSS) != 0;
        if (field && !(m->marks[result->node] & AFTER_ROWS))
            tg_push(m->w.g.arena, &fields, result);
    }
    if (fields.count == 0)
        return;
    Builder b = tg_builder(graph_of(m), tg_func_new(graph_of(m), FUNC_OBJECTIVE_EVAL, "objective.eval"), false);
    b.func->args = from->args;
    Copy copy = tg_copy(m->w.g.arena, &b, graph_of(m), from);
    for (uint32_t i = 0; i < fields.count; i++)
        tg_copy_need(&copy, fields.at[i]->node);
    tg_copy_run(&copy);
    for (uint32_t i = 0; i < fields.count; i++)
        tg_result_value(&b, fields.at[i]->name, copy.map[fields.at[i]->node]);
}

/* Some rows, with all fields as arguments. */
static void add_export(Model *m) {
    const Func *from = func_of(m);
    Builder b = tg_builder(graph_of(m), tg_func_new(graph_of(m), FUNC_EXPORT, "export.rows"), false);
    b.func->args = from->args;
    Copy copy = tg_copy(m->w.g.arena, &b, graph_of(m), from);
    NodeId rows[3];
    uint32_t count = 0;
    for (int tries = 0; tries < 12 && count < 3; tries++) {
        NodeId x = grow_any_value(&m->w);
        bool known = count && (rows[0] == x || rows[count - 1] == x);
        if (!known && !(m->marks[x] & ON_SUMS) && (has_rows(m, x) || grow_chance(&m->w, 20)))
            rows[count++] = x;
    }
    for (uint32_t i = 0; i < count; i++)
        tg_copy_need(&copy, rows[i]);
    tg_copy_run(&copy);
    for (uint32_t i = 0; i < count; i++)
        tg_result_value(&b, tg_arena_printf(m->w.g.arena, "out%u", i), copy.map[rows[i]]);
}

static NodeId spread(Builder *b, const char *scalar, NodeId like) {
    NodeId x = tg_convert(b, tg_scalar(b, (uint32_t)tg_scalar_find(b->graph, scalar)), DT_F32);
    return tg_broadcast_like(b, x, tg_node(b->func, like)->type);
}

static NodeId mixed(Builder *b, NodeId x, NodeId y, double share) {
    TypeId type = tg_node(b->func, x)->type;
    return tg_binary(b, OP_add, tg_binary(b, OP_mul, x, tg_const(b, type, 1 - share)),
                     tg_binary(b, OP_mul, y, tg_const(b, type, share)));
}

static uint32_t optimizer_state(Model *m, uint32_t param, const char *name) {
    const Buffer *of = &graph_of(m)->buffers.at[param];
    Buffer state = {.type = of->type, .class = BUFFER_OPTIMIZER};
    state.name = tg_intern(graph_of(m), tg_arena_printf(m->w.g.arena, "optimizer.%s.%s", of->name, name));
    return tg_buffer_add(graph_of(m), state);
}

/* p - lr g; with momentum; by its sign; Adam; with decay: what optimizers are made of. */
static void add_update(Model *m, Builder *b, uint32_t param) {
    Attr attr = {.ref = param};
    NodeId p = tg_load(b, param), g = tg_build(b, OP_gradient, &attr, NULL, 0, tg_node(b->func, p)->type);
    int kind = (int)gen_below(&m->w.g, 4);
    NodeId change = g;
    if (kind) {
        uint32_t state = optimizer_state(m, param, "m");
        change = mixed(b, tg_load(b, state), g, 0.25);
        tg_result_store(b, state, change);
    }
    if (kind == 2)
        change = tg_unary(b, OP_sign, change);
    if (kind == 3) {
        uint32_t state = optimizer_state(m, param, "v");
        NodeId v = mixed(b, tg_load(b, state), tg_binary(b, OP_mul, g, g), 0.125);
        tg_result_store(b, state, v);
        NodeId root = tg_unary(b, OP_sqrt, tg_binary(b, OP_div, v, spread(b, "step", v)));
        change = tg_binary(b, OP_div, change, tg_binary(b, OP_add, root, tg_const(b, tg_node(b->func, v)->type, 1e-3)));
    }
    if (grow_chance(&m->w, 30))
        change = mixed(b, change, p, 0.1);
    tg_result_store(b, param, tg_binary(b, OP_sub, p, tg_binary(b, OP_mul, spread(b, "lr", p), change)));
}

static void add_updates(Model *m) {
    Builder b = tg_builder(graph_of(m), tg_func_new(graph_of(m), FUNC_UPDATE, "update"), false);
    uint32_t count = graph_of(m)->buffers.count;
    for (uint32_t i = 0; i < count; i++)
        if (graph_of(m)->buffers.at[i].class == BUFFER_PARAM && !graph_of(m)->buffers.at[i].frozen)
            add_update(m, &b, i);
}

static void add_init(Model *m) {
    Builder b = tg_builder(graph_of(m), tg_func_new(graph_of(m), FUNC_INIT, "init"), false);
    for (uint32_t i = 0; i < graph_of(m)->buffers.count; i++) {
        Attr attr = {.dense = m->w.r->buffers[i].count ? m->w.r->buffers[i].at : NULL};
        tg_result_store(&b, i, tg_build(&b, OP_const, &attr, NULL, 0, graph_of(m)->buffers.at[i].type));
    }
}

/* ---- the whole ---- */

static void choose_batch(Model *m) {
    static const int64_t splits[][3] = {/* batch, micro, lanes */
                                        {1, 1, 1}, {3, 3, 1}, {4, 4, 2}, {4, 2, 1}, {4, 2, 2}, {4, 1, 1},
                                        {4, 1, 4}, {5, 2, 1}, {6, 2, 3}, {6, 4, 2}, {4, 2, 4}, {7, 2, 2},
                                        {5, 5, 1}, {2, 1, 2}, {4, 4, 4}, {8, 4, 4}};
    const int64_t *split = splits[gen_below(&m->w.g, sizeof splits / sizeof *splits)];
    Training *training = &graph_of(m)->training;
    training->batch = m->w.r->rows = split[0];
    training->micro = split[1];
    training->lanes = split[2];
    training->clip_norm = grow_chance(&m->w, 30) ? 0.5 : 0;
    training->clip_scalar = grow_chance(&m->w, 20) ? 0 : -1;
    training->loss = "loss";
    training->steps = 2;
    m->many = training->micro < training->batch;
}

static void add_scalars(Model *m) {
    static const Scalar scalars[] = {{.name = "records", .class = SCALAR_BUILTIN},
                                     {.name = "step", .class = SCALAR_BUILTIN},
                                     {.name = "lr", .class = SCALAR_SETTING, .value = 0.125}};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
        m->w.r->scalars[tg_scalar_add(graph_of(m), scalars[i])] = scalars[i].value;
    m->w.r->scalars[tg_scalar_find(graph_of(m), "records")] = (double)m->w.r->rows;
}

void tg_random_model(Arena *arena, uint64_t seed, RandomGraph *result) {
    static const Sources no_sources;
    *result = (RandomGraph){.graph = tg_graph_new(arena, &no_sources, LEVEL_MODEL), .wild = seed % 4 == 3};
    result->func = tg_func_new(result->graph, FUNC_OBJECTIVE, "objective");
    Model *m = TG_ALLOC(arena, Model, 1);
    grow_start(&m->w, arena, seed, result);
    m->w.leaf = leaf;
    m->w.accepts = accepts;
    m->w.g.flavour = grow_chance(&m->w, 85) ? FLAVOUR_BATCH : m->w.g.flavour;
    m->smooth = !result->wild && grow_chance(&m->w, 50);
    m->w.dtype = m->smooth || grow_chance(&m->w, 80) ? DT_F32 : m->w.dtype;
    if (grow_chance(&m->w, 40))
        grow_mixed(&m->w);
    if (!result->wild && grow_chance(&m->w, 40)) { /* the one operation whose gradients are operations of their own */
        m->w.attention = true;
        m->w.last = OP_attention;
    } else if (tg_is_mixed(&graph_of(m)->training)) {
        m->w.last = OP_dot;
    }
    choose_batch(m);
    add_scalars(m);
    grow_operations(&m->w);
    add_loss(m);
    add_fields(m);
    add_states(m);
    if (grow_chance(&m->w, 25))
        add_empty(m);
    grow_marks(&m->w);
    add_evaluation(m);
    add_export(m);
    add_updates(m);
    add_init(m);
}
