/* Programs given as text in a test, lowered and evaluated by the reference evaluator. */
#ifndef TG_TEST_PROGRAM_H
#define TG_TEST_PROGRAM_H

#include "frontend/ast.h"
#include "ir/eval.h"

typedef struct TestProgram {
    Arena arena;
    Sources sources;
    Diags diags;
    Str messages;
    Graph *graph;
    Status status;
} TestProgram;

/* Lowers a file; `sets` ends with NULL, or is NULL. Gives graphs that verify. */
TestProgram *program_file(const char *path, const char *const *sets);
/* Lowers `text`. */
TestProgram *program_text(const char *text, const char *const *sets);
void program_free(TestProgram *program);

/* The first element of the named value of an `export fn`. */
double program_value(TestProgram *program, const char *function, const char *field);
/* The value that `update` stores in `buffer` where every parameter has the value `value`, each gradient equals its
   parameter, optimizer states are 0, and `step` is 1. */
double program_update(TestProgram *program, const char *buffer, double value);

#endif
