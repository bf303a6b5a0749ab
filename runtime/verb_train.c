#include "runtime/manifest.h"
#include "runtime/training.h"
#include "runtime/weights.h"

static json_t *result_of(Training *training) {
    Session *session = training->session;
    json_t *result = json_pack("{s:I, s:f, s:o}", "steps", (json_int_t)training->done, "seconds", training->seconds,
                               "train", tg_json_fields(&training->loop.fields, training->means));
    if (training->loop.set_count > 0)
        json_object_set_new(result, "val", tg_json_evaluation(&training->loop));
    json_object_set_new(result, "weights", json_string(training->weights));
    if (training->best_step > 0)
        json_object_set_new(
            result, "best",
            json_pack("{s:s, s:I}", "weights", training->best, "step", (json_int_t)training->best_step));
    if (training->profiled)
        json_object_set_new(result, "profile", json_string(training->profiled));
    if (training->resumed_at > 0)
        json_object_set_new(result, "resumed_at", json_integer(training->resumed_at));
    json_object_set_new(result, "stopped", json_boolean(training->stopped));
    json_object_set_new(result, "seed", json_integer((json_int_t)session->settings.seed));
    json_object_set_new(result, "epochs", json_integer((json_int_t)training->place.epoch + 1));
    json_object_set_new(
        result, "records",
        json_pack("{s:I, s:o}", "train", (json_int_t)training->train.count, "val", tg_json_evaluated(&training->loop)));
    return result;
}

static void print_result(Training *training) {
    Session *session = training->session;
    const LoopFields *fields = &training->loop.fields;
    fprintf(session->out, "%lld steps in %.3g s%s\n", (long long)(training->done - training->resumed_at),
            training->seconds, training->stopped ? ", ended by 'stop'" : "");
    fprintf(session->out, "train    %s\n", tg_fields_text(session->arena, fields, training->means));
    for (uint32_t i = 0; i < training->loop.set_count; i++) {
        const LoopSet *set = &training->loop.sets[i];
        const char *name = set->as[0] != '\0' ? tg_arena_printf(session->arena, "val.%s", set->as) : "val";
        fprintf(session->out, "%-8s %s\n", name, tg_fields_text(session->arena, &set->fields, set->fields.values));
    }
    fprintf(session->out, "weights  %s\n", training->weights);
    if (training->profiled)
        fprintf(session->out, "profile  %s\n", training->profiled);
    if (training->best_step > 0)
        fprintf(session->out, "best     %s, of step %lld\n", training->best, (long long)training->best_step);
}

static void open_lists(Training *training) {
    const Options *options = training->session->options;
    if (options->value[OPT_JSON] == NULL)
        return;
    training->history = json_array();
    if (options->value[OPT_TRACE] == NULL)
        return;
    training->trace = json_object();
    for (uint32_t i = 0; i < training->loop.fields.count; i++)
        json_object_set_new(training->trace, training->loop.fields.names[i], json_array());
}

static Status finish(Training *training, json_t *result) {
    Session *session = training->session;
    const char *manifest = tg_arena_printf(session->arena, "%s/manifest.json", training->folder);
    TG_TRY(tg_weights_save(session->exec, session->plan, session->arena, &session->files.vocabulary, training->weights,
                           &session->why));
    TG_TRY(tg_manifest_write(session, manifest, result));
    if (training->history == NULL) {
        print_result(training);
        return TG_OK;
    }
    json_object_set(result, "history", training->history);
    if (training->trace != NULL)
        json_object_set(result, "trace", training->trace);
    return tg_session_print_json(session, json_incref(result));
}

Status tg_verb_train(Session *session) {
    const Options *options = session->options;
    if (options->value[OPT_TRACE] != NULL && options->value[OPT_JSON] == NULL)
        return tg_session_fail(session, TG_USAGE, "--trace puts the fields of every step into the JSON document: give --json too");
    Training *training = TG_ALLOC(session->arena, Training, 1);
    training->session = session;
    TG_TRY(tg_training_open(training));
    open_lists(training);
    double begin = tg_seconds();
    Status status = tg_training_run(training);
    training->seconds = tg_seconds() - begin;
    if (status == TG_OK && training->profile)
        status = tg_training_write_profile(training);
    if (status == TG_OK && session->stopped == 0) {
        json_t *result = result_of(training);
        status = finish(training, result);
        json_decref(result);
    }
    json_decref(training->history);
    json_decref(training->trace);
    return status;
}
