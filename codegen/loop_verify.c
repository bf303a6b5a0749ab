#include "codegen/loop_info.h"

#include <string.h>

enum { MAX_DEPTH = 32 };

typedef struct Verifier {
    const LoopKernel *k;
    LoopId open[MAX_DEPTH]; /* loops around the instruction */
    int depth;
    LoopId *until; /* per value: 0, or the loop after whose end it cannot be read */
    LoopId *after; /* per reduction: the loop before whose end it cannot be read */
    bool *closed;  /* per loop */
    LoopId *owner; /* per buffer: the parallel loop that stores to it, for itself */
    int tiles;
    const char *why;
} Verifier;

static bool is_float(DType type) { return tg_is_float(type); }

static bool check(Verifier *v, bool holds, const char *why) {
    if (!holds && v->why == NULL)
        v->why = why;
    return holds;
}

static DType type_of(const Verifier *v, LoopId id) { return (DType)v->k->instrs.at[id].type; }

static bool in_vector(const Verifier *v) {
    for (int i = 0; i < v->depth; i++)
        if (v->k->instrs.at[v->open[i]].mode == MODE_VECTOR)
            return true;
    return false;
}

static void check_operand(Verifier *v, LoopId at, LoopId id) {
    if (!check(v, id > 0 && id < at, "an operand does not stand before its use"))
        return;
    const LoopInstr *instr = &v->k->instrs.at[id];
    if (!check(v, tg_loop_has_value((LoopOp)instr->op), "an operand is no value"))
        return;
    check(v, v->until[id] == 0 || !v->closed[v->until[id]], "an operand is not visible here");
    check(v, v->after[id] == 0 || v->closed[v->after[id]], "a reduction is read before its loop ends");
}

static void check_loop(Verifier *v, LoopId id, const LoopInstr *instr) {
    if (instr->mode == MODE_TILE)
        check(v, v->depth == 0 && v->tiles++ == 0, "a kernel is one tile loop");
    else
        check(v, v->depth > 0, "a loop stands outside of the tile loop");
    check(v, instr->mode != MODE_VECTOR || !in_vector(v), "a vector loop stands inside a vector loop");
    check(v, type_of(v, instr->a) == DT_I64 && type_of(v, instr->b) == DT_I64, "a bound is not i64");
    check(v, instr->imm >= 0, "a negative extent");
    if (check(v, v->depth < MAX_DEPTH, "loops are nested too deeply"))
        v->open[v->depth++] = id;
}

/* The parallel loop around that no vector loop is around; 0: none. */
static LoopId own_iteration(const Verifier *v) {
    for (int i = 0; i < v->depth; i++)
        if (v->k->instrs.at[v->open[i]].mode == MODE_VECTOR)
            return 0;
        else if (v->k->instrs.at[v->open[i]].mode == MODE_PARALLEL)
            return v->open[i];
    return 0;
}

/* Scratch that iterations of a parallel loop store to means nothing elsewhere. */
static void check_scratch(Verifier *v, const LoopInstr *instr) {
    LoopId loop = own_iteration(v), *owner = &v->owner[instr->buffer];
    if (v->k->buffers.at[instr->buffer].role != ROLE_SCRATCH)
        return;
    if (instr->op == LOOP_store && loop != 0 && *owner == 0)
        *owner = loop;
    check(v, *owner == 0 || *owner == loop, "the scratch of a parallel loop's iterations is used elsewhere");
}

static void check_memory(Verifier *v, const LoopInstr *instr, DType type, LoopRole not_role, const char *why) {
    if (!check(v, instr->buffer < v->k->buffers.count, "no such buffer"))
        return;
    const LoopBuffer *buffer = &v->k->buffers.at[instr->buffer];
    check(v, buffer->dtype == type, "the value's type is not the buffer's");
    check(v, buffer->role != not_role, why);
    check(v, type_of(v, instr->a) == DT_I64, "an index is not i64");
    check(v, instr->imm == 0 || in_vector(v), "a stride stands outside of a vector loop");
    check_scratch(v, instr);
}

static void check_arithmetic(Verifier *v, const LoopInstr *instr) {
    LoopOp op = (LoopOp)instr->op;
    DType a = type_of(v, instr->a);
    bool floats = (op >= LOOP_fadd && op <= LOOP_fscale) || (op >= LOOP_feq && op <= LOOP_fge);
    bool same = (!instr->b || type_of(v, instr->b) == a) && (!instr->c || type_of(v, instr->c) == a);
    if (op == LOOP_select) {
        check(v, a == DT_BOOL, "a condition is not bool");
        check(v, type_of(v, instr->b) == type_of(v, instr->c), "select of two types");
        return;
    }
    check(v, same, "operands of two types");
    check(v, floats == is_float(a), "an operand of the wrong kind");
    check(v, a != DT_BF16 && a != DT_F16, "bf16 and f16 do not compute");
    check(v, op != LOOP_fscale || a == DT_F32, "fscale is for f32");
}

static void check_cast(Verifier *v, const LoopInstr *instr) {
    DType from = type_of(v, instr->a), to = (DType)instr->type;
    if (instr->op == LOOP_bits)
        check(v, tg_dtype(from)->bytes == tg_dtype(to)->bytes, "bits of another width");
    else if (instr->op != LOOP_convert)
        check(v, !is_float(from) && !is_float(to), "wrap and zero are for integers");
}

static void check_instr(Verifier *v, LoopId id) {
    const LoopInstr *instr = &v->k->instrs.at[id];
    LoopOp op = (LoopOp)instr->op;
    if (!check(v, op < LOOP_OP_COUNT && instr->type < DT_COUNT, "an unknown instruction"))
        return;
    const LoopId operands[3] = {instr->a, instr->b, instr->c};
    for (int i = 0; i < tg_loop_op_info(op)->operands; i++)
        if (i == 0 || op != LOOP_libm || operands[i] != 0)
            check_operand(v, id, operands[i]);
    if (v->why != NULL)
        return;
    LoopId around = v->depth ? v->open[v->depth - 1] : 0;
    v->until[id] = around;
    if (op == LOOP_for) {
        check_loop(v, id, instr);
        v->until[id] = id;
    } else if (op == LOOP_end) {
        if (check(v, v->depth > 0, "an end without a loop"))
            v->closed[v->open[--v->depth]] = true;
    } else if (tg_loop_is_reduction(op)) {
        check(v, v->depth > 1, "a reduction stands in no loop");
        check(v, v->k->instrs.at[around].mode != MODE_PARALLEL, "a reduction stands in a parallel loop");
        v->after[id] = around;
        v->until[id] = v->depth > 1 ? v->open[v->depth - 2] : 0;
        check(v, type_of(v, instr->a) != DT_BF16 && type_of(v, instr->a) != DT_F16, "bf16 and f16 do not compute");
    } else if (op == LOOP_load) {
        check_memory(v, instr, (DType)instr->type, (LoopRole)-1, "");
    } else if (op == LOOP_store) {
        check_memory(v, instr, type_of(v, instr->b), ROLE_IN, "a store to an input");
    } else if (op >= LOOP_fadd && op <= LOOP_select) {
        check_arithmetic(v, instr);
    } else if (op >= LOOP_convert && op <= LOOP_bits) {
        check_cast(v, instr);
    } else if (op == LOOP_libm) {
        check(v, instr->text != NULL && type_of(v, instr->a) == DT_F64, "a libm call takes f64");
    }
}

Status tg_loop_verify(const LoopKernel *k, Diags *diags) {
    uint32_t count = k->instrs.count;
    Verifier v = {.k = k,
                  .until = TG_ALLOC(k->arena, LoopId, count),
                  .after = TG_ALLOC(k->arena, LoopId, count),
                  .closed = TG_ALLOC(k->arena, bool, count),
                  .owner = TG_ALLOC(k->arena, LoopId, k->buffers.count)};
    LoopId id = 1;
    for (; id < count && v.why == NULL; id++)
        check_instr(&v, id);
    if (v.why == NULL)
        check(&v, v.depth == 0 && v.tiles == 1, "a kernel is one tile loop");
    if (v.why == NULL)
        return TG_OK;
    tg_error(diags, (Loc){0}, "internal error: kernel %s, instruction %%%u: %s", k->name, id - 1, v.why);
    return TG_INTERNAL;
}
