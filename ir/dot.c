#include "ir/dot.h"

typedef struct Strided {
    int64_t size, stride;
    bool rows, regular;
} Strided;

static void strides_of(const Type *type, int64_t rows, int64_t sizes[TG_MAX_RANK], int64_t strides[TG_MAX_RANK]) {
    int64_t stride = 1;
    for (int axis = type->rank - 1; axis >= 0; axis--) {
        sizes[axis] = type->dims[axis].size * (type->dims[axis].batch ? rows : 1);
        strides[axis] = stride;
        stride *= sizes[axis];
    }
}

/* The axes of one role as one dimension, outermost first; not regular when no single stride walks them. */
static Strided merged(const Type *type, int64_t rows, const int64_t *axes, uint32_t count) {
    int64_t sizes[TG_MAX_RANK], strides[TG_MAX_RANK];
    strides_of(type, rows, sizes, strides);
    Strided all = {.size = 1, .stride = 0, .regular = true};
    for (uint32_t i = 0; i < count; i++) {
        int64_t size = sizes[axes[i]], stride = strides[axes[i]];
        all.rows |= type->dims[axes[i]].batch;
        if (size == 1)
            continue;
        if (all.size != 1 && all.stride != stride * size)
            all.regular = false;
        all.size *= size;
        all.stride = stride;
    }
    return all;
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

static bool has_unit_stride(Strided x, Strided y) {
    return x.size == 1 || y.size == 1 || x.stride == 1 || y.stride == 1;
}

int tg_dot_geometry(const Graph *graph, const Func *func, const Node *dot, int64_t rows, DotGeometry *geometry) {
    Strided group[2], free[2], contract[2];
    int irregular = 0;
    for (int side = 0; side < 2; side++) {
        const Type *type = tg_node_type(graph, func, tg_operand(func, dot, (uint32_t)side));
        Ints batch_axes = dot->attr->list[side], contract_axes = dot->attr->list[2 + side];
        int64_t free_axes[TG_MAX_RANK];
        uint32_t free_count = tg_free_axes(type, batch_axes, contract_axes, free_axes);
        group[side] = merged(type, rows, batch_axes.at, batch_axes.count);
        contract[side] = merged(type, rows, contract_axes.at, contract_axes.count);
        free[side] = merged(type, rows, free_axes, free_count);
        if (!group[side].regular || !contract[side].regular || !free[side].regular ||
            !has_unit_stride(free[side], contract[side]))
            irregular |= 1 << side;
    }
    *geometry = (DotGeometry){
        .groups = group[0].size, .m = free[0].size, .n = free[1].size, .k = contract[0].size,
        .a_group = group[0].stride, .a_m = free[0].stride, .a_k = contract[0].stride,
        .b_group = group[1].stride, .b_k = contract[1].stride, .b_n = free[1].stride,
        .rows_groups = group[0].rows, .rows_m = free[0].rows, .rows_k = contract[0].rows, .rows_n = free[1].rows,
    };
    return irregular;
}
