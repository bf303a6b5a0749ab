/* tgc compile: a program, or the text of a stage on the way to it. */
#include "driver/pipeline.h"
#include "ir/base/file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef Status Emit(Pipeline *p, Str *to);

static Status emit_ast(Pipeline *p, Str *to) {
    tg_ast_print(to, p->unit->file);
    return TG_OK;
}
static Status emit_model(Pipeline *p, Str *to) {
    tg_graph_print(to, p->model);
    return TG_OK;
}
static Status emit_step(Pipeline *p, Str *to) {
    tg_graph_print(to, p->step);
    return TG_OK;
}
static Status emit_kernel(Pipeline *p, Str *to) {
    tg_graph_print(to, p->kernel);
    return TG_OK;
}
static Status emit_loops(Pipeline *p, Str *to) {
    for (uint32_t i = 0; i < p->lowered.kernels.count; i++)
        tg_loop_print(to, p->lowered.kernels.at[i]);
    return TG_OK;
}
static Status emit_cuda(Pipeline *p, Str *to) { return cuda_text(p, &p->lowered, to); }
static Status emit_cubin(Pipeline *p, Str *to) { return cuda_binary(p, &p->lowered, to); }
static Status emit_ptxas(Pipeline *p, Str *to) { return cuda_usage(p, &p->lowered, to); }
static Status emit_plan(Pipeline *p, Str *to) {
    tg_plan_print(to, p->lowered.plan);
    return TG_OK;
}

static Status emit_machine(Pipeline *p, Str *to, int assembly) {
    LlvmRequest request = pipeline_request(p);
    const LlvmModule *module;
    p->doing = "making machine code";
    TG_TRY(tg_llvm_open(p->arena, p->diags, &module));
    return module->text(p->arena, p->diags, &request, assembly, to);
}
static Status emit_llvm(Pipeline *p, Str *to) { return emit_machine(p, to, 0); }
static Status emit_asm(Pipeline *p, Str *to) { return emit_machine(p, to, 1); }

typedef struct EmitRow {
    const char *name;
    Stage stage;
    Emit *emit;
} EmitRow;

static const EmitRow emits[] = {
    {"ast", STAGE_AST, emit_ast},          {"model", STAGE_MODEL, emit_model}, {"step", STAGE_STEP, emit_step},
    {"kernel", STAGE_KERNEL, emit_kernel}, {"loops", STAGE_PLAN, emit_loops},  {"llvm", STAGE_PLAN, emit_llvm},
    {"asm", STAGE_PLAN, emit_asm},         {"cuda", STAGE_PLAN, emit_cuda},    {"cubin", STAGE_PLAN, emit_cubin},
    {"ptxas", STAGE_PLAN, emit_ptxas},     {"plan", STAGE_PLAN, emit_plan},
};
enum { EMITS = sizeof emits / sizeof *emits };

const char *emit_stage_name(int index) { return index < EMITS ? emits[index].name : NULL; }

static const EmitRow *find_emit(Pipeline *p, const char *name) {
    const char *names[EMITS];
    for (int i = 0; i < EMITS; i++) {
        names[i] = emits[i].name;
        if (strcmp(names[i], name) == 0)
            return &emits[i];
    }
    const char *closest = tg_closest(name, names, EMITS);
    tg_error(p->diags, (Loc){0}, "--emit: no stage is named '%s'%s%s%s", name, closest ? ", did you mean '" : "",
             closest ? closest : "", closest ? "'?" : "");
    return NULL;
}

Status write_text(Pipeline *p, const char *path, const Str *text) {
    if (path == NULL || strcmp(path, "-") == 0) {
        fwrite(text->text, 1, text->length, stdout);
        return TG_OK;
    }
    TgFileWriter file;
    Status status = tg_file_begin(&file, p->arena->host, path, 0666);
    if (status == TG_OK)
        status = tg_file_write(&file, text->text, text->length);
    if (status == TG_OK)
        status = tg_file_commit(&file);
    if (status != TG_OK)
        tg_error(p->diags, (Loc){0}, "%s", file.why);
    tg_file_abandon(&file);
    return status;
}

static Status check_output(Pipeline *p, const char *output) {
    char source[PATH_MAX], target[PATH_MAX];
    const char *path = p->cli->arguments.at[0];
    if (output[0] && (!realpath(path, source) || !realpath(output, target) || strcmp(source, target) != 0))
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "the output would replace %s: name another with -o", path);
    return TG_USAGE;
}

static Status emit(Pipeline *p, const char *stage) {
    const EmitRow *row = find_emit(p, stage);
    if (row == NULL)
        return TG_USAGE;
    if (p->cli->value[CLI_OUTPUT])
        TG_TRY(check_output(p, p->cli->value[CLI_OUTPUT]));
    TG_TRY(pipeline_run(p, row->stage));
    Str text = tg_str(p->arena);
    TG_TRY(row->emit(p, &text));
    return write_text(p, p->cli->value[CLI_OUTPUT], &text);
}

Status command_compile(Pipeline *p) {
    TG_TRY(cuda_check_arch(p));
    if (p->cli->value[CLI_EMIT])
        return emit(p, p->cli->value[CLI_EMIT]);
    if (p->cli->value[CLI_BUNDLE])
        return bundle_write(p);
    if (p->cli->value[CLI_BUNDLE_DATA]) {
        tg_error(p->diags, (Loc){0}, "--bundle-data adds the data to a bundle: name its folder with --bundle=DIR");
        return TG_USAGE;
    }
    const char *output = p->cli->value[CLI_OUTPUT];
    if (output == NULL)
        output = pipeline_base_name(p);
    TG_TRY(check_output(p, output));
    TG_TRY(pipeline_run(p, STAGE_PLAN));
    LlvmRequest request = pipeline_request(p);
    double start = pipeline_begin(p, "making the program");
    bool hit;
    TG_TRY(tg_program_write(p->arena, p->diags, &request, output, &hit));
    pipeline_time(p, hit ? "cached" : "program", start);
    if (p->cli->value[CLI_REPORT]) {
        Str text = tg_str(p->arena);
        report_print(&text, p->lowered.plan);
        recompute_report(&text, p);
        fwrite(text.text, 1, text.length, stdout);
    }
    return TG_OK;
}
