/* Arithmetic, comparisons, conversions and random numbers. Transcendental functions: scalar_maths.c. */
#include "codegen/scalar.h"

#include <math.h>

static bool is_unsigned(DType type) { return tg_dtype(type)->kind == KIND_UNSIGNED || type == DT_BOOL; }

static LoopId number(LoopKernel *k, DType type, double value) { return tg_loop_number(k, type, value); }
static LoopId one(LoopKernel *k, LoopOp op, LoopId x) { return tg_loop_op(k, op, x, 0, 0); }
static LoopId two(LoopKernel *k, LoopOp op, LoopId x, LoopId y) { return tg_loop_op(k, op, x, y, 0); }
static LoopId choose(LoopKernel *k, LoopId condition, LoopId yes, LoopId no) {
    return tg_loop_op(k, LOOP_select, condition, yes, no);
}

/* The instruction of a family for floats, signed and unsigned integers. */
static LoopId by_kind(LoopKernel *k, DType type, LoopOp f, LoopOp i, LoopOp u, LoopId x, LoopId y) {
    return two(k, tg_is_float(type) ? f : is_unsigned(type) ? u : i, x, y);
}

LoopId scalar_neg(LoopKernel *k, DType type, LoopId x) {
    return tg_is_float(type) ? one(k, LOOP_fneg, x) : two(k, LOOP_isub, number(k, type, 0), x);
}

LoopId scalar_abs(LoopKernel *k, DType type, LoopId x) {
    if (tg_is_float(type))
        return one(k, LOOP_fabs, x);
    return is_unsigned(type) ? x : two(k, LOOP_imax, x, scalar_neg(k, type, x));
}

LoopId scalar_sign(LoopKernel *k, DType type, LoopId x) {
    LoopId zero = number(k, type, 0), plus = number(k, type, 1);
    LoopId positive = by_kind(k, type, LOOP_fgt, LOOP_igt, LOOP_ugt, x, zero);
    if (is_unsigned(type))
        return choose(k, positive, plus, zero);
    LoopId negative = by_kind(k, type, LOOP_flt, LOOP_ilt, LOOP_ult, x, zero);
    LoopId neither = tg_is_float(type) ? choose(k, two(k, LOOP_fne, x, x), x, zero) : zero;
    return choose(k, positive, plus, choose(k, negative, number(k, type, -1), neither));
}

static LoopId rounded(LoopKernel *k, DType type, LoopOp op, LoopId x) { return tg_is_float(type) ? one(k, op, x) : x; }
LoopId scalar_floor(LoopKernel *k, DType type, LoopId x) { return rounded(k, type, LOOP_ffloor, x); }
LoopId scalar_ceil(LoopKernel *k, DType type, LoopId x) { return rounded(k, type, LOOP_fceil, x); }
LoopId scalar_round(LoopKernel *k, DType type, LoopId x) { return rounded(k, type, LOOP_fround, x); }

LoopId scalar_sqrt(LoopKernel *k, DType type, LoopId x) {
    (void)type;
    return one(k, LOOP_fsqrt, x);
}

LoopId scalar_not(LoopKernel *k, DType type, LoopId x) {
    (void)type;
    return one(k, LOOP_not, x);
}

LoopId scalar_is_finite(LoopKernel *k, DType type, LoopId x) {
    if (!tg_is_float(type))
        return tg_loop_int(k, DT_BOOL, 1);
    return two(k, LOOP_flt, one(k, LOOP_fabs, x), number(k, type, (double)INFINITY));
}

LoopId scalar_add(LoopKernel *k, DType type, LoopId x, LoopId y) {
    return by_kind(k, type, LOOP_fadd, LOOP_iadd, LOOP_iadd, x, y);
}

LoopId scalar_sub(LoopKernel *k, DType type, LoopId x, LoopId y) {
    return by_kind(k, type, LOOP_fsub, LOOP_isub, LOOP_isub, x, y);
}

LoopId scalar_mul(LoopKernel *k, DType type, LoopId x, LoopId y) {
    return by_kind(k, type, LOOP_fmul, LOOP_imul, LOOP_imul, x, y);
}

/* Integers that a machine divides by without a trap: 0 and -1 become 1. */
static LoopId safe_divisor(LoopKernel *k, DType type, LoopId y, LoopId *is_zero, LoopId *is_minus) {
    LoopId plus = number(k, type, 1);
    *is_zero = two(k, LOOP_ieq, y, number(k, type, 0));
    LoopId safe = choose(k, *is_zero, plus, y);
    if (is_unsigned(type))
        return safe;
    *is_minus = two(k, LOOP_ieq, y, tg_loop_int(k, type, -1));
    return choose(k, *is_minus, plus, safe);
}

/* Toward zero; x / 0 is 0. */
static LoopId divide_integers(LoopKernel *k, DType type, LoopId x, LoopId y) {
    LoopId is_zero = 0, is_minus = 0;
    LoopId safe = safe_divisor(k, type, y, &is_zero, &is_minus);
    LoopId quotient = two(k, is_unsigned(type) ? LOOP_udiv : LOOP_idiv, x, safe);
    if (is_minus != 0)
        quotient = choose(k, is_minus, scalar_neg(k, type, x), quotient);
    return choose(k, is_zero, number(k, type, 0), quotient);
}

LoopId scalar_div(LoopKernel *k, DType type, LoopId x, LoopId y) {
    return tg_is_float(type) ? two(k, LOOP_fdiv, x, y) : divide_integers(k, type, x, y);
}

static LoopId remainder_of_integers(LoopKernel *k, DType type, LoopId x, LoopId y) {
    LoopId is_zero = 0, is_minus = 0, zero = number(k, type, 0);
    LoopId safe = safe_divisor(k, type, y, &is_zero, &is_minus);
    if (is_unsigned(type))
        return choose(k, is_zero, zero, two(k, LOOP_urem, x, safe));
    LoopId rest = two(k, LOOP_irem, x, safe);
    LoopId other_sign = two(k, LOOP_ilt, two(k, LOOP_xor, rest, y), zero);
    LoopId fix = two(k, LOOP_and, two(k, LOOP_ine, rest, zero), other_sign);
    return choose(k, is_zero, zero, choose(k, fix, two(k, LOOP_iadd, rest, y), rest));
}

enum { MOD_STEPS = 6 }; /* each takes 2^52 off the ratio of two f32, at most 2^277 */

/* x mod y exactly, in f64 for f32 operands, up to a multiple of y that the sign's correction removes. */
static LoopId float_rest(LoopKernel *k, LoopId x, LoopId y) {
    LoopId rest = x;
    for (int i = 0; i < MOD_STEPS; i++) {
        LoopId ratio = two(k, LOOP_fdiv, rest, y);
        LoopId magnitude = one(k, LOOP_ffloor, one(k, LOOP_fabs, ratio));
        LoopId negative = two(k, LOOP_flt, ratio, number(k, DT_F64, 0));
        LoopId quotient = choose(k, negative, magnitude, one(k, LOOP_fneg, magnitude));
        rest = tg_loop_op(k, LOOP_fma, quotient, y, rest);
    }
    LoopId infinite = two(k, LOOP_feq, one(k, LOOP_fabs, y), number(k, DT_F64, (double)INFINITY));
    LoopId finite = two(k, LOOP_flt, one(k, LOOP_fabs, x), number(k, DT_F64, (double)INFINITY));
    return choose(k, two(k, LOOP_and, infinite, finite), x, rest);
}

/* Has the sign of y; a zero has the sign of x, as fmod's. */
LoopId scalar_mod(LoopKernel *k, DType type, LoopId x, LoopId y) {
    if (!tg_is_float(type))
        return remainder_of_integers(k, type, x, y);
    LoopId wide_x = tg_loop_convert(k, LOOP_convert, x, DT_F64), wide_y = tg_loop_convert(k, LOOP_convert, y, DT_F64);
    LoopId zero = number(k, DT_F64, 0);
    LoopId rest = type == DT_F64 ? tg_loop_libm(k, "fmod", x, y) : float_rest(k, wide_x, wide_y);
    LoopId rest_negative = two(k, LOOP_flt, rest, zero), y_negative = two(k, LOOP_flt, wide_y, zero);
    LoopId fix = two(k, LOOP_and, two(k, LOOP_fne, rest, zero), two(k, LOOP_xor, rest_negative, y_negative));
    LoopId value = choose(k, fix, two(k, LOOP_fadd, rest, wide_y), rest);
    if (type != DT_F64)
        value = choose(k, two(k, LOOP_feq, value, zero), two(k, LOOP_fmul, wide_x, zero), value);
    return tg_loop_convert(k, LOOP_convert, value, type);
}

LoopId scalar_maximum(LoopKernel *k, DType type, LoopId x, LoopId y) {
    return by_kind(k, type, LOOP_fmax, LOOP_imax, LOOP_umax, x, y);
}

LoopId scalar_minimum(LoopKernel *k, DType type, LoopId x, LoopId y) {
    return by_kind(k, type, LOOP_fmin, LOOP_imin, LOOP_umin, x, y);
}

LoopId scalar_and(LoopKernel *k, DType type, LoopId x, LoopId y) {
    (void)type;
    return two(k, LOOP_and, x, y);
}

LoopId scalar_or(LoopKernel *k, DType type, LoopId x, LoopId y) {
    (void)type;
    return two(k, LOOP_or, x, y);
}

#define COMPARE(name, f, i, u)                                                                                         \
    LoopId scalar_##name(LoopKernel *k, DType type, LoopId x, LoopId y) { return by_kind(k, type, f, i, u, x, y); }
COMPARE(eq, LOOP_feq, LOOP_ieq, LOOP_ieq)
COMPARE(ne, LOOP_fne, LOOP_ine, LOOP_ine)
COMPARE(lt, LOOP_flt, LOOP_ilt, LOOP_ult)
COMPARE(le, LOOP_fle, LOOP_ile, LOOP_ule)
COMPARE(gt, LOOP_fgt, LOOP_igt, LOOP_ugt)
COMPARE(ge, LOOP_fge, LOOP_ige, LOOP_uge)

/* ---- conversions ---- */

static int bits_of(DType type) { return 8 * tg_dtype(type)->bytes; }

/* Integers saturate: first to what both types hold, then by bits. */
static LoopId integer_to_integer(LoopKernel *k, LoopId x, DType from, DType to) {
    bool from_unsigned = is_unsigned(from), to_unsigned = is_unsigned(to);
    if (!from_unsigned && to_unsigned)
        x = two(k, LOOP_imax, x, tg_loop_int(k, from, 0));
    int to_digits = bits_of(to) - !to_unsigned, from_digits = bits_of(from) - !from_unsigned;
    if (to_digits < from_digits) {
        int64_t high = (INT64_C(1) << to_digits) - 1;
        x = two(k, from_unsigned ? LOOP_umin : LOOP_imin, x, tg_loop_int(k, from, high));
        if (!from_unsigned && !to_unsigned)
            x = two(k, LOOP_imax, x, tg_loop_int(k, from, -high - 1));
    }
    return tg_loop_convert(k, from_unsigned ? LOOP_zero : LOOP_wrap, x, to);
}

LoopId scalar_convert(LoopKernel *k, LoopId x, DType to) {
    DType from = (DType)k->instrs.at[x].type;
    if (from == to)
        return x;
    if (from == DT_BOOL)
        return choose(k, x, number(k, to, 1), number(k, to, 0));
    if (tg_loop_compute_type(from) != from)
        return scalar_convert(k, tg_loop_convert(k, LOOP_convert, x, DT_F32), to);
    if (to == DT_BOOL)
        return two(k, tg_is_float(from) ? LOOP_fne : LOOP_ine, x, number(k, from, 0));
    if (!tg_is_float(from) && !tg_is_float(to))
        return integer_to_integer(k, x, from, to);
    if (!tg_is_float(from) && tg_loop_compute_type(to) != to)
        x = tg_loop_convert(k, LOOP_convert, x, bits_of(from) > 16 ? DT_F64 : DT_F32);
    return tg_loop_convert(k, LOOP_convert, x, to);
}

/* ---- random numbers: Philox 4x32-10 (see ir/eval.h), its words in the low halves of i64 ---- */

static LoopId word(LoopKernel *k, int64_t value) { return tg_loop_int(k, DT_I64, value); }
static LoopId low_half(LoopKernel *k, LoopId x) { return two(k, LOOP_and, x, word(k, 0xFFFFFFFF)); }
static LoopId high_half(LoopKernel *k, LoopId x) { return two(k, LOOP_lshr, x, word(k, 32)); }

static void philox_round(LoopKernel *k, LoopId c[4], const LoopId key[2]) {
    LoopId p0 = two(k, LOOP_imul, c[0], word(k, 0xD2511F53)), p1 = two(k, LOOP_imul, c[2], word(k, 0xCD9E8D57));
    c[0] = two(k, LOOP_xor, two(k, LOOP_xor, high_half(k, p1), c[1]), key[0]);
    c[2] = two(k, LOOP_xor, two(k, LOOP_xor, high_half(k, p0), c[3]), key[1]);
    c[1] = low_half(k, p1);
    c[3] = low_half(k, p0);
}

LoopId scalar_random(LoopKernel *k, uint64_t random_key, LoopId row, LoopId index) {
    LoopId mixed = two(k, LOOP_xor, tg_loop_leaf(k, LOOP_seed, 0), word(k, (int64_t)random_key));
    LoopId key[2] = {low_half(k, mixed), high_half(k, mixed)};
    LoopId c[4] = {low_half(k, tg_loop_leaf(k, LOOP_iteration, 0)), low_half(k, row), low_half(k, index),
                   high_half(k, index)};
    for (int round = 0; round < 10; round++) {
        philox_round(k, c, key);
        key[0] = low_half(k, two(k, LOOP_iadd, key[0], word(k, 0x9E3779B9)));
        key[1] = low_half(k, two(k, LOOP_iadd, key[1], word(k, 0xBB67AE85)));
    }
    LoopId top = tg_loop_convert(k, LOOP_wrap, two(k, LOOP_lshr, c[0], word(k, 8)), DT_I32);
    return two(k, LOOP_fmul, tg_loop_convert(k, LOOP_convert, top, DT_F32), number(k, DT_F32, 0x1p-24));
}
