/* Runs a loop kernel instruction by instruction, by the rules of codegen/loop.h: the oracle of the targets. */
#ifndef TG_TEST_INTERPRET_H
#define TG_TEST_INTERPRET_H

#include "codegen/loop.h"
#include "ir/plan/abi.h"

/* Tiles [first, last). `buffers`: the IN and OUT ones; SCRATCH is the interpreter's own, filled with bytes 0xA5. Every
   access is checked against the buffers' counts. Returns NULL, or what went wrong. */
const char *interpret(Arena *arena, const LoopKernel *k, void *const *buffers, const TgScalars *scalars, int64_t first,
                      int64_t last);

#endif
