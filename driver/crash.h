/* When tgc itself fails: exit code 70, a message, and a file with the command that makes the failure happen again. */
#ifndef TG_CRASH_H
#define TG_CRASH_H

#include "driver/pipeline.h"

/* From now on a signal that would end the process (a bad address, a full stack, an abort) is reported and ends it with exit code 70.
   `p` and `argv` must outlive the process's work. */
void crash_begin(const Pipeline *p, int argc, char **argv);
/* Writes the reproducer of a TG_INTERNAL that has been reported as an error, and says how to replay it. */
void crash_reproduce(void);

#endif
