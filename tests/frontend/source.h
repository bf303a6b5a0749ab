/* A compilation of text given in a test. */
#ifndef TG_TEST_SOURCE_H
#define TG_TEST_SOURCE_H

#include "frontend/ast.h"

typedef struct TestSource {
    Arena arena;
    Sources sources;
    Diags diags;
    Str messages; /* what was reported, as a user sees it */
    Unit *unit, *std;
    Status status;
} TestSource;

/* Parses `text`, a file of its own. */
TestSource *source_parse(const TgHost *host, const char *text, size_t length);
/* Parses and checks names against the library. */
TestSource *source_check(const char *text);
void source_free(TestSource *source);
/* The tree of the file as --emit=ast prints it. */
const char *source_tree(TestSource *source);

#endif
