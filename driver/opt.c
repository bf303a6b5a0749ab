/* tgc opt: passes on a graph in text form, and the text form of a kernel's loops. */
#include "driver/pipeline.h"
#include "ir/base/file.h"

#include <string.h>

static Status read_text(Pipeline *p, const char **path, char **text, size_t *length) {
    const char *why;
    p->doing = "reading a graph";
    p->reads_graph = true;
    Status status = tg_file_read(p->arena, *path, text, length, &why);
    if (status != TG_OK)
        tg_error(p->diags, (Loc){0}, "%s", why);
    if (strcmp(*path, "-") == 0)
        *path = "<stdin>";
    return status;
}

Status read_graph(Pipeline *p, const char *path, Graph **graph) {
    char *text;
    size_t length;
    TG_TRY(read_text(p, &path, &text, &length));
    TG_TRY(tg_graph_parse(p->arena, p->diags, p->sources, path, text, length, graph));
    return tg_graph_verify_input(*graph, p->diags);
}

static Status loops(Pipeline *p, const char *path, Str *out) {
    char *text;
    size_t length;
    TG_TRY(read_text(p, &path, &text, &length));
    uint16_t source = tg_source_add(p->sources, p->arena, path, text, length);
    LoopKernels kernels;
    TG_TRY(tg_loop_parse(p->arena, p->diags, source, &kernels));
    for (uint32_t i = 0; i < kernels.count; i++) {
        TG_TRY(tg_loop_verify(kernels.at[i], p->diags));
        tg_loop_print(out, kernels.at[i]);
    }
    return TG_OK;
}

static Status graph(Pipeline *p, const char *path, Str *out) {
    Status status;
    PassOptions options = pipeline_pass_options(p, &status);
    TG_TRY(status);
    Graph *in, *result;
    TG_TRY(read_graph(p, path, &in));
    const char *passes = p->cli->value[CLI_PASSES];
    PassContext *context = pipeline_passes(p);
    double memory;
    TG_TRY(recompute_options(p, &context->recompute, &memory));
    TG_TRY(tg_passes_run(context, &options, passes ? passes : "", in, &result));
    pass_stats(p, context);
    p->passes = NULL;
    tg_graph_print(out, result);
    return TG_OK;
}

Status command_opt(Pipeline *p) {
    const char *path = p->cli->arguments.at[0];
    Str out = tg_str(p->arena);
    TG_TRY(p->cli->value[CLI_LOOPS] ? loops(p, path, &out) : graph(p, path, &out));
    fwrite(out.text, 1, out.length, stdout);
    return TG_OK;
}
