/* What the trials of random graphs share: a group of graphs that are compiled together, passes over them, and the
 * report. */
#ifndef TG_TEST_TRIAL_H
#define TG_TEST_TRIAL_H

#include "random.h"

#include "passes/pass.h"
#include "tests/ops/backend.h"

#include <stdint.h>

/* What an execution is of. */
typedef enum Kind {
    KIND_PLAIN = PASS_COUNT, /* after the passes of passes.def, each alone */
    KIND_ALL,
    KIND_ORDER,
    KIND_DIFFERENCES,
    KIND_FUSED,
    KIND_UNFUSED,
    KIND_THREADS,
    KIND_COUNT
} Kind;

typedef struct Report {
    uint64_t first, last; /* seeds */
    uint64_t graphs, models, open_steps, steps, directions, failures, executions, by[KIND_COUNT];
    uint64_t merges; /* graphs whose dots the pass merge has merged */
    uint64_t mixed[2], casts; /* graphs in bf16 and in f16; casts that mixed precision has put into them */
    uint64_t overflows; /* steps with a gradient that was not finite, in f16 with a scale */
    uint64_t ops[OP_COUNT], cpu_ops[OP_COUNT]; /* graphs that have the operation; those that ran on the CPU */
    double seconds;
} Report;

typedef struct Variant {
    Lowered lowered;
    uint32_t first_kernel;
} Variant;

typedef struct Trial {
    uint64_t seed;
    RandomGraph r;
    Graph *base;   /* what the CPU runs: without attention */
    Graph *spread; /* the same, every value a result "nID"; NULL: of a model */
    Variant fused, unfused;
    bool is_model, lowered;
} Trial;

enum { TOGETHER = 32 };

typedef struct Suite {
    Arena arena;
    Diags diags;
    Str messages;
    Trial trials[TOGETHER];
    Lowered all; /* every variant's kernels */
    BackendCode code;
    Report *report;
} Suite;

/* A failure: says it, with the graph, and writes that to random-SEED.tgir. */
void trial_complain(Suite *s, const Trial *t, const char *format, ...) TG_PRINTF(3, 4);
void trial_count(Suite *s, Kind kind);
/* Counts the operations that the graph has, each once. */
void trial_note(const Graph *graph, uint64_t *ops);

TG_CHECKED bool trial_passes(Suite *s, const Trial *t, const char *names, bool fold, bool fuse, const Graph *in,
                             Graph **out);
/* The kind of a list of passes: that of the one pass, or `all`. */
Kind trial_kind(const char *names);
/* "clean,layout,clean,fuse": five in a random order; `*fold` and `*fuse` by chance too. */
const char *trial_order(Suite *s, uint64_t *random, bool *fold, bool *fuse);
enum { TRIAL_ORDERS = 5 };

/* Kernels of graph@step, fused or not, to be compiled with those of the other trials. */
TG_CHECKED bool trial_lower(Suite *s, Trial *t, const Graph *graph, bool fuse, Variant *variant);
TG_CHECKED bool trial_open(Suite *s, const Trial *t, const Variant *v, int threads, TgExec **exec);
/* The first `rows` rows in a plan's buffer, which has room for more. */
void trial_write(TgExec *exec, const TgPlan *plan, uint32_t buffer, const Tensor *value, int64_t rows);
Tensor trial_read(Suite *s, TgExec *exec, const TgPlan *plan, uint32_t buffer, const Type *type, TypeId id,
                  int64_t rows);

/* The pass autocast over graph@model, each of whose values lies as near to what its operation gives for the values that it
   reads as roundings to the low type allow. False: it failed. */
TG_CHECKED bool trial_cast(Suite *s, const Trial *t, const Graph *in, Graph **out);

/* One function: function.c; models: steps.c. */
bool trial_check_function(Suite *s, Trial *t); /* false: it failed */
void trial_lower_function(Suite *s, Trial *t);
void trial_run_function(Suite *s, const Trial *t);
bool trial_check_model(Suite *s, Trial *t);
void trial_lower_model(Suite *s, Trial *t);
void trial_run_model(Suite *s, const Trial *t);

#endif
