/* What printers, checkers and targets of loops ask about their instructions. */
#ifndef TG_LOOP_INFO_H
#define TG_LOOP_INFO_H

#include "codegen/loop.h"

typedef struct LoopOpInfo {
    const char *name;
    int operands;
} LoopOpInfo;

const LoopOpInfo *tg_loop_op_info(LoopOp op);
bool tg_loop_is_comparison(LoopOp op);
bool tg_loop_is_reduction(LoopOp op);
bool tg_loop_has_value(LoopOp op);
/* The type that values of `type` are computed in: f32 for bf16 and f16. */
DType tg_loop_compute_type(DType type);

#endif
