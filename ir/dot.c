#include "ir/dot.h"

typedef struct Walk {
    int64_t size, stride;
    bool rows, regular;
} Walk;

/* An operand's or the result's sizes and strides by axis. */
typedef struct Layout {
    int64_t size[TG_MAX_RANK], stride[TG_MAX_RANK];
    bool rows[TG_MAX_RANK];
} Layout;

/* perm[i]: the axis of the value that memory's axis i is; NULL: the same order. */
static Layout layout_of(const Type *type, const int64_t *perm, int64_t rows) {
    Layout layout = {0};
    int64_t stride = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        int64_t axis = perm ? perm[i] : i;
        Dim dim = type->dims[axis];
        layout.size[axis] = dim.size * (dim.batch ? rows : 1);
        layout.stride[axis] = stride;
        layout.rows[axis] = dim.batch;
        stride *= layout.size[axis];
    }
    return layout;
}

/* Some axes as one dimension, outermost first; not regular when no single stride walks them. */
static Walk walk_of(const Layout *layout, const int64_t *axes, uint32_t count) {
    Walk walk = {.size = 1, .regular = true};
    for (uint32_t i = 0; i < count; i++) {
        int64_t size = layout->size[axes[i]], stride = layout->stride[axes[i]];
        walk.rows |= layout->rows[axes[i]];
        if (size == 1)
            continue;
        if (walk.size != 1 && walk.stride != stride * size)
            walk.regular = false;
        walk.size *= size;
        walk.stride = stride;
    }
    return walk;
}

uint32_t tg_free_axes(const Type *type, Ints batch, Ints contract, int64_t out[TG_MAX_RANK]) {
    uint32_t count = 0;
    for (int64_t axis = 0; axis < type->rank; axis++) {
        bool taken = false;
        for (uint32_t i = 0; i < batch.count; i++)
            taken |= batch.at[i] == axis;
        for (uint32_t i = 0; i < contract.count; i++)
            taken |= contract.at[i] == axis;
        if (!taken)
            out[count++] = axis;
    }
    return count;
}

bool tg_dot_adds(const Graph *graph, const Func *func, const Node *dot) {
    if (dot->operand_count < 3)
        return false;
    const Type *b = tg_node_type(graph, func, tg_operand(func, dot, 1)), *third = tg_node_type(graph, func, tg_operand(func, dot, 2));
    return (uint32_t)third->rank > b->rank - dot->attr->list[1].count - dot->attr->list[3].count;
}

/* The groups' axes in both operands and the result, cut at `cut` into outer and inner ones. */
static int groups_at(const Layout layouts[3], const int64_t *axes[3], uint32_t count, uint32_t cut, DotGeometry *g) {
    DotStrides *strides[3] = {&g->a, &g->b, &g->out};
    int irregular = 0;
    for (int x = 0; x < 3; x++) {
        Walk outer = walk_of(&layouts[x], axes[x], cut), inner = walk_of(&layouts[x], axes[x] + cut, count - cut);
        if (!outer.regular || !inner.regular)
            irregular |= 1 << x;
        *strides[x] = (DotStrides){outer.stride, inner.stride};
        g->groups = outer.size * inner.size;
        g->inner = inner.size;
    }
    return irregular;
}

/* One stride for all groups if there is one, else the first cut that two strides describe. */
static int group_strides(const Layout layouts[3], const int64_t *axes[3], uint32_t count, DotGeometry *g) {
    for (uint32_t i = 0; i <= count; i++)
        if (groups_at(layouts, axes, count, count - i, g) == 0)
            return 0;
    return groups_at(layouts, axes, count, count, g);
}

static bool has_unit_stride(Walk x, Walk y) { return x.size == 1 || y.size == 1 || x.stride == 1 || y.stride == 1; }

int tg_dot_geometry(const Graph *graph, const Func *func, const Node *dot, const Node *transpose, int64_t rows,
                    DotGeometry *geometry) {
    const Ints *lists = dot->attr->list;
    uint32_t batch = lists[0].count;
    Type types[2], result = *tg_type_of(&graph->types, dot->type);
    Layout layouts[3];
    int64_t free_axes[2][TG_MAX_RANK], result_axes[TG_MAX_RANK];
    uint32_t free_count[2];
    for (uint32_t side = 0; side < 2; side++) {
        types[side] = *tg_node_type(graph, func, tg_operand(func, dot, side));
        layouts[side] = layout_of(&types[side], NULL, rows);
        free_count[side] = tg_free_axes(&types[side], lists[side], lists[2 + side], free_axes[side]);
    }
    layouts[2] = layout_of(&result, transpose ? transpose->attr->list[0].at : NULL, rows);
    for (int64_t i = 0; i < result.rank; i++)
        result_axes[i] = i;
    const int64_t *batch_axes[3] = {lists[0].at, lists[1].at, result_axes};
    *geometry = (DotGeometry){0};
    int irregular = group_strides(layouts, batch_axes, batch, geometry);
    Walk m = walk_of(&layouts[0], free_axes[0], free_count[0]), n = walk_of(&layouts[1], free_axes[1], free_count[1]);
    Walk a_k = walk_of(&layouts[0], lists[2].at, lists[2].count), b_k = walk_of(&layouts[1], lists[3].at, lists[3].count);
    Walk out_m = walk_of(&layouts[2], result_axes + batch, free_count[0]);
    Walk out_n = walk_of(&layouts[2], result_axes + batch + free_count[0], free_count[1]);
    if (!m.regular || !a_k.regular || !has_unit_stride(m, a_k))
        irregular |= DOT_IRREGULAR_A;
    if (!n.regular || !b_k.regular || !has_unit_stride(n, b_k))
        irregular |= DOT_IRREGULAR_B;
    if (!out_m.regular || !out_n.regular || (out_n.size != 1 && out_n.stride != 1))
        irregular |= DOT_IRREGULAR_OUT;
    geometry->m = m.size, geometry->n = n.size, geometry->k = a_k.size;
    geometry->a_m = m.stride, geometry->a_k = a_k.stride;
    geometry->b_k = b_k.stride, geometry->b_n = n.stride;
    geometry->out_m = out_m.size == 1 ? n.size : out_m.stride;
    geometry->rows_m = m.rows, geometry->rows_k = a_k.rows;
    return irregular;
}
