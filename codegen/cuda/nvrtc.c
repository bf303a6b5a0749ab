/* NVRTC, opened when it is asked for: nothing of CUDA is linked. */
#include "codegen/cuda/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

const char *const tg_cuda_archs[] = {"sm_80", "sm_90", "sm_100", NULL};

typedef struct NvrtcProgram NvrtcProgram;

/* X(result, name, parameters): the functions of nvrtc.h that are called. Results are 0 when all is well. */
#define NVRTC_FUNCTIONS(X)                                                                                             \
    X(int, GetNumSupportedArchs, (int *count))                                                                         \
    X(int, GetSupportedArchs, (int *archs))                                                                            \
    X(const char *, GetErrorString, (int result))                                                                      \
    X(int, CreateProgram,                                                                                              \
      (NvrtcProgram **program, const char *text, const char *name, int headers, const char *const *header_texts,       \
       const char *const *header_names))                                                                               \
    X(int, DestroyProgram, (NvrtcProgram **program))                                                                   \
    X(int, CompileProgram, (NvrtcProgram *program, int options, const char *const *option_texts))                      \
    X(int, GetProgramLogSize, (NvrtcProgram *program, size_t *bytes))                                                  \
    X(int, GetProgramLog, (NvrtcProgram *program, char *text))                                                         \
    X(int, GetCUBINSize, (NvrtcProgram *program, size_t *bytes))                                                       \
    X(int, GetCUBIN, (NvrtcProgram *program, char *bytes))

typedef struct Nvrtc {
#define X(result, name, parameters) result(*name) parameters;
    NVRTC_FUNCTIONS(X)
#undef X
} Nvrtc;

/* ---- the library ---- */

static void *open_in(Arena *arena, const char *folder) {
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(folder ? tg_arena_printf(arena, "%s/lib64/%s", folder, names[i]) : names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

static void *open_library(Arena *arena) {
    const char *const folders[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        void *library = folders[i] && folders[i][0] ? open_in(arena, folders[i]) : NULL;
        if (library)
            return library;
    }
    return open_in(arena, NULL);
}

/* NULL: all are there; else the one that is not. */
static const char *find_functions(void *library, Nvrtc *nvrtc) {
    void *found;
#define X(result, name, parameters)                                                                                    \
    found = dlsym(library, "nvrtc" #name);                                                                             \
    if (found == NULL)                                                                                                 \
        return "nvrtc" #name;                                                                                          \
    memcpy(&nvrtc->name, &found, sizeof found);
    NVRTC_FUNCTIONS(X)
#undef X
    return NULL;
}

bool tg_cuda_has_compiler(Arena *arena) {
    void *library = open_library(arena);
    if (library)
        dlclose(library);
    return library != NULL;
}

static Status open_nvrtc(Arena *arena, Diags *diags, Nvrtc *nvrtc) {
    void *library = open_library(arena); /* stays open: NVRTC keeps state of its own */
    if (library == NULL) {
        tg_error(diags, (Loc){0}, "cannot open the CUDA compiler, libnvrtc.so");
        tg_note(diags, (Loc){0}, "it comes with the CUDA toolkit: set CUDA_HOME to its folder if that is not /usr/local/cuda");
        return TG_IO;
    }
    const char *missing = find_functions(library, nvrtc);
    if (missing == NULL)
        return TG_OK;
    tg_error(diags, (Loc){0}, "libnvrtc.so has no %s: it is older than CUDA 11.2", missing);
    return TG_IO;
}

/* ---- architectures ---- */

static Status check_arch(Arena *arena, Diags *diags, const Nvrtc *nvrtc, const char *arch) {
    int count = 0;
    Str known = tg_str(arena);
    if (nvrtc->GetNumSupportedArchs(&count) != 0 || count <= 0)
        return TG_OK;
    int *archs = TG_ALLOC(arena, int, count);
    if (nvrtc->GetSupportedArchs(archs) != 0)
        return TG_OK;
    for (int i = 0; i < count; i++) {
        const char *name = tg_arena_printf(arena, "sm_%d", archs[i]);
        size_t length = strlen(name);
        /* sm_90a, sm_100f: with what only that generation has. */
        if (strncmp(arch, name, length) == 0 && (arch[length] == '\0' || (strchr("af", arch[length]) && arch[length + 1] == '\0')))
            return TG_OK;
        tg_str_printf(&known, "%s%s", i ? ", " : "", name);
    }
    tg_error(diags, (Loc){0}, "--arch: this CUDA compiler does not know '%s', but %s", arch, known.text);
    return TG_USAGE;
}

/* ---- what ptxas says ---- */

static const char *quoted(Arena *arena, const char *text) {
    const char *from = strchr(text, '\''), *to = from ? strchr(from + 1, '\'') : NULL;
    return to ? tg_arena_printf(arena, "%.*s", (int)(to - from - 1), from + 1) : "";
}

/* The number before `unit`; 0: the line has none. */
static int number_before(const char *line, const char *unit) {
    const char *at = strstr(line, unit);
    while (at != NULL && at > line && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    return at ? atoi(at) : 0;
}

static void read_line(Arena *arena, CudaBinary *out, const char *line) {
    if (strstr(line, "Compiling entry function")) {
        tg_push(arena, &out->kernels, (CudaUsage){.kernel = quoted(arena, line)});
        return;
    }
    if (out->kernels.count == 0)
        return;
    CudaUsage *last = &out->kernels.at[out->kernels.count - 1];
    if (strstr(line, " bytes stack frame")) {
        last->stack = number_before(line, " bytes stack frame");
        last->spilled = number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    } else if (strstr(line, " registers")) {
        last->registers = number_before(line, " registers");
        last->shared = number_before(line, " bytes smem");
    }
}

/* ---- compiling ---- */

static char *log_of(Arena *arena, const Nvrtc *nvrtc, NvrtcProgram *program) {
    size_t bytes = 0;
    if (nvrtc->GetProgramLogSize(program, &bytes) != 0)
        return tg_arena_printf(arena, "%s", "");
    char *text = tg_arena_alloc(arena, bytes + 1);
    text[0] = text[bytes] = '\0';
    (void)nvrtc->GetProgramLog(program, text);
    return text;
}

static Status compile(Arena *arena, Diags *diags, const Nvrtc *nvrtc, NvrtcProgram *program, const char *arch, CudaBinary *out) {
    /* Contraction only where a loop says fma; the defaults round division and roots correctly and keep denormals. */
    const char *options[] = {tg_arena_printf(arena, "--gpu-architecture=%s", arch), "--fmad=false", "--std=c++17",
                             "--ptxas-options=-v"};
    int result = nvrtc->CompileProgram(program, sizeof options / sizeof *options, options);
    char *log = log_of(arena, nvrtc, program);
    size_t bytes = 0;
    if (result != 0 || nvrtc->GetCUBINSize(program, &bytes) != 0) {
        tg_error(diags, (Loc){0}, "internal error: the CUDA compiler does not take the text (%s): %.2000s",
                 nvrtc->GetErrorString(result), log);
        return TG_INTERNAL;
    }
    out->cubin = tg_str(arena);
    char *cubin = tg_arena_alloc(arena, bytes + 1);
    if (nvrtc->GetCUBIN(program, cubin) != 0)
        return TG_INTERNAL;
    tg_str_add(&out->cubin, cubin, bytes);
    for (char *line = strtok(log, "\n"); line != NULL; line = strtok(NULL, "\n"))
        read_line(arena, out, line);
    return TG_OK;
}

Status tg_cuda_compile(Arena *arena, Diags *diags, const Str *text, const char *arch, CudaBinary *out) {
    Nvrtc nvrtc;
    NvrtcProgram *program;
    *out = (CudaBinary){0};
    TG_TRY(open_nvrtc(arena, diags, &nvrtc));
    TG_TRY(check_arch(arena, diags, &nvrtc, arch));
    int result = nvrtc.CreateProgram(&program, text->text, "kernels.cu", 0, NULL, NULL);
    if (result != 0) {
        tg_error(diags, (Loc){0}, "the CUDA compiler does not start: %s", nvrtc.GetErrorString(result));
        return TG_IO;
    }
    Status status = compile(arena, diags, &nvrtc, program, arch, out);
    nvrtc.DestroyProgram(&program);
    return status;
}
