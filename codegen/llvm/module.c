/* libtgc_llvm.so: kernels to an object, to text, or into this process. */
#include "codegen/codegen.h"
#include "codegen/llvm/emit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <setjmp.h>
#include <string.h>

/* LLVM ends the process on what it calls fatal, unless a handler does not come back. The C API's handlers have no context. */
typedef void FatalHandler(void *context, const char *reason, bool make_crash_report);
void install_fatal(FatalHandler *handler, void *context) __asm__("_ZN4llvm27install_fatal_error_handlerEPFvPvPKcbES0_");
void remove_fatal(void) __asm__("_ZN4llvm26remove_fatal_error_handlerEv");
void install_no_memory(FatalHandler *handler, void *context) __asm__("_ZN4llvm31install_bad_alloc_error_handlerEPFvPvPKcbES0_");
void remove_no_memory(void) __asm__("_ZN4llvm30remove_bad_alloc_error_handlerEv");
void install_no_memory_for_new(void) __asm__("_ZN4llvm33install_out_of_memory_new_handlerEv");

/* One compilation: what must be given back whatever happens. */
typedef struct Unit {
    Arena *arena;
    Diags *diags;
    const LlvmRequest *request;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
    char *triple;
    const char *cpu, *features;
    bool avx512, bf16;
    LLVMValueRef *kernels;
    const char *complaint; /* of LLVM's diagnostics: the first error */
    jmp_buf fatal;         /* where LLVM's fatal errors go */
} Unit;

static Status internal(Diags *diags, const char *what) {
    tg_error(diags, (Loc){0}, "internal error in code generation: %s", what);
    return TG_INTERNAL;
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context) {
    Unit *unit = context;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || unit->complaint)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    unit->complaint = tg_arena_str(unit->arena, text, strlen(text));
    LLVMDisposeMessage(text);
}

static const char *kept(Arena *arena, char *message) {
    const char *copy = tg_arena_str(arena, message, strlen(message));
    LLVMDisposeMessage(message);
    return copy;
}

/* A CPU that --cpu= names. LLVM accepts any name and falls back to the plainest CPU. */
typedef struct Cpu {
    const char *name;
    bool avx512; /* it has AVX-512F */
    bool bf16;   /* it has the instruction that rounds f32 to bf16, in all vector lengths */
} Cpu;

static const Cpu *known_cpus(uint32_t *count) {
    static const Cpu cpus[] = {
#if defined(__x86_64__)
        {"x86-64", false, false},
        {"x86-64-v2", false, false},
        {"x86-64-v3", false, false},
        {"x86-64-v4", true, false},
        {"haswell", false, false},
        {"broadwell", false, false},
        {"skylake", false, false},
        {"skylake-avx512", true, false},
        {"cascadelake", true, false},
        {"cooperlake", true, true},
        {"icelake-client", true, false},
        {"icelake-server", true, false},
        {"tigerlake", true, false},
        {"alderlake", false, false},
        {"sapphirerapids", true, true},
        {"emeraldrapids", true, true},
        {"graniterapids", true, true},
        {"znver1", false, false},
        {"znver2", false, false},
        {"znver3", false, false},
        {"znver4", true, true},
#else
        {"generic", false, false},
        {"neoverse-n1", false, false},
        {"neoverse-n2", false, false},
        {"neoverse-v1", false, false},
        {"neoverse-v2", false, false},
#endif
    };
    *count = sizeof cpus / sizeof *cpus;
    return cpus;
}

static Status unknown_cpu(Unit *unit, const Cpu *cpus, uint32_t count) {
    const char **names = TG_ALLOC(unit->arena, const char *, count);
    Str all = tg_str(unit->arena);
    for (uint32_t i = 0; i < count; i++) {
        names[i] = cpus[i].name;
        tg_str_printf(&all, " %s", names[i]);
    }
    const char *closest = tg_closest(unit->request->cpu, names, count);
    tg_error(unit->diags, (Loc){0}, "--cpu: '%s' is not a known CPU%s%s%s", unit->request->cpu,
             closest ? ", did you mean '" : "", closest ? closest : "", closest ? "'?" : "");
    tg_note(unit->diags, (Loc){0}, "known are: host%s", all.text);
    return TG_USAGE;
}

static Status choose_cpu(Unit *unit) {
    const char *wanted = unit->request->cpu;
    if (wanted == NULL || wanted[0] == '\0' || strcmp(wanted, "host") == 0 || strcmp(wanted, "native") == 0) {
        unit->cpu = kept(unit->arena, LLVMGetHostCPUName());
        unit->features = kept(unit->arena, LLVMGetHostCPUFeatures());
        unit->avx512 = strstr(unit->features, "+avx512f") != NULL;
        unit->bf16 = strstr(unit->features, "+avx512bf16") && strstr(unit->features, "+avx512vl");
        return TG_OK;
    }
    uint32_t count;
    const Cpu *cpus = known_cpus(&count);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(cpus[i].name, wanted) == 0) {
            unit->cpu = wanted;
            unit->features = "";
            unit->avx512 = cpus[i].avx512;
            unit->bf16 = cpus[i].bf16;
            return TG_OK;
        }
    return unknown_cpu(unit, cpus, count);
}

static LLVMCodeGenOptLevel selection(int level) {
    static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess, LLVMCodeGenLevelDefault,
                                                 LLVMCodeGenLevelAggressive};
    return levels[level < 0 ? 0 : level > 3 ? 3 : level];
}

static Status open_machine(Unit *unit) {
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    TG_TRY(choose_cpu(unit));
    unit->triple = LLVMGetDefaultTargetTriple();
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(unit->triple, &target, &message))
        return internal(unit->diags, kept(unit->arena, message));
    unit->machine = LLVMCreateTargetMachine(target, unit->triple, unit->cpu, unit->features,
                                            selection(unit->request->optimize), LLVMRelocPIC, LLVMCodeModelDefault);
    return unit->machine ? TG_OK : internal(unit->diags, "LLVM made no target machine");
}

static void close_unit(Unit *unit) {
    if (unit->module)
        LLVMDisposeModule(unit->module);
    if (unit->machine)
        LLVMDisposeTargetMachine(unit->machine);
    if (unit->triple)
        LLVMDisposeMessage(unit->triple);
    if (unit->context)
        LLVMContextDispose(unit->context);
}

enum { MOST_STACK = 1 << 20 };

static Status check_stack(Unit *unit, const LoopKernel *k) {
    int64_t bytes = 0;
    for (uint32_t i = 0; i < k->buffers.count; i++)
        if (k->buffers.at[i].role == ROLE_SCRATCH)
            bytes += k->buffers.at[i].count * tg_dtype(k->buffers.at[i].dtype)->bytes;
    if (bytes <= MOST_STACK)
        return TG_OK;
    return internal(unit->diags, tg_arena_printf(unit->arena, "kernel %s needs %lld bytes of stack, more than %d",
                                                 k->name, (long long)bytes, MOST_STACK));
}

static Status emit_kernels(Unit *unit, bool global) {
    const Lowered *lowered = unit->request->lowered;
    unit->context = LLVMContextCreate();
    LLVMContextSetDiscardValueNames(unit->context, 1);
    LLVMContextSetDiagnosticHandler(unit->context, on_diagnostic, unit);
    unit->module = LLVMModuleCreateWithNameInContext("tgc", unit->context);
    LLVMSetTarget(unit->module, unit->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(unit->machine);
    LLVMSetModuleDataLayout(unit->module, layout);
    LLVMDisposeTargetData(layout);
    EmitModule shared = {
        .arena = unit->arena,
        .context = unit->context,
        .module = unit->module,
        .cpu = unit->cpu,
        .features = unit->features,
        .bf16 = unit->bf16,
        .avx512 = unit->avx512,
        .global = global,
        .bodies = tg_map(unit->arena),
    };
    unit->kernels = TG_ALLOC(unit->arena, LLVMValueRef, lowered->kernels.count);
    for (uint32_t i = 0; i < lowered->kernels.count; i++) {
        TG_TRY(check_stack(unit, lowered->kernels.at[i]));
        unit->kernels[i] = tg_emit_kernel(&shared, lowered->kernels.at[i]);
    }
    return TG_OK;
}

/* `tg_program` (ir/plan/abi.h), the one symbol that the object exports. */
static Status add_program(Unit *unit) {
    const TgPlan *plan = unit->request->lowered->plan;
    uint32_t count = unit->request->lowered->kernels.count;
    Str bytes = tg_str(unit->arena);
    const char *why;
    if (tg_plan_check(unit->arena, plan, &why) != TG_OK)
        return internal(unit->diags, why);
    TG_TRY(tg_plan_write(&bytes, plan));
    LLVMContextRef c = unit->context;
    LLVMTypeRef pointer = LLVMPointerTypeInContext(c, 0), i32 = LLVMInt32TypeInContext(c),
                i64 = LLVMInt64TypeInContext(c);
    LLVMValueRef data = LLVMConstStringInContext2(c, bytes.text, bytes.length, 1);
    LLVMValueRef table = LLVMConstArray2(pointer, unit->kernels, count);
    const LLVMValueRef parts[] = {data, table};
    LLVMValueRef globals[2];
    for (int i = 0; i < 2; i++) {
        globals[i] = LLVMAddGlobal(unit->module, LLVMTypeOf(parts[i]), i ? "tg_kernels" : "tg_plan");
        LLVMSetInitializer(globals[i], parts[i]);
        LLVMSetGlobalConstant(globals[i], 1);
        LLVMSetLinkage(globals[i], LLVMInternalLinkage);
        LLVMSetAlignment(globals[i], 16);
    }
    LLVMValueRef members[] = {LLVMConstInt(i32, TG_ABI_VERSION, 0), LLVMConstInt(i32, count, 0), globals[0],
                              LLVMConstInt(i64, bytes.length, 0), globals[1]};
    LLVMValueRef program = LLVMConstStructInContext(c, members, 5, 0);
    LLVMValueRef global = LLVMAddGlobal(unit->module, LLVMTypeOf(program), "tg_program");
    LLVMSetInitializer(global, program);
    LLVMSetGlobalConstant(global, 1);
    return TG_OK;
}
_Static_assert(offsetof(TgProgram, plan) == 8 && offsetof(TgProgram, plan_bytes) == 16 &&
                   offsetof(TgProgram, kernels) == 24,
               "add_program writes the members in this order");

static Status verify(Unit *unit) {
    char *message = NULL;
    LLVMBool broken = LLVMVerifyModule(unit->module, LLVMReturnStatusAction, &message);
    const char *why = kept(unit->arena, message);
    return broken ? internal(unit->diags, why) : TG_OK;
}

/* Vectors are written out already; what is left is cleaning up, moving what does not change out of loops, and sharing.
   The pipelines of -O2 and -O3 take twice the time and gain nothing on kernels. */
#define CLEAN "instcombine<no-verify-fixpoint>,simplifycfg"
static const char *pipeline(int level) {
    static const char *const pipelines[] = {
        "",
        "function(sroa,early-cse,simplifycfg)",
        "function(sroa,early-cse<memssa>," CLEAN ",loop-mssa(licm),gvn," CLEAN ")",
    };
    return pipelines[level < 0 ? 0 : level > 2 ? 2 : level];
}

static Status optimize(Unit *unit) {
    const char *passes = pipeline(unit->request->optimize);
    if (passes[0] == '\0')
        return TG_OK;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(unit->module, passes, unit->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (error == LLVMErrorSuccess)
        return TG_OK;
    char *message = LLVMGetErrorMessage(error);
    Status status = internal(unit->diags, message);
    LLVMDisposeErrorMessage(message);
    return status;
}

static Status build(Unit *unit, bool global) {
    TG_TRY(open_machine(unit));
    TG_TRY(emit_kernels(unit, global));
    if (unit->request->lowered->plan && !global)
        TG_TRY(add_program(unit));
    TG_TRY(verify(unit));
    return optimize(unit);
}

static Status machine_code(Unit *unit, LLVMCodeGenFileType kind, LLVMMemoryBufferRef *code) {
    char *message = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(unit->machine, unit->module, kind, &message, code))
        return internal(unit->diags, kept(unit->arena, message));
    if (unit->complaint == NULL)
        return TG_OK;
    LLVMDisposeMemoryBuffer(*code);
    return internal(unit->diags, unit->complaint);
}

static Status code_text(Unit *unit, LLVMCodeGenFileType kind, Str *out) {
    LLVMMemoryBufferRef code;
    TG_TRY(machine_code(unit, kind, &code));
    tg_str_add(out, LLVMGetBufferStart(code), LLVMGetBufferSize(code));
    LLVMDisposeMemoryBuffer(code);
    return TG_OK;
}

static void on_fatal(void *context, const char *reason, bool make_crash_report) {
    Unit *unit = context;
    (void)make_crash_report;
    longjmp(unit->fatal, (int)internal(unit->diags, reason));
}

static void on_no_memory(void *context, const char *reason, bool make_crash_report) {
    Unit *unit = context;
    (void)reason;
    (void)make_crash_report;
    tg_error(unit->diags, (Loc){0}, "no memory left for code generation");
    longjmp(unit->fatal, TG_MEMORY);
}

static void install_handlers(Unit *unit) {
    install_fatal(on_fatal, unit);
    install_no_memory(on_no_memory, unit);
    install_no_memory_for_new();
}

static void remove_handlers(void) {
    remove_fatal();
    remove_no_memory();
}

/* Runs `action` on an arena of its own: with no memory left, LLVM's things are still given back. */
typedef Status UnitAction(Unit *unit, void *context);
static Status with_unit(Arena *arena, Diags *diags, const LlvmRequest *request, UnitAction *action, void *context) {
    Arena scratch;
    tg_arena_init(&scratch, arena->host);
    Unit *unit = TG_ALLOC(arena, Unit, 1);
    *unit = (Unit){.arena = &scratch, .diags = diags, .request = request};
    int fatal = setjmp(unit->fatal);
    if (fatal) { /* LLVM's things are in no state to be given back */
        remove_handlers();
        tg_arena_deinit(&scratch);
        return (Status)fatal;
    }
    install_handlers(unit);
    Status status = setjmp(scratch.guard) ? TG_MEMORY : action(unit, context);
    remove_handlers();
    close_unit(unit);
    tg_arena_deinit(&scratch);
    return status;
}

static Status make_object(Unit *unit, void *context) {
    TG_TRY(build(unit, unit->request->lowered->plan == NULL));
    return code_text(unit, LLVMObjectFile, context);
}

static Status object(Arena *arena, Diags *diags, const LlvmRequest *request, Str *out) {
    return with_unit(arena, diags, request, make_object, out);
}

static Status make_assembly(Unit *unit, void *context) {
    TG_TRY(build(unit, true));
    return code_text(unit, LLVMAssemblyFile, context);
}

static Status make_ir(Unit *unit, void *context) {
    TG_TRY(build(unit, true));
    Str *out = context;
    char *ir = LLVMPrintModuleToString(unit->module);
    tg_str_add(out, ir, strlen(ir));
    LLVMDisposeMessage(ir);
    return TG_OK;
}

static Status text(Arena *arena, Diags *diags, const LlvmRequest *request, int assembly, Str *out) {
    return with_unit(arena, diags, request, assembly ? make_assembly : make_ir, out);
}

static Status jit_error(Unit *unit, LLVMErrorRef error) {
    if (error == LLVMErrorSuccess)
        return TG_OK;
    char *message = LLVMGetErrorMessage(error);
    Status status = internal(unit->diags, message);
    LLVMDisposeErrorMessage(message);
    return status;
}

typedef struct Jit {
    TgKernel **kernels;
    LLVMOrcLLJITRef *handle;
} Jit;

static Status link_here(Unit *unit, LLVMOrcLLJITRef jit, LLVMMemoryBufferRef code, TgKernel **kernels) {
    LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit);
    LLVMOrcDefinitionGeneratorRef process;
    Status status = jit_error(unit, LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                                        &process, LLVMOrcLLJITGetGlobalPrefix(jit), NULL, NULL));
    if (status != TG_OK) {
        LLVMDisposeMemoryBuffer(code);
        return status;
    }
    LLVMOrcJITDylibAddGenerator(library, process);
    TG_TRY(jit_error(unit, LLVMOrcLLJITAddObjectFile(jit, library, code)));
    const Lowered *lowered = unit->request->lowered;
    for (uint32_t i = 0; i < lowered->kernels.count; i++) {
        LLVMOrcExecutorAddress address;
        TG_TRY(jit_error(unit, LLVMOrcLLJITLookup(jit, &address, LLVMGetValueName(unit->kernels[i]))));
        memcpy(&kernels[i], &address, sizeof kernels[i]);
    }
    return TG_OK;
}

static Status make_jit(Unit *unit, void *context) {
    Jit *to = context;
    LLVMMemoryBufferRef code;
    TG_TRY(build(unit, true));
    TG_TRY(machine_code(unit, LLVMObjectFile, &code));
    Status status = jit_error(unit, LLVMOrcCreateLLJIT(to->handle, NULL));
    if (status != TG_OK) {
        LLVMDisposeMemoryBuffer(code);
        return status;
    }
    return link_here(unit, *to->handle, code, to->kernels);
}

static void jit_free(void *handle) {
    if (handle)
        LLVMConsumeError(LLVMOrcDisposeLLJIT(handle));
}

static Status jit(Arena *arena, Diags *diags, const LlvmRequest *request, TgKernel **kernels, void **handle) {
    LLVMOrcLLJITRef *made = TG_ALLOC(arena, LLVMOrcLLJITRef, 1);
    Jit to = {.kernels = kernels, .handle = made};
    Status status = with_unit(arena, diags, request, make_jit, &to);
    if (status != TG_OK) {
        jit_free(*made);
        *made = NULL;
    }
    *handle = *made;
    return status;
}

static Status host_cpu(Arena *arena, const char **name_and_features) {
    const char *name = kept(arena, LLVMGetHostCPUName()), *features = kept(arena, LLVMGetHostCPUFeatures());
    *name_and_features = tg_arena_printf(arena, "%s %s", name, features);
    return TG_OK;
}

const LlvmModule *tgc_llvm_module(void);
const LlvmModule *tgc_llvm_module(void) {
    static const LlvmModule module = {
        .object = object, .text = text, .jit = jit, .jit_free = jit_free, .host_cpu = host_cpu};
    return &module;
}
