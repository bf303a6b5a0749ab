/* Conversions between element types, as tg_round_to rounds; the helpers are in support.cu. */
#include "codegen/cuda/emit.h"

static const char *printed(Emit *e, const char *function, const char *value) {
    return tg_arena_printf(e->arena, "%s(%s)", function, value);
}

/* bf16 and f16 as f32. */
static const char *widened(Emit *e, const char *value, DType *from) {
    if (*from != DT_BF16 && *from != DT_F16)
        return value;
    const char *function = *from == DT_BF16 ? "tg_f32_of_bf16" : "tg_f32_of_f16";
    *from = DT_F32;
    return printed(e, function, value);
}

static const char *to_short_float(Emit *e, const char *value, DType from, DType to) {
    if (from == DT_F64)
        value = printed(e, "tg_odd_f32", value);
    return printed(e, to == DT_BF16 ? "tg_bf16_of_f32" : "tg_f16_of_f32", value);
}

/* Through f32 where that holds it, or f64, so that it rounds once. */
static const char *integer_to_float(Emit *e, const char *value, DType from, DType to) {
    if (to == DT_F32 || to == DT_F64)
        return tg_arena_printf(e->arena, "(%s)%s", tg_cuda_memory_type(to), value);
    bool fits = tg_dtype(from)->bytes <= 2;
    const char *number = tg_arena_printf(e->arena, fits ? "(f32)%s" : "(f64)%s", value);
    return to_short_float(e, number, fits ? DT_F32 : DT_F64, to);
}

static const char *integer_to_integer(Emit *e, const char *value, DType from, DType to) {
    if (from == DT_BOOL || (tg_dtype(from)->bytes < tg_dtype(to)->bytes && tg_dtype(from)->kind == KIND_UNSIGNED) ||
        (tg_dtype(from)->bytes <= tg_dtype(to)->bytes && tg_dtype(from)->kind == tg_dtype(to)->kind))
        return tg_arena_printf(e->arena, "(%s)%s", tg_cuda_memory_type(to), value);
    return tg_arena_printf(e->arena, "tg_%s_of_i64(%s)", tg_cuda_memory_type(to), value);
}

const char *tg_cuda_convert(Emit *e, const char *value, DType from, DType to) {
    if (from == to)
        return value;
    if (!tg_is_float(from) && to == DT_BOOL)
        return tg_arena_printf(e->arena, "%s != 0", value);
    if (!tg_is_float(from))
        return tg_is_float(to) ? integer_to_float(e, value, from, to) : integer_to_integer(e, value, from, to);
    value = widened(e, value, &from);
    if (to == DT_BOOL)
        return tg_arena_printf(e->arena, "%s != 0", value);
    if (to == DT_BF16 || to == DT_F16)
        return to_short_float(e, value, from, to);
    if (tg_is_float(to))
        return from == to ? value : tg_arena_printf(e->arena, "(%s)%s", tg_cuda_memory_type(to), value);
    return tg_arena_printf(e->arena, "tg_%s_of_%s(%s)", tg_cuda_memory_type(to), tg_cuda_memory_type(from), value);
}
