/* A user's test script: run with one file, ended when it takes too long. */
#ifndef TG_SCRIPT_H
#define TG_SCRIPT_H

#include "driver/pipeline.h"

typedef struct Script {
    const char *path; /* with a slash */
    double timeout;   /* seconds */
    char *folder;     /* for the files that it is given */
    uint32_t runs, late;
} Script;

typedef enum ScriptEnd { SCRIPT_EXITED, SCRIPT_KILLED, SCRIPT_LATE, SCRIPT_STOPPED } ScriptEnd;

/* `name` is what --test says; makes the folder, and takes interrupts (SIGINT, SIGTERM) over. */
TG_CHECKED Status script_open(Pipeline *p, const char *name, Script *script);
/* Runs it with `file`; `*code`: its exit status, or the signal that ended it. */
ScriptEnd script_run(Script *script, const char *file, int *code);
bool script_is_stopped(void); /* the user has interrupted tgc */
/* "exited with 1", "was killed by signal 11", "took longer than 60 s" */
const char *script_end_text(Arena *arena, const Script *script, ScriptEnd end, int code);
void script_close(Script *script); /* removes the folder, which must be empty */

#endif
