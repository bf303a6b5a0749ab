/* --emit=cuda, cubin and ptxas: kernels as CUDA C, as machine code of one architecture, and what they need of several. */
#include "codegen/cuda/cuda.h"
#include "driver/pipeline.h"

#include <string.h>
#include <unistd.h>

Status cuda_text(Pipeline *p, const Lowered *lowered, Str *to) {
    p->doing = "printing CUDA C";
    tg_cuda_print(p->arena, lowered, to);
    return TG_OK;
}

/* The architectures that -arch names, separated by commas; or those that are tested. */
static Texts archs_of(const Pipeline *p) {
    Texts archs = {0};
    const char *given = p->cli->value[CLI_ARCH];
    for (int i = 0; given == NULL && tg_cuda_archs[i]; i++)
        tg_push(p->arena, &archs, tg_cuda_archs[i]);
    while (given != NULL) {
        const char *comma = strchr(given, ',');
        size_t length = comma ? (size_t)(comma - given) : strlen(given);
        tg_push(p->arena, &archs, tg_arena_printf(p->arena, "%.*s", (int)length, given));
        given = comma ? comma + 1 : NULL;
    }
    return archs;
}

Status cuda_binary(Pipeline *p, const Lowered *lowered, Str *to) {
    Str text = tg_str(p->arena);
    CudaBinary binary;
    Texts archs = archs_of(p);
    const char *output = p->cli->value[CLI_OUTPUT];
    if (p->cli->value[CLI_ARCH] == NULL || archs.count != 1) {
        tg_error(p->diags, (Loc){0}, "--emit=cubin is for one architecture: name it with --arch=sm_90");
        return TG_USAGE;
    }
    if ((output == NULL || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO)) {
        tg_error(p->diags, (Loc){0}, "--emit=cubin does not write machine code to a terminal: send it to a file");
        return TG_USAGE;
    }
    TG_TRY(cuda_text(p, lowered, &text));
    TG_TRY(tg_cuda_compile(p->arena, p->diags, &text, archs.at[0], &binary));
    tg_str_add(to, binary.cubin.text, binary.cubin.length);
    return TG_OK;
}

static const CudaUsage *find_usage(const CudaBinary *binary, const char *kernel) {
    for (uint32_t i = 0; i < binary->kernels.count; i++)
        if (strcmp(binary->kernels.at[i].kernel, kernel) == 0)
            return &binary->kernels.at[i];
    return NULL;
}

Status cuda_usage(Pipeline *p, const Lowered *lowered, Str *to) {
    Str text = tg_str(p->arena);
    Texts archs = archs_of(p);
    TG_TRY(cuda_text(p, lowered, &text));
    tg_str_printf(to, "%-8s %-10s %9s %7s %6s %7s\n", "arch", "kernel", "registers", "spilled", "stack", "shared");
    for (uint32_t i = 0; i < archs.count; i++) {
        CudaBinary binary;
        TG_TRY(tg_cuda_compile(p->arena, p->diags, &text, archs.at[i], &binary));
        for (uint32_t k = 0; k < lowered->kernels.count; k++) {
            const char *name = lowered->kernels.at[k]->name;
            const CudaUsage *usage = find_usage(&binary, name);
            if (usage != NULL)
                tg_str_printf(to, "%-8s %-10s %9d %7d %6d %7d\n", archs.at[i], name, usage->registers, usage->spilled,
                              usage->stack, usage->shared);
        }
    }
    return TG_OK;
}

static bool emits(const Pipeline *p, const char *stage) {
    return p->cli->value[CLI_EMIT] && strcmp(p->cli->value[CLI_EMIT], stage) == 0;
}

bool cuda_is_emitted(const Pipeline *p) { return emits(p, "cuda") || emits(p, "cubin") || emits(p, "ptxas"); }

Status cuda_check_arch(Pipeline *p) {
    if (p->cli->value[CLI_ARCH] == NULL || emits(p, "cubin") || emits(p, "ptxas"))
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "--arch is the architecture of --emit=cubin and --emit=ptxas");
    return TG_USAGE;
}
