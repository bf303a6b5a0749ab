#include "ir/base/file.h"
#include "runtime/session.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WARM_STEPS = 20, DEFAULT_STEPS = 1000 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The most memory that this program has had; getrusage would count what the process was before `exec`, a compiler perhaps. */
static Status peak_bytes(Session *session, double *bytes) {
    static const char key[] = "VmHWM:";
    char *text;
    size_t length;
    TG_TRY(tg_file_read(session->arena, "/proc/self/status", &text, &length, &session->why));
    const char *line = strstr(text, key);
    *bytes = line ? 1024.0 * strtod(line + strlen(key), NULL) : 0;
    return TG_OK;
}

Status tg_verb_bench(Session *session) {
    Loop *loop = TG_ALLOC(session->arena, Loop, 1);
    RecordSet train;
    int64_t steps = 0;
    TG_TRY(tg_options_count(session->arena, session->options, OPT_STEPS, 1, DEFAULT_STEPS, &steps, &session->why));
    session->roof = TG_ALLOC(session->arena, Roof, 1);
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_open_training(session, loop, &train));
    TG_TRY(tg_session_open_feed(session, &train, 0));
    int64_t warm_steps = steps < MOST_WARM_STEPS ? steps : MOST_WARM_STEPS;
    *loop->total_steps = (double)(steps + warm_steps);
    double *step_times = TG_ALLOC(session->arena, double, steps),
           *floor_times = TG_ALLOC(session->arena, double, steps);
    double records = 0, seconds = 0;
    bool finite = true;
    for (int64_t i = -warm_steps; i < steps; i++) {
        int64_t drawn = i + warm_steps;
        double begin = tg_seconds();
        const Batch *batch = tg_feed_next(session->feed);
        LoopPlace place = {.step = drawn + 1, .iteration = drawn, .epoch = batch->epoch};
        finite = tg_loop_step(loop, batch, &place) != STEP_NOT_FINITE && finite;
        double middle = tg_seconds();
        tg_loop_step_dots(loop);
        if (i < 0)
            continue;
        step_times[i] = middle - begin;
        floor_times[i] = tg_seconds() - middle;
        records += (double)batch->count;
        seconds += middle - begin;
    }
    double step_ms = 1e3 * median(step_times, steps), floor_ms = 1e3 * median(floor_times, steps);
    double realistic_ms = floor_ms + 1e3 * tg_loop_copy_seconds(loop, session->roof);
    double peak;
    TG_TRY(peak_bytes(session, &peak));
    int threads = tg_exec_threads(session->exec);
    if (session->options->value[OPT_JSON] != NULL)
        return tg_session_print_json(
            session, json_pack("{s:I, s:f, s:f, s:f, s:o, s:f, s:I, s:I, s:i, s:b}", "steps", (json_int_t)steps,
                               "step_ms", step_ms, "floor_ms", floor_ms, "realistic_floor_ms", realistic_ms, "ratio",
                               tg_json_number(step_ms / floor_ms),
                               "records_per_s", records / seconds, "peak_bytes", (json_int_t)peak, "plan_bytes",
                               (json_int_t)session->plan->arena_bytes, "threads", threads, "finite", finite));
    fprintf(session->out, "step     %.4f ms  (median of %lld, %d threads)\n", step_ms, (long long)steps, threads);
    fprintf(session->out, "floor    %.4f ms  (its dots alone), %.4f ms with what else it moves at the speed of a copy\n",
            floor_ms, realistic_ms);
    if (floor_ms > 0)
        fprintf(session->out, "ratio    %.2f\n", step_ms / floor_ms);
    fprintf(session->out, "records  %.0f per second\n", records / seconds);
    fprintf(session->out, "memory   %.1f MiB peak, %.1f MiB of them the plan's\n", peak / 1048576,
            (double)session->plan->arena_bytes / 1048576);
    if (!finite)
        fprintf(session->err, "%s: warning: a step was not finite\n", session->name);
    return TG_OK;
}
