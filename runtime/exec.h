/* Replays a plan: owns the arena, the threads and the library's primitives. */
#ifndef TG_EXEC_H
#define TG_EXEC_H

#include "ir/plan/abi.h"
#include "ir/plan/plan.h"
#include "runtime/profile.h"

typedef struct TgExec TgExec;

typedef struct ExecOptions {
    const TgHost *host;
    int threads; /* 0: $TG_THREADS, or the cores that this process may use */
    bool poison; /* fill the arena with NaN bytes first, so that tg_exec_touched can tell */
    Roof *roof; /* measured before anything else; NULL: not wanted */
    const char *library_directory; /* where libtgrt_dnn.so lies, tried after the program's own folder; NULL: the plan's */
} ExecOptions;

/* `plan` and `program` must outlive it. On failure `*why` says what to do (arena text). */
TG_CHECKED Status tg_exec_open(const ExecOptions *options, Arena *arena, const TgProgram *program, const TgPlan *plan,
                               TgExec **exec, const char **why);
void tg_exec_close(TgExec *exec);

int tg_exec_threads(const TgExec *exec);
/* The arena; parameters, inputs and outputs are read and written in place. */
void *tg_exec_address(TgExec *exec, uint32_t buffer, int64_t lane);
/* rows, first_row, iteration, seed: set before a run. `values` is the array of tg_exec_values. */
TgScalars *tg_exec_scalars(TgExec *exec);
double *tg_exec_values(TgExec *exec); /* one per TgPlan.scalars, filled with the defaults by open */

/* Runs a function's steps in order. `lane`: of SUM buffers. It cannot fail. */
void tg_exec_run(TgExec *exec, const PlanFunc *func, int64_t lane);
/* From now on the profile is told of all that runs; NULL: none is, and no clock is asked. */
void tg_exec_profile(TgExec *exec, Profile *profile);
/* From now on `seen` is called after each step of the plan, which has all its values in the arena; NULL: no more. */
typedef void TgSeen(void *context, uint32_t step, int64_t lane);
void tg_exec_watch(TgExec *exec, TgSeen *seen, void *context);
/* Runs only its dots (the floor of `bench`). */
void tg_exec_run_dots(TgExec *exec, const PlanFunc *func);
/* Runs PLAN_SCALARS and copies its results to the COMPUTED values. */
void tg_exec_compute_scalars(TgExec *exec);

/* After a poisoned run: one past the highest byte of the arena that was written. */
int64_t tg_exec_touched(const TgExec *exec);

enum { TG_MOST_THREADS = 1024 };

const PlanFunc *tg_plan_func(const TgPlan *plan, PlanFuncKind kind, const char *name); /* name NULL: the first; NULL: none */

#endif
