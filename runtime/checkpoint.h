/* Checkpoints: all that a run needs to go on as if it had never stopped.

   DIR/checkpoints/step-000123.safetensors holds parameters, states and optimizer states, and as metadata the run's
   numbers (its place, sums, best values), its settings and what its functions are. DIR/checkpoints/latest.json lists
   the files of the run, the oldest first. Each file is whole or not there, and the list is written after the file that
   it names last: whenever a save is cut off, the list names whole files. A file that it does not name is a left-over
   and is removed after the next save. */
#ifndef TG_CHECKPOINT_H
#define TG_CHECKPOINT_H

#include "runtime/session.h"

/* A number of the run beside its tensors: where it is, as one or the other. */
typedef struct RunNumber {
    const char *name;
    double *real;
    int64_t *whole;
} RunNumber;

typedef struct Checkpoints {
    Session *session;
    const char *folder; /* DIR/checkpoints */
    int64_t keep;
    Vec(const char *) files; /* of this run, the oldest first */
} Checkpoints;

enum { TG_CHECKPOINTS_KEPT = 2 }; /* unless --keep says otherwise */

/* `folder` is the run's. */
void tg_checkpoints_open(Checkpoints *checkpoints, Session *session, const char *folder, int64_t keep);
/* Saves what the exec holds; then all but the newest `keep` files are removed. `records`: of the training set. */
TG_CHECKED Status tg_checkpoint_save(Checkpoints *checkpoints, int64_t step, int64_t records, const RunNumber *numbers,
                                     uint32_t count);
/* `from` is the folder of a run, whose newest checkpoint is taken, or one checkpoint's file. Fills the exec and
   the numbers. TG_USAGE or TG_MODEL, saying what differs, if it was saved with other settings (more epochs or
   steps excepted), by another program, or over other data. */
TG_CHECKED Status tg_checkpoint_resume(Checkpoints *checkpoints, const char *from, int64_t records,
                                       const RunNumber *numbers, uint32_t count);
/* The run that a `from` belongs to: itself, or the folder of the file's run. */
const char *tg_checkpoint_run(Arena *arena, const char *from);

#endif
