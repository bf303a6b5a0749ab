/* tgc diff: what two graphs, or the graphs of two models, do not have in common. */
#include "driver/pipeline.h"
#include "passes/diff.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Status graph_of_model(Pipeline *p, const char *path, Graph **graph) {
    const char *stage = p->cli->value[CLI_COMPARED];
    if (stage == NULL)
        stage = "step";
    bool model = strcmp(stage, "model") == 0, kernel = strcmp(stage, "kernel") == 0;
    if (!model && !kernel && strcmp(stage, "step") != 0) {
        tg_error(p->diags, (Loc){0}, "--emit is model, step or kernel here, not '%s'", stage);
        return TG_USAGE;
    }
    Cli cli = {.command = COMMAND_DIFF};
    tg_push(p->arena, &cli.arguments, path);
    Pipeline own = {.arena = p->arena, .diags = p->diags, .sources = p->sources, .cli = &cli};
    TG_TRY(pipeline_run(&own, model ? STAGE_MODEL : kernel ? STAGE_KERNEL : STAGE_STEP));
    *graph = model ? own.model : kernel ? own.kernel : own.step;
    return TG_OK;
}

/* Where a graph came from is no part of its structure. */
static void forget_origin(Graph *graph) {
    graph->path = NULL;
    for (uint32_t i = 0; i < graph->settings.count; i++)
        graph->settings.at[i].origin = NULL;
}

static Status graph_of(Pipeline *p, const char *path, Graph **graph) {
    TG_TRY(is_model(path) ? graph_of_model(p, path, graph) : read_graph(p, path, graph));
    forget_origin(*graph);
    return TG_OK;
}

static const char *color_of(const char *line) {
    switch (*line) {
    case '-': return "\033[31m";
    case '+': return "\033[32m";
    case '@': return "\033[36m";
    default: return NULL;
    }
}

static void print(const Str *text) {
    const char *no_color = getenv("NO_COLOR");
    bool colors = isatty(1) && (no_color == NULL || no_color[0] == '\0');
    for (const char *line = text->text, *end = line + text->length; line < end;) {
        size_t length = strcspn(line, "\n");
        const char *color = colors ? color_of(line) : NULL;
        printf("%s%.*s%s\n", color ? color : "", (int)length, line, color ? "\033[m" : "");
        line += length + 1;
    }
}

Status command_diff(Pipeline *p) {
    const char *const *paths = p->cli->arguments.at;
    if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0) {
        tg_error(p->diags, (Loc){0}, "only one of the two graphs can be standard input");
        return TG_USAGE;
    }
    Graph *before, *after;
    TG_TRY(graph_of(p, paths[0], &before));
    TG_TRY(graph_of(p, paths[1], &after));
    Str text = tg_str(p->arena);
    tg_str_printf(&text, "--- %s\n+++ %s\n", paths[0], paths[1]);
    size_t head = text.length;
    tg_graph_diff(&text, before, after);
    if (text.length == head)
        return TG_OK;
    print(&text);
    return TG_DIFFERS;
}
