/* The scalar meaning of every pointwise operation, as loop instructions: scalar_NAME for the ops whose emit rule is
   `unary` or `binary`. Operands and results have the type that the op computes in (f32 for bf16 and f16); comparisons
   give bool.

   f32 maths functions are polynomials of our own, branch-free, at most 1 ulp off for exp and log, 2 for the others,
   over all inputs; f64 ones call the C library and stand outside of vector loops only. */
#ifndef TG_SCALAR_H
#define TG_SCALAR_H

#include "codegen/loop_info.h"

typedef LoopId ScalarUnary(LoopKernel *k, DType type, LoopId x);
typedef LoopId ScalarBinary(LoopKernel *k, DType type, LoopId x, LoopId y);

ScalarUnary scalar_neg, scalar_abs, scalar_sign, scalar_floor, scalar_ceil, scalar_round, scalar_exp, scalar_expm1,
    scalar_log, scalar_log1p, scalar_sqrt, scalar_rsqrt, scalar_sin, scalar_cos, scalar_tanh, scalar_erf,
    scalar_sigmoid, scalar_not, scalar_is_finite;
ScalarBinary scalar_add, scalar_sub, scalar_mul, scalar_div, scalar_mod, scalar_pow, scalar_maximum, scalar_minimum,
    scalar_and, scalar_or, scalar_eq, scalar_ne, scalar_lt, scalar_le, scalar_gt, scalar_ge;

/* To any type, rounding once, as tg_round_to does. */
LoopId scalar_convert(LoopKernel *k, LoopId x, DType to);
/* tg_random with the run's seed and iteration; row and index are i64. f32. */
LoopId scalar_random(LoopKernel *k, uint64_t key, LoopId row, LoopId index);

#endif
