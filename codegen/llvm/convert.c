/* Conversions between element types, as tg_round_to rounds. */
#include "codegen/llvm/emit.h"

static LLVMTypeRef like(Emit *e, DType type, LLVMValueRef shape) {
    return tg_emit_like(e, tg_emit_type(e, type), shape);
}

static LLVMTypeRef integer_like(Emit *e, uint32_t bits, LLVMValueRef shape) {
    return tg_emit_like(e, LLVMIntTypeInContext(e->context, bits), shape);
}

static LLVMValueRef bf16_to_f32(Emit *e, LLVMValueRef bits) {
    LLVMTypeRef wide = integer_like(e, 32, bits);
    LLVMValueRef high =
        LLVMBuildShl(e->builder, LLVMBuildZExt(e->builder, bits, wide, ""), tg_emit_constant(e, wide, 16), "");
    return LLVMBuildBitCast(e->builder, high, like(e, DT_F32, bits), "");
}

static LLVMValueRef f16_to_f32(Emit *e, LLVMValueRef bits) {
    LLVMTypeRef half = tg_emit_like(e, LLVMHalfTypeInContext(e->context), bits);
    return LLVMBuildFPExt(e->builder, LLVMBuildBitCast(e->builder, bits, half, ""), like(e, DT_F32, bits), "");
}

static LLVMValueRef f32_to_f16(Emit *e, LLVMValueRef value) {
    LLVMTypeRef half = tg_emit_like(e, LLVMHalfTypeInContext(e->context), value);
    return LLVMBuildBitCast(e->builder, LLVMBuildFPTrunc(e->builder, value, half, ""), integer_like(e, 16, value), "");
}

/* Ties to even; denormals become a zero of their sign, NaN a quiet one: what the CPU's instruction does. */
static LLVMValueRef f32_to_bf16(Emit *e, LLVMValueRef value) {
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef wide = integer_like(e, 32, value), narrow = integer_like(e, 16, value);
    if (e->shared->bf16) {
        LLVMTypeRef bfloat = tg_emit_like(e, LLVMBFloatTypeInContext(e->context), value);
        return LLVMBuildBitCast(b, LLVMBuildFPTrunc(b, value, bfloat, ""), narrow, "");
    }
    LLVMValueRef bits = LLVMBuildBitCast(b, value, wide, "");
    LLVMValueRef high = LLVMBuildLShr(b, bits, tg_emit_constant(e, wide, 16), "");
    LLVMValueRef odd = LLVMBuildAnd(b, high, tg_emit_constant(e, wide, 1), "");
    LLVMValueRef up = LLVMBuildAdd(b, LLVMBuildAdd(b, bits, tg_emit_constant(e, wide, 0x7fff), ""), odd, "");
    LLVMValueRef rounded = LLVMBuildLShr(b, up, tg_emit_constant(e, wide, 16), "");
    LLVMValueRef quiet = LLVMBuildOr(b, high, tg_emit_constant(e, wide, 0x40), "");
    LLVMValueRef zero = LLVMBuildAnd(b, high, tg_emit_constant(e, wide, 0x8000), "");
    LLVMValueRef exponent = LLVMBuildAnd(b, bits, tg_emit_constant(e, wide, 0x7f800000), "");
    LLVMValueRef tiny = LLVMBuildICmp(b, LLVMIntEQ, exponent, LLVMConstNull(wide), "");
    LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
    LLVMValueRef result = LLVMBuildSelect(b, is_nan, quiet, LLVMBuildSelect(b, tiny, zero, rounded, ""), "");
    return LLVMBuildTrunc(b, result, narrow, "");
}

/* f64 to f32 so that a later rounding to a shorter type rounds once: an inexact result gets an odd last bit. */
static LLVMValueRef f64_to_odd_f32(Emit *e, LLVMValueRef value) {
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef wide = integer_like(e, 32, value), number = like(e, DT_F32, value);
    LLVMValueRef near = LLVMBuildFPTrunc(b, value, number, "");
    LLVMValueRef back = LLVMBuildFPExt(b, near, LLVMTypeOf(value), "");
    LLVMTypeRef source = LLVMTypeOf(value);
    LLVMValueRef size = tg_emit_intrinsic(e, "llvm.fabs", &source, 1, &value, 1);
    LLVMValueRef size_back = tg_emit_intrinsic(e, "llvm.fabs", &source, 1, &back, 1);
    LLVMValueRef bits = LLVMBuildBitCast(b, near, wide, "");
    LLVMValueRef is_even =
        LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildAnd(b, bits, tg_emit_constant(e, wide, 1), ""), LLVMConstNull(wide), "");
    LLVMValueRef above = LLVMBuildFCmp(b, LLVMRealOGT, size, size_back, ""),
                 below = LLVMBuildFCmp(b, LLVMRealOLT, size, size_back, "");
    LLVMValueRef outward = LLVMBuildAdd(b, bits, tg_emit_constant(e, wide, 1), "");
    LLVMValueRef inward = LLVMBuildSub(b, bits, tg_emit_constant(e, wide, 1), "");
    LLVMValueRef moved = LLVMBuildSelect(b, above, outward, LLVMBuildSelect(b, below, inward, bits, ""), "");
    return LLVMBuildBitCast(b, LLVMBuildSelect(b, is_even, moved, bits, ""), number, "");
}

static LLVMValueRef float_to_float(Emit *e, LLVMValueRef value, DType from, DType to) {
    if (from == DT_BF16 || from == DT_F16) {
        value = from == DT_BF16 ? bf16_to_f32(e, value) : f16_to_f32(e, value);
        from = DT_F32;
    }
    if (to == DT_F64)
        return from == DT_F64 ? value : LLVMBuildFPExt(e->builder, value, like(e, DT_F64, value), "");
    if (to == DT_F32)
        return from == DT_F32 ? value : LLVMBuildFPTrunc(e->builder, value, like(e, DT_F32, value), "");
    if (from == DT_F64)
        value = f64_to_odd_f32(e, value);
    return to == DT_BF16 ? f32_to_bf16(e, value) : f32_to_f16(e, value);
}

static LLVMValueRef integer_to_float(Emit *e, LLVMValueRef value, DType from, DType to) {
    bool is_signed = tg_dtype(from)->kind == KIND_SIGNED;
    DType through = to == DT_F32 ? DT_F32 : DT_F64;
    if (to != DT_F64 && tg_dtype(from)->bytes <= 2)
        through = DT_F32;
    LLVMTypeRef type = like(e, through, value);
    LLVMValueRef number =
        is_signed ? LLVMBuildSIToFP(e->builder, value, type, "") : LLVMBuildUIToFP(e->builder, value, type, "");
    return float_to_float(e, number, through, to);
}

/* The least and the largest value of an integer type, as bits of i64. */
static int64_t least_of(DType type) {
    return tg_dtype(type)->kind == KIND_SIGNED ? (int64_t) - (1ull << (8 * tg_dtype(type)->bytes - 1)) : 0;
}

static int64_t largest_of(DType type) {
    uint32_t bits = 8u * tg_dtype(type)->bytes - (tg_dtype(type)->kind == KIND_SIGNED);
    return (int64_t)((1ull << bits) - 1);
}

/* Saturates, NaN gives 0; what lies outside of the type never reaches LLVM's conversion, which leaves it open. */
static LLVMValueRef float_to_integer(Emit *e, LLVMValueRef value, DType from, DType to) {
    LLVMBuilderRef b = e->builder;
    if (from == DT_BF16 || from == DT_F16)
        value = float_to_float(e, value, from, DT_F32);
    LLVMTypeRef number = LLVMTypeOf(value), wide = integer_like(e, to == DT_I64 ? 64 : 32, value);
    LLVMValueRef low = tg_emit_real(e, number, (double)least_of(to)),
                 high = tg_emit_real(e, number, (double)largest_of(to) + 1.0);
    LLVMValueRef below_high = LLVMBuildFCmp(b, LLVMRealOLT, value, high, "");
    LLVMValueRef above_low = LLVMBuildFCmp(b, LLVMRealOGT, value, low, "");
    LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
    LLVMValueRef inside =
        LLVMBuildSelect(b, LLVMBuildAnd(b, below_high, above_low, ""), value, LLVMConstNull(number), "");
    LLVMValueRef whole = LLVMBuildFPToSI(b, inside, wide, "");
    LLVMValueRef least = tg_emit_constant(e, wide, (uint64_t)least_of(to)),
                 most = tg_emit_constant(e, wide, (uint64_t)largest_of(to));
    LLVMValueRef at_least = LLVMBuildSelect(b, LLVMBuildOr(b, above_low, is_nan, ""), whole, least, "");
    LLVMValueRef result = LLVMBuildSelect(b, LLVMBuildOr(b, below_high, is_nan, ""), at_least, most, "");
    return LLVMBuildIntCast2(b, result, like(e, to, value), 1, "");
}

static LLVMValueRef integer_to_integer(Emit *e, LLVMValueRef value, DType from, DType to) {
    LLVMTypeRef source = LLVMTypeOf(value);
    LLVMValueRef arguments[2] = {value, NULL};
    bool is_signed = tg_dtype(from)->kind == KIND_SIGNED;
    if (from != DT_BOOL && largest_of(from) > largest_of(to)) {
        arguments[1] = tg_emit_constant(e, source, (uint64_t)largest_of(to));
        arguments[0] = tg_emit_intrinsic(e, is_signed ? "llvm.smin" : "llvm.umin", &source, 1, arguments, 2);
    }
    if (from != DT_BOOL && least_of(from) < least_of(to)) {
        arguments[1] = tg_emit_constant(e, source, (uint64_t)least_of(to));
        arguments[0] = tg_emit_intrinsic(e, "llvm.smax", &source, 1, arguments, 2);
    }
    return LLVMBuildIntCast2(e->builder, arguments[0], like(e, to, value), is_signed, "");
}

static LLVMValueRef to_bool(Emit *e, LLVMValueRef value, DType from) {
    if (!tg_is_float(from))
        return LLVMBuildICmp(e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
    if (from == DT_BF16 || from == DT_F16)
        value = float_to_float(e, value, from, DT_F32);
    return LLVMBuildFCmp(e->builder, LLVMRealUNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

LLVMValueRef tg_emit_convert(Emit *e, LLVMValueRef value, DType from, DType to) {
    if (from == to)
        return value;
    if (to == DT_BOOL)
        return to_bool(e, value, from);
    if (tg_is_float(from))
        return tg_is_float(to) ? float_to_float(e, value, from, to) : float_to_integer(e, value, from, to);
    return tg_is_float(to) ? integer_to_float(e, value, from, to) : integer_to_integer(e, value, from, to);
}
