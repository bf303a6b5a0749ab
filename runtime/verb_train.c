#include "ir/base/file.h"
#include "runtime/manifest.h"
#include "runtime/nonfinite.h"
#include "runtime/progress.h"
#include "runtime/ring.h"
#include "runtime/weights.h"

#include <string.h>

/* A record of the ring: these, then the fields. */
enum { AT_STEP, AT_EPOCH, AT_RECORDS, AT_FIELDS };
enum { RING_RECORDS = 1024 };

typedef struct Training {
    Session *session;
    Loop loop;
    DataSet train, validate;
    bool validates, ended_epoch;
    int64_t total_steps, epochs; /* epochs 0: only steps count */
    LoopPlace place;
    int64_t done;
    Ring ring;
    double *record;        /* taken from the ring last */
    double *sums, records; /* of the running epoch, weighted by records */
    double *means;         /* of the epoch that ended last, or of what there is of it */
    uint32_t loss;         /* the field that is minimised */
    char validation[256];  /* for the progress line */
    Progress progress;
    json_t *history, *trace; /* NULL: not wanted */
    const char *folder, *weights;
    double seconds;
} Training;

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

static void validate(Training *training) {
    if (!training->validates)
        return;
    Loop *loop = &training->loop;
    tg_loop_evaluate(loop, &training->validate);
    size_t length = 0, room = sizeof training->validation;
    for (uint32_t i = 0; i < loop->eval_fields.count && length < room; i++)
        length += (size_t)snprintf(training->validation + length, room - length, "%s%s %.4g", i > 0 ? " " : "",
                                   loop->eval_fields.names[i], loop->eval_fields.values[i]);
}

static void end_epoch(Training *training) {
    take_records(training);
    const LoopFields *fields = &training->loop.fields;
    for (uint32_t i = 0; i < fields->count; i++) {
        training->means[i] = training->sums[i] / training->records;
        training->sums[i] = 0;
    }
    training->records = 0;
    validate(training);
    if (training->history != NULL) {
        json_t *row = json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)training->place.epoch + 1, "step",
                                (json_int_t)training->done, "train", tg_json_fields(fields, training->means));
        if (training->validates)
            json_object_set_new(row, "val",
                                tg_json_fields(&training->loop.eval_fields, training->loop.eval_fields.values));
        json_array_append_new(training->history, row);
    }
    ProgressState state = state_of(training);
    tg_progress_epoch(&training->progress, &state, tg_seconds());
}

static Status run_steps(Training *training) {
    Session *session = training->session;
    for (int64_t i = 0; i < training->total_steps; i++) {
        const Batch *batch = tg_feed_next(session->feed);
        training->place = (LoopPlace){.step = i + 1, .iteration = i, .epoch = batch->epoch};
        if (!tg_loop_step(&training->loop, batch, &training->place)) {
            tg_progress_end(&training->progress);
            return tg_nonfinite_stop(session, batch, &training->place, training->folder);
        }
        training->done = i + 1;
        hand_out(training, batch->count);
        double now = tg_seconds();
        if (tg_progress_due(&training->progress, now)) {
            take_records(training);
            ProgressState state = state_of(training);
            tg_progress_draw(&training->progress, &state, now);
        }
        if (batch->ends_epoch || training->done == training->total_steps)
            end_epoch(training);
    }
    return TG_OK;
}

static void plan_steps(Training *training) {
    const Settings *settings = &training->session->settings;
    int64_t batch = training->session->plan->batch;
    int64_t per_epoch = (training->train.count + batch - 1) / batch;
    training->total_steps = settings->steps;
    int64_t by_epochs = 0;
    if (settings->epochs > 0 && __builtin_mul_overflow(settings->epochs, per_epoch, &by_epochs))
        by_epochs = INT64_MAX;
    if (settings->epochs > 0 && (settings->steps == 0 || by_epochs < settings->steps))
        training->total_steps = by_epochs;
    training->epochs = settings->epochs > 0 ? (training->total_steps + per_epoch - 1) / per_epoch : 0;
    *training->loop.total_steps = (double)training->total_steps;
}

/* Fails before the first step if results cannot be written after the last. */
static Status make_folder(Training *training) {
    Session *session = training->session;
    const char *folder = session->options->value[OPT_OUT];
    training->folder = folder != NULL ? folder : tg_session_run_folder(session);
    training->weights = tg_arena_printf(session->arena, "%s/weights.safetensors", training->folder);
    char why[256];
    Status status = tg_make_directories(training->folder, why, sizeof why);
    if (status != TG_OK)
        return tg_session_fail(session, status, "%s", why);
    TgFileWriter file;
    status = tg_file_begin(&file, session->arena->host, training->weights, 0666);
    tg_file_abandon(&file);
    return status == TG_OK ? TG_OK : tg_session_fail(session, status, "%s", file.why);
}

static Status open_training(Training *training) {
    Session *session = training->session;
    Arena *arena = session->arena;
    Loop *loop = &training->loop;
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_open_training(session, loop, &training->train, &training->validate));
    training->validates = training->validate.count > 0 && loop->eval_micro.func != NULL;
    if (session->options->value[OPT_INIT] != NULL)
        TG_TRY(tg_weights_load(session->exec, session->plan, arena, session->options->value[OPT_INIT], &session->why));
    TG_TRY(make_folder(training));
    TG_TRY(tg_session_open_feed(session, &training->train));
    uint32_t count = loop->fields.count;
    tg_ring_init(&training->ring, arena, AT_FIELDS + count, RING_RECORDS);
    training->record = TG_ALLOC(arena, double, AT_FIELDS + count);
    training->sums = TG_ALLOC(arena, double, count + 1);
    training->means = TG_ALLOC(arena, double, count + 1);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(loop->fields.names[i], session->plan->loss) == 0)
            training->loss = i;
    plan_steps(training);
    tg_progress_init(&training->progress, session->err, training->total_steps, training->epochs);
    return TG_OK;
}

static json_t *result_of(Training *training) {
    Session *session = training->session;
    json_t *result = json_pack("{s:I, s:f, s:o}", "steps", (json_int_t)training->done, "seconds", training->seconds,
                               "train", tg_json_fields(&training->loop.fields, training->means));
    if (training->validates)
        json_object_set_new(result, "val",
                            tg_json_fields(&training->loop.eval_fields, training->loop.eval_fields.values));
    json_object_set_new(result, "weights", json_string(training->weights));
    json_object_set_new(result, "seed", json_integer((json_int_t)session->settings.seed));
    json_object_set_new(result, "epochs", json_integer((json_int_t)training->place.epoch + 1));
    json_object_set_new(result, "records",
                        json_pack("{s:I, s:I}", "train", (json_int_t)training->train.count, "val",
                                  (json_int_t)training->validate.count));
    return result;
}

static void print_result(Training *training) {
    Session *session = training->session;
    const LoopFields *fields = &training->loop.fields, *eval = &training->loop.eval_fields;
    fprintf(session->out, "%lld steps in %.3g s\n", (long long)training->done, training->seconds);
    fprintf(session->out, "train    %s\n", tg_fields_text(session->arena, fields, training->means));
    if (training->validates)
        fprintf(session->out, "val      %s\n", tg_fields_text(session->arena, eval, eval->values));
    fprintf(session->out, "weights  %s\n", training->weights);
}

static Status finish(Training *training, json_t *result) {
    Session *session = training->session;
    const char *manifest = tg_arena_printf(session->arena, "%s/manifest.json", training->folder);
    TG_TRY(tg_weights_save(session->exec, session->plan, session->arena, training->weights, &session->why));
    return tg_manifest_write(session, manifest, result);
}

Status tg_verb_train(Session *session) {
    Training *training = TG_ALLOC(session->arena, Training, 1);
    training->session = session;
    TG_TRY(open_training(training));
    bool json = session->options->value[OPT_JSON] != NULL;
    if (json)
        training->history = json_array();
    if (json && session->options->value[OPT_TRACE] != NULL) {
        training->trace = json_object();
        for (uint32_t i = 0; i < training->loop.fields.count; i++)
            json_object_set_new(training->trace, training->loop.fields.names[i], json_array());
    }
    double begin = tg_seconds();
    Status status = run_steps(training);
    training->seconds = tg_seconds() - begin;
    json_t *result = NULL;
    if (status == TG_OK) {
        tg_progress_end(&training->progress);
        result = result_of(training);
        status = finish(training, result);
    }
    if (status == TG_OK && json) {
        json_object_set(result, "history", training->history);
        if (training->trace != NULL)
            json_object_set(result, "trace", training->trace);
        status = tg_session_print_json(session, json_incref(result));
    } else if (status == TG_OK) {
        print_result(training);
    }
    json_decref(result);
    json_decref(training->history);
    json_decref(training->trace);
    return status;
}
