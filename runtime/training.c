#include "runtime/training.h"
#include "ir/base/file.h"
#include "runtime/nonfinite.h"
#include "runtime/weights.h"

#include <string.h>

/* A record of the ring: these, then the fields. */
enum { AT_STEP, AT_EPOCH, AT_RECORDS, AT_FIELDS };
/* Without epochs to count in, a run reports this often, or less: validation shall not take longer than training. */
enum { REPORTS = 10 };
enum { RING_RECORDS = 1024 };

static void take_records(Training *training) {
    const LoopFields *fields = &training->loop.fields;
    while (tg_ring_pop(&training->ring, training->record)) {
        double records = training->record[AT_RECORDS];
        for (uint32_t i = 0; i < fields->count; i++)
            training->sums[i] += records * training->record[AT_FIELDS + i];
        training->records += records;
        if (training->trace == NULL)
            continue;
        for (uint32_t i = 0; i < fields->count; i++)
            json_array_append_new(json_object_get(training->trace, fields->names[i]),
                                  tg_json_number(training->record[AT_FIELDS + i]));
    }
}

static void hand_out(Training *training, int64_t records) {
    const LoopFields *fields = &training->loop.fields;
    double record[AT_FIELDS + fields->count];
    record[AT_STEP] = (double)training->place.step;
    record[AT_EPOCH] = (double)training->place.epoch;
    record[AT_RECORDS] = (double)records;
    memcpy(record + AT_FIELDS, fields->values, fields->count * sizeof *record);
    while (!tg_ring_push(&training->ring, record))
        take_records(training);
}

static ProgressState state_of(Training *training) {
    const LoopFields *fields = &training->loop.fields;
    return (ProgressState){.step = training->done,
                           .epoch = training->place.epoch,
                           .loss = fields->count > 0 ? training->record[AT_FIELDS + training->loss] : 0,
                           .loss_name = fields->count > 0 ? fields->names[training->loss] : "loss",
                           .validation = training->validation};
}

/* ---- checkpoints ---- */

static void list_numbers(Training *training) {
    Arena *arena = training->session->arena;
    const LoopFields *fields = &training->loop.fields;
    tg_push(arena, &training->numbers, (RunNumber){.name = "step", .whole = &training->done});
    tg_push(arena, &training->numbers, (RunNumber){.name = "iteration", .whole = &training->drawn});
    tg_push(arena, &training->numbers, (RunNumber){.name = "best_step", .whole = &training->best_step});
    tg_push(arena, &training->numbers, (RunNumber){.name = "records", .real = &training->records});
    for (uint32_t i = 0; i < fields->count; i++)
        tg_push(arena, &training->numbers,
                (RunNumber){.name = tg_arena_printf(arena, "sum.%s", fields->names[i]), .real = &training->sums[i]});
    for (uint32_t i = 0; i < training->monitor.count; i++) {
        Tracker *tracker = &training->monitor.trackers[i];
        tg_push(arena, &training->numbers,
                (RunNumber){.name = tg_arena_printf(arena, "value.%s", tracker->name), .real = &tracker->best});
        tg_push(arena, &training->numbers,
                (RunNumber){.name = tg_arena_printf(arena, "since.%s", tracker->name), .real = &tracker->since});
        tg_push(arena, &training->numbers,
                (RunNumber){.name = tg_arena_printf(arena, "plateaus.%s", tracker->name), .real = &tracker->plateaus});
    }
}

static Status save(Training *training) {
    if (training->saved_at == training->done)
        return TG_OK;
    take_records(training);
    training->saved_at = training->done;
    return tg_checkpoint_save(&training->checkpoints, training->done, training->train.count, training->numbers.at,
                              training->numbers.count);
}

/* ---- reports ---- */

__attribute__((format(printf, 3, 4))) static void note(Training *training, size_t *length, const char *format, ...) {
    size_t room = sizeof training->validation - *length;
    va_list args;
    va_start(args, format);
    int written = vsnprintf(training->validation + *length, room, format, args);
    va_end(args);
    *length += written < 0 ? 0 : (size_t)written < room ? (size_t)written : room - 1;
}

/* "loss 0.2 accuracy 0.9"; of several sets "test: loss 0.2, hard: loss 0.7". */
static void note_validation(Training *training) {
    size_t length = 0;
    for (uint32_t s = 0; s < training->loop.set_count; s++) {
        const LoopSet *set = &training->loop.sets[s];
        if (set->as[0] != '\0')
            note(training, &length, "%s%s:", s > 0 ? ", " : "", set->as);
        for (uint32_t i = 0; i < set->fields.count; i++)
            note(training, &length, "%s%s %.4g", length > 0 ? " " : "", set->fields.names[i], set->fields.values[i]);
    }
}

static Status validate(Training *training) {
    if (training->loop.set_count == 0)
        return TG_OK;
    tg_loop_evaluate(&training->loop);
    note_validation(training);
    bool keep;
    training->stopped = tg_monitor_update(&training->monitor, &keep);
    if (!keep)
        return TG_OK;
    training->best_step = training->done;
    return tg_weights_save(training->session->exec, training->session->plan, training->session->arena,
                           &training->session->files.vocabulary, training->best, &training->session->why);
}

/* What happened since the last report, and a validation. One that only the end of training asks for counts on: a longer
   run would not have had it. */
static Status report(Training *training, bool due) {
    take_records(training);
    const LoopFields *fields = &training->loop.fields;
    for (uint32_t i = 0; i < fields->count; i++)
        training->means[i] = training->sums[i] / training->records;
    if (due) {
        memset(training->sums, 0, fields->count * sizeof *training->sums);
        training->records = 0;
    }
    TG_TRY(validate(training));
    if (training->history != NULL) {
        const Loop *loop = &training->loop;
        json_t *row = json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)training->place.epoch + 1, "step",
                                (json_int_t)training->done, "train", tg_json_fields(fields, training->means));
        if (training->loop.set_count > 0)
            json_object_set_new(row, "val", tg_json_evaluation(&training->loop));
        if (loop->loss_scale != NULL)
            json_object_update_new(row, json_pack("{s:f, s:I}", "loss_scale", (double)*loop->loss_scale, "skipped_steps",
                                                  (json_int_t)*loop->skipped_steps));
        json_array_append_new(training->history, row);
    }
    ProgressState state = state_of(training);
    tg_progress_epoch(&training->progress, &state, tg_seconds());
    return TG_OK;
}

/* ---- the profile ---- */

static void place(Training *training, const Batch *batch) {
    training->place = (LoopPlace){.step = training->done + 1, .iteration = training->drawn, .epoch = batch->epoch};
}

/* The next batch, and the step with it. */
static const Batch *plain_step(Training *training, StepEnd *end) {
    const Batch *batch = tg_feed_next(training->session->feed);
    place(training, batch);
    *end = tg_loop_step(&training->loop, batch, &training->place);
    return batch;
}

static const Batch *profiled_step(Training *training, StepEnd *end) {
    Session *session = training->session;
    Profile *profile = training->profile;
    tg_profile_begin_step(profile, training->done + 1);
    const Batch *batch = tg_feed_next(session->feed);
    tg_profile_batch(profile);
    place(training, batch);
    tg_exec_profile(session->exec, profile->recording ? profile : NULL);
    *end = tg_loop_step(&training->loop, batch, &training->place);
    tg_exec_profile(session->exec, NULL);
    tg_profile_end_step(profile);
    return batch;
}

/* All steps that were asked for are there, or the run has ended before. */
Status tg_training_write_profile(Training *training) {
    Session *session = training->session;
    const Profile *profile = training->profile;
    training->profile = NULL;
    if (profile->recorded == 0)
        return TG_OK;
    const char *path = tg_arena_printf(session->arena, "%s/profile.json", training->folder);
    TG_TRY(tg_profile_write(profile, session->arena, session->name, path, &session->why));
    training->profiled = path;
    tg_progress_end(&training->progress);
    fprintf(session->err, "%s: %lld step%s timed: 'tgc profile %s' shows where the time goes\n", session->name,
            (long long)profile->recorded, profile->recorded == 1 ? "" : "s", path);
    return TG_OK;
}

/* ---- steps ---- */

static void show_progress(Training *training) {
    double now = tg_seconds();
    if (!tg_progress_due(&training->progress, now))
        return;
    take_records(training);
    ProgressState state = state_of(training);
    tg_progress_draw(&training->progress, &state, now);
}

/* A batch in which no record counts in the loss: it is no update. A whole epoch of them will not end. */
static Status skip(Training *training) {
    Session *session = training->session;
    if (training->skipped++ == 0) {
        tg_progress_end(&training->progress);
        fprintf(session->err,
                "%s: step %lld: the loss is over nothing (no record of the batch counts in it): nothing "
                "changes, the next batch is taken\n",
                session->name, (long long)training->place.step);
    }
    int64_t batch = session->plan->batch, per_epoch = (training->train.count + batch - 1) / batch;
    if (++training->skipped_in_a_row < per_epoch)
        return TG_OK;
    tg_progress_end(&training->progress);
    return tg_session_fail(
        session, TG_MODEL,
        "the loss is over nothing in %lld batches one after another, a whole epoch: no record of the "
        "training set counts in it; look at its labels, masks and weights",
        (long long)training->skipped_in_a_row);
}

/* f16: the step changes nothing but the loss scale. The first time the operation is looked for. */
static Status overflow(Training *training, const Batch *batch) {
    Session *session = training->session;
    const Loop *loop = &training->loop;
    tg_progress_end(&training->progress);
    fprintf(session->err, "%s: step %lld overflowed with a loss scale of %g: it changes nothing, the scale is halved (%g skipped)\n",
            session->name, (long long)training->place.step, (double)*loop->loss_scale, (double)*loop->skipped_steps);
    return training->overflows++ > 0 ? TG_OK : tg_nonfinite_name(session, batch, &training->place, training->folder, *loop->loss_scale);
}

static void count_step(Training *training, const Batch *batch) {
    training->skipped_in_a_row = 0;
    training->done++;
    hand_out(training, batch->count);
    show_progress(training);
}

static bool at_end(const Training *training) {
    return training->done >= training->total_steps || training->drawn >= training->total_batches;
}

static Status step(Training *training) {
    Session *session = training->session;
    StepEnd end;
    const Batch *batch = training->profile ? profiled_step(training, &end) : plain_step(training, &end);
    if (end == STEP_NOT_FINITE) {
        tg_progress_end(&training->progress);
        return tg_nonfinite_stop(session, batch, &training->place, training->folder);
    }
    training->drawn++;
    bool counts = end == STEP_DONE;
    if (counts)
        count_step(training, batch);
    else if (end == STEP_OVERFLOWED)
        TG_TRY(overflow(training, batch));
    else
        TG_TRY(skip(training));
    bool due = training->report_every > 0 ? counts && training->done % training->report_every == 0 : batch->ends_epoch;
    if (due || at_end(training))
        TG_TRY(report(training, due));
    if (training->profile && training->profile->recorded == training->profile->wanted)
        TG_TRY(tg_training_write_profile(training));
    bool saves = training->save_every > 0 && counts && training->done % training->save_every == 0;
    return saves ? save(training) : TG_OK;
}

static Status stop_and_save(Training *training) {
    Session *session = training->session;
    TG_TRY(save(training));
    tg_progress_end(&training->progress);
    fprintf(session->err, "%s: stopped after step %lld and saved it; '%s train --resume %s' goes on\n", session->name,
            (long long)training->done, session->name, training->folder);
    return TG_OK;
}

Status tg_training_run(Training *training) {
    Session *session = training->session;
    tg_stop_after_step(&session->stop);
    while (!at_end(training) && !training->stopped) {
        TG_TRY(step(training));
        session->stopped = tg_stop_asked(&session->stop);
        if (session->stopped != 0)
            return stop_and_save(training);
    }
    tg_progress_end(&training->progress);
    return training->save_every > 0 ? save(training) : TG_OK;
}

/* ---- before the first step ---- */

static void plan_steps(Training *training) {
    const Settings *settings = &training->session->settings;
    int64_t batch = training->session->plan->batch;
    int64_t per_epoch = (training->train.count + batch - 1) / batch;
    training->total_steps = settings->steps;
    training->total_batches = INT64_MAX;
    int64_t by_epochs = 0;
    if (settings->epochs > 0 && __builtin_mul_overflow(settings->epochs, per_epoch, &by_epochs))
        by_epochs = INT64_MAX;
    if (settings->epochs > 0)
        training->total_batches = by_epochs;
    if (settings->epochs > 0 && (settings->steps == 0 || by_epochs < settings->steps))
        training->total_steps = by_epochs;
    training->epochs = settings->epochs > 0 ? (training->total_steps + per_epoch - 1) / per_epoch : 0;
    training->report_every = settings->validate_every;
    if (training->report_every == 0 && training->epochs == 0) {
        int64_t often = (training->total_steps + REPORTS - 1) / REPORTS;
        int64_t validation = 0;
        for (uint32_t i = 0; i < training->loop.set_count; i++)
            validation += (training->loop.sets[i].data->count + batch - 1) / batch;
        training->report_every = often > validation ? often : validation;
    }
    *training->loop.total_steps = (double)training->total_steps;
}

static void name_files(Training *training) {
    Session *session = training->session;
    const char *out = session->options->value[OPT_OUT], *resume = session->options->value[OPT_RESUME];
    training->folder = out != NULL      ? out
                       : resume != NULL ? tg_checkpoint_run(session->arena, resume)
                                        : tg_session_run_folder(session);
    training->weights = tg_arena_printf(session->arena, "%s/weights.safetensors", training->folder);
    training->best = tg_arena_printf(session->arena, "%s/best.safetensors", training->folder);
}

/* Fails before the first step if results cannot be written after the last. */
static Status make_folder(const Training *training) {
    Session *session = training->session;
    char why[256];
    Status status = tg_make_directories(training->folder, why, sizeof why);
    if (status != TG_OK)
        return tg_session_fail(session, status, "%s", why);
    TgFileWriter file;
    status = tg_file_begin(&file, session->arena->host, training->weights, 0666);
    tg_file_abandon(&file);
    return status == TG_OK ? TG_OK : tg_session_fail(session, status, "%s", file.why);
}

static Status resume(Training *training, const char *from) {
    Session *session = training->session;
    TG_TRY(tg_checkpoint_resume(&training->checkpoints, from, training->train.count, training->numbers.at,
                                training->numbers.count));
    tg_monitor_resume(&training->monitor);
    training->resumed_at = training->saved_at = training->done;
    if (training->done >= training->total_steps)
        return tg_session_fail(session, TG_USAGE,
                               "%s is at step %lld of %lld, so nothing is left; give more with "
                               "--epochs or --steps",
                               from, (long long)training->done, (long long)training->total_steps);
    return TG_OK;
}

static Status open_state(Training *training) {
    Session *session = training->session;
    const Options *options = session->options;
    int64_t keep;
    TG_TRY(tg_options_count(session->arena, options, OPT_SAVE_EVERY, 1, 0, &training->save_every, &session->why));
    TG_TRY(tg_options_count(session->arena, options, OPT_KEEP, 1, TG_CHECKPOINTS_KEPT, &keep, &session->why));
    tg_checkpoints_open(&training->checkpoints, session, training->folder, keep);
    if (options->value[OPT_INIT] != NULL && options->value[OPT_RESUME] != NULL)
        return tg_session_fail(session, TG_USAGE, "--init and --resume both say what to begin with: give one");
    if (options->value[OPT_INIT] != NULL)
        return tg_weights_load(session->exec, session->plan, session->arena, &session->files.vocabulary,
                               options->value[OPT_INIT], &session->why);
    return options->value[OPT_RESUME] != NULL ? resume(training, options->value[OPT_RESUME]) : TG_OK;
}

/* Before the exec opens. */
static Status read_profile(Training *training, int64_t *steps) {
    Session *session = training->session;
    TG_TRY(tg_options_count(session->arena, session->options, OPT_PROFILE, 1, 0, steps, &session->why));
    if (*steps > TG_PROFILE_MOST)
        return tg_session_fail(session, TG_USAGE, "--profile: %lld steps are too many, %d are the most", (long long)*steps,
                               TG_PROFILE_MOST);
    if (*steps > 0)
        session->roof = TG_ALLOC(session->arena, Roof, 1);
    return TG_OK;
}

static Status open_profile(Training *training, int64_t steps) {
    Session *session = training->session;
    int64_t left = training->total_steps - training->done;
    if (steps == 0)
        return TG_OK;
    if (left - TG_PROFILE_WARM < steps)
        return tg_session_fail(session, TG_USAGE,
                               "--profile=%lld: the run has %lld steps, and %d pass before the first that is timed; give it more "
                               "with --steps or --epochs, or time fewer",
                               (long long)steps, (long long)left, TG_PROFILE_WARM);
    training->profile = TG_ALLOC(session->arena, Profile, 1);
    tg_profile_open(training->profile, session->arena, session->plan, session->roof, tg_exec_threads(session->exec), steps);
    return TG_OK;
}

Status tg_training_open(Training *training) {
    Session *session = training->session;
    Arena *arena = session->arena;
    Loop *loop = &training->loop;
    int64_t profiled;
    TG_TRY(read_profile(training, &profiled));
    tg_stop_watch(&session->stop);
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_open_training(session, loop, &training->train));
    uint32_t count = loop->fields.count;
    tg_ring_init(&training->ring, arena, AT_FIELDS + count, RING_RECORDS);
    training->record = TG_ALLOC(arena, double, AT_FIELDS + count);
    training->sums = TG_ALLOC(arena, double, count + 1);
    training->means = TG_ALLOC(arena, double, count + 1);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(loop->fields.names[i], session->plan->loss) == 0)
            training->loss = i;
    tg_monitor_open(&training->monitor, loop);
    list_numbers(training);
    plan_steps(training);
    name_files(training);
    TG_TRY(open_state(training));
    TG_TRY(open_profile(training, profiled));
    TG_TRY(make_folder(training));
    TG_TRY(tg_session_open_feed(session, &training->train, training->drawn));
    tg_progress_init(&training->progress, session->err, training->done, training->total_steps, training->epochs);
    return TG_OK;
}
