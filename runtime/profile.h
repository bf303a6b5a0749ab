/* Where the time of training steps goes: the exec tells what it runs, the device what each of its threads does, the training when
   a step begins and when its batch is there. Nothing is computed otherwise while it is told. */
#ifndef TG_PROFILE_H
#define TG_PROFILE_H

#include "runtime/roof.h"

typedef enum SpanKind {
    SPAN_STEP,   /* a training step; index: its number */
    SPAN_WAIT,   /* for the batch */
    SPAN_GATHER, /* records into the inputs of a function */
    SPAN_FUNC,   /* index: of the plan's function */
    SPAN_RUN,    /* index: of the plan's step */
    SPAN_SHARE,  /* of one thread in a step that is shared out; index: of the plan's step */
} SpanKind;

/* Nanoseconds of tg_nanoseconds. */
typedef struct ProfileSpan {
    int64_t begin, end;
    SpanKind kind;
    uint32_t index;
} ProfileSpan;

/* Of one thread, in the order of their beginnings, a span before those inside it. */
typedef struct ProfileTrack {
    uint32_t count;
    ProfileSpan spans[];
} ProfileTrack;

typedef struct Profile {
    const TgPlan *plan;
    const Roof *roof;
    TgWatch watch;
    int threads;
    ProfileTrack **tracks;     /* of each thread; 0 is the one that runs the steps */
    int64_t warm, wanted;      /* steps that pass first, steps to record */
    int64_t seen, recorded;
    bool recording;
    uint32_t step, func, run;  /* the spans that are open, in track 0 */
    uint32_t running;          /* step of the plan */
    int64_t last;              /* when thread 0 was done with what came last */
} Profile;

/* Steps that pass before those that are recorded. */
enum { TG_PROFILE_WARM = 5, TG_PROFILE_MOST = 10000 };

void tg_profile_open(Profile *profile, Arena *arena, const TgPlan *plan, const Roof *roof, int threads, int64_t wanted);

/* Of the exec: a function begins, one of its steps begins, has ended, the function has ended. */
void tg_profile_enter(Profile *profile, const PlanFunc *func);
void tg_profile_run(Profile *profile, uint32_t step);
void tg_profile_ran(Profile *profile);
void tg_profile_leave(Profile *profile);

/* Of the training: a step begins, its batch is there, it has ended. `recording` is true from begin to end if the step is one of
   those to record; only then must the exec tell. */
void tg_profile_begin_step(Profile *profile, int64_t number);
void tg_profile_batch(Profile *profile);
void tg_profile_end_step(Profile *profile);

/* The Chrome trace of what is recorded (docs/training.md), all or nothing. */
TG_CHECKED Status tg_profile_write(const Profile *profile, Arena *arena, const char *name, const char *path, const char **why);

#endif
