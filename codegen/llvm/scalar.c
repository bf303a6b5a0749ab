/* Operations that map to an instruction, a comparison or an intrinsic of LLVM, by table. */
#include "codegen/llvm/emit.h"

typedef struct OpCall {
    Emit *e;
    const LoopInstr *instr;
    LLVMValueRef a, b, c;
    LLVMValueRef mask; /* NULL: all lanes */
    LLVMTypeRef type;  /* of the first operand */
} OpCall;

/* How an op is emitted: `code` is the opcode, the predicate, or the index of the intrinsic's name. */
typedef LLVMValueRef EmitRule(const OpCall *call, int code);

static LLVMValueRef binary(const OpCall *call, int code) {
    return LLVMBuildBinOp(call->e->builder, (LLVMOpcode)code, call->a, call->b, "");
}

static LLVMValueRef float_compare(const OpCall *call, int code) {
    return LLVMBuildFCmp(call->e->builder, (LLVMRealPredicate)code, call->a, call->b, "");
}

static LLVMValueRef integer_compare(const OpCall *call, int code) {
    return LLVMBuildICmp(call->e->builder, (LLVMIntPredicate)code, call->a, call->b, "");
}

enum {
    NAME_FMA,
    NAME_FABS,
    NAME_SQRT,
    NAME_MAXIMUM,
    NAME_MINIMUM,
    NAME_FLOOR,
    NAME_CEIL,
    NAME_ROUND,
    NAME_SMAX,
    NAME_SMIN,
    NAME_UMAX,
    NAME_UMIN
};

static LLVMValueRef intrinsic(const OpCall *call, int code) {
    static const char *const names[] = {
        [NAME_FMA] = "llvm.fma",         [NAME_FABS] = "llvm.fabs",       [NAME_SQRT] = "llvm.sqrt",
        [NAME_MAXIMUM] = "llvm.maximum", [NAME_MINIMUM] = "llvm.minimum", [NAME_FLOOR] = "llvm.floor",
        [NAME_CEIL] = "llvm.ceil",       [NAME_ROUND] = "llvm.roundeven", [NAME_SMAX] = "llvm.smax",
        [NAME_SMIN] = "llvm.smin",       [NAME_UMAX] = "llvm.umax",       [NAME_UMIN] = "llvm.umin",
    };
    LLVMValueRef arguments[] = {call->a, call->b, call->c};
    LLVMTypeRef overload = call->type;
    uint32_t count = call->c ? 3 : call->b ? 2 : 1;
    return tg_emit_intrinsic(call->e, names[code], &overload, 1, arguments, count);
}

static LLVMValueRef negate(const OpCall *call, int code) {
    (void)code;
    return LLVMBuildFNeg(call->e->builder, call->a, "");
}

static LLVMValueRef invert(const OpCall *call, int code) {
    (void)code;
    return LLVMBuildNot(call->e->builder, call->a, "");
}

/* 2^n for integers, -127 < n < 128. */
static LLVMValueRef power_of_two(const OpCall *call, LLVMTypeRef integer, LLVMValueRef n) {
    LLVMBuilderRef b = call->e->builder;
    LLVMValueRef biased = LLVMBuildAdd(b, n, tg_emit_constant(call->e, integer, 127), "");
    return LLVMBuildBitCast(b, LLVMBuildShl(b, biased, tg_emit_constant(call->e, integer, 23), ""), call->type, "");
}

/* In two steps, of which only the second rounds: results may be denormal, or pass 2^128. Adding 1.5 * 2^23 puts a whole number
   into the low bits. */
static LLVMValueRef scale_in_steps(const OpCall *call) {
    Emit *e = call->e;
    LLVMBuilderRef b = e->builder;
    LLVMTypeRef integer = tg_emit_like(e, e->i32, call->a);
    LLVMValueRef shifted = LLVMBuildFAdd(b, call->b, tg_emit_real(e, call->type, 12582912), "");
    LLVMValueRef n = LLVMBuildSub(b, LLVMBuildBitCast(b, shifted, integer, ""), tg_emit_constant(e, integer, 0x4B400000), "");
    LLVMValueRef half = LLVMBuildAShr(b, n, tg_emit_constant(e, integer, 1), ""), rest = LLVMBuildSub(b, n, half, "");
    LLVMValueRef once = LLVMBuildFMul(b, call->a, power_of_two(call, integer, half), "");
    return LLVMBuildFMul(b, once, power_of_two(call, integer, rest), "");
}

static LLVMValueRef scale(const OpCall *call, int code) {
    (void)code;
    Emit *e = call->e;
    if (!e->shared->avx512 || LLVMGetTypeKind(call->type) != LLVMVectorTypeKind)
        return scale_in_steps(call);
    enum { ROUNDING_OF_CPU = 4 };
    LLVMValueRef arguments[] = {call->a, call->b, LLVMGetPoison(call->type), LLVMConstAllOnes(LLVMInt16TypeInContext(e->context)),
                                LLVMConstInt(e->i32, ROUNDING_OF_CPU, 0)};
    return tg_emit_intrinsic(e, "llvm.x86.avx512.mask.scalef.ps.512", NULL, 0, arguments, 5);
}

/* Amounts are taken modulo the width: a larger one has no meaning in LLVM. */
static LLVMValueRef shift(const OpCall *call, int code) {
    uint64_t width = 8u * tg_dtype((DType)call->instr->type)->bytes;
    LLVMValueRef limit = tg_emit_constant(call->e, call->type, width - 1);
    LLVMValueRef amount = LLVMBuildAnd(call->e->builder, call->b, limit, "");
    return LLVMBuildBinOp(call->e->builder, (LLVMOpcode)code, call->a, amount, "");
}

static LLVMValueRef choose(const OpCall *call, int code) {
    (void)code;
    return LLVMBuildSelect(call->e->builder, call->a, call->b, call->c, "");
}

/* A divisor of 0, or -1 under the least number, traps: the quotient by 0 is 0 and the remainder the dividend; by -1 it
   is the negation and 0. Lanes outside of the mask divide by 1. */
static LLVMValueRef divide(const OpCall *call, int code) {
    LLVMBuilderRef builder = call->e->builder;
    LLVMOpcode opcode = (LLVMOpcode)code;
    bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem, quotient = opcode == LLVMSDiv || opcode == LLVMUDiv;
    LLVMValueRef zero = LLVMConstNull(call->type), one = tg_emit_constant(call->e, call->type, 1);
    LLVMValueRef by_zero = LLVMBuildICmp(builder, LLVMIntEQ, call->b, zero, "");
    LLVMValueRef unsafe = by_zero, by_minus = NULL;
    if (is_signed) {
        by_minus = LLVMBuildICmp(builder, LLVMIntEQ, call->b, LLVMConstAllOnes(call->type), "");
        unsafe = LLVMBuildOr(builder, by_zero, by_minus, "");
    }
    if (call->mask)
        unsafe = LLVMBuildOr(builder, unsafe, LLVMBuildNot(builder, call->mask, ""), "");
    LLVMValueRef divisor = LLVMBuildSelect(builder, unsafe, one, call->b, "");
    LLVMValueRef result = LLVMBuildBinOp(builder, opcode, call->a, divisor, "");
    result = LLVMBuildSelect(builder, by_zero, quotient ? zero : call->a, result, "");
    if (by_minus)
        result = LLVMBuildSelect(builder, by_minus, quotient ? LLVMBuildNeg(builder, call->a, "") : zero, result, "");
    return result;
}

static LLVMValueRef convert(const OpCall *call, int code) {
    (void)code;
    const LoopInstr *from = &call->e->k->instrs.at[call->instr->a];
    return tg_emit_convert(call->e, call->a, (DType)from->type, (DType)call->instr->type);
}

/* By bits; a wider result extends by the source's sign (wrap) or by zeros. */
static LLVMValueRef resize(const OpCall *call, int zero) {
    DType from = (DType)call->e->k->instrs.at[call->instr->a].type, to = (DType)call->instr->type;
    LLVMTypeRef type = tg_emit_like(call->e, tg_emit_type(call->e, to), call->a);
    return LLVMBuildIntCast2(call->e->builder, call->a, type, !zero && tg_dtype(from)->kind == KIND_SIGNED, "");
}

static LLVMValueRef reinterpret(const OpCall *call, int code) {
    (void)code;
    LLVMTypeRef type = tg_emit_like(call->e, tg_emit_type(call->e, (DType)call->instr->type), call->a);
    return LLVMBuildBitCast(call->e->builder, call->a, type, "");
}

static LLVMValueRef library_call(const OpCall *call, LLVMValueRef a, LLVMValueRef b) {
    Emit *e = call->e;
    LLVMTypeRef number = LLVMDoubleTypeInContext(e->context);
    LLVMTypeRef parameters[] = {number, number};
    LLVMTypeRef type = LLVMFunctionType(number, parameters, b ? 2 : 1, 0);
    LLVMValueRef function = LLVMGetNamedFunction(e->shared->module, call->instr->text);
    if (function == NULL)
        function = LLVMAddFunction(e->shared->module, call->instr->text, type);
    LLVMValueRef arguments[] = {a, b};
    LLVMValueRef result = LLVMBuildCall2(e->builder, type, function, arguments, b ? 2 : 1, "");
    unsigned kind = LLVMGetEnumAttributeKindForName("nobuiltin", 9);
    LLVMAddCallSiteAttribute(result, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(e->context, kind, 0));
    return result;
}

/* The library's own result, never a rewrite of the call. */
static LLVMValueRef library(const OpCall *call, int code) {
    (void)code;
    LLVMBuilderRef builder = call->e->builder;
    if (LLVMGetTypeKind(call->type) != LLVMVectorTypeKind)
        return library_call(call, call->a, call->b);
    LLVMValueRef result = LLVMConstNull(call->type);
    for (uint32_t i = 0; i < LOOP_LANES; i++) {
        LLVMValueRef lane = LLVMConstInt(call->e->i32, i, 0);
        LLVMValueRef a = LLVMBuildExtractElement(builder, call->a, lane, "");
        LLVMValueRef b = call->b ? LLVMBuildExtractElement(builder, call->b, lane, "") : NULL;
        result = LLVMBuildInsertElement(builder, result, library_call(call, a, b), lane, "");
    }
    return result;
}

typedef struct OpRow {
    EmitRule *rule; /* NULL: not an operation on values */
    int code;
} OpRow;

static const OpRow *op_row(LoopOp op) {
    static const OpRow rows[LOOP_OP_COUNT] = {
        [LOOP_fadd] = {binary, LLVMFAdd},
        [LOOP_fsub] = {binary, LLVMFSub},
        [LOOP_fmul] = {binary, LLVMFMul},
        [LOOP_fdiv] = {binary, LLVMFDiv},
        [LOOP_fma] = {intrinsic, NAME_FMA},
        [LOOP_fneg] = {negate, 0},
        [LOOP_fabs] = {intrinsic, NAME_FABS},
        [LOOP_fsqrt] = {intrinsic, NAME_SQRT},
        [LOOP_fmax] = {intrinsic, NAME_MAXIMUM},
        [LOOP_fmin] = {intrinsic, NAME_MINIMUM},
        [LOOP_ffloor] = {intrinsic, NAME_FLOOR},
        [LOOP_fceil] = {intrinsic, NAME_CEIL},
        [LOOP_fround] = {intrinsic, NAME_ROUND},
        [LOOP_fscale] = {scale, 0},
        [LOOP_iadd] = {binary, LLVMAdd},
        [LOOP_isub] = {binary, LLVMSub},
        [LOOP_imul] = {binary, LLVMMul},
        [LOOP_idiv] = {divide, LLVMSDiv},
        [LOOP_irem] = {divide, LLVMSRem},
        [LOOP_udiv] = {divide, LLVMUDiv},
        [LOOP_urem] = {divide, LLVMURem},
        [LOOP_imax] = {intrinsic, NAME_SMAX},
        [LOOP_imin] = {intrinsic, NAME_SMIN},
        [LOOP_umax] = {intrinsic, NAME_UMAX},
        [LOOP_umin] = {intrinsic, NAME_UMIN},
        [LOOP_and] = {binary, LLVMAnd},
        [LOOP_or] = {binary, LLVMOr},
        [LOOP_xor] = {binary, LLVMXor},
        [LOOP_not] = {invert, 0},
        [LOOP_shl] = {shift, LLVMShl},
        [LOOP_lshr] = {shift, LLVMLShr},
        [LOOP_ashr] = {shift, LLVMAShr},
        [LOOP_feq] = {float_compare, LLVMRealOEQ},
        [LOOP_fne] = {float_compare, LLVMRealUNE},
        [LOOP_flt] = {float_compare, LLVMRealOLT},
        [LOOP_fle] = {float_compare, LLVMRealOLE},
        [LOOP_fgt] = {float_compare, LLVMRealOGT},
        [LOOP_fge] = {float_compare, LLVMRealOGE},
        [LOOP_ieq] = {integer_compare, LLVMIntEQ},
        [LOOP_ine] = {integer_compare, LLVMIntNE},
        [LOOP_ilt] = {integer_compare, LLVMIntSLT},
        [LOOP_ile] = {integer_compare, LLVMIntSLE},
        [LOOP_igt] = {integer_compare, LLVMIntSGT},
        [LOOP_ige] = {integer_compare, LLVMIntSGE},
        [LOOP_ult] = {integer_compare, LLVMIntULT},
        [LOOP_ule] = {integer_compare, LLVMIntULE},
        [LOOP_ugt] = {integer_compare, LLVMIntUGT},
        [LOOP_uge] = {integer_compare, LLVMIntUGE},
        [LOOP_select] = {choose, 0},
        [LOOP_convert] = {convert, 0},
        [LOOP_wrap] = {resize, false},
        [LOOP_zero] = {resize, true},
        [LOOP_bits] = {reinterpret, 0},
        [LOOP_libm] = {library, 0},
    };
    return &rows[op];
}

/* Signed operations on values of an unsigned type take them as they are. */
static LoopOp unsigned_op(LoopOp op) {
    static const uint8_t unsigned_ops[LOOP_OP_COUNT] = {
        [LOOP_idiv] = LOOP_udiv, [LOOP_irem] = LOOP_urem, [LOOP_imax] = LOOP_umax,
        [LOOP_imin] = LOOP_umin, [LOOP_ashr] = LOOP_lshr, [LOOP_ilt] = LOOP_ult,
        [LOOP_ile] = LOOP_ule,   [LOOP_igt] = LOOP_ugt,   [LOOP_ige] = LOOP_uge,
    };
    return unsigned_ops[op] ? (LoopOp)unsigned_ops[op] : op;
}

LLVMValueRef tg_emit_op(Emit *e, const LoopInstr *instr, LLVMValueRef operands[3], LLVMValueRef mask) {
    bool is_signed = tg_dtype((DType)e->k->instrs.at[instr->a].type)->kind == KIND_SIGNED;
    const OpRow *row = op_row(is_signed ? (LoopOp)instr->op : unsigned_op((LoopOp)instr->op));
    OpCall call = {.e = e,
                   .instr = instr,
                   .a = operands[0],
                   .b = operands[1],
                   .c = operands[2],
                   .mask = mask,
                   .type = LLVMTypeOf(operands[0])};
    return row->rule(&call, row->code);
}

/* The larger or smaller of two; NaN wins, -0 is below +0. */
LLVMValueRef tg_emit_extremum(Emit *e, DType type, bool maximum, LLVMValueRef a, LLVMValueRef b) {
    static const int names[3][2] = {{NAME_MINIMUM, NAME_MAXIMUM}, {NAME_SMIN, NAME_SMAX}, {NAME_UMIN, NAME_UMAX}};
    int kind = tg_is_float(type) ? 0 : tg_dtype(type)->kind == KIND_SIGNED ? 1 : 2;
    OpCall call = {.e = e, .a = a, .b = b, .type = LLVMTypeOf(a)};
    return intrinsic(&call, names[kind][maximum]);
}
