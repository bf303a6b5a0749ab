/* tgc: finds the command, sets up diagnostics, and turns the result into an exit code. */
#include "driver/crash.h"
#include "runtime/json.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef Status Run(Pipeline *p);

static Run *run_of(Command command) {
    static Run *const runs[COMMAND_COUNT] = {
        [COMMAND_NEW] = command_new,         [COMMAND_COMPLETION] = command_completion,
        [COMMAND_MAN] = command_man,         [COMMAND_CHECK] = command_check,
        [COMMAND_COMPILE] = command_compile, [COMMAND_OPT] = command_opt,
        [COMMAND_LLC] = command_llc,         [COMMAND_DIFF] = command_diff,
        [COMMAND_REDUCE] = command_reduce,   [COMMAND_BISECT] = command_bisect,
        [COMMAND_EXPLAIN] = command_explain, [COMMAND_REPLAY] = command_replay,
        [COMMAND_PROFILE] = command_profile,
        [COMMAND_FIT] = command_fit,         [COMMAND_RANGES] = command_ranges,
        [COMMAND_TRAIN] = command_run,       [COMMAND_EVAL] = command_run,
        [COMMAND_PREDICT] = command_run,     [COMMAND_SAMPLE] = command_run,
        [COMMAND_INFO] = command_run,        [COMMAND_DATA] = command_run,
        [COMMAND_BENCH] = command_run,
    };
    return runs[command];
}

static Status set_diagnostics(Pipeline *p) {
    const char *form = p->cli->value[CLI_DIAGNOSTICS];
    p->diags->json = form && strcmp(form, "json") == 0;
    const char *no_color = getenv("NO_COLOR");
    p->diags->color = !p->diags->json && isatty(2) && (no_color == NULL || no_color[0] == '\0');
    if (form && strcmp(form, "json") != 0 && strcmp(form, "text") != 0) {
        tg_error(p->diags, (Loc){0}, "--diagnostics is text or json, not '%s'", form);
        return TG_USAGE;
    }
    for (uint32_t i = 0; i < p->cli->warnings.count && p->cli->command != COMMAND_EXPLAIN; i++)
        if (!tg_diags_flag(p->diags, p->cli->warnings.at[i])) {
            tg_error(p->diags, (Loc){0}, "there is no warning -W%s; 'tgc explain' lists all", p->cli->warnings.at[i]);
            return TG_USAGE;
        }
    return TG_OK;
}

static void print_help(Arena *arena, Command command, FILE *to) {
    Str text = tg_str(arena);
    cli_help(&text, command);
    fwrite(text.text, 1, text.length, to);
}

static bool is_any(const char *text, const char *a, const char *b, const char *c) {
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

/* Errors of the command line itself are written so as well, before it is understood. */
static bool asks_for_json(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i] + (argv[i][0] == '-') + (argv[i][0] == '-' && argv[i][1] == '-');
        bool split =
            strcmp(text, "diagnostics") == 0 && text > argv[i] && i + 1 < argc && strcmp(argv[i + 1], "json") == 0;
        if (split || (text > argv[i] && strcmp(text, "diagnostics=json") == 0))
            return true;
    }
    return false;
}

static Status run_command(Pipeline *p, Cli *cli, int argc, char **argv) {
    const char *why;
    p->diags->json = asks_for_json(argc, argv);
    Command command = cli_command(p->arena, argv[1], &why);
    if (command == COMMAND_COUNT || cli_parse(p->arena, command, argc - 2, argv + 2, cli, &why) != TG_OK) {
        tg_error(p->diags, (Loc){0}, "%s", why);
        return TG_USAGE;
    }
    if (cli->value[CLI_HELP]) {
        print_help(p->arena, command, stdout);
        return TG_OK;
    }
    TG_TRY(set_diagnostics(p));
    crash_begin(p, argc, argv);
    Status status = run_of(command)(p);
    if (status == TG_INTERNAL && p->passes == NULL) /* passes write theirs */
        crash_reproduce();
    uint32_t hidden = p->diags->errors > p->diags->error_limit ? p->diags->errors - p->diags->error_limit : 0;
    if (hidden && !p->diags->json)
        fprintf(stderr, "tgc: %u more error%s not shown\n", hidden, hidden == 1 ? "" : "s");
    return status == TG_OK && p->diags->errors ? TG_MODEL : status;
}

static Status no_memory(void) {
    fputs("tgc: error: no memory left\n", stderr);
    return TG_MEMORY;
}

static Status tgc(Arena *arena, int argc, char **argv) {
    if (argc < 2) {
        print_help(arena, COMMAND_COUNT, stderr);
        return TG_USAGE;
    }
    if (is_any(argv[1], "--help", "-help", "help")) {
        print_help(arena, COMMAND_COUNT, stdout);
        return TG_OK;
    }
    if (is_any(argv[1], "--version", "-version", "version")) {
        printf("tgc %s\n", TGC_VERSION);
        return TG_OK;
    }
    Sources *sources = TG_ALLOC(arena, Sources, 1);
    Diags *diags = TG_ALLOC(arena, Diags, 1);
    tg_diags_init(diags, arena, sources, stderr);
    Cli *cli = TG_ALLOC(arena, Cli, 1);
    Pipeline *pipeline = TG_ALLOC(arena, Pipeline, 1);
    *pipeline = (Pipeline){.arena = arena, .diags = diags, .sources = sources, .cli = cli};
    Status status = run_command(pipeline, cli, argc, argv);
    return status == TG_MEMORY && diags->errors == 0 ? no_memory() : status;
}

int main(int argc, char **argv) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    (void)tg_json_memory(&arena);
    Status status = setjmp(arena.guard) ? no_memory() : tgc(&arena, argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == TG_OK) {
        fputs("tgc: error: cannot write the output\n", stderr);
        status = TG_IO;
    }
    tg_arena_deinit(&arena);
    return (int)status;
}
