/* Generators of index maps, reductions, contractions and tables. */
#include "tests/ops/generate_rules.h"

#include <math.h>

static void shuffle(Gen *g, int64_t *at, int count) {
    for (int i = 0; i < count; i++) {
        int k = (int)gen_below(g, i + 1);
        int64_t value = i;
        at[i] = at[k];
        at[k] = value;
    }
}

/* Neighbouring dimensions join, or (without B) the first splits off a 1. */
bool gen_reshape(Gen *g) {
    Type from = gen_shape(g, g->dtype, 1, 4), to = from;
    NodeId x = gen_operand(g, &from, VALUES_ANY);
    int join = (int)gen_below(g, from.rank);
    bool joins = join + 1 < from.rank && !from.dims[join + 1].batch;
    if (joins) {
        to.rank--;
        to.dims[join].size *= from.dims[join + 1].size;
        for (int i = join + 1; i < TG_MAX_RANK; i++)
            to.dims[i] = i < to.rank ? from.dims[i + 1] : (Dim){0};
    } else {
        to.dims[to.rank++] = (Dim){1, false};
    }
    return gen_finish(g, NULL, &x, 1, &to);
}

bool gen_transpose(Gen *g) {
    Type type = gen_shape(g, g->dtype, 1, 4);
    int64_t perm[TG_MAX_RANK];
    shuffle(g, perm, type.rank);
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(perm, type.rank)}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_broadcast(Gen *g) {
    Type to = gen_shape(g, g->dtype, 1, 4), from = {.dtype = g->dtype};
    int64_t dims[TG_MAX_RANK];
    for (int i = 0; i < to.rank; i++) {
        if (gen_below(g, 2))
            continue;
        dims[from.rank] = i;
        from.dims[from.rank++] = gen_below(g, 3) ? to.dims[i] : (Dim){1, false};
    }
    NodeId x = gen_operand(g, &from, VALUES_ANY);
    Attr attr = {.list = {gen_ints(dims, from.rank)}};
    return gen_finish(g, &attr, &x, 1, &to);
}

bool gen_slice(Gen *g) {
    Type type = gen_shape(g, g->dtype, 1, 3);
    int64_t start[TG_MAX_RANK], limit[TG_MAX_RANK], stride[TG_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        int64_t size = type.dims[i].size;
        start[i] = type.dims[i].batch ? 0 : gen_below(g, size + 1);
        limit[i] = type.dims[i].batch ? size : start[i] + gen_below(g, size - start[i] + 1);
        stride[i] = type.dims[i].batch ? 1 : 1 + gen_below(g, 3);
    }
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(start, type.rank), gen_ints(limit, type.rank), gen_ints(stride, type.rank)}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_reverse(Gen *g) {
    Type type = gen_shape(g, g->dtype, 1, 3);
    int64_t axes[TG_MAX_RANK];
    uint32_t count = 0;
    for (int i = 0; i < type.rank; i++)
        if (!type.dims[i].batch && gen_below(g, 2))
            axes[count++] = i;
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(axes, count)}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_pad(Gen *g) {
    Type type = gen_shape(g, g->dtype, 1, 3);
    int64_t low[TG_MAX_RANK], high[TG_MAX_RANK], interior[TG_MAX_RANK];
    for (int i = 0; i < type.rank; i++) {
        int64_t most = type.dims[i].batch ? 1 : 3;
        low[i] = gen_below(g, most);
        high[i] = gen_below(g, most);
        interior[i] = gen_below(g, most);
    }
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(low, type.rank), gen_ints(high, type.rank), gen_ints(interior, type.rank)}};
    attr.number = (double)gen_below(g, 2);
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_concat(Gen *g) {
    Type type = gen_shape(g, g->dtype, 2, 3);
    int64_t axis = gen_plain_axis(g, &type);
    NodeId x[3];
    uint32_t count = 1 + (uint32_t)gen_below(g, 3);
    for (uint32_t i = 0; i < count; i++) {
        type.dims[axis].size = gen_size(g, true);
        x[i] = gen_operand(g, &type, VALUES_ANY);
    }
    Attr attr = {.list = {gen_ints(&axis, 1)}};
    return gen_finish(g, &attr, x, count, NULL);
}

bool gen_reduce(Gen *g) {
    Type type = gen_shape(g, g->dtype, 1, 4);
    int64_t axis = gen_below(g, type.rank);
    if (gen_below(g, 4) == 0 && !type.dims[axis].batch && type.dims[axis].size)
        type.dims[axis].size = 291; /* several rounds of lanes, and a rest */
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(&axis, 1)}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_argmax(Gen *g) {
    Type type = gen_shape(g, g->dtype, 2, 3);
    int64_t axis = gen_plain_axis(g, &type);
    if (type.dims[axis].size == 0)
        type.dims[axis].size = 1;
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(&axis, 1)}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

bool gen_cumsum(Gen *g) {
    Type type = gen_shape(g, g->dtype, 2, 3);
    int64_t axis = gen_plain_axis(g, &type), reverse = gen_below(g, 2);
    NodeId x = gen_operand(g, &type, VALUES_ANY);
    Attr attr = {.list = {gen_ints(&axis, 1), gen_ints(&reverse, 1)}};
    return gen_finish(g, &attr, &x, 1, NULL);
}

/* An operand of a dot: its axes of each group, in a random order. place[k]: the axis that group member k became. */
static Type mixed(Gen *g, const Dim *dims, int count, int64_t *place) {
    Type type = {.dtype = g->dtype, .rank = (uint8_t)count};
    shuffle(g, place, count);
    for (int k = 0; k < count; k++)
        type.dims[place[k]] = dims[k];
    return type;
}

/* Groups in the order batch, contract, free. */
bool gen_dot(Gen *g) {
    int batch = (int)gen_below(g, 2), contract = 1 + (int)gen_below(g, 2);
    int free_a = (int)gen_below(g, 3), free_b = (int)gen_below(g, 3);
    Dim a[TG_MAX_RANK], b[TG_MAX_RANK];
    for (int i = 0; i < batch + contract; i++)
        a[i] = b[i] = (Dim){gen_size(g, true), false};
    for (int i = batch + contract; i < TG_MAX_RANK; i++) {
        a[i] = (Dim){gen_size(g, true), false};
        b[i] = (Dim){gen_size(g, true), false};
    }
    if (g->flavour == FLAVOUR_BATCH) { /* B is a batch, contracted or free axis */
        int axis = (int)gen_below(g, batch + contract + free_a);
        a[axis] = (Dim){gen_below(g, 2) ? 1 : 3, true};
        if (axis < batch + contract)
            b[axis] = a[axis];
    }
    int64_t place_a[TG_MAX_RANK], place_b[TG_MAX_RANK];
    Type type_a = mixed(g, a, batch + contract + free_a, place_a),
         type_b = mixed(g, b, batch + contract + free_b, place_b);
    NodeId x[3] = {gen_operand(g, &type_a, VALUES_ANY)};
    x[1] = gen_operand(g, &type_b, VALUES_ANY);
    Attr attr = {.list = {gen_ints(place_a, (uint32_t)batch), gen_ints(place_b, (uint32_t)batch),
                          gen_ints(place_a + batch, (uint32_t)contract),
                          gen_ints(place_b + batch, (uint32_t)contract)}};
    bool bias = gen_below(g, 2), adds = !bias && batch + free_a > 0 && gen_below(g, 2);
    Type type_bias = {.dtype = g->dtype};
    for (int axis = 0; axis < type_b.rank; axis++)
        for (int k = batch + contract; k < type_b.rank; k++)
            if (place_b[k] == axis)
                type_bias.dims[type_bias.rank++] = type_b.dims[axis];
    if (bias)
        x[2] = gen_operand(g, &type_bias, VALUES_ANY);
    const char *why = NULL;
    TypeId result = adds ? tg_infer(g->b.graph, g->b.func, OP_dot, &attr, x, 2, 0, &why) : 0;
    if (result) {
        Type sum = *tg_type_of(&g->b.graph->types, result);
        x[2] = gen_operand(g, &sum, VALUES_ANY);
    }
    return gen_finish(g, &attr, x, bias || result ? 3 : 2, NULL);
}

/* A table of two dimensions, indices of up to two, and the rows that they read. */
typedef struct Table {
    Type table, indices, rows;
    int64_t axis;
} Table;

static Table table_of(Gen *g) {
    Table t = {.table = {.dtype = g->dtype, .rank = 2}, .axis = gen_below(g, 2)};
    t.table.dims[t.axis].size = gen_size(g, false);
    t.table.dims[1 - t.axis].size = gen_size(g, true);
    t.indices = gen_shape(g, DT_I32, 0, 2);
    t.rows.dtype = g->dtype;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; i == t.axis && k < t.indices.rank; k++)
            t.rows.dims[t.rows.rank++] = t.indices.dims[k];
        if (i != t.axis)
            t.rows.dims[t.rows.rank++] = t.table.dims[i];
    }
    g->index_limit = t.table.dims[t.axis].size;
    return t;
}

bool gen_take(Gen *g) {
    Table t = table_of(g);
    NodeId x[2] = {gen_operand(g, &t.table, VALUES_ANY)};
    x[1] = gen_operand(g, &t.indices, VALUES_INDEX);
    Attr attr = {.list = {gen_ints(&t.axis, 1)}};
    return gen_finish(g, &attr, x, 2, NULL);
}

bool gen_scatter_add(Gen *g) {
    Table t = table_of(g);
    if (tg_is_low(g->dtype) && gen_below(g, 2))
        t.table.dtype = DT_F32;
    bool adds_to = gen_below(g, 2);
    NodeId x[3] = {gen_operand(g, &t.indices, VALUES_INDEX)};
    x[1] = gen_operand(g, &t.rows, VALUES_ANY);
    if (adds_to)
        x[2] = gen_operand(g, &t.table, VALUES_ANY);
    Attr attr = {.list = {gen_ints(&t.axis, 1)}};
    return gen_finish(g, &attr, x, adds_to ? 3 : 2, &t.table);
}

bool gen_attention(Gen *g) {
    bool outer = g->flavour == FLAVOUR_BATCH || gen_below(g, 2);
    Dim lead = {gen_size(g, false), g->flavour == FLAVOUR_BATCH};
    int64_t kv = 1 + gen_below(g, 2), heads = kv * (1 + gen_below(g, 2));
    int64_t queries = gen_size(g, true), keys = gen_size(g, false), depth = gen_size(g, false),
            causal = gen_below(g, 2);
    Type q = {.dtype = g->dtype}, k, mask = {.dtype = DT_BOOL};
    if (outer)
        q.dims[q.rank++] = mask.dims[mask.rank++] = lead;
    k = q;
    q.dims[q.rank++].size = heads;
    q.dims[q.rank++].size = queries;
    q.dims[q.rank++].size = depth;
    k.dims[k.rank++].size = kv;
    k.dims[k.rank++].size = keys;
    k.dims[k.rank++].size = depth;
    mask.dims[mask.rank++].size = queries;
    mask.dims[mask.rank++].size = keys;
    NodeId x[4] = {gen_operand(g, &q, VALUES_ANY)};
    x[1] = gen_operand(g, &k, VALUES_ANY);
    x[2] = gen_operand(g, &k, VALUES_ANY);
    bool masked = gen_below(g, 2);
    if (masked)
        x[3] = gen_operand(g, &mask, VALUES_ANY);
    Attr attr = {.list = {gen_ints(&causal, 1)}, .number = 1.0 / sqrt((double)depth)};
    return gen_finish(g, &attr, x, masked ? 4 : 3, NULL);
}
