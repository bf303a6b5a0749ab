#include "tests/ir/support.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

void world_init(World *w, Level level) {
    *w = (World){0};
    tg_arena_init(&w->arena, tg_host());
    if (setjmp(w->arena.guard))
        exit(1);
    tg_diags_init(&w->diags, &w->arena, &w->sources, NULL);
    w->messages = tg_str(&w->arena);
    w->diags.capture = &w->messages;
    tg_source_add(&w->sources, &w->arena, "model.tg", "one\ntwo\n", 8);
    w->graph = tg_graph_new(&w->arena, &w->sources, level);
}

void world_deinit(World *w) { tg_arena_deinit(&w->arena); }

TypeId type_named(World *w, const char *text) {
    Type type = {0};
    char word[16];
    int taken = 0;
    if (strncmp(text, "scaled ", 7) == 0) {
        type.scaled = true;
        text += 7;
    }
    CU_ASSERT_FATAL(sscanf(text, "%15[a-z0-9]%n", word, &taken) == 1);
    type.dtype = tg_dtype_named(word);
    CU_ASSERT_FATAL(type.dtype != DT_COUNT);
    for (text += taken; *text == '[' || *text == ','; text += strcspn(text, ",]")) {
        long long size = 1;
        Dim dim = {.size = 1};
        text += strspn(text, "[, ");
        if (*text == 'B') {
            dim.batch = true;
            text += text[1] == '*' ? 2 : 1;
        }
        if (sscanf(text, "%lld", &size) == 1)
            dim.size = size;
        type.dims[type.rank++] = dim;
    }
    return tg_type(&w->graph->types, &type);
}

const char *printed(World *w, const Graph *graph) {
    Str text = tg_str(&w->arena);
    tg_graph_print(&text, graph);
    return text.text;
}

Graph *parsed(World *w, const char *text) {
    Graph *graph;
    w->messages.length = 0;
    Status status = tg_graph_parse(&w->arena, &w->diags, &w->sources, "test.tgir", text, strlen(text), &graph);
    return status == TG_OK ? graph : NULL;
}

int run_tests(const char *suite_name, const TestCase *cases, int count) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
    for (int i = 0; i < count; i++)
        if (suite == NULL || CU_add_test(suite, cases[i].name, cases[i].run) == NULL)
            return 1;
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    bool good = CU_get_number_of_failures() == 0 && CU_get_error() == CUE_SUCCESS;
    CU_cleanup_registry();
    return good ? 0 : 1;
}
