/* Inside of tg_plan_build: what plan_build.c (steps), plan_memory.c (offsets) and plan_data.c (data, settings) share. */
#ifndef TG_PLAN_BUILD_H
#define TG_PLAN_BUILD_H

#include "codegen/codegen.h"

/* A buffer while the plan is made. A temporary lives from the step that writes it to the last that reads it. */
typedef struct Draft {
    PlanBuffer buffer;
    uint32_t first, last; /* steps, for TEMP and SCRATCH */
    uint32_t chain, dies; /* TEMP: 1 + the chain that writes it; then `dies` is its last step, and `last` not before the chain's */
    uint32_t frame;       /* TEMP and SCRATCH: 1 + the function that they belong to */
} Draft;

typedef struct Planner {
    Arena *arena;
    Diags *diags;
    const Graph *graph;
    Lowered *out;
    Vec(Draft) buffers;
    Vec(PlanStep) steps;
    Vec(NodeId) nodes; /* of each step; copies at the end of a function have none */
    Vec(PlanOperand) operands;
    Vec(PlanDot) dots;
    Vec(PlanAttention) attentions;
    Vec(PlanChain) chains;
    Vec(PlanFunc) funcs;
    Vec(uint32_t) inputs;
    Vec(PlanResult) results;
    Vec(PlanField) fields;
    Vec(PlanSplit) splits;
    Map kernels; /* kernel function and capacity -> 1 + index in Lowered.kernels */
    Map attention_kernels; /* the sizes that it has in its loops -> likewise */
    bool **row_args;       /* per function that is a kernel: see plan_chains.c */
} Planner;

/* The steps of one function for `capacity` records. (plan_steps.c) */
TG_CHECKED Status tg_plan_func_steps(Planner *p, const Func *func, PlanFuncKind kind, int64_t capacity);

uint32_t tg_plan_add_buffer(Planner *p, PlanBufferClass class, const char *name, const Type *type, int64_t capacity);
/* Sets every offset, and the plan's sizes. (plan_memory.c) */
void tg_plan_place(Planner *p, TgPlan *plan);
/* Data sets, bounds of fields, settings, scalars, training. (plan_data.c) */
void tg_plan_describe(Planner *p, TgPlan *plan);

#endif
