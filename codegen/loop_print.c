/* kernel NAME {
     buffer 0 in f32[64]
     %1 = const i64 0
     %2 = const i64 4
     %3 = for tile %1 to %2 extent 4 {
       %4 = load f32 0[%3 + 1 * v]
       %5 = fadd f32 %4, %4
       store 1[%3], %5
     }
   }
   An instruction's number is its place: stores and closing braces count. */
#include "codegen/loop_info.h"

#include <inttypes.h>

static const char *const ROLES[] = {[ROLE_IN] = "in", [ROLE_OUT] = "out", [ROLE_SCRATCH] = "scratch"};
static const char *const MODES[] = {[MODE_TILE] = "tile", [MODE_SERIAL] = "serial", [MODE_VECTOR] = "vector", [MODE_PARALLEL] = "parallel"};

static void print_address(Str *to, const LoopInstr *instr) {
    tg_str_printf(to, " %u[%%%u", instr->buffer, instr->a);
    if (instr->imm != 0)
        tg_str_printf(to, " + %" PRId64 " * v", instr->imm);
    tg_str_printf(to, "]");
}

static void print_const(Str *to, const LoopInstr *instr) {
    char text[TG_NUMBER_TEXT];
    if (tg_is_float((DType)instr->type))
        tg_str_printf(to, " %s", tg_number_text(instr->number, text));
    else
        tg_str_printf(to, " %" PRId64, instr->imm);
}

static void print_operands(Str *to, const LoopInstr *instr) {
    const LoopId operands[3] = {instr->a, instr->b, instr->c};
    for (int i = 0; i < tg_loop_op_info((LoopOp)instr->op)->operands && operands[i] != 0; i++)
        tg_str_printf(to, i ? ", %%%u" : " %%%u", operands[i]);
}

static void print_instr(Str *to, const LoopKernel *k, LoopId id) {
    const LoopInstr *instr = &k->instrs.at[id];
    LoopOp op = (LoopOp)instr->op;
    if (op == LOOP_store) {
        tg_str_printf(to, "store");
        print_address(to, instr);
        tg_str_printf(to, ", %%%u", instr->b);
        return;
    }
    tg_str_printf(to, "%%%u = %s", id, tg_loop_op_info(op)->name);
    if (op == LOOP_for) {
        tg_str_printf(to, " %s %%%u to %%%u extent %" PRId64 " {", MODES[instr->mode], instr->a, instr->b, instr->imm);
        return;
    }
    tg_str_printf(to, " %s", tg_dtype((DType)instr->type)->name);
    if (op == LOOP_load)
        print_address(to, instr);
    else if (op == LOOP_const)
        print_const(to, instr);
    else if (op == LOOP_scalar)
        tg_str_printf(to, " %" PRId64, instr->imm);
    else if (op == LOOP_libm)
        tg_str_printf(to, " %s", instr->text);
    if (op != LOOP_load)
        print_operands(to, instr);
}

void tg_loop_print(Str *to, const LoopKernel *k) {
    tg_str_printf(to, "kernel %s {\n", k->name);
    for (uint32_t i = 0; i < k->buffers.count; i++) {
        const LoopBuffer *buffer = &k->buffers.at[i];
        tg_str_printf(to, "  buffer %u %s %s[%" PRId64 "]%s\n", i, ROLES[buffer->role], tg_dtype(buffer->dtype)->name,
                      buffer->count, buffer->streamed ? " streamed" : "");
    }
    int depth = 1;
    for (LoopId id = 1; id < k->instrs.count; id++) {
        LoopOp op = (LoopOp)k->instrs.at[id].op;
        if (op == LOOP_end)
            depth--;
        tg_str_printf(to, "%*s", 2 * depth, "");
        if (op == LOOP_end)
            tg_str_printf(to, "}");
        else
            print_instr(to, k, id);
        tg_str_printf(to, "\n");
        if (op == LOOP_for)
            depth++;
    }
    tg_str_printf(to, "}\n");
}
