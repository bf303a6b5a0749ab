/* A whole program by hand: y = w * x fitted to a CSV file by gradient descent, its kernels in C. A batch has 4 records,
   in two micro-batches of 2, summed in two lanes.

   loss = mean((w * x - y)^2), exports `scale`(x) = { y: w * x } and `shift`(x, by: i32) = { y: w * x + by }; w begins
   at 0; settings optimizer.lr (0.05) and, needing a recompilation, `hidden`. */
#ifndef TG_TESTS_TINY_PROGRAM_H
#define TG_TESTS_TINY_PROGRAM_H

#include "ir/base/arena.h"
#include "ir/plan/abi.h"

/* Its data is data.csv in `folder`, columns x and y, split 80 % train, 20 % test. */
TgProgram tiny_program(Arena *arena, const char *folder);

#endif
