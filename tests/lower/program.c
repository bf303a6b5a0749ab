#include "tests/lower/program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void compile(TestProgram *p, const char *path, const char *const *sets) {
    Unit *unit, *std;
    LowerOptions options = {.sets = sets, .fold = true};
    while (sets && sets[options.set_count])
        options.set_count++;
    tg_diags_init(&p->diags, &p->arena, &p->sources, NULL);
    p->messages = tg_str(&p->arena);
    p->diags.capture = &p->messages;
    p->status = tg_parse_std(&p->arena, &p->diags, &p->sources, &std);
    if (p->status == TG_OK)
        p->status = tg_parse_file(&p->arena, &p->diags, &p->sources, path, &unit);
    if (p->status == TG_OK)
        p->status = tg_sema(&p->arena, &p->diags, unit, std);
    if (p->status == TG_OK)
        p->status = tg_lower(&p->arena, &p->diags, &p->sources, unit, std, &options, &p->graph);
    if (p->status == TG_OK)
        p->status = tg_graph_verify(p->graph, &p->diags);
}

TestProgram *program_file(const char *path, const char *const *sets) {
    TestProgram *p = calloc(1, sizeof *p);
    if (!p)
        exit(1);
    tg_arena_init(&p->arena, tg_host());
    if (setjmp(p->arena.guard))
        p->status = TG_MEMORY;
    else
        compile(p, tg_arena_str(&p->arena, path, strlen(path)), sets);
    return p;
}

TestProgram *program_text(const char *text, const char *const *sets) {
    char path[] = "/tmp/tgc-lower-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) != 0)
        exit(1);
    TestProgram *program = program_file(path, sets);
    unlink(path);
    return program;
}

void program_free(TestProgram *program) {
    tg_arena_deinit(&program->arena);
    free(program);
}

static Tensor *evaluate(TestProgram *p, const Func *func, double of_parameters) {
    Graph *graph = p->graph;
    double *scalars = TG_ALLOC(&p->arena, double, graph->scalars.count + 1);
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        scalars[i] = strcmp(graph->scalars.at[i].name, "step") == 0 ? 1 : graph->scalars.at[i].value;
    Tensor *buffers = TG_ALLOC(&p->arena, Tensor, graph->buffers.count + 1);
    for (uint32_t i = 0; i < graph->buffers.count; i++) {
        int64_t count = tg_type_count(tg_type_of(&graph->types, graph->buffers.at[i].type), 1);
        buffers[i] = (Tensor){graph->buffers.at[i].type, count, TG_ALLOC(&p->arena, double, count + 1)};
        for (int64_t k = 0; graph->buffers.at[i].class == BUFFER_PARAM && k < count; k++)
            buffers[i].at[k] = of_parameters;
    }
    EvalState state = {
        .arena = &p->arena, .mode = EVAL_TYPED, .rows = 1, .seed = 7, .scalars = scalars, .buffers = buffers};
    Tensor *results = TG_ALLOC(&p->arena, Tensor, func->results.count + 1);
    if (tg_eval_func(&state, graph, func, &p->diags, results) != TG_OK) {
        fprintf(stderr, "%s\n", p->messages.text);
        exit(1);
    }
    return results;
}

double program_value(TestProgram *p, const char *function, const char *field) {
    const Func *func = tg_func_find(p->graph, FUNC_EXPORT, function);
    Tensor *results = evaluate(p, func, 1);
    for (uint32_t i = 0; i < func->results.count; i++)
        if (func->results.at[i].kind == RESULT_VALUE && strcmp(func->results.at[i].name, field) == 0)
            return results[i].at[0];
    fprintf(stderr, "no field %s\n", field);
    exit(1);
}

double program_update(TestProgram *p, const char *buffer, double value) {
    const Func *func = tg_func_find(p->graph, FUNC_UPDATE, NULL);
    for (uint32_t i = 1; i < func->nodes.count; i++)
        if (func->nodes.at[i].op == OP_gradient)
            func->nodes.at[i].op = OP_load;
    Tensor *results = evaluate(p, func, value);
    for (uint32_t i = 0; i < func->results.count; i++)
        if (func->results.at[i].kind == RESULT_STORE &&
            strcmp(p->graph->buffers.at[func->results.at[i].buffer].name, buffer) == 0)
            return results[i].at[0];
    fprintf(stderr, "%s is not stored\n", buffer);
    exit(1);
}
