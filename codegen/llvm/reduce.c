/* Reductions: partial results in stack slots around a loop, folded as codegen/loop.h says. */
#include "codegen/llvm/emit.h"

#include <math.h>

static DType operand_type(const Emit *e, LoopId id) { return (DType)e->k->instrs.at[e->k->instrs.at[id].a].type; }

static bool in_vector_loop(const Emit *e, LoopId loop) { return e->k->instrs.at[loop].mode == MODE_VECTOR; }

static uint64_t least_integer(DType type) {
    return tg_dtype(type)->kind == KIND_SIGNED ? 1ull << (8 * tg_dtype(type)->bytes - 1) : 0;
}

/* What a partial result begins with. A serial sum begins with -0, which leaves its first element as it is. */
static LLVMValueRef start_value(const Emit *e, LoopId id, LLVMTypeRef type, bool serial) {
    DType dtype = operand_type(e, id);
    LoopOp op = (LoopOp)e->k->instrs.at[id].op;
    if (op == LOOP_reduce_sum)
        return tg_is_float(dtype) && serial ? tg_emit_real(e, type, -0.0) : LLVMConstNull(type);
    bool maximum = op != LOOP_reduce_min;
    if (tg_is_float(dtype))
        return tg_emit_real(e, type, maximum ? -INFINITY : INFINITY);
    return tg_emit_constant(e, type, maximum ? least_integer(dtype) : ~least_integer(dtype));
}

static LLVMTypeRef partial_type(LLVMTypeRef element, bool vector) {
    return vector ? LLVMVectorType(element, LOOP_LANES) : element;
}

/* The maximum and the minimum of floats are taken of integers in the same order, one instruction that waits for the
   last result: the bits of x, all but the sign inverted if x is negative. NaN becomes the integer that wins, which is
   the key of a NaN. */
static bool has_keys(LoopOp op, DType type) {
    return tg_is_float(type) && (op == LOOP_reduce_max || op == LOOP_reduce_min);
}

static DType key_type(DType type) { return type == DT_F64 ? DT_I64 : DT_I32; }

static LLVMValueRef swap_order(Emit *e, LLVMValueRef bits, DType key) {
    LLVMTypeRef type = LLVMTypeOf(bits);
    uint32_t width = 8u * tg_dtype(key)->bytes;
    LLVMValueRef sign = LLVMBuildAShr(e->builder, bits, tg_emit_constant(e, type, width - 1), "");
    LLVMValueRef below = LLVMBuildAnd(e->builder, sign, tg_emit_constant(e, type, UINT64_MAX >> (65 - width)), "");
    return LLVMBuildXor(e->builder, bits, below, "");
}

static LLVMValueRef key_of(Emit *e, LoopOp op, DType type, LLVMValueRef value) {
    DType key = key_type(type);
    LLVMTypeRef integer = tg_emit_like(e, tg_emit_type(e, key), value);
    LLVMValueRef ordered = swap_order(e, LLVMBuildBitCast(e->builder, value, integer, ""), key);
    uint64_t winner = op == LOOP_reduce_max ? ~least_integer(key) : least_integer(key);
    LLVMValueRef nan = LLVMBuildFCmp(e->builder, LLVMRealUNO, value, value, "");
    return LLVMBuildSelect(e->builder, nan, tg_emit_constant(e, integer, winner), ordered, "");
}

static LLVMValueRef value_of_key(Emit *e, DType type, LLVMValueRef key) {
    LLVMTypeRef number = tg_emit_like(e, tg_emit_type(e, type), key);
    return LLVMBuildBitCast(e->builder, swap_order(e, key, key_type(type)), number, "");
}

static DType partial_dtype(const Emit *e, LoopId id) {
    DType type = operand_type(e, id);
    return has_keys((LoopOp)e->k->instrs.at[id].op, type) ? key_type(type) : type;
}

static LLVMValueRef start_partial(Emit *e, LoopId id, LLVMTypeRef type, bool serial) {
    DType dtype = operand_type(e, id);
    LoopOp op = (LoopOp)e->k->instrs.at[id].op;
    if (!has_keys(op, dtype))
        return start_value(e, id, type, serial);
    LLVMTypeRef number = tg_emit_type(e, dtype);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        number = LLVMVectorType(number, LOOP_LANES);
    return key_of(e, op, dtype, start_value(e, id, number, serial));
}

static void begin_one(Emit *e, LoopId loop, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    bool lanes = in_vector_loop(e, loop);
    EmitPartial *p = &e->partials[id];
    p->vector = lanes || (e->vector != 0 && e->varies[instr->a]);
    p->count = lanes ? (uint32_t)(tg_reduce_lanes(e->k->instrs.at[loop].imm) / LOOP_LANES) : p->vector ? e->groups : 1;
    LLVMTypeRef type = partial_type(tg_emit_type(e, partial_dtype(e, id)), p->vector);
    LLVMTypeRef index = partial_type(e->i32, p->vector);
    for (uint32_t i = 0; i < p->count; i++) {
        p->value[i] = tg_emit_slot(e, type);
        LLVMBuildStore(e->builder, start_partial(e, id, type, !lanes), p->value[i]);
        if (instr->op != LOOP_reduce_argmax)
            continue;
        p->index[i] = tg_emit_slot(e, index);
        LLVMBuildStore(e->builder, tg_emit_constant(e, index, INT32_MAX), p->index[i]);
    }
}

/* The reductions that stand in `loop` itself. */
#define EACH_REDUCTION(e, loop, id)                                                                                    \
    for (LoopId id = (loop) + 1; id < (e)->match[loop]; id++)                                                          \
        if ((e)->k->instrs.at[id].op == LOOP_for)                                                                      \
            id = (e)->match[id];                                                                                       \
        else if (tg_loop_is_reduction((LoopOp)(e)->k->instrs.at[id].op))

void tg_emit_reduce_begin(Emit *e, LoopId loop) {
    EACH_REDUCTION(e, loop, id)
    begin_one(e, loop, id);
}

typedef struct Candidate {
    LLVMValueRef value, index; /* index: of argmax */
} Candidate;

/* `challenger` is larger, or NaN where the other is none, or equal and earlier. */
static LLVMValueRef beats(Emit *e, DType type, Candidate challenger, Candidate best) {
    LLVMBuilderRef b = e->builder;
    LLVMValueRef earlier = LLVMBuildICmp(b, LLVMIntSLT, challenger.index, best.index, "");
    if (!tg_is_float(type)) {
        bool is_signed = tg_dtype(type)->kind == KIND_SIGNED;
        LLVMValueRef larger = LLVMBuildICmp(b, is_signed ? LLVMIntSGT : LLVMIntUGT, challenger.value, best.value, "");
        LLVMValueRef equal = LLVMBuildICmp(b, LLVMIntEQ, challenger.value, best.value, "");
        return LLVMBuildOr(b, larger, LLVMBuildAnd(b, equal, earlier, ""), "");
    }
    LLVMValueRef larger = LLVMBuildFCmp(b, LLVMRealOGT, challenger.value, best.value, "");
    LLVMValueRef equal = LLVMBuildFCmp(b, LLVMRealOEQ, challenger.value, best.value, "");
    LLVMValueRef nan = LLVMBuildFCmp(b, LLVMRealUNO, challenger.value, challenger.value, "");
    LLVMValueRef best_nan = LLVMBuildFCmp(b, LLVMRealUNO, best.value, best.value, "");
    LLVMValueRef tie = LLVMBuildOr(b, equal, LLVMBuildAnd(b, nan, best_nan, ""), "");
    LLVMValueRef only_nan = LLVMBuildAnd(b, nan, LLVMBuildNot(b, best_nan, ""), "");
    LLVMValueRef wins = LLVMBuildOr(b, larger, only_nan, "");
    return LLVMBuildOr(b, wins, LLVMBuildAnd(b, tie, earlier, ""), "");
}

static Candidate fold(Emit *e, LoopOp op, DType type, Candidate low, Candidate high) {
    LLVMBuilderRef b = e->builder;
    if (op == LOOP_reduce_sum) {
        LLVMOpcode add = tg_is_float(type) ? LLVMFAdd : LLVMAdd;
        return (Candidate){.value = LLVMBuildBinOp(b, add, low.value, high.value, "")};
    }
    if (op != LOOP_reduce_argmax)
        return (Candidate){.value = tg_emit_extremum(e, type, op == LOOP_reduce_max, low.value, high.value)};
    LLVMValueRef take = beats(e, type, high, low);
    return (Candidate){.value = LLVMBuildSelect(b, take, high.value, low.value, ""),
                       .index = LLVMBuildSelect(b, take, high.index, low.index, "")};
}

static LLVMValueRef read_slot(Emit *e, LLVMValueRef slot) {
    return slot ? LLVMBuildLoad2(e->builder, LLVMGetAllocatedType(slot), slot, "") : NULL;
}

static void fold_into(Emit *e, LoopId id, uint32_t slot, Candidate element, LLVMValueRef mask) {
    EmitPartial *p = &e->partials[id];
    Candidate old = {read_slot(e, p->value[slot]), read_slot(e, p->index[slot])};
    Candidate next = fold(e, (LoopOp)e->k->instrs.at[id].op, partial_dtype(e, id), old, element);
    if (mask) {
        next.value = LLVMBuildSelect(e->builder, mask, next.value, old.value, "");
        next.index = next.index ? LLVMBuildSelect(e->builder, mask, next.index, old.index, "") : NULL;
    }
    LLVMBuildStore(e->builder, next.value, p->value[slot]);
    if (next.index)
        LLVMBuildStore(e->builder, next.index, p->index[slot]);
}

static LLVMValueRef index_vector(Emit *e, LoopId loop, uint32_t group) {
    LLVMValueRef variable = tg_emit_vector(e, loop, group);
    return LLVMBuildTrunc(e->builder, variable, LLVMVectorType(e->i32, LOOP_LANES), "");
}

static LLVMValueRef element_of(Emit *e, LoopId id, LLVMValueRef value) {
    LoopOp op = (LoopOp)e->k->instrs.at[id].op;
    return has_keys(op, operand_type(e, id)) ? key_of(e, op, operand_type(e, id), value) : value;
}

void tg_emit_reduce(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    EmitPartial *p = &e->partials[id];
    bool lanes = in_vector_loop(e, e->around), argmax = instr->op == LOOP_reduce_argmax;
    if (!p->vector) {
        LLVMValueRef index = argmax ? LLVMBuildTrunc(e->builder, tg_emit_uniform(e, e->around), e->i32, "") : NULL;
        fold_into(e, id, 0, (Candidate){element_of(e, id, tg_emit_uniform(e, instr->a)), index}, NULL);
        return;
    }
    for (uint32_t g = 0; g < e->groups; g++) {
        LLVMValueRef value = element_of(e, id, tg_emit_vector(e, instr->a, g));
        Candidate element = {value, argmax ? index_vector(e, e->around, g) : NULL};
        fold_into(e, id, g % p->count, element, lanes ? e->mask[g] : NULL);
    }
}

static LLVMValueRef lanes_of(Emit *e, LLVMValueRef vector, uint32_t first, uint32_t count) {
    LLVMValueRef picks[LOOP_LANES];
    for (uint32_t i = 0; i < count; i++)
        picks[i] = LLVMConstInt(e->i32, first + i, 0);
    LLVMTypeRef type = LLVMTypeOf(vector);
    return LLVMBuildShuffleVector(e->builder, vector, LLVMGetPoison(type), LLVMConstVector(picks, count), "");
}

static Candidate half(Emit *e, Candidate all, uint32_t first, uint32_t count) {
    return (Candidate){lanes_of(e, all.value, first, count), all.index ? lanes_of(e, all.index, first, count) : NULL};
}

/* The upper half of the lanes onto the lower until one is left. */
static Candidate fold_lanes(Emit *e, LoopOp op, DType type, Candidate partial[], uint32_t count) {
    for (; count > 1; count /= 2)
        for (uint32_t i = 0; i < count / 2; i++)
            partial[i] = fold(e, op, type, partial[i], partial[i + count / 2]);
    Candidate all = partial[0];
    for (uint32_t n = LOOP_LANES / 2; n >= 1; n /= 2)
        all = fold(e, op, type, half(e, all, 0, n), half(e, all, n, n));
    LLVMValueRef zero = LLVMConstInt(e->i32, 0, 0);
    all.value = LLVMBuildExtractElement(e->builder, all.value, zero, "");
    all.index = all.index ? LLVMBuildExtractElement(e->builder, all.index, zero, "") : NULL;
    return all;
}

/* A serial sum over nothing is +0, not the -0 that it begins with. */
static LLVMValueRef never_minus_nothing(Emit *e, LoopId loop, LLVMValueRef sum) {
    const LoopInstr *instr = &e->k->instrs.at[loop];
    LLVMValueRef some =
        LLVMBuildICmp(e->builder, LLVMIntSLT, tg_emit_uniform(e, instr->a), tg_emit_uniform(e, instr->b), "");
    return LLVMBuildSelect(e->builder, some, sum, LLVMConstNull(LLVMTypeOf(sum)), "");
}

/* What an instruction of `loop` gives after its end, from the last partial result. */
static LLVMValueRef finished(Emit *e, LoopId loop, LoopId id, Candidate last) {
    LoopOp op = (LoopOp)e->k->instrs.at[id].op;
    DType type = operand_type(e, id);
    if (last.index)
        return last.index;
    if (has_keys(op, type))
        return value_of_key(e, type, last.value);
    if (op == LOOP_reduce_sum && tg_is_float(type) && !in_vector_loop(e, loop))
        return never_minus_nothing(e, loop, last.value);
    return last.value;
}

static void end_one(Emit *e, LoopId loop, LoopId id) {
    EmitPartial *p = &e->partials[id];
    Candidate partial[EMIT_GROUPS];
    for (uint32_t i = 0; i < p->count; i++)
        partial[i] = (Candidate){read_slot(e, p->value[i]), read_slot(e, p->index[i])};
    if (in_vector_loop(e, loop)) {
        Candidate all = fold_lanes(e, (LoopOp)e->k->instrs.at[id].op, partial_dtype(e, id), partial, p->count);
        tg_emit_set_uniform(e, id, finished(e, loop, id, all));
        return;
    }
    EmitValue result = {0};
    for (uint32_t i = 0; i < p->count; i++)
        result.group[i] = finished(e, loop, id, partial[i]);
    if (!p->vector)
        result.first = result.group[0];
    e->values[id] = result;
}

void tg_emit_reduce_end(Emit *e, LoopId loop) {
    EACH_REDUCTION(e, loop, id)
    end_one(e, loop, id);
}
