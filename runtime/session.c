#include "runtime/session.h"
#include "runtime/weights.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Enough for every f32 to read back as itself. */
enum { JSON_DIGITS = 12 };

Status tg_session_fail(Session *session, Status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    session->why = tg_arena_vprintf(session->arena, format, args);
    va_end(args);
    return status;
}

static Status apply_options(Session *session) {
    static const struct {
        OptionId id;
        const char *setting, *origin;
    } direct[] = {{OPT_EPOCHS, "epochs", "--epochs"}, {OPT_STEPS, "steps", "--steps"}, {OPT_SEED, "seed", "--seed"}};
    const Options *options = session->options;
    for (uint32_t i = 0; i < options->sets.count; i++)
        TG_TRY(tg_settings_parse(&session->settings, options->sets.at[i], &session->why));
    for (size_t i = 0; i < sizeof direct / sizeof *direct; i++)
        if (options->value[direct[i].id] != NULL)
            TG_TRY(tg_settings_set(&session->settings, direct[i].setting, options->value[direct[i].id],
                                   direct[i].origin, &session->why));
    return TG_OK;
}

Status tg_session_open(Session *session, const TgProgram *program) {
    if (program->abi != TG_ABI_VERSION)
        return tg_session_fail(session, TG_INTERNAL, "the program has ABI %u, this runtime %d: compile it again",
                               program->abi, TG_ABI_VERSION);
    TgPlan *plan = NULL;
    session->program = program;
    TG_TRY(tg_plan_read(session->arena, program->plan, program->plan_bytes, &plan, &session->why));
    session->plan = plan;
    tg_settings_init(&session->settings, session->arena, plan);
    TG_TRY(apply_options(session));
    tg_data_files_init(&session->files, session->arena, plan,
                       tg_data_root(session->options->value[OPT_DATA_ROOT], plan));
    return TG_OK;
}

Status tg_session_start(Session *session) {
    int64_t threads = 0;
    TG_TRY(tg_options_count(session->arena, session->options, OPT_THREADS, 1, 0, &threads, &session->why));
    if (threads > TG_MOST_THREADS)
        return tg_session_fail(session, TG_USAGE, "--threads: %lld are too many, %d are the most", (long long)threads,
                               TG_MOST_THREADS);
    CPU_ZERO(&session->cpus);
    (void)sched_getaffinity(0, sizeof session->cpus, &session->cpus);
    ExecOptions options = {.host = session->arena->host, .threads = (int)threads, .roof = session->roof};
    TG_TRY(tg_exec_open(&options, session->arena, session->program, session->plan, &session->exec, &session->why));
    double *values = tg_exec_values(session->exec);
    for (uint32_t i = 0; i < session->plan->scalar_count; i++)
        if (session->plan->scalars[i].class == PLAN_SCALAR_SETTING)
            values[i] = session->settings.scalars[i];
    TgScalars *scalars = tg_exec_scalars(session->exec);
    scalars->seed = session->settings.seed;
    scalars->rows = 1;
    scalars->first_row = 0;
    scalars->iteration = 0;
    const PlanFunc *init = tg_plan_func(session->plan, PLAN_INIT, NULL);
    if (init != NULL)
        tg_exec_run(session->exec, init, 0);
    tg_weights_copy(session->exec, session->plan);
    return TG_OK;
}

void tg_session_set_builtin(Session *session, const char *name, double value) {
    for (uint32_t i = 0; i < session->plan->scalar_count; i++)
        if (session->plan->scalars[i].class == PLAN_SCALAR_BUILTIN && strcmp(session->plan->scalars[i].name, name) == 0)
            tg_exec_values(session->exec)[i] = value;
}

void tg_session_close(Session *session) {
    tg_feed_close(session->feed);
    if (session->exec != NULL)
        tg_exec_close(session->exec);
    tg_stop_unwatch(&session->stop);
    session->feed = NULL;
    session->exec = NULL;
}

Status tg_session_train_set(Session *session, RecordSet *set) {
    TG_TRY(tg_data_open(&session->files, &session->plan->train, NULL, set, &session->why));
    if (session->settings.shuffle)
        tg_data_let_shift(set);
    return TG_OK;
}

static bool has_split(const TgPlan *plan, const PlanDataSet *set, const char *name) {
    for (uint32_t i = 0; i < set->split_count; i++)
        if (strcmp(plan->splits[set->split_first + i].name, name) == 0)
            return true;
    return false;
}

Status tg_session_eval_set(Session *session, RecordSet *set) {
    const TgPlan *plan = session->plan;
    const char *split = session->options->value[OPT_SPLIT];
    const PlanDataSet *from = plan->validate_count > 0 ? &plan->validate[0] : &plan->train;
    for (uint32_t i = 1; split != NULL && i < plan->validate_count && !has_split(plan, from, split); i++)
        if (has_split(plan, &plan->validate[i], split))
            from = &plan->validate[i];
    return tg_data_open(&session->files, from, split, set, &session->why);
}

static Status no_records(Session *session, const PlanDataSet *set) {
    const char *data = tg_arena_printf(session->arena, "%s%s%s", set->name, set->split[0] ? "." : "", set->split);
    if (set->as[0] != '\0')
        return tg_session_fail(
            session, TG_MODEL,
            "the validation set '%s', %s, has no records; give it a greater share of them, or leave it "
            "out of the setting 'validate'",
            set->as, data);
    return tg_session_fail(
        session, TG_MODEL,
        "the validation set %s has no records; give it a greater share of them, or leave the setting "
        "'validate' out",
        data);
}

static Status open_sets(Session *session, RecordSet **sets, uint32_t *count) {
    const TgPlan *plan = session->plan;
    *count = plan->validate_count;
    *sets = TG_ALLOC(session->arena, RecordSet, *count + 1);
    for (uint32_t i = 0; i < *count; i++) {
        RecordSet *set = &(*sets)[i];
        TG_TRY(tg_data_open(&session->files, &plan->validate[i], NULL, set, &session->why));
        if (set->count == 0)
            return no_records(session, set->plan);
    }
    return TG_OK;
}

/* The part that --split names is no longer the set of the program. */
static const PlanDataSet *unnamed(Session *session, const PlanDataSet *set) {
    PlanDataSet *made = tg_arena_copy(session->arena, set, sizeof *made);
    made->as = "";
    return made;
}

Status tg_session_eval_sets(Session *session, RecordSet **sets, uint32_t *count) {
    bool split = session->options->value[OPT_SPLIT] != NULL;
    if (!split && session->plan->validate_count > 0)
        return open_sets(session, sets, count);
    *count = 1;
    *sets = TG_ALLOC(session->arena, RecordSet, 1);
    TG_TRY(tg_session_eval_set(session, *sets));
    (*sets)->plan = unnamed(session, (*sets)->plan);
    return TG_OK;
}

Status tg_session_open_training(Session *session, Loop *loop, RecordSet *train) {
    const TgPlan *plan = session->plan;
    if (tg_plan_func(plan, PLAN_MICRO, NULL) == NULL)
        return tg_session_fail(session, TG_MODEL, "%s has no train { } block, so it cannot train", plan->source_path);
    TG_TRY(tg_session_train_set(session, train));
    if (train->count < plan->batch)
        return tg_session_fail(session, TG_MODEL, "a batch has %lld records, but the training set %s has only %lld",
                               (long long)plan->batch, plan->train.name, (long long)train->count);
    RecordSet *sets;
    uint32_t count;
    TG_TRY(open_sets(session, &sets, &count));
    return tg_loop_open(loop, session->arena, plan, session->exec, train, sets, count, &session->why);
}

Status tg_session_open_feed(Session *session, const RecordSet *train, int64_t drawn) {
    FeedOptions options = {.host = session->arena->host,
                           .batch = session->plan->batch,
                           .seed = session->settings.seed,
                           .shuffle = session->settings.shuffle,
                           .ahead_bytes = TG_FEED_AHEAD_BYTES,
                           .cpus = &session->cpus,
                           .drawn = drawn};
    return tg_feed_open(session->arena, &options, train, &session->feed);
}

const char *tg_session_run_folder(Session *session) { return tg_arena_printf(session->arena, "%s.run", session->name); }

Status tg_session_load_weights(Session *session) {
    const char *path = session->options->value[OPT_WEIGHTS];
    if (path == NULL)
        path = tg_arena_printf(session->arena, "%s/weights.safetensors", tg_session_run_folder(session));
    Status status = tg_weights_load(session->exec, session->plan, session->arena, &session->files.vocabulary, path,
                                    &session->why);
    if (status == TG_IO && session->options->value[OPT_WEIGHTS] == NULL)
        return tg_session_fail(session, TG_IO, "%s; '%s train' makes it, --weights FILE names another", session->why,
                               session->name);
    return status;
}

json_t *tg_json_number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

json_t *tg_json_fields(const LoopFields *fields, const double *values) {
    json_t *object = json_object();
    for (uint32_t i = 0; i < fields->count; i++)
        json_object_set_new(object, fields->names[i], tg_json_number(values[i]));
    return object;
}

static json_t *json_by_set(const Loop *loop, json_t *(*of)(const LoopSet *)) {
    if (loop->sets[0].as[0] == '\0')
        return of(&loop->sets[0]);
    json_t *object = json_object();
    for (uint32_t i = 0; i < loop->set_count; i++)
        json_object_set_new(object, loop->sets[i].as, of(&loop->sets[i]));
    return object;
}

static json_t *json_values(const LoopSet *set) { return tg_json_fields(&set->fields, set->fields.values); }

static json_t *json_records(const LoopSet *set) { return json_integer((json_int_t)set->data->count); }

json_t *tg_json_evaluation(const Loop *loop) { return json_by_set(loop, json_values); }

json_t *tg_json_evaluated(const Loop *loop) {
    return loop->set_count > 0 ? json_by_set(loop, json_records) : json_integer(0);
}

Status tg_session_print_json(Session *session, json_t *document) {
    if (document == NULL)
        return TG_MEMORY;
    int result = json_dumpf(document, session->out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(JSON_DIGITS));
    json_decref(document);
    if (result != 0 || fputc('\n', session->out) == EOF)
        return tg_session_fail(session, TG_IO, "cannot write the result: %s", strerror(errno));
    return TG_OK;
}

const char *tg_fields_text(Arena *arena, const LoopFields *fields, const double *values) {
    Str text = tg_str(arena);
    for (uint32_t i = 0; i < fields->count; i++)
        tg_str_printf(&text, "%s%s %.4g", i > 0 ? "  " : "", fields->names[i], values[i]);
    return text.text;
}

bool tg_field_listed_before(const TgPlan *plan, uint32_t index) {
    const PlanField *field = &plan->fields[index];
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(plan->fields[i].name, field->name) == 0 && strcmp(plan->fields[i].path, field->path) == 0)
            return true;
    return false;
}
