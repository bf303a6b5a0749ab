/* What the IR's tests share: an arena with its guard, sources, silent diagnostics whose text a test can read. */
#ifndef TG_TEST_IR_SUPPORT_H
#define TG_TEST_IR_SUPPORT_H

#include "ir/build.h"

#include <CUnit/CUnit.h>

typedef struct World {
    Arena arena;
    Sources sources;
    Diags diags;
    Str messages;
    Graph *graph;
} World;

/* Out of memory in a test ends the program. */
void world_init(World *w, Level level);
void world_deinit(World *w);

/* "f32[B, 64]" */
TypeId type_named(World *w, const char *text);
/* The text form with places. */
const char *printed(World *w, const Graph *graph);
/* NULL when it does not parse; the reason is in w->messages. */
Graph *parsed(World *w, const char *text);

typedef struct TestCase {
    const char *name;
    void (*run)(void);
} TestCase;
int run_tests(const char *suite, const TestCase *cases, int count);

#endif
