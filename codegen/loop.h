/* The kernel IR: one kernel as a nest of loops over scalar values. Both targets print from it; it has a text form of its own
   (docs/ir.md) and print -> parse -> print is the identity.

   A kernel is called for tiles [first, last) and touches nothing outside them but its inputs; equal tiles give equal bits on
   any thread. The body is one `tile` loop. Everything inside is written for one element; a `vector` loop runs it for 16 lanes
   at once (LOOP_LANES), its tail masked: an element's bits never depend on the lane it falls in.

   Instructions stand in order in `instrs`; LOOP_for and LOOP_end are brackets. An instruction's id is its index; it is a value
   of type `type`, visible to what follows inside the same loop or deeper. A reduction (LOOP_reduce_*) stands inside a loop and
   its value may be read only after that loop's end.

   The order of a reduction is fixed by its loop: a serial loop folds left, beginning with its first element; a vector loop keeps
   tg_reduce_lanes(extent) partial results, element i folded into partial i mod lanes in ascending order (lanes that got no
   element hold the neutral one: +0 for sums, -inf / +inf or the type's limits for max / min), then folds the upper half of the
   lanes onto the lower until one is left. `begin`/`end` bound the trip, `extent` is its largest size and alone fixes the lanes.
   Iterations of a parallel loop are independent: a target may run them in any order or at once. It has no reductions of its own.
   Outside of vector loops each iteration has the scratch that it stores to for itself: nothing of it is read elsewhere. Inside
   of one, iterations store to different elements, which are read after the loop.

   sum: one rounding an addition, no FMA. max, min: NaN wins. argmax: the first of equal maxima, NaN wins; its value is the
   loop variable (i32). */
#ifndef TG_LOOP_H
#define TG_LOOP_H

#include "ir/base/diag.h"
#include "ir/plan/dtype.h"

enum { LOOP_LANES = 16 };

/* Lanes of a vector reduction over `extent` elements: more than one vector where that hides the latency of the addition. */
static inline int64_t tg_reduce_lanes(int64_t extent) { return extent < 256 ? LOOP_LANES : 4 * LOOP_LANES; }

typedef uint32_t LoopId; /* instruction 0 is none */

/* X(name, number of value operands) */
#define TG_LOOP_OPS(X)                                                                                                      \
    /* structure: for: a begin, b end (i64, uniform), imm extent, kind in `mode`; its value is the variable, i64 */        \
    X(for, 2) X(end, 0)                                                                                                     \
    X(reduce_sum, 1) X(reduce_max, 1) X(reduce_min, 1) X(reduce_argmax, 1)                                                  \
    /* memory: address = a (i64 elements; a value that varies over the vector loop: a gather) + imm * the variable of the  \
       innermost vector loop; `buffer`. store: b the value. A load of bool gives bool (stored as a byte 0 or 1). */         \
    X(load, 1) X(store, 2)                                                                                                  \
    /* leaves: const: `number`, or `imm` for integer types; run-time values of TgScalars (scalar: f64, index imm) */       \
    X(const, 0) X(scalar, 0) X(rows, 0) X(first_row, 0) X(iteration, 0) X(seed, 0)                                          \
    /* f16, bf16 never compute: the lowering converts to f32 and back. f32 and f64: one rounding each. */                   \
    X(fadd, 2) X(fsub, 2) X(fmul, 2) X(fdiv, 2) X(fma, 3) X(fneg, 1) X(fabs, 1) X(fsqrt, 1)                                 \
    X(fmax, 2) X(fmin, 2) /* IEEE 754-2019 maximum, minimum: NaN wins, -0 < +0 */                                           \
    X(ffloor, 1) X(fceil, 1) X(fround, 1) /* ties to even */                                                                \
    X(fscale, 2) /* f32: a * 2^b, one rounding; b is a whole number between -250 and 250, or NaN like a */                  \
    X(iadd, 2) X(isub, 2) X(imul, 2) X(idiv, 2) X(irem, 2) X(udiv, 2) X(urem, 2) X(imax, 2) X(imin, 2) X(umax, 2) X(umin, 2) \
    X(and, 2) X(or, 2) X(xor, 2) X(not, 1) X(shl, 2) X(lshr, 2) X(ashr, 2)                                                  \
    X(feq, 2) X(fne, 2) X(flt, 2) X(fle, 2) X(fgt, 2) X(fge, 2) /* ordered, but fne: true for NaN */                        \
    X(ieq, 2) X(ine, 2) X(ilt, 2) X(ile, 2) X(igt, 2) X(ige, 2) X(ult, 2) X(ule, 2) X(ugt, 2) X(uge, 2)                     \
    X(select, 3)                                                                                                            \
    /* conversions to `type`: numbers as tg_round_to does (integers saturate, NaN 0); wrap: integer to integer by bits,    \
       zero: the source taken as unsigned; bits: same width, reinterpreted */                                              \
    X(convert, 1) X(wrap, 1) X(zero, 1) X(bits, 1)                                                                          \
    /* f64 only, through the C library, for run-time scalars: `text` names the function (cos, pow, ...) */                  \
    X(libm, 2)

typedef enum LoopOp {
#define X(name, operands) LOOP_##name,
    TG_LOOP_OPS(X)
#undef X
    LOOP_OP_COUNT
} LoopOp;

typedef enum LoopMode { MODE_TILE, MODE_SERIAL, MODE_VECTOR, MODE_PARALLEL } LoopMode;

typedef struct LoopInstr {
    uint8_t op, type, mode; /* LoopOp, DType, LoopMode */
    LoopId a, b, c;
    uint32_t buffer; /* load, store */
    int64_t imm;
    double number;
    const char *text;
} LoopInstr;

typedef enum LoopRole { ROLE_IN, ROLE_OUT, ROLE_SCRATCH } LoopRole;

/* A buffer of a kernel. IN and OUT are the call's buffers, in this order; SCRATCH lives on the stack of the call. IN and OUT
   begin at multiples of 64 bytes. `streamed`, of an OUT: it is larger than a cache and no input of the call, so what is stored had
   better not take the cache's place. A hint: it changes no value, and a target may ignore it. */
typedef struct LoopBuffer {
    LoopRole role;
    DType dtype;
    int64_t count; /* elements (capacity) */
    bool streamed;
} LoopBuffer;

typedef struct LoopKernel {
    Arena *arena;
    const char *name; /* a C identifier */
    int64_t tiles;    /* calls cover [0, tiles) */
    Vec(LoopBuffer) buffers;
    Vec(LoopInstr) instrs; /* instrs.at[0] is none */
} LoopKernel;

typedef Vec(LoopKernel *) LoopKernels;

LoopKernel *tg_loop_kernel(Arena *arena, const char *name);
uint32_t tg_loop_buffer(LoopKernel *k, LoopRole role, DType dtype, int64_t count);

/* Builders. They fold constants of integers and share nothing (LLVM does). */
LoopId tg_loop_for(LoopKernel *k, LoopMode mode, LoopId begin, LoopId end, int64_t extent);
void tg_loop_end(LoopKernel *k);
LoopId tg_loop_int(LoopKernel *k, DType type, int64_t value);
LoopId tg_loop_number(LoopKernel *k, DType type, double value);
LoopId tg_loop_leaf(LoopKernel *k, LoopOp op, int64_t imm); /* scalar, rows, first_row, iteration, seed */
LoopId tg_loop_op(LoopKernel *k, LoopOp op, LoopId a, LoopId b, LoopId c); /* type: the first operand's; comparisons: bool */
LoopId tg_loop_convert(LoopKernel *k, LoopOp op, LoopId a, DType to); /* convert, wrap, zero, bits */
LoopId tg_loop_libm(LoopKernel *k, const char *function, LoopId a, LoopId b);
LoopId tg_loop_load(LoopKernel *k, uint32_t buffer, LoopId index, int64_t stride);
void tg_loop_store(LoopKernel *k, uint32_t buffer, LoopId index, int64_t stride, LoopId value);

void tg_loop_print(Str *to, const LoopKernel *k);
/* One kernel or several, one after another. */
TG_CHECKED Status tg_loop_parse(Arena *arena, Diags *diags, uint16_t source, LoopKernels *out);
TG_CHECKED Status tg_loop_verify(const LoopKernel *k, Diags *diags);

#endif
