/* The plan: what a compiled program replays. The one thing that codegen and runtime share.

   In memory it is this struct; on disk and in a program a versioned binary (tg_plan_write, tg_plan_read: every offset, count and
   index is checked, a damaged plan is TG_INTERNAL with the reason). tg_plan_print is its one text form. */
#ifndef TG_PLAN_H
#define TG_PLAN_H

#include "ir/base/arena.h"
#include "ir/base/status.h"
#include "ir/base/str.h"
#include "ir/plan/dtype.h"

enum { TG_PLAN_VERSION = 6, TG_PLAN_RANK = 8 };

typedef enum PlanBufferClass {
    PLAN_PARAM,
    PLAN_STATE,
    PLAN_OPTIMIZER,
    PLAN_COPY,   /* the low copy of a parameter */
    PLAN_SUM,    /* accumulators over micro-batches: `lanes` copies, one after the other, `lane_bytes` apart */
    PLAN_INPUT,  /* a field of the batch, or an export's argument: filled before the function runs; padding rows are zero */
    PLAN_OUTPUT, /* a named result of a function */
    PLAN_CONST,  /* filled from TgPlan.data once */
    PLAN_TEMP,
    PLAN_SCRATCH, /* of a dot's pieces */
    PLAN_CLASS_COUNT
} PlanBufferClass;

typedef struct PlanBuffer {
    const char *name; /* parameters, states, inputs, outputs; else "" */
    PlanBufferClass class;
    DType dtype;
    uint8_t rank;
    int64_t dims[TG_PLAN_RANK]; /* capacity in place of B */
    int32_t batch_axis;         /* the dimension whose size is capacity x row_size, or -1 */
    int64_t row_size;           /* elements of that dimension per record */
    int64_t offset, bytes;      /* in the arena; offset is a multiple of 64. SUM: of lane 0 */
    int64_t lanes, lane_bytes;  /* SUM; else 1, 0 */
    int64_t data_offset;        /* CONST: into TgPlan.data */
    bool frozen;
} PlanBuffer;

typedef enum PlanStepKind { STEP_KERNEL, STEP_DOT, STEP_ATTENTION, STEP_COPY } PlanStepKind;

/* How a step walks over memory, for profiles: name, text. */
#define TG_PLAN_WORKS(X)                                                                                               \
    X(POINT, "elementwise")                                                                                            \
    X(ROWS, "row kernel")       /* reduces the last axis somewhere */                                                  \
    X(COLUMNS, "column kernel") /* reduces another */                                                                  \
    X(INDEX, "indexing")        /* reads or writes elsewhere than it stands: take, scatter_add, concat */              \
    X(DOT, "dot")                                                                                                      \
    X(ATTENTION, "attention")                                                                                          \
    X(COPY, "copy")

typedef enum PlanWork {
#define X(id, text) WORK_##id,
    TG_PLAN_WORKS(X)
#undef X
    PLAN_WORK_COUNT
} PlanWork;

/* A place in the source: line 0 none. */
typedef struct PlanLine {
    const char *file;
    uint32_t line, column;
} PlanLine;

enum { TG_PLAN_LINES = 8, TG_PLAN_STEP_BUFFERS = 1024 };

typedef struct PlanStep {
    PlanStepKind kind;
    PlanWork work;
    const char *label; /* ops in it, for profiles and messages: "dot", "exp+reduce_sum" */
    uint32_t index;    /* KERNEL: into kernels; DOT: into dots; ATTENTION: into attentions */
    int64_t tiles;     /* KERNEL: calls cover [0, tiles) */
    uint32_t buffer_first, buffer_count; /* into TgPlan.step_buffers. KERNEL: inputs then outputs. DOT: a, b, [bias], out,
                                            [scratch]. ATTENTION: as PlanAttention says. COPY: from, to */
    uint32_t line_count;
    PlanLine lines[TG_PLAN_LINES]; /* each once */
    double bytes, flops;
} PlanStep;

/* A step's operand: a buffer, and which lane of a SUM: TG_LANE_CURRENT is the lane of the micro-batch that runs. */
enum { TG_LANE_CURRENT = -1 };
typedef struct PlanOperand {
    uint32_t buffer;
    int32_t lane;
    int64_t byte_offset; /* a view that begins inside the buffer */
} PlanOperand;

/* out[g][m][n] = sum over k of a[g][m][k] * b[g][k][n] (+ bias[n]); strides in elements. Group g = o * inner + i of operand x
   begins at o * x_group + i * x_inner. A `rows_m` dot has B in m,
   `rows_k` in k: sizes are for the capacity. K is cut into `pieces` equal parts, each one library call into scratch [pieces][g][m][n], added
   in a binary tree (neighbours first). One task is one library call of tile_m x tile_n. A dot that `adds` adds to what out holds. Several
   dots that add to each other piece by piece share their scratch: one that `continues` adds to the pieces that are there, one that is
   `open` leaves them there and writes no result. */
typedef struct PlanDot {
    DType dtype, out_dtype;
    int64_t groups, m, n, k;
    int64_t inner; /* divides groups */
    int64_t a_group, a_inner, a_m, a_k, b_group, b_inner, b_k, b_n, out_group, out_inner, out_m; /* out_n is 1 */
    bool bias, rows_m, rows_k, adds, continues, open; /* continues, open: of several pieces */
    int64_t pieces, tile_m, tile_n;
    uint32_t variant; /* DnnVariant of ir/plan/dnn.h */
} PlanDot;

/* Softmax(scale * q k') v by blocks of TG_ATTENTION_BLOCK queries, so that only a block's scores exist, each a tile of a thread:
   q [keys][heads][queries][depth], k [keys][positions][depth], v [keys][positions][value_depth], out
   [keys][heads][queries][value_depth], all dense. Operands are of `dtype`, f32, bf16 or f16; results of `out_dtype`, that or f32. Scores
   are f32; of a low type weights, and the scores' gradient, are rounded to it before products read them. `heads` of q share each key. Causal: query t sees positions [0, t]; what
   no query of a block sees is left out.
   Forward: operands q, k, v, out. Backward: q, k, v, the gradient of out, then those of dq, dk and dv that are wanted. A block
   of queries is computed again from q and k; dk and dv add blocks in ascending order, heads one after another.
   `weights` (kernel, tiles are queries, over [queries][positions]): scores to softmax weights, in place if `dtype` is f32, else to a
   second buffer. `score_gradient`: weights and the gradient of weights to that of scores, in the place of the second, or to a third. */
typedef struct PlanAttention {
    DType dtype, out_dtype;
    int64_t keys, heads, queries, positions, depth, value_depth;
    bool causal, backward, dq, dk, dv;
    uint32_t weights, score_gradient; /* kernels; score_gradient: backward only */
} PlanAttention;

enum { TG_ATTENTION_BLOCK = 128 };

static inline int64_t tg_attention_blocks(const PlanAttention *a) {
    return (a->queries + TG_ATTENTION_BLOCK - 1) / TG_ATTENTION_BLOCK;
}

/* Queries of block `i`, and the positions that some of them sees: [0, that). */
static inline int64_t tg_attention_rows(const PlanAttention *a, int64_t i) {
    int64_t left = a->queries - i * TG_ATTENTION_BLOCK;
    return left < TG_ATTENTION_BLOCK ? left : TG_ATTENTION_BLOCK;
}
static inline int64_t tg_attention_columns(const PlanAttention *a, int64_t i) {
    int64_t end = (i + 1) * TG_ATTENTION_BLOCK;
    return a->causal && end < a->positions ? end : a->positions;
}

/* Consecutive steps of one function between which no thread waits for another. The tasks of each (tg_plan_tasks) are `parts` equal
   runs, and of what the chain writes run p of a step reads only what the runs p of the steps before it have written; buffers of
   a chain lie apart, or two of equal size in one place, where each part takes turns. */
typedef struct PlanChain {
    uint32_t step_first, step_count; /* at least 2 */
    int64_t parts;                   /* at least 2 */
} PlanChain;

typedef enum PlanFuncKind {
    PLAN_INIT, PLAN_SCALARS, PLAN_PRE, PLAN_MICRO, PLAN_TAIL, PLAN_FIELDS, PLAN_EVAL_MICRO, PLAN_EVAL_FIELDS, PLAN_MONITOR,
    PLAN_COPIES, /* stores all COPY buffers: runs where parameters are written by others than TAIL */
    PLAN_EXPORT,
} PlanFuncKind;

/* A named value of a function: in an OUTPUT buffer. */
typedef struct PlanResult {
    const char *name;
    uint32_t buffer;
} PlanResult;

typedef struct PlanFunc {
    PlanFuncKind kind;
    const char *name;
    int64_t capacity; /* rows that one run takes: micro; exports have a function for 1 and one for micro */
    uint32_t step_first, step_count;
    uint32_t input_first, input_count;   /* into TgPlan.inputs: buffers, in the order of the arguments */
    uint32_t result_first, result_count; /* into TgPlan.results */
} PlanFunc;

typedef enum PlanScalarClass { PLAN_SCALAR_BUILTIN, PLAN_SCALAR_SETTING, PLAN_SCALAR_COMPUTED } PlanScalarClass;
typedef struct PlanScalar {
    const char *name;
    PlanScalarClass class;
    double value; /* a setting's default */
} PlanScalar;

typedef struct PlanField {
    const char *name, *reader, *path, *columns; /* columns: separated by newlines */
    const char *options;                        /* of the reader: "name=value" lines */
    DType dtype;
    uint8_t rank;
    int64_t dims[TG_PLAN_RANK]; /* of one record */
    bool bounded;               /* the values must lie in [low, high) or be `also` */
    bool has_also;
    int64_t low, high, also;
    PlanLine line;
} PlanField;

typedef struct PlanSplit {
    const char *name;
    double share;
} PlanSplit;

typedef struct PlanDataSet {
    const char *name;  /* "": none */
    const char *as;    /* its name among several validation sets; "": the only one */
    const char *split; /* "": all */
    uint32_t field_first, field_count;
    uint32_t split_first, split_count; /* 0: the set is not split */
    bool by_runs;
    uint32_t by, stratify; /* 1 + field of the set, 0 none: as in the language */
} PlanDataSet;

typedef struct PlanSetting {
    const char *name, *value, *origin;
    bool runtime;
} PlanSetting;

/* As a source_directory: the folder that the program lies in, wherever that is. */
#define PLAN_BESIDE_PROGRAM "$ORIGIN"

typedef struct TgPlan {
    int64_t arena_bytes;      /* all buffers; the highest byte that a run touches is below it */
    int64_t persistent_bytes; /* of them: parameters, states, optimizer */
    PlanBuffer *buffers;         uint32_t buffer_count;
    PlanStep *steps;             uint32_t step_count;
    PlanOperand *step_buffers;   uint32_t step_buffer_count;
    PlanDot *dots;               uint32_t dot_count;
    PlanAttention *attentions;   uint32_t attention_count;
    PlanChain *chains;           uint32_t chain_count; /* ascending, none inside of another */
    PlanFunc *funcs;             uint32_t func_count;
    uint32_t *inputs;            uint32_t input_count;
    PlanResult *results;         uint32_t result_count;
    PlanScalar *scalars;         uint32_t scalar_count;
    PlanField *fields;           uint32_t field_count;
    PlanSplit *splits;           uint32_t split_count;
    PlanSetting *settings;       uint32_t setting_count;
    PlanDataSet train;
    PlanDataSet *validate;       uint32_t validate_count;
    unsigned char *data;         uint64_t data_bytes; /* of CONST buffers */
    uint32_t kernel_count;
    int64_t batch, micro, lanes, steps_wanted, epochs, validate_every;
    bool shuffle;
    uint64_t seed;
    const char *source_path, *source_directory; /* of the .tg file; data paths are relative to the directory, which may be
                                                   PLAN_BESIDE_PROGRAM */
    const char *model_text;   /* graph@step as text: what `tgc replay` compiles unfused */
    const char *loss;         /* field that is minimised */
    const char *clip_setting; /* "" or the setting that holds clip_norm */
    const char *tgc, *library_directory; /* of the compiler that wrote it: its path, and where the plugins lie */
    const char *cpu;          /* features the kernels were compiled for: "host" names and flags */
} TgPlan;

/* Indices, ranges and sizes fit each other; otherwise TG_INTERNAL and the reason in `*why`. */
TG_CHECKED Status tg_plan_check(Arena *arena, const TgPlan *plan, const char **why);
/* Checks first: what is written can be read. */
TG_CHECKED Status tg_plan_write(Str *to, const TgPlan *plan);
TG_CHECKED Status tg_plan_read(Arena *arena, const void *data, size_t bytes, TgPlan **plan, const char **why);
void tg_plan_print(Str *to, const TgPlan *plan);
/* What the arena is for, by class; it adds up to arena_bytes. Temporaries share their place: TEMP is what they take together, SCRATCH
   what the pieces of dots take beyond that. */
void tg_plan_memory(const TgPlan *plan, int64_t bytes[PLAN_CLASS_COUNT]);
const char *tg_plan_memory_name(PlanBufferClass class); /* "parameters", "activations" */
const char *tg_plan_step_kind(PlanStepKind kind); /* "kernel" */
/* "dot", "row kernel"; "optimizer" for all of the tail but its dots. */
const char *tg_plan_kind(const PlanFunc *func, const PlanStep *step);

/* Elements from the start of an operand to its group `g`. */
static inline int64_t tg_dot_group(const PlanDot *dot, int64_t g, int64_t group, int64_t inner) {
    return g / dot->inner * group + g % dot->inner * inner;
}

/* What threads share of a step, in the order of its memory: tiles, calls of the library, heads or keys; -1: none, or too many to count. */
int64_t tg_plan_tasks(const TgPlan *plan, const PlanStep *step);

static inline void *tg_plan_address(const PlanBuffer *buffer, char *arena, int64_t lane) {
    return arena + buffer->offset + lane * buffer->lane_bytes;
}

#endif
