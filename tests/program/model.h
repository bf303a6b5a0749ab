/* A model of models/ compiled in this process, for tests that look at how its plan runs. */
#ifndef TG_TESTS_MODEL_H
#define TG_TESTS_MODEL_H

#include "ir/plan/abi.h"
#include "ir/plan/plan.h"

typedef struct TestModel {
    const TgPlan *plan;
    TgProgram program; /* without its plan's bytes */
    const char *library_directory;
    const void *llvm; /* LlvmModule */
    void *code;
} TestModel;

/* `sets`: NAME=VALUE, the last NULL. Reports to stderr. */
TG_CHECKED Status model_compile(Arena *arena, const char *path, const char *const *sets, bool no_fuse,
                                TestModel *model);
void model_free(TestModel *model);

#endif
