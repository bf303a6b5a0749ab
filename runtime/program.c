#include "runtime/program.h"
#include "runtime/json.h"
#include "runtime/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Verb *const verbs[VERB_COUNT] = {
    [VERB_TRAIN] = tg_verb_train, [VERB_EVAL] = tg_verb_eval,   [VERB_PREDICT] = tg_verb_predict,
    [VERB_SAMPLE] = tg_verb_sample,
    [VERB_INFO] = tg_verb_info,   [VERB_DATA] = tg_verb_data,     [VERB_BENCH] = tg_verb_bench,
};

static void print_error(FILE *err, const char *name, const char *text) {
    const char *no_color = getenv("NO_COLOR");
    bool color = isatty(fileno(err)) && (no_color == NULL || no_color[0] == '\0');
    fprintf(err, "%s: %serror:%s %s\n", name, color ? "\033[1;31m" : "", color ? "\033[0m" : "", text);
}

static Status run(Session *session, const TgProgram *program, Options *options, int argc, char **argv) {
    Status status = tg_options_parse(session->arena, argc, argv, options, &session->why);
    session->options = options;
    if (options->help) {
        Str help = tg_str(session->arena);
        tg_options_help(&help, options, session->name);
        fputs(help.text, status == TG_OK ? session->out : session->err);
        return status;
    }
    TG_TRY(status);
    TG_TRY(tg_session_open(session, program));
    return verbs[options->verb](session);
}

int tg_program_main(const TgProgram *program, const TgHost *host, int argc, char **argv, FILE *out, FILE *err) {
    Arena arena;
    Options options;
    const char *path = argc > 0 ? argv[0] : "program", *slash = strrchr(path, '/');
    Session session = {.arena = &arena, .path = path, .name = slash != NULL ? slash + 1 : path, .out = out, .err = err};
    Session *const shared = &session; /* what the guard's second return sees is in memory */
    tg_arena_init(&arena, host);
    Arena *const json = tg_json_memory(&arena);
    Status status = setjmp(arena.guard) != 0 ? TG_MEMORY : run(shared, program, &options, argc, argv);
    if (status == TG_MEMORY && shared->why == NULL)
        shared->why = "out of memory";
    if (status != TG_OK && shared->why != NULL)
        print_error(err, shared->name, shared->why);
    tg_session_close(shared);
    (void)tg_json_memory(json);
    tg_arena_deinit(&arena);
    errno = 0;
    if (fflush(out) != 0 && status == TG_OK) {
        char why[128];
        snprintf(why, sizeof why, "cannot write the result: %s", strerror(errno));
        print_error(err, shared->name, why);
        status = TG_IO;
    }
    return status == TG_OK && shared->stopped != 0 ? TG_SIGNALLED + shared->stopped : (int)status;
}
