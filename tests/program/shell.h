/* Runs the real programs: commands in a folder of the test's own, with a cache of their own. */
#ifndef TG_TESTS_SHELL_H
#define TG_TESTS_SHELL_H

#include "ir/base/status.h"
#include "tests/runtime/scratch.h"

#include <jansson.h>

typedef struct Outcome {
    int code; /* 256 + signal when killed */
    char *out, *err;
} Outcome;

/* The command of `format`, by sh, in the scratch folder. $tgc is the compiler, $source the source tree. */
Outcome shell(Scratch *scratch, const char *format, ...) TG_PRINTF(2, 3);
/* Fails the test, with what was said, when the code is another. */
void shell_expect(Scratch *scratch, int code, const char *said, const char *command);
/* The document that the command prints; the test ends if it fails. The caller frees it. */
json_t *shell_json(Scratch *scratch, const char *command);
char *shell_file(Scratch *scratch, const char *name, size_t *bytes);

#endif
