/* One kernel of loops to one CUDA function.

   A block runs a tile. A loop at the tile's level is a nest: a parallel one gives its iterations to teams, groups of at most 32
   threads that exchange values by shuffles, or, like every other nest, to the whole block, which has shared memory for it. A
   vector loop's elements go to the threads of a team, `width` neighbours each. Where it holds parallel loops (sums of columns),
   the block is a grid of `across` threads over the elements and `along` over the iterations.

   A vector loop's body is printed in segments, the runs of instructions between loops: what does not vary or is linear once a
   thread, then contiguous loads of `width` elements, the rest in a loop over these, contiguous stores. */
#ifndef TG_CUDA_EMIT_H
#define TG_CUDA_EMIT_H

#include "codegen/cuda/cuda.h"
#include "codegen/loop_info.h"

enum { CUDA_WARP = 32, CUDA_TEAMS_BLOCK = 256, CUDA_SPLIT_BLOCK = 512, CUDA_SHARED = 48 << 10, CUDA_ACCESS = 16 };

/* What is known of a value. */
typedef struct Fact {
    bool bounded; /* i64: low <= it <= high */
    int64_t low, high;
    uint32_t twos; /* i64: it is a multiple of 1 << twos */
    bool varies;   /* over its vector loop */
    bool linear;   /* it varies by `step` from element to element */
    int64_t step;
    LoopId around;    /* the innermost loop; 0: none */
    LoopId vector;    /* the vector loop around; 0: none */
    LoopId match;     /* a loop's end */
    uint32_t segment; /* instructions between two loops */
    bool escapes;     /* read in another segment */
} Fact;

/* How a vector loop runs. */
typedef struct Shape {
    uint32_t width;         /* neighbouring elements of a thread */
    int64_t across, along;  /* threads over elements; over iterations of these loops */
    uint32_t steps;         /* groups of `width` elements of a thread with partial results of their own */
    bool split;             /* threads go over the parallel loops inside as well */
    bool staged;            /* the block folds lanes through shared memory */
    bool single;            /* elements one after the other, in every thread */
    bool full;              /* no group of `width` elements is cut */
} Shape;

/* How a loop at the tile's level runs. */
typedef struct Nest {
    bool block;
    int64_t threads, teams;
} Nest;

typedef enum Space { SPACE_PARAMETER, SPACE_SHARED, SPACE_WORK } Space;

/* Where a buffer lies. */
typedef struct Storage {
    Space space;
    LoopId owner;   /* scratch: the parallel nest whose iterations have one each; 0: one a block */
    int64_t offset; /* in the workspace of a block */
} Storage;

enum { PENDING_STORE = 1, PENDING_LOOP = 2, PENDING_LOAD = 4, PENDING_INPUT = 8 /* a load of an input */ };

typedef struct Emit {
    Arena *arena;
    const LoopKernel *k;
    Str *out;
    int indent;
    Fact *facts;
    Shape *shapes; /* by vector loop */
    Nest *nests;   /* by loop at the tile's level */
    Storage *storage;
    int64_t threads, work, shared; /* of a block: threads, bytes of workspace and of shared memory */

    /* what is being printed */
    LoopId nest, vector;
    bool element;      /* inside of the loop over a thread's elements */
    const char *j;     /* the element's number there */
    const char *store; /* the condition under which this thread stores; NULL: always */
    uint32_t pending;  /* what threads may have done since they last met */
    bool shared_out;   /* inside of a parallel loop whose iterations the threads share */
} Emit;

/* facts.c */
void tg_cuda_facts(Emit *e);
bool tg_cuda_narrow(const Emit *e, LoopId id); /* an i64 that an int holds */
/* Elements from one to the next at which a load or store of a vector loop goes; false: its address is not linear. */
bool tg_cuda_stride(const Emit *e, LoopId id, int64_t *stride);
bool tg_cuda_aligned(const Emit *e, LoopId id, uint32_t width);
bool tg_cuda_sums_floats(const Emit *e, LoopId loop);
bool tg_cuda_has(const Emit *e, LoopId loop, LoopOp op, LoopMode mode); /* mode: of a LOOP_for */
/* Elements (loads, stores) of a thread that go as one. */
bool tg_cuda_is_wide(const Emit *e, LoopId id);

/* shape.c: also where buffers lie. */
void tg_cuda_shape(Emit *e);
int64_t tg_cuda_bytes(const LoopBuffer *buffer); /* rounded up to an access */

/* loops.c */
void tg_cuda_line(Emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tg_cuda_open(Emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tg_cuda_close(Emit *e);
void tg_cuda_barrier(Emit *e);
void tg_cuda_range(Emit *e, LoopId from, LoopId to); /* outside of vector loops */
void tg_cuda_body(Emit *e, LoopId from, LoopId to);  /* inside */

/* value.c */
const char *tg_cuda_type(const Emit *e, LoopId id); /* the C type of a value */
const char *tg_cuda_memory_type(DType type);
const char *tg_cuda_name(DType type); /* as it ends helpers' names */
const char *tg_cuda_ref(Emit *e, LoopId id);
const char *tg_cuda_address(Emit *e, LoopId id); /* of a load or store: the index */
const char *tg_cuda_number(Emit *e, DType type, double value);

/* scalar.c */
const char *tg_cuda_expression(Emit *e, LoopId id);
/* convert.c */
const char *tg_cuda_convert(Emit *e, const char *value, DType from, DType to);

/* reduce.c: before the loop, at the instruction, after an iteration of a staged loop, after the loop. */
void tg_cuda_reduce_begin(Emit *e, LoopId loop);
void tg_cuda_reduce(Emit *e, LoopId id);
void tg_cuda_reduce_staged(Emit *e, LoopId loop);
void tg_cuda_reduce_end(Emit *e, LoopId loop);
/* The reductions that stand in `loop` itself. */
#define EACH_CUDA_REDUCTION(e, loop, id)                                                                               \
    for (LoopId id = (loop) + 1; id < (e)->facts[loop].match; id++)                                                    \
        if ((e)->k->instrs.at[id].op == LOOP_for)                                                                      \
            id = (e)->facts[id].match;                                                                                 \
        else if (tg_loop_is_reduction((LoopOp)(e)->k->instrs.at[id].op))

#endif
