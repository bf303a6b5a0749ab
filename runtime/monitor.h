/* What validation decides: when to stop, and which weights to keep. The expressions are the plan's function `monitor`:
   it reads the scalars `val.FIELD` (`val.SET.FIELD` of several sets) and `since_best.N`, and gives `best.N` (a value
   whose least is the best), `plateau.N` and `keep` (likewise) and `stop` (a truth). */
#ifndef TG_MONITOR_H
#define TG_MONITOR_H

#include "runtime/loop.h"

typedef struct Tracker {
    const char *name; /* of the result */
    uint32_t buffer;
    double *since_scalar; /* `since_best.N`, or where nothing reads it */
    double best, since;   /* since: validations after the best one, or after the last plateau */
    double patience, plateaus, *plateaus_scalar; /* of `plateau.N`: N, how often it was passed, the scalar `plateaus.N` */
} Tracker;

typedef struct Monitor {
    Loop *loop;
    const PlanFunc *func; /* NULL: the program decides nothing */
    Tracker *trackers, *keep;
    uint32_t count;
    double **fields; /* per field of each set: its scalar */
    const PlanResult *stop;
} Monitor;

void tg_monitor_open(Monitor *monitor, Loop *loop);
/* After a run was resumed: the scalars that its steps read. */
void tg_monitor_resume(Monitor *monitor);
/* After an evaluation. `*keep`: these weights are the best so far. true: stop now. */
bool tg_monitor_update(Monitor *monitor, bool *keep);

#endif
