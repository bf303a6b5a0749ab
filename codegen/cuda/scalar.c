/* Operations as C expressions, by table. */
#include "codegen/cuda/emit.h"

#include <inttypes.h>
#include <string.h>

static const LoopInstr *at(const Emit *e, LoopId id) { return &e->k->instrs.at[id]; }

typedef struct Call {
    Emit *e;
    LoopId id;
    const LoopInstr *instr;
    DType type; /* of the operands */
    const char *a, *b, *c;
} Call;

/* `text`: an operator, or the beginning of a function's name. */
typedef const char *OpRule(const Call *op, const char *text);

#define FORMAT(op, ...) tg_arena_printf((op)->e->arena, __VA_ARGS__)

static const char *unsigned_name(DType type) {
    static const char *const names[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    return names[tg_dtype(type)->bytes];
}

static const char *infix(const Call *op, const char *text) { return FORMAT(op, "%s %s %s", op->a, text, op->b); }

static const char *prefix(const Call *op, const char *text) { return FORMAT(op, "%s%s", text, op->a); }

/* floorf, floor */
static const char *library(const Call *op, const char *text) {
    const char *end = op->type == DT_F32 ? "f" : "";
    if (op->c)
        return FORMAT(op, "%s%s(%s, %s, %s)", text, end, op->a, op->b, op->c);
    return FORMAT(op, "%s%s(%s)", text, end, op->a);
}

static bool narrow_operands(const Call *op) {
    return op->type == DT_I64 && tg_cuda_narrow(op->e, op->instr->a) && tg_cuda_narrow(op->e, op->instr->b);
}

/* tg_max_f32 */
static const char *helper(const Call *op, const char *text) {
    return FORMAT(op, "tg_%s_%s(%s, %s)", text, narrow_operands(op) ? "i32" : tg_cuda_name(op->type), op->a, op->b);
}

/* Wraps: through unsigned integers where it might. */
static const char *wrapping(const Call *op, const char *text) {
    const char *type = tg_cuda_memory_type(op->type);
    if (op->type == DT_I64 && op->e->facts[op->id].bounded)
        return FORMAT(op, "%s%s %s %s", tg_cuda_narrow(op->e, op->id) ? "" : "(i64)", op->a, text, op->b);
    const char *wide = op->type == DT_I64 ? "u64" : "u32";
    return FORMAT(op, "(%s)((%s)%s %s (%s)%s)", type, wide, op->a, text, wide, op->b);
}

/* By 0 and by -1 as codegen/llvm divides: tg_div_i64. A divisor known to be positive needs none of that. */
static const char *divide(const Call *op, const char *text) {
    const Fact *divisor = &op->e->facts[op->instr->b];
    if (op->type == DT_I64 && divisor->bounded && divisor->low > 0)
        return FORMAT(op, "%s %s %s", op->a, text, op->b);
    return FORMAT(op, "(%s)tg_%s_%s(%s, %s)", tg_cuda_memory_type(op->type), text[0] == '/' ? "div" : "rem",
                  op->type == DT_I64 ? "i64" : "i32", op->a, op->b);
}

static const char *divide_unsigned(const Call *op, const char *text) {
    const Fact *a = &op->e->facts[op->instr->a], *b = &op->e->facts[op->instr->b];
    if (op->type == DT_I64 && a->bounded && a->low >= 0 && b->bounded && b->low > 0)
        return FORMAT(op, "%s %s %s", op->a, text, op->b);
    const char *own = unsigned_name(op->type), *wide = op->type == DT_I64 ? "u64" : "u32";
    return FORMAT(op, "(%s)tg_%s_%s((%s)%s, (%s)%s)", tg_cuda_memory_type(op->type), text[0] == '/' ? "div" : "rem", wide, own,
                  op->a, own, op->b);
}

static const char *select_unsigned(const Call *op, const char *text) {
    const char *own = unsigned_name(op->type);
    return FORMAT(op, "((%s)%s %s (%s)%s ? %s : %s)", own, op->a, text, own, op->b, op->a, op->b);
}

static const char *compare_unsigned(const Call *op, const char *text) {
    const char *own = unsigned_name(op->type);
    return FORMAT(op, "(%s)%s %s (%s)%s", own, op->a, text, own, op->b);
}

static const char *bitwise(const Call *op, const char *text) {
    if (op->type == DT_BOOL || op->type == DT_I64 || op->type == DT_I32)
        return infix(op, text);
    return FORMAT(op, "(%s)(%s %s %s)", tg_cuda_memory_type(op->type), op->a, text, op->b);
}

static const char *invert(const Call *op, const char *text) {
    (void)text;
    return op->type == DT_BOOL ? FORMAT(op, "!%s", op->a) : FORMAT(op, "(%s)~%s", tg_cuda_memory_type(op->type), op->a);
}

/* Amounts are taken modulo the width. */
static const char *shift(const Call *op, const char *text) {
    const char *type = tg_cuda_memory_type(op->type), *own = unsigned_name(op->type);
    int most = 8 * tg_dtype(op->type)->bytes - 1;
    if (strcmp(text, "<<") == 0)
        return FORMAT(op, "(%s)((%s)%s << (%s & %d))", type, op->type == DT_I64 ? "u64" : "u32", op->a, op->b, most);
    if (strcmp(text, ">>>") == 0)
        return FORMAT(op, "(%s)((%s)%s >> (%s & %d))", type, own, op->a, op->b, most);
    return FORMAT(op, "(%s)((%s)%s >> (%s & %d))", type, type, op->a, op->b, most);
}

static const char *choose(const Call *op, const char *text) {
    (void)text;
    return FORMAT(op, "%s ? %s : %s", op->a, op->b, op->c);
}

static const char *convert(const Call *op, const char *text) {
    (void)text;
    return tg_cuda_convert(op->e, op->a, op->type, (DType)op->instr->type);
}

static const char *wrap(const Call *op, const char *text) {
    (void)text;
    if (op->instr->type == DT_BOOL)
        return FORMAT(op, "(%s & 1) != 0", op->a);
    return FORMAT(op, "(%s)%s", tg_cuda_memory_type((DType)op->instr->type), op->a);
}

static const char *zero_extend(const Call *op, const char *text) {
    (void)text;
    if (op->instr->type == DT_BOOL || op->type == DT_BOOL)
        return wrap(op, text);
    return FORMAT(op, "(%s)(%s)%s", tg_cuda_memory_type((DType)op->instr->type), unsigned_name(op->type), op->a);
}

/* A float and an integer of its width; otherwise both are integers to C. */
static const char *reinterpret(const Call *op, const char *text) {
    (void)text;
    DType to = (DType)op->instr->type;
    bool from_real = op->type == DT_F32 || op->type == DT_F64, to_real = to == DT_F32 || to == DT_F64;
    if (to == DT_BOOL)
        return FORMAT(op, "(%s & 1) != 0", op->a);
    if (from_real == to_real)
        return FORMAT(op, "(%s)%s", tg_cuda_memory_type(to), op->a);
    return FORMAT(op, "tg_%s_of(%s)", tg_cuda_memory_type(to), op->a);
}

static const char *libm(const Call *op, const char *text) {
    (void)text;
    if (op->instr->b == 0)
        return FORMAT(op, "%s(%s)", op->instr->text, op->a);
    return FORMAT(op, "%s(%s, %s)", op->instr->text, op->a, op->b);
}

static const char *load(const Call *op, const char *text) {
    (void)text;
    const char *end = op->instr->type == DT_BOOL ? " != 0" : "";
    return FORMAT(op, "b%u[%s]%s", op->instr->buffer, tg_cuda_address(op->e, op->id), end);
}

static const char *scalar(const Call *op, const char *text) {
    if (op->instr->op == LOOP_scalar)
        return FORMAT(op, "scalars->values[%" PRId64 "]", op->instr->imm);
    return FORMAT(op, "(%s)scalars->%s", tg_cuda_type(op->e, op->id), text);
}

/* How each operation is printed; those that are no expressions have no rule. */
#define PRINT_for NULL, ""
#define PRINT_end NULL, ""
#define PRINT_reduce_sum NULL, ""
#define PRINT_reduce_max NULL, ""
#define PRINT_reduce_min NULL, ""
#define PRINT_reduce_argmax NULL, ""
#define PRINT_store NULL, ""
#define PRINT_const NULL, ""
#define PRINT_load load, ""
#define PRINT_scalar scalar, ""
#define PRINT_rows scalar, "rows"
#define PRINT_first_row scalar, "first_row"
#define PRINT_iteration scalar, "iteration"
#define PRINT_seed scalar, "seed"
#define PRINT_fadd infix, "+"
#define PRINT_fsub infix, "-"
#define PRINT_fmul infix, "*"
#define PRINT_fdiv infix, "/"
#define PRINT_fma library, "fma"
#define PRINT_fneg prefix, "-"
#define PRINT_fabs library, "fabs"
#define PRINT_fsqrt library, "sqrt"
#define PRINT_fmax helper, "max"
#define PRINT_fmin helper, "min"
#define PRINT_ffloor library, "floor"
#define PRINT_fceil library, "ceil"
#define PRINT_fround library, "rint"
#define PRINT_fscale helper, "scale"
#define PRINT_iadd wrapping, "+"
#define PRINT_isub wrapping, "-"
#define PRINT_imul wrapping, "*"
#define PRINT_idiv divide, "/"
#define PRINT_irem divide, "%"
#define PRINT_udiv divide_unsigned, "/"
#define PRINT_urem divide_unsigned, "%"
#define PRINT_imax helper, "max"
#define PRINT_imin helper, "min"
#define PRINT_umax select_unsigned, ">"
#define PRINT_umin select_unsigned, "<"
#define PRINT_and bitwise, "&"
#define PRINT_or bitwise, "|"
#define PRINT_xor bitwise, "^"
#define PRINT_not invert, ""
#define PRINT_shl shift, "<<"
#define PRINT_lshr shift, ">>>"
#define PRINT_ashr shift, ">>"
#define PRINT_feq infix, "=="
#define PRINT_fne infix, "!="
#define PRINT_flt infix, "<"
#define PRINT_fle infix, "<="
#define PRINT_fgt infix, ">"
#define PRINT_fge infix, ">="
#define PRINT_ieq infix, "=="
#define PRINT_ine infix, "!="
#define PRINT_ilt infix, "<"
#define PRINT_ile infix, "<="
#define PRINT_igt infix, ">"
#define PRINT_ige infix, ">="
#define PRINT_ult compare_unsigned, "<"
#define PRINT_ule compare_unsigned, "<="
#define PRINT_ugt compare_unsigned, ">"
#define PRINT_uge compare_unsigned, ">="
#define PRINT_select choose, ""
#define PRINT_convert convert, ""
#define PRINT_wrap wrap, ""
#define PRINT_zero zero_extend, ""
#define PRINT_bits reinterpret, ""
#define PRINT_libm libm, ""

static const struct {
    OpRule *rule;
    const char *text;
} ROWS[LOOP_OP_COUNT] = {
#define X(name, operands) [LOOP_##name] = {PRINT_##name},
    TG_LOOP_OPS(X)
#undef X
};

const char *tg_cuda_expression(Emit *e, LoopId id) {
    const LoopInstr *instr = at(e, id);
    Call op = {.e = e, .id = id, .instr = instr, .type = (DType)at(e, instr->a)->type};
    int count = tg_loop_op_info((LoopOp)instr->op)->operands;
    if (instr->op != LOOP_load) {
        op.a = count > 0 ? tg_cuda_ref(e, instr->a) : NULL;
        op.b = count > 1 && instr->b ? tg_cuda_ref(e, instr->b) : NULL;
        op.c = count > 2 ? tg_cuda_ref(e, instr->c) : NULL;
    }
    return ROWS[instr->op].rule(&op, ROWS[instr->op].text);
}
