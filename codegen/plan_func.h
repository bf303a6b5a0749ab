/* Inside of tg_plan_func_steps: one function while its steps are made. plan_steps.c makes them, plan_dots.c those of dots;
   plan_chains.c says which need not wait for each other. */
#ifndef TG_PLAN_FUNC_H
#define TG_PLAN_FUNC_H

#include "codegen/plan_build.h"

typedef struct FuncPlan {
    Planner *p;
    const Func *func;
    int64_t capacity;
    uint32_t frame;        /* 1 + its index in Planner.funcs */
    uint32_t step;         /* of this function, from 1 */
    PlanOperand *where;    /* per node */
    NodeId *attention;     /* per gradient of an attention: the first one of the same attention, whose step gives all */
    NodeId (*gradients)[3]; /* per such first one: dq, dk, dv, or 0 */
    NodeId *written_as;    /* per dot: the transpose in whose order it writes, or 0 */
    uint32_t *made_at;     /* per node that a step writes: the step that will */
    uint32_t *readers;     /* per node that a step writes: steps and results that read it */
    uint32_t *last_read;   /* per persistent buffer: the last step that reads its old value */
    int64_t *target;       /* per node that a step writes: 1 + buffer to write to, or 0 */
    uint32_t *chain;       /* per node that is a step: 1 + its chain in Planner.chains, or 0 */
    uint32_t *pieces;      /* per dot that leaves its pieces to the one that adds to it: 1 + the scratch that holds them, or 0 */
} FuncPlan;

static inline const Node *tg_step_node(const FuncPlan *f, NodeId id) { return tg_node(f->func, id); }
static inline const Type *tg_step_type(const FuncPlan *f, NodeId id) { return tg_node_type(f->p->graph, f->func, id); }

/* What holds the bytes of `id`: reshapes are the same memory, and so are what is read again and a transpose, which a dot has written in
   its order. */
NodeId tg_step_base(const FuncPlan *f, NodeId id);
bool tg_step_makes(const FuncPlan *f, NodeId id); /* a step of the function does */

/* A buffer of the step at hand. */
uint32_t tg_step_temporary(FuncPlan *f, PlanBufferClass class, const Type *type);
/* Where the step at hand finds the value. */
PlanOperand tg_step_read(FuncPlan *f, NodeId id);
/* Where it writes: to the target, or to a new temporary. */
PlanOperand tg_step_written(FuncPlan *f, NodeId id);
PlanStep tg_step_begin(FuncPlan *f, PlanStepKind kind, const char *label, LocsId locs);
void tg_step_push(FuncPlan *f, PlanStep *step, PlanOperand operand);
void tg_step_end(FuncPlan *f, const PlanStep *step);
/* A whole step. */
void tg_step_copy(FuncPlan *f, PlanOperand from, PlanOperand to, LocsId locs);

/* Without its kernels and gradients. */
PlanAttention tg_step_attention(const FuncPlan *f, const Node *node);

/* ---- plan_dots.c ---- */

/* With its variant and tiles, as long as it does not go on with pieces of another. */
PlanDot tg_dot_of(const FuncPlan *f, NodeId id);

/* What a dot adds to, if the dot alone reads it: the result may be written over it. 0: there is none. */
NodeId tg_dot_sum(const FuncPlan *f, NodeId dot);
/* Before steps are made: says which dots leave their pieces to others. */
void tg_dot_find_open(FuncPlan *f);
TG_CHECKED Status tg_plan_dot(FuncPlan *f, NodeId id);

/* ---- plan_chains.c ---- */

/* Fills `chain`, before any step is made. */
void tg_chains_find(FuncPlan *f);
/* Parts of the chain of this node, or 0. */
int64_t tg_chain_parts(const FuncPlan *f, NodeId id);
/* `id` has become the last step of the plan. */
void tg_chain_link(FuncPlan *f, NodeId id);
/* What a step of a chain reads last is kept for the whole chain: of chains and buffers from these on. (plan_memory.c: but a part may
   write where the same part of the same chain has written what nobody reads any more.) */
void tg_chains_keep_apart(Planner *p, const PlanFunc *func, uint32_t first_chain, uint32_t first_buffer);

#endif
