/* Times every step of a training step by itself, and each function as a whole:

       tgc compile MODEL.tg --emit=kernel | steps [--threads=N]

   One line a step: nanoseconds, what it is, the line of the model. Times are the medians of interleaved rounds. */
#include "bench/jit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 9, MOST_REPEATS = 200 };
static const double round_ns = 1e6; /* repeats of a step fill this, if they can */

/* What a step of training runs, in order. */
static const PlanFuncKind kinds[] = {PLAN_SCALARS, PLAN_PRE, PLAN_MICRO, PLAN_TAIL, PLAN_FIELDS};

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_runs(TgExec *exec, const PlanFunc *func, int repeats) {
    double begin = bench_now();
    for (int i = 0; i < repeats; i++)
        tg_exec_run(exec, func, 0);
    return bench_now() - begin;
}

/* Nanoseconds of one run of `func`. */
static double time_func(TgExec *exec, const PlanFunc *func) {
    double once = time_runs(exec, func, 1);
    int repeats = once < round_ns / MOST_REPEATS ? MOST_REPEATS : (int)(round_ns / once);
    return repeats > 1 ? time_runs(exec, func, repeats) / repeats : once;
}

typedef struct Timed {
    PlanFunc func; /* of one step, or whole */
    const PlanStep *step; /* NULL: whole */
    double times[ROUNDS];
} Timed;

typedef Vec(Timed) Timeds;

static void add_func(Arena *arena, const TgPlan *plan, const PlanFunc *func, Timeds *timeds) {
    for (uint32_t i = 0; i < func->step_count; i++) {
        Timed one = {.func = *func, .step = &plan->steps[func->step_first + i]};
        one.func.step_first += i;
        one.func.step_count = 1;
        tg_push(arena, timeds, one);
    }
    tg_push(arena, timeds, (Timed){.func = *func});
}

static void measure(TgExec *exec, Timeds *timeds) {
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < timeds->count; i++)
            timeds->at[i].times[round] = time_func(exec, &timeds->at[i].func);
}

static void print(const TgPlan *plan, Timeds *timeds) {
    double total = 0, dots = 0;
    for (uint32_t i = 0; i < timeds->count; i++) {
        Timed *timed = &timeds->at[i];
        qsort(timed->times, ROUNDS, sizeof timed->times[0], by_value);
        double time = timed->times[ROUNDS / 2];
        const PlanStep *step = timed->step;
        if (!step) {
            printf("%8.0f  %s\n\n", time, timed->func.name);
            total += time;
            continue;
        }
        dots += step->kind == STEP_DOT ? time : 0;
        printf("%8.0f    step %td %s", time, step - plan->steps, step->label);
        if (step->line_count)
            printf("  %s:%" PRIu32, step->lines[0].file, step->lines[0].line);
        printf("\n");
    }
    printf("%8.0f  ns in all\n%8.0f  ns of them dots\n", total, dots);
}

static Status steps(Arena *arena, TgExec *exec, const Lowered *program) {
    const TgPlan *plan = program->plan;
    Timeds timeds = {0};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t i = 0; i < plan->func_count; i++)
            if (plan->funcs[i].kind == kinds[k])
                add_func(arena, plan, &plan->funcs[i], &timeds);
    measure(exec, &timeds);
    print(plan, &timeds);
    return TG_OK;
}

int main(int argc, char **argv) { return bench_jit_main(argc, argv, "steps", steps); }
