#include "passes/group_shape.h"

bool tg_is_row_shape(const Type *type, const Type *domain) {
    if (domain->rank == 0 || type->rank + 1 < domain->rank || type->rank > domain->rank)
        return false;
    for (int i = 0; i + 1 < domain->rank; i++)
        if (!tg_dim_equal(type->dims[i], domain->dims[i]))
            return false;
    return type->rank + 1 == domain->rank || (type->dims[type->rank - 1].size == 1 && !type->dims[type->rank - 1].batch);
}

bool tg_is_unit_reshape(const Type *from, const Type *to) {
    int i = 0, j = 0;
    for (;;) {
        while (i < from->rank && from->dims[i].size == 1 && !from->dims[i].batch)
            i++;
        while (j < to->rank && to->dims[j].size == 1 && !to->dims[j].batch)
            j++;
        if (i == from->rank || j == to->rank)
            return i == from->rank && j == to->rank;
        if (!tg_dim_equal(from->dims[i++], to->dims[j++]))
            return false;
    }
}
