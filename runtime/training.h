/* A training run: its steps, reports, validations, checkpoints and end. */
#ifndef TG_TRAINING_H
#define TG_TRAINING_H

#include "runtime/checkpoint.h"
#include "runtime/monitor.h"
#include "runtime/progress.h"
#include "runtime/ring.h"

typedef struct Training {
    Session *session;
    Loop loop;
    RecordSet train;
    int64_t total_steps, epochs; /* epochs 0: only steps count */
    int64_t total_batches;       /* in the epochs that training may have */
    int64_t report_every;        /* steps; 0: every epoch */
    LoopPlace place;
    int64_t resumed_at, done, drawn; /* steps; updates applied, batches drawn */
    int64_t skipped, skipped_in_a_row; /* batches over nothing that this run had */
    int64_t overflows;                 /* steps of f16 that this run left out */
    Ring ring;
    double *record;        /* taken from the ring last */
    double *sums, records; /* since the last report, weighted by records */
    double *means;         /* at the last report, or of what there is since */
    uint32_t loss;         /* the field that is minimised */
    char validation[256];  /* for the progress line */
    Progress progress;
    Monitor monitor;
    bool stopped;      /* by the program's `stop` */
    int64_t best_step; /* of the weights in `best`; 0: none yet */
    Checkpoints checkpoints;
    Vec(RunNumber) numbers;       /* all that a checkpoint holds beside tensors */
    int64_t save_every, saved_at; /* steps; save_every 0: only when a signal asks to stop */
    json_t *history, *trace;      /* NULL: not wanted */
    Profile *profile;             /* NULL: none */
    const char *folder, *weights, *best, *profiled; /* profiled: the trace that is written; NULL: none */
    double seconds;
} Training;

/* The folder, data, initial or resumed state: all that can fail before the first step. */
TG_CHECKED Status tg_training_open(Training *training);
/* To the end, or to the step after which a signal or the program's `stop` ends it. */
TG_CHECKED Status tg_training_run(Training *training);
/* The trace of the steps that are timed so far, in place of more of them; none if there are none. */
TG_CHECKED Status tg_training_write_profile(Training *training);

#endif
