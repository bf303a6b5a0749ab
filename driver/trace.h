/* What `train --profile` wrote, added up. Times are microseconds of one training step: the median over those recorded, so that what
   else the machine did in a few of them does not count. */
#ifndef TG_TRACE_H
#define TG_TRACE_H

#include "driver/pipeline.h"
#include "runtime/roof.h"

#include <jansson.h>

/* A step of the plan, all its calls in a training step. */
typedef struct TraceRun {
    uint32_t plan_step;
    const char *op, *shape, *kind, *function; /* shape: of a dot; else "" */
    const char **lines;                       /* "gpt.tg:20", the first the most telling */
    uint32_t line_count;
    double calls, time, roof; /* roof: what the time would be at the roof */
    double bytes, flops, call_bytes; /* call_bytes: of one call */
    bool shared; /* among the threads */
} TraceRun;

typedef struct Trace {
    const char *path, *model, *program;
    int64_t threads, steps, batch;
    double step, least, most; /* of the whole training step; of the shortest and the longest */
    TraceRun *runs;           /* in the order in which they ran */
    uint32_t run_count;
    double waited, gathered, between; /* for batches; copying them; the rest that is no step of the plan */
    double time;                      /* of all that */
    double *busy;                     /* of each thread */
    double imbalance, alone, outside; /* idle: while others end their share, while one thread works, between steps of the plan */
    Roof roof;
    const json_t *roof_json, *texts; /* as in the file */
    json_t *document;                /* holds all texts; freed by trace_close */
} Trace;

/* A trace; a run's folder or a model's file stands for the trace in it, or in the run that is named after it. */
const char *trace_path(Pipeline *p, const char *named);
/* Reports. TG_IO: not to be read; TG_MODEL: no trace of tgc. */
TG_CHECKED Status trace_open(Pipeline *p, const char *path, Trace *trace);
void trace_close(Trace *trace);
/* Times of a step of less than 10 ms are told in microseconds, those of others in milliseconds. */
bool trace_in_microseconds(const Trace *trace);
const char *trace_time(Arena *arena, const Trace *trace, double time);
const char *trace_text(const Trace *trace, const char *line); /* of the source; "" if it is not known */

#endif
