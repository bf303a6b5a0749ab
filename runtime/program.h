/* A compiled program as a function: what main() calls, and what tests and tools that make a TgProgram themselves call.
 */
#ifndef TG_PROGRAM_H
#define TG_PROGRAM_H

#include "ir/base/host.h"
#include "ir/plan/abi.h"

#include <stdio.h>

/* Results go to `out`, progress and errors to `err`. Returns the exit code. */
int tg_program_main(const TgProgram *program, const TgHost *host, int argc, char **argv, FILE *out, FILE *err);

#endif
