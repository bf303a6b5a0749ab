#include "ir/type.h"

#include <string.h>

static TypeId add_type(Types *types, const Type *type) {
    tg_push(types->arena, &types->all, *type);
    return types->all.count - 1;
}

void tg_types_init(Types *types, Arena *arena) {
    *types = (Types){.arena = arena, .ids = tg_map(arena)};
    add_type(types, &(Type){0});
}

TypeId tg_type(Types *types, const Type *type) {
    int64_t key[2 + TG_MAX_RANK] = {type->dtype | type->rank << 8 | type->scaled << 16, type->sharding};
    Type clean = {.dtype = type->dtype, .rank = type->rank, .scaled = type->scaled, .sharding = type->sharding};
    for (int i = 0; i < type->rank; i++) {
        clean.dims[i] = type->dims[i];
        key[2 + i] = type->dims[i].size * 2 + type->dims[i].batch;
    }
    bool is_new;
    uint64_t *id = tg_map_put(&types->ids, key, sizeof *key * (2u + type->rank), &is_new);
    if (is_new)
        *id = add_type(types, &clean);
    return (TypeId)*id;
}

int64_t tg_type_count(const Type *type, int64_t rows) {
    int64_t count = 1;
    bool overflow = false;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i].size == 0 || (type->dims[i].batch && rows == 0))
            return 0;
        overflow |= __builtin_mul_overflow(count, type->dims[i].size, &count);
        if (type->dims[i].batch)
            overflow |= __builtin_mul_overflow(count, rows, &count);
    }
    return overflow ? -1 : count;
}

int tg_type_batch_axis(const Type *type) {
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i].batch)
            return i;
    return -1;
}

bool tg_shape_equal(const Type *a, const Type *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!tg_dim_equal(a->dims[i], b->dims[i]))
            return false;
    return true;
}

static void print_dim(Str *to, Dim dim) {
    if (!dim.batch)
        tg_str_printf(to, "%lld", (long long)dim.size);
    else if (dim.size == 1)
        tg_str_printf(to, "B");
    else
        tg_str_printf(to, "B*%lld", (long long)dim.size);
}

void tg_type_print(Str *to, const Type *type) {
    tg_str_printf(to, "%s%s", type->scaled ? "scaled " : "", tg_dtype(type->dtype)->name);
    for (int i = 0; i < type->rank; i++) {
        tg_str_printf(to, i ? ", " : "[");
        print_dim(to, type->dims[i]);
    }
    if (type->rank)
        tg_str_printf(to, "]");
    if (type->sharding)
        tg_str_printf(to, "{%u}", type->sharding);
}
