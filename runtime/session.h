/* What every verb of a program shares: the plan, its exec, settings and data. */
#ifndef TG_SESSION_H
#define TG_SESSION_H

#include "runtime/clock.h"
#include "runtime/data.h"
#include "runtime/exec.h"
#include "runtime/loop.h"
#include "runtime/options.h"
#include "runtime/settings.h"
#include "runtime/stop.h"

#include "runtime/json.h"
#include <stdio.h>

typedef struct Session {
    Arena *arena;
    const TgProgram *program;
    const TgPlan *plan;
    const Options *options;
    TgExec *exec;
    Roof *roof; /* to be measured before the exec opens; NULL: not wanted */
    Feed *feed; /* closed with the session */
    Settings settings;
    DataFiles files;
    cpu_set_t cpus;   /* that the process may use, as taken before the exec binds its threads */
    const char *path; /* argv[0] */
    const char *name; /* its last part */
    FILE *out, *err;
    StopWatch stop; /* of a run that trains */
    int stopped;    /* the signal that ended it after a step; 0: none */
    const char *why; /* of the status that a verb returns; NULL: everything is said */
} Session;

/* The program's plan and settings, with --set, --seed, --epochs and --steps applied. */
TG_CHECKED Status tg_session_open(Session *session, const TgProgram *program);
/* Opens the exec and runs `init` with the seed. */
TG_CHECKED Status tg_session_start(Session *session);
/* The built-in scalar, if the program reads it. */
void tg_session_set_builtin(Session *session, const char *name, double value);
void tg_session_close(Session *session);

/* The set of training records. */
TG_CHECKED Status tg_session_train_set(Session *session, RecordSet *set);
/* The first set for validation; with --split that part of the first block that has one of the name. The training set if
   the program validates on nothing. */
TG_CHECKED Status tg_session_eval_set(Session *session, RecordSet *set);
/* All sets for validation, or the one of --split; as tg_session_eval_set if there is but one. */
TG_CHECKED Status tg_session_eval_sets(Session *session, RecordSet **sets, uint32_t *count);
/* The functions that train, with data opened; TG_MODEL if the program has none, or fewer records than a batch. */
TG_CHECKED Status tg_session_open_training(Session *session, Loop *loop, RecordSet *train);
TG_CHECKED Status tg_session_open_feed(Session *session, const RecordSet *train, int64_t drawn);
/* --weights, or the file that `train` leaves. */
TG_CHECKED Status tg_session_load_weights(Session *session);
const char *tg_session_run_folder(Session *session); /* NAME.run */

Status tg_session_fail(Session *session, Status status, const char *format, ...) TG_PRINTF(3, 4);

typedef Status Verb(Session *session);
Verb tg_verb_train, tg_verb_eval, tg_verb_predict, tg_verb_sample, tg_verb_info, tg_verb_data, tg_verb_bench;

/* Values that are not finite become null: JSON has no others. */
json_t *tg_json_number(double value);
json_t *tg_json_fields(const LoopFields *fields, const double *values);
/* What the last evaluation gave, and how many records it saw: one set's, or an object of the sets by name. */
json_t *tg_json_evaluation(const Loop *loop);
json_t *tg_json_evaluated(const Loop *loop);
/* Prints and frees it. */
TG_CHECKED Status tg_session_print_json(Session *session, json_t *document);
/* "loss 0.1234  accuracy 0.978" */
const char *tg_fields_text(Arena *arena, const LoopFields *fields, const double *values);
/* Is the field one of the sets' before it in the plan too? Training and validation often share their files. */
bool tg_field_listed_before(const TgPlan *plan, uint32_t index);

#endif
