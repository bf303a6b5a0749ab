#include "driver/pipeline.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double pipeline_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double pipeline_begin(Pipeline *p, const char *part) {
    p->doing = part;
    return pipeline_seconds();
}

PassContext *pipeline_passes(Pipeline *p) {
    p->passes = TG_ALLOC(p->arena, PassContext, 1);
    *p->passes = (PassContext){.arena = p->arena, .diags = p->diags};
    return p->passes;
}

void pipeline_time(const Pipeline *p, const char *part, double start) {
    if (p->cli->value[CLI_TIME_REPORT])
        fprintf(stderr, "%-12s %8.3f ms\n", part, 1e3 * (pipeline_seconds() - start));
}

const char *pipeline_base_name(const Pipeline *p) {
    const char *path = p->cli->arguments.at[0], *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    if (length > 3 && strcmp(name + length - 3, ".tg") == 0)
        length -= 3;
    return tg_arena_str(p->arena, name, length);
}

bool is_model(const char *path) {
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".tg") == 0;
}

static Status not_built(Pipeline *p, CliOption option, const char *only) {
    static const char *const names[] = {
#define OPTION(id, name, ...) name,
#include "driver/options.def"
#undef OPTION
    };
    const char *value = p->cli->value[option], *name = names[option];
    if (value == NULL || strcmp(value, only) == 0)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "%s%s %s is not built yet; there is %s", name[1] ? "--" : "-", name, value, only);
    return TG_USAGE;
}

Status pipeline_check_options(Pipeline *p) {
    TG_TRY(not_built(p, CLI_DP, "1"));
    TG_TRY(not_built(p, CLI_TP, "1"));
    TG_TRY(not_built(p, CLI_PP, "1"));
    const char *target = p->cli->value[CLI_TARGET];
    if (target && strcmp(target, "cuda") == 0 && p->cli->value[CLI_EMIT])
        return TG_OK;
    return not_built(p, CLI_TARGET, "cpu");
}

static bool has_pass(Pipeline *p, const char *option, const char *name) {
    if (tg_pass_named(name) >= 0 || strcmp(name, "all") == 0)
        return true;
    const char *names[PASS_COUNT];
    for (int i = 0; i < PASS_COUNT; i++)
        names[i] = tg_pass(i)->name;
    const char *closest = tg_closest(name, names, PASS_COUNT);
    tg_error(p->diags, (Loc){0}, "--%s: no pass is named '%s'%s%s%s", option, name, closest ? ", did you mean '" : "",
             closest ? closest : "", closest ? "'?" : "");
    return false;
}

PassOptions pipeline_pass_options(Pipeline *p, Status *status) {
    const Cli *cli = p->cli;
    PassOptions options = tg_pass_options();
    const char *verify = cli->value[CLI_VERIFY_EACH];
    options.dump = p->quiet ? NULL : stderr;
    options.no_fold = cli->value[CLI_NO_FOLD] != NULL;
    options.no_fuse = cli->value[CLI_NO_FUSE] != NULL;
    options.validate = cli->value[CLI_VALIDATE] != NULL;
    options.time_report = cli->value[CLI_TIME_REPORT] != NULL;
    options.print_after = cli->value[CLI_PRINT_AFTER];
    options.print_after_change = cli->value[CLI_PRINT_AFTER_CHANGE];
    options.verify_each = verify == NULL || strcmp(verify, "off") != 0;
    bool ok = true;
    if (verify && strcmp(verify, "off") != 0 && strcmp(verify, "on") != 0) {
        tg_error(p->diags, (Loc){0}, "--verify-each is on or off, not '%s'", verify);
        ok = false;
    }
    if (options.print_after)
        ok = has_pass(p, "print-after", options.print_after) && ok;
    if (options.print_after_change)
        ok = has_pass(p, "print-after-change", options.print_after_change) && ok;
    for (uint32_t i = 0; i < cli->disabled.count && i < sizeof options.disable / sizeof *options.disable; i++) {
        ok = has_pass(p, "disable-pass", cli->disabled.at[i]) && ok;
        options.disable[options.disabled++] = cli->disabled.at[i];
    }
    ok = pass_reports(p, &options) && ok;
    *status = ok ? TG_OK : TG_USAGE;
    return options;
}

static Status parse(Pipeline *p) {
    if (p->unit)
        return TG_OK;
    double start = pipeline_begin(p, "parsing");
    TG_TRY(tg_parse_std(p->arena, p->diags, p->sources, &p->std));
    TG_TRY(tg_parse_file(p->arena, p->diags, p->sources, p->cli->arguments.at[0], &p->unit));
    pipeline_time(p, "parse", start);
    return TG_OK;
}

static bool is_run_setting(const Graph *graph, const char *set) {
    size_t length = strcspn(set, "=");
    for (uint32_t i = 0; i < graph->settings.count; i++) {
        const Setting *setting = &graph->settings.at[i];
        if (setting->runtime && strlen(setting->name) == length && strncmp(setting->name, set, length) == 0)
            return true;
    }
    return false;
}

/* A program takes its run-time settings itself, so that another value does not mean another program. Which they are is
   known from the program as it stands. */
static void divide_sets(Pipeline *p, Texts *compiled) {
    LowerOptions options = {.fold = true};
    Diags quiet;
    tg_diags_init(&quiet, p->arena, p->sources, NULL);
    Graph *graph = NULL;
    bool known = tg_lower(p->arena, &quiet, p->sources, p->unit, p->std, &options, &graph) == TG_OK;
    for (uint32_t i = 0; i < p->cli->sets.count; i++) {
        const char *set = p->cli->sets.at[i];
        if (known && is_run_setting(graph, set))
            tg_push(p->arena, &p->run_sets, set);
        else
            tg_push(p->arena, compiled, set);
    }
}

static Status check_names(Pipeline *p) {
    if (p->named)
        return TG_OK;
    double start = pipeline_begin(p, "checking names");
    TG_TRY(tg_sema(p->arena, p->diags, p->unit, p->std));
    p->named = true;
    pipeline_time(p, "sema", start);
    return TG_OK;
}

static Status lower(Pipeline *p) {
    double start = pipeline_begin(p, "building the graph");
    Texts sets = {0};
    if (p->cli->command >= COMMAND_TRAIN && p->cli->sets.count)
        divide_sets(p, &sets);
    else
        sets = p->cli->sets;
    LowerOptions options = {.sets = sets.at, .set_count = sets.count, .fold = p->cli->value[CLI_NO_FOLD] == NULL,
                            .check_only = p->cli->command == COMMAND_CHECK};
    TG_TRY(precision_rules(p, &options));
    if (p->cli->value[CLI_SHAPES] || p->cli->command == COMMAND_EXPLAIN)
        shapes_watch(p, &options);
    TG_TRY(tg_lower(p->arena, p->diags, p->sources, p->unit, p->std, &options, &p->model));
    pipeline_time(p, "lower", start);
    return TG_OK;
}

static const char *own_path(Arena *arena) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 && length < (ssize_t)sizeof path ? tg_arena_str(arena, path, (size_t)length) : "tgc";
}

/* A program finds its data from any folder that it is started in. */
static const char *absolute(Arena *arena, const char *path) {
    char full[PATH_MAX];
    return realpath(path, full) ? tg_arena_str(arena, full, strlen(full)) : path;
}

LoopTarget pipeline_target(const Pipeline *p) {
    const char *target = p->cli->value[CLI_TARGET];
    return cuda_is_emitted(p) || (target && strcmp(target, "cuda") == 0) ? LOOPS_CUDA : LOOPS_CPU;
}

static Status plan(Pipeline *p) {
    double start = pipeline_begin(p, "planning");
    Str text = tg_str(p->arena);
    tg_graph_print(&text, p->step);
    TG_TRY(tg_plan_build(p->arena, p->diags, p->kernel, text.text, pipeline_target(p), &p->lowered));
    p->lowered.plan->tgc = own_path(p->arena);
    p->lowered.plan->library_directory = tg_library_directory(p->arena);
    p->lowered.plan->source_directory = absolute(p->arena, p->lowered.plan->source_directory);
    pipeline_time(p, "plan", start);
    return TG_OK;
}

Status pipeline_run(Pipeline *p, Stage until) {
    TG_TRY(pipeline_check_options(p));
    TG_TRY(precision_choose(p));
    Status status;
    PassOptions options = pipeline_pass_options(p, &status);
    TG_TRY(status);
    TG_TRY(parse(p));
    if (until == STAGE_AST)
        return TG_OK;
    TG_TRY(check_names(p));
    if (until == STAGE_NAMES)
        return TG_OK;
    TG_TRY(lower(p));
    precision_apply(p);
    PassContext *context = pipeline_passes(p);
    if (until >= STAGE_STEP)
        TG_TRY(recompute_run(p, context, &options, &p->step));
    if (until >= STAGE_KERNEL)
        TG_TRY(tg_passes_run(context, &options, "fuse", p->step, &p->kernel));
    pass_stats(p, context);
    p->ran = context;
    recompute_note(p);
    p->passes = NULL;
    return until >= STAGE_PLAN ? plan(p) : TG_OK;
}

LlvmRequest pipeline_request(const Pipeline *p) {
    const char *cpu = p->cli->value[CLI_CPU];
    return (LlvmRequest){.lowered = &p->lowered, .cpu = cpu ? cpu : "", .optimize = 3};
}
