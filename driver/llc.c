/* tgc llc: loops of kernels, as `tgc compile --emit=loops` prints them, to LLVM IR, assembly or CUDA. */
#include "driver/pipeline.h"
#include "ir/base/file.h"

#include <string.h>

typedef Status Emit(Pipeline *p, const LlvmRequest *request, Str *to);

static Status emit_machine(Pipeline *p, const LlvmRequest *request, int assembly, Str *to) {
    const LlvmModule *module;
    p->doing = "making machine code";
    TG_TRY(tg_llvm_open(p->arena, p->diags, &module));
    return module->text(p->arena, p->diags, request, assembly, to);
}
static Status emit_asm(Pipeline *p, const LlvmRequest *request, Str *to) { return emit_machine(p, request, 1, to); }
static Status emit_llvm(Pipeline *p, const LlvmRequest *request, Str *to) { return emit_machine(p, request, 0, to); }
static Status emit_cuda(Pipeline *p, const LlvmRequest *request, Str *to) { return cuda_text(p, request->lowered, to); }
static Status emit_cubin(Pipeline *p, const LlvmRequest *request, Str *to) { return cuda_binary(p, request->lowered, to); }
static Status emit_ptxas(Pipeline *p, const LlvmRequest *request, Str *to) { return cuda_usage(p, request->lowered, to); }

static Emit *find_emit(Pipeline *p, const char *name) {
    static const struct {
        const char *name;
        Emit *emit;
    } emits[] = {{"asm", emit_asm}, {"llvm", emit_llvm}, {"cuda", emit_cuda}, {"cubin", emit_cubin}, {"ptxas", emit_ptxas}};
    for (size_t i = 0; i < sizeof emits / sizeof *emits; i++)
        if (strcmp(emits[i].name, name) == 0)
            return emits[i].emit;
    tg_error(p->diags, (Loc){0}, "tgc llc: --emit is asm, llvm, cuda, cubin or ptxas, not '%s'", name);
    return NULL;
}

static Status read_request(Pipeline *p, LlvmRequest *request, Emit **emit) {
    const char *const *value = p->cli->value;
    const char *level = value[CLI_OPTIMIZE] ? value[CLI_OPTIMIZE] : "3";
    *emit = find_emit(p, value[CLI_EMIT] ? value[CLI_EMIT] : "asm");
    if (*emit == NULL)
        return TG_USAGE;
    if (level[0] < '0' || level[0] > '3' || level[1]) {
        tg_error(p->diags, (Loc){0}, "-O is 0, 1, 2 or 3, not '%s'", level);
        return TG_USAGE;
    }
    request->cpu = value[CLI_CPU] ? value[CLI_CPU] : "";
    request->optimize = level[0] - '0';
    return TG_OK;
}

Status command_llc(Pipeline *p) {
    const char *path = p->cli->arguments.at[0], *why;
    Lowered lowered = {0};
    LlvmRequest request = {.lowered = &lowered};
    Emit *emit;
    TG_TRY(read_request(p, &request, &emit));
    TG_TRY(cuda_check_arch(p));
    char *text;
    size_t length;
    Status status = tg_file_read(p->arena, path, &text, &length, &why);
    if (status != TG_OK) {
        tg_error(p->diags, (Loc){0}, "%s", why);
        return status;
    }
    uint16_t source = tg_source_add(p->sources, p->arena, strcmp(path, "-") == 0 ? "<stdin>" : path, text, length);
    TG_TRY(tg_loop_parse(p->arena, p->diags, source, &lowered.kernels));
    for (uint32_t i = 0; i < lowered.kernels.count; i++)
        TG_TRY(tg_loop_verify(lowered.kernels.at[i], p->diags));
    Str out = tg_str(p->arena);
    TG_TRY(emit(p, &request, &out));
    fwrite(out.text, 1, out.length, stdout);
    return TG_OK;
}
