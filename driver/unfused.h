/* A training step in which every operation is a kernel of its own (the bits are the same), to be run in this process and looked at. */
#ifndef TG_UNFUSED_H
#define TG_UNFUSED_H

#include "driver/pipeline.h"
#include "runtime/exec.h"

typedef struct Unfused {
    Graph *kernel;
    Lowered lowered;
    TgProgram program; /* without a plan */
    const LlvmModule *module;
    void *code;
} Unfused;

/* Of graph@step and its text. */
TG_CHECKED Status unfused_make(Pipeline *p, const Graph *step, const char *text, Unfused *made);
void unfused_free(Unfused *unfused);
/* The operand that a step writes first: outputs follow inputs; a dot's scratch comes last, and holds the result of one that is
   open. */
uint32_t unfused_first_output(const Lowered *lowered, const PlanStep *step);

#endif
