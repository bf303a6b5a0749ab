/* Types, names and references. */
#include "codegen/cuda/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const LoopInstr *at(const Emit *e, LoopId id) { return &e->k->instrs.at[id]; }

const char *tg_cuda_memory_type(DType type) {
    static const char *const names[DT_COUNT] = {
        [DT_BOOL] = "u8", [DT_U8] = "u8",    [DT_I8] = "i8",   [DT_U16] = "u16", [DT_I16] = "i16", [DT_I32] = "i32",
        [DT_I64] = "i64", [DT_BF16] = "u16", [DT_F16] = "u16", [DT_F32] = "f32", [DT_F64] = "f64",
    };
    return names[type];
}

const char *tg_cuda_name(DType type) { return type == DT_BOOL ? "u8" : tg_cuda_memory_type(type); }

const char *tg_cuda_type(const Emit *e, LoopId id) {
    DType type = (DType)at(e, id)->type;
    if (type == DT_BOOL)
        return "bool";
    return type == DT_I64 && tg_cuda_narrow(e, id) ? "i32" : tg_cuda_memory_type(type);
}

static const char *float_text(Emit *e, float value) {
    if (!isfinite(value)) {
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        return tg_arena_printf(e->arena, "tg_f32_of((i32)0x%08xu)", bits);
    }
    char *text = tg_arena_printf(e->arena, "%.9g", (double)value);
    for (int digits = 1; digits < 9; digits++) {
        char *shorter = tg_arena_printf(e->arena, "%.*g", digits, (double)value);
        if (strtof(shorter, NULL) == value) {
            text = shorter;
            break;
        }
    }
    bool whole = strpbrk(text, ".e") == NULL;
    return tg_arena_printf(e->arena, signbit(value) ? "(%s%s)" : "%s%s", text, whole ? ".0f" : "f");
}

static const char *double_text(Emit *e, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!isfinite(value))
        return tg_arena_printf(e->arena, "tg_f64_of((i64)0x%016" PRIx64 "ull)", bits);
    const char *text = tg_arena_printf(e->arena, "%.17g", value);
    return tg_arena_printf(e->arena, signbit(value) ? "(%s%s)" : "%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "");
}

static const char *integer_text(Emit *e, int64_t value) {
    if (value == INT64_MIN)
        return "(-9223372036854775807ll - 1)";
    bool narrow = value > INT32_MIN && value <= INT32_MAX;
    return tg_arena_printf(e->arena, value < 0 ? "(%" PRId64 "%s)" : "%" PRId64 "%s", value, narrow ? "" : "ll");
}

const char *tg_cuda_number(Emit *e, DType type, double value) {
    if (type == DT_F32)
        return float_text(e, (float)value);
    if (type == DT_F64)
        return double_text(e, value);
    if (!tg_is_float(type))
        return integer_text(e, (int64_t)value);
    uint16_t bits;
    tg_element_set(type, &bits, 0, value);
    return tg_arena_printf(e->arena, "(u16)0x%04x", bits);
}

static const char *constant(Emit *e, const LoopInstr *instr) {
    if (instr->type == DT_BOOL)
        return instr->imm ? "true" : "false";
    if (!tg_is_float((DType)instr->type))
        return integer_text(e, instr->imm);
    return tg_cuda_number(e, (DType)instr->type, instr->number);
}

static const char *linear(Emit *e, LoopId id) {
    const Fact *f = &e->facts[id];
    if (!e->element || e->shapes[f->vector ? f->vector : id].width == 1)
        return tg_arena_printf(e->arena, "x%u", id);
    if (f->step == 1)
        return tg_arena_printf(e->arena, "(x%u + %s)", id, e->j);
    return tg_arena_printf(e->arena, "(x%u + %" PRId64 " * %s)", id, f->step, e->j);
}

/* A loaded group of elements, or what a loop folded. */
static const char *loaded(Emit *e, LoopId id) {
    bool is_bool = at(e, id)->type == DT_BOOL;
    return tg_arena_printf(e->arena, is_bool ? "(x%u.at[%s] != 0)" : "x%u.at[%s]", id, e->j);
}

const char *tg_cuda_ref(Emit *e, LoopId id) {
    const LoopInstr *instr = at(e, id);
    const Fact *f = &e->facts[id];
    if (instr->op == LOOP_const)
        return constant(e, instr);
    if (tg_loop_is_reduction((LoopOp)instr->op) && e->nests[f->around].threads != 0 && e->nest != f->around)
        return tg_arena_printf(e->arena, "y%u", id); /* of a nest, which has ended */
    if (tg_loop_is_reduction((LoopOp)instr->op))
        return tg_arena_printf(e->arena, instr->op == LOOP_reduce_argmax ? "q%u[%s]" : "p%u[%s]", id, f->varies ? e->j : "0");
    if (f->linear)
        return linear(e, id);
    if (f->varies && instr->op == LOOP_load && tg_cuda_is_wide(e, id))
        return loaded(e, id);
    if (f->varies && f->escapes)
        return tg_arena_printf(e->arena, "x%u[%s]", id, e->j);
    return tg_arena_printf(e->arena, "x%u", id);
}

const char *tg_cuda_address(Emit *e, LoopId id) {
    const LoopInstr *instr = at(e, id);
    const char *base = tg_cuda_ref(e, instr->a);
    if (instr->imm == 0)
        return base;
    LoopId loop = e->facts[id].vector;
    const Fact *a = &e->facts[instr->a], *v = &e->facts[loop];
    __int128 reach = (__int128)instr->imm * (v->bounded ? v->high : INT64_MAX);
    bool fits = tg_cuda_narrow(e, instr->a) && tg_cuda_narrow(e, loop) && reach + a->high < INT32_MAX &&
                reach + a->low > INT32_MIN;
    const char *cast = fits ? "" : "(i64)", *variable = tg_cuda_ref(e, loop);
    if (at(e, instr->a)->op == LOOP_const && at(e, instr->a)->imm == 0 && instr->imm == 1)
        return variable;
    if (instr->imm == 1)
        return tg_arena_printf(e->arena, "%s%s + %s", cast, base, variable);
    return tg_arena_printf(e->arena, "%s%s + %s%" PRId64 " * %s", cast, base, cast, instr->imm, variable);
}
