/* The kernels of an attention by blocks (PlanAttention): the arithmetic of passes/attention.c, for [queries][positions]
   scores. A kernel's tiles are queries; the device has but the rows of one block and runs no others. */
#ifndef TG_CODEGEN_ATTENTION_H
#define TG_CODEGEN_ATTENTION_H

#include "codegen/loop.h"
#include "ir/plan/plan.h"

/* Scores, in f32, to exp(scale * s - most) / sum over what the query sees, 0 up to the block's end: in place, or of another type than f32
   a second buffer, the first losing its values. */
LoopKernel *tg_attention_weights(Arena *arena, const char *name, const PlanAttention *a, double scale);

/* Weights P, and dP in f32, to scale * P * (dP - sum of P * dP), 0 behind what the query sees: in dP's place, or of another type than
   f32 a third buffer. */
LoopKernel *tg_attention_score_gradient(Arena *arena, const char *name, const PlanAttention *a, double scale);

#endif
