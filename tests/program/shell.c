#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

char *shell_file(Scratch *scratch, const char *name, size_t *bytes) {
    FILE *file = fopen(scratch_path(scratch, name), "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    char *text = tg_arena_alloc(scratch->arena, *bytes + 1);
    CU_ASSERT_EQUAL_FATAL(fread(text, 1, *bytes, file), *bytes);
    fclose(file);
    return text;
}

static const char *prelude(Scratch *scratch) {
    return tg_arena_printf(scratch->arena,
                           "cd %s; unset TG_DATA TG_THREADS TGC_CACHE; export XDG_CACHE_HOME=%s/cache NO_COLOR=1 "
                           "tgc=" TGC_BINARY_DIR "/bin/tgc source=" TGC_SOURCE_DIR "; exec >out 2>err\n",
                           scratch->folder, scratch->folder);
}

Outcome shell(Scratch *scratch, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *command = tg_arena_vprintf(scratch->arena, format, args);
    va_end(args);
    int status = system(tg_arena_printf(scratch->arena, "%s%s", prelude(scratch), command));
    size_t bytes;
    Outcome outcome = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status)};
    outcome.out = shell_file(scratch, "out", &bytes);
    outcome.err = shell_file(scratch, "err", &bytes);
    return outcome;
}

void shell_expect(Scratch *scratch, int code, const char *said, const char *command) {
    Outcome outcome = shell(scratch, "%s", command);
    bool right = outcome.code == code && strstr(outcome.err, said);
    if (!right)
        printf("\n%s\nexit %d, not %d, or it does not say '%s':\n%s", command, outcome.code, code, said, outcome.err);
    CU_ASSERT(right);
}

json_t *shell_json(Scratch *scratch, const char *command) {
    Outcome outcome = shell(scratch, "%s", command);
    if (outcome.code != 0)
        printf("\n%s\nexit %d: %s\n", command, outcome.code, outcome.err);
    CU_ASSERT_EQUAL_FATAL(outcome.code, 0);
    json_t *document = json_loads(outcome.out, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document);
    return document;
}
