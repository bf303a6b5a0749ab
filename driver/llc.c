/* tgc llc: loops of kernels, as `tgc compile --emit=loops` prints them, to LLVM IR or assembly. */
#include "driver/pipeline.h"
#include "ir/base/file.h"

#include <string.h>

static Status read_request(Pipeline *p, LlvmRequest *request, int *assembly) {
    const char *const *value = p->cli->value;
    const char *emit = value[CLI_EMIT] ? value[CLI_EMIT] : "asm", *level = value[CLI_OPTIMIZE] ? value[CLI_OPTIMIZE] : "3";
    *assembly = strcmp(emit, "asm") == 0;
    if (!*assembly && strcmp(emit, "llvm") != 0) {
        tg_error(p->diags, (Loc){0}, "tgc llc: --emit is llvm or asm, not '%s'", emit);
        return TG_USAGE;
    }
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
    int assembly;
    TG_TRY(read_request(p, &request, &assembly));
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
    const LlvmModule *module;
    p->doing = "making machine code";
    TG_TRY(tg_llvm_open(p->arena, p->diags, &module));
    Str out = tg_str(p->arena);
    TG_TRY(module->text(p->arena, p->diags, &request, assembly, &out));
    fwrite(out.text, 1, out.length, stdout);
    return TG_OK;
}
