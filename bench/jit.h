/* What the measuring instruments share: a graph@kernel from standard input, compiled into this process. */
#ifndef TG_BENCH_JIT_H
#define TG_BENCH_JIT_H

#include "codegen/codegen.h"
#include "runtime/exec.h"

typedef Status JitAction(Arena *arena, TgExec *exec, const Lowered *program);

/* The main function of an instrument NAME: reads "[--threads=N]" and the graph, and runs `action` on parameters as the
   graph initialises them and on random inputs: numbers in [-1, 1), whole numbers 0 and 1. */
int bench_jit_main(int argc, char **argv, const char *name, JitAction *action);

double bench_now(void); /* nanoseconds */

#endif
