/* Kernel bodies from text, run through their loops by the interpreter and checked against the reference evaluator. */
#ifndef TG_TEST_LOWERED_H
#define TG_TEST_LOWERED_H

#include "codegen/codegen.h"
#include "ir/eval.h"

/* A body: arguments and nodes as they stand in a kernel's text. */
typedef struct LoweredCase {
    const char *name, *args, *body;
    int64_t capacity, rows;
    double tolerance; /* relative; 0: equal */
} LoweredCase;

/* Complains through CUnit: about values, padding that is not zero, and bits that differ when every node is a kernel of
 * its own. */
void check_lowered(const LoweredCase *c);

/* The loops of a body, for tests of their shape. */
LoopKernel *lower_text(Arena *arena, const LoweredCase *c);

#endif
