#include "codegen/loop_info.h"

static const LoopOpInfo INFO[LOOP_OP_COUNT] = {
#define X(name, operands) {#name, operands},
    TG_LOOP_OPS(X)
#undef X
};

const LoopOpInfo *tg_loop_op_info(LoopOp op) { return &INFO[op]; }

bool tg_loop_is_comparison(LoopOp op) { return op >= LOOP_feq && op <= LOOP_uge; }

bool tg_loop_is_reduction(LoopOp op) { return op >= LOOP_reduce_sum && op <= LOOP_reduce_argmax; }

bool tg_loop_has_value(LoopOp op) { return op != LOOP_end && op != LOOP_store; }

DType tg_loop_compute_type(DType type) { return type == DT_BF16 || type == DT_F16 ? DT_F32 : type; }

LoopKernel *tg_loop_kernel(Arena *arena, const char *name) {
    LoopKernel *k = TG_ALLOC(arena, LoopKernel, 1);
    k->arena = arena;
    k->name = name;
    tg_push(arena, &k->instrs, (LoopInstr){.op = LOOP_end});
    return k;
}

uint32_t tg_loop_buffer(LoopKernel *k, LoopRole role, DType dtype, int64_t count) {
    tg_push(k->arena, &k->buffers, (LoopBuffer){.role = role, .dtype = dtype, .count = count});
    return k->buffers.count - 1;
}

static LoopId push(LoopKernel *k, LoopInstr instr) {
    tg_push(k->arena, &k->instrs, instr);
    return k->instrs.count - 1;
}

LoopId tg_loop_for(LoopKernel *k, LoopMode mode, LoopId begin, LoopId end, int64_t extent) {
    if (mode == MODE_TILE)
        k->tiles = extent;
    return push(
        k, (LoopInstr){.op = LOOP_for, .type = DT_I64, .mode = (uint8_t)mode, .a = begin, .b = end, .imm = extent});
}

void tg_loop_end(LoopKernel *k) { push(k, (LoopInstr){.op = LOOP_end}); }

/* An integer as its type holds it: wrapped to the type's width. */
static int64_t wrap_to(DType type, int64_t value) {
    switch (type) {
    case DT_BOOL:
        return value != 0;
    case DT_U8:
        return (uint8_t)value;
    case DT_I8:
        return (int8_t)value;
    case DT_U16:
        return (uint16_t)value;
    case DT_I16:
        return (int16_t)value;
    case DT_I32:
        return (int32_t)value;
    default:
        return value;
    }
}

LoopId tg_loop_int(LoopKernel *k, DType type, int64_t value) {
    return push(k, (LoopInstr){.op = LOOP_const, .type = (uint8_t)type, .imm = wrap_to(type, value)});
}

LoopId tg_loop_number(LoopKernel *k, DType type, double value) {
    if (!tg_is_float(type))
        return tg_loop_int(k, type, (int64_t)value);
    return push(k, (LoopInstr){.op = LOOP_const, .type = (uint8_t)type, .number = tg_round_to(type, value)});
}

LoopId tg_loop_leaf(LoopKernel *k, LoopOp op, int64_t imm) {
    return push(k, (LoopInstr){.op = (uint8_t)op, .type = op == LOOP_scalar ? DT_F64 : DT_I64, .imm = imm});
}

static bool constant(const LoopKernel *k, LoopId id, int64_t *value) {
    const LoopInstr *instr = &k->instrs.at[id];
    *value = instr->imm;
    return instr->op == LOOP_const && !tg_is_float((DType)instr->type);
}

/* x + 0, x - 0, x * 1, x / 1 are x; 0 for none of them. */
static LoopId identity(const LoopKernel *k, LoopOp op, LoopId a, LoopId b) {
    int64_t x, y;
    bool x_known = constant(k, a, &x), y_known = constant(k, b, &y);
    if (y_known && y == 0 && (op == LOOP_iadd || op == LOOP_isub))
        return a;
    if (x_known && x == 0 && op == LOOP_iadd)
        return b;
    if (y_known && y == 1 && (op == LOOP_imul || op == LOOP_idiv))
        return a;
    if (x_known && x == 1 && op == LOOP_imul)
        return b;
    if (op == LOOP_imul && ((x_known && x == 0) || (y_known && y == 0)))
        return x_known && x == 0 ? a : b;
    return 0;
}

static bool fold(LoopOp op, int64_t x, int64_t y, int64_t *value) {
    switch (op) {
    case LOOP_iadd:
        *value = (int64_t)((uint64_t)x + (uint64_t)y);
        return true;
    case LOOP_isub:
        *value = (int64_t)((uint64_t)x - (uint64_t)y);
        return true;
    case LOOP_imul:
        *value = (int64_t)((uint64_t)x * (uint64_t)y);
        return true;
    case LOOP_idiv:
        *value = y > 0 ? x / y : 0;
        return y > 0;
    case LOOP_irem:
        *value = y > 0 ? x % y : 0;
        return y > 0;
    case LOOP_imin:
        *value = x < y ? x : y;
        return true;
    case LOOP_imax:
        *value = x > y ? x : y;
        return true;
    default:
        return false;
    }
}

LoopId tg_loop_op(LoopKernel *k, LoopOp op, LoopId a, LoopId b, LoopId c) {
    DType type = (DType)k->instrs.at[op == LOOP_select ? b : a].type;
    int64_t x, y, value;
    if (b != 0 && c == 0 && !tg_is_float(type)) {
        LoopId same = identity(k, op, a, b);
        if (same != 0)
            return same;
        if (constant(k, a, &x) && constant(k, b, &y) && fold(op, x, y, &value))
            return tg_loop_int(k, type, value);
    }
    if (tg_loop_is_comparison(op))
        type = DT_BOOL;
    else if (op == LOOP_reduce_argmax)
        type = DT_I32;
    return push(k, (LoopInstr){.op = (uint8_t)op, .type = (uint8_t)type, .a = a, .b = b, .c = c});
}

LoopId tg_loop_convert(LoopKernel *k, LoopOp op, LoopId a, DType to) {
    if (k->instrs.at[a].type == to)
        return a;
    int64_t value;
    if (constant(k, a, &value) && tg_is_integer(to) && op != LOOP_convert && (op == LOOP_wrap || value >= 0))
        return tg_loop_int(k, to, value);
    return push(k, (LoopInstr){.op = (uint8_t)op, .type = (uint8_t)to, .a = a});
}

LoopId tg_loop_libm(LoopKernel *k, const char *function, LoopId a, LoopId b) {
    return push(k, (LoopInstr){.op = LOOP_libm, .type = DT_F64, .a = a, .b = b, .text = function});
}

LoopId tg_loop_load(LoopKernel *k, uint32_t buffer, LoopId index, int64_t stride) {
    return push(k, (LoopInstr){.op = LOOP_load,
                               .type = (uint8_t)k->buffers.at[buffer].dtype,
                               .a = index,
                               .buffer = buffer,
                               .imm = stride});
}

void tg_loop_store(LoopKernel *k, uint32_t buffer, LoopId index, int64_t stride, LoopId value) {
    push(k, (LoopInstr){.op = LOOP_store,
                        .type = k->instrs.at[value].type,
                        .a = index,
                        .b = value,
                        .buffer = buffer,
                        .imm = stride});
}
