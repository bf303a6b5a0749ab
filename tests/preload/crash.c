/* Preloaded, it makes tgc fail as a bug would. $TG_CRASH is HOW or HOW@N: the N-th time (from 1) that a pass looks at the clock
   (run.c does so before and after each), or, for llvm-*, when LLVM verifies a module; parse-*: before anything is parsed. */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Without end: `above` is always 0, which the compiler does not know. */
static int grow(const volatile char *above) {
    volatile char room[4096];
    room[0] = above[0];
    room[1] = 0;
    return above[0] ? 0 : grow(room) + room[1];
}

static void crash(const char *how) {
    volatile char here[1] = {0};
    if (strncmp(how, "abort", 5) == 0)
        abort();
    if (strncmp(how, "stack", 5) == 0)
        (void)grow(here);
    raise(strncmp(how, "divide", 6) == 0 ? SIGFPE : SIGSEGV);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int passes;
    const char *how = getenv("TG_CRASH"), *at = how ? strchr(how, '@') : NULL;
    bool parse = how && strncmp(how, "parse-", 6) == 0, llvm = how && strncmp(how, "llvm-", 5) == 0;
    if (parse && clock == CLOCK_MONOTONIC)
        crash(how + 6);
    if (how && !parse && !llvm && clock == CLOCK_PROCESS_CPUTIME_ID && ++passes == (at ? atoi(at + 1) : 1))
        crash(how);
    return NEXT(clock_gettime)(clock, now);
}

/* LLVM's own, by the names that C++ gives them. */
typedef void Report(const char *reason, bool make_crash_report);

int LLVMVerifyModule(void *module, int action, char **message);
int LLVMVerifyModule(void *module, int action, char **message) {
    void *llvm = dlopen("libLLVM.so.19.1", RTLD_LAZY | RTLD_NOLOAD);
    const char *how = getenv("TG_CRASH");
    if (how && strcmp(how, "llvm-fatal") == 0)
        ((Report *)dlsym(llvm, "_ZN4llvm18report_fatal_errorEPKcb"))("planted", false);
    if (how && strcmp(how, "llvm-memory") == 0)
        ((Report *)dlsym(llvm, "_ZN4llvm22report_bad_alloc_errorEPKcb"))("planted", false);
    if (how && strcmp(how, "llvm-segv") == 0)
        crash("segv");
    return ((int (*)(void *, int, char **))dlsym(llvm, "LLVMVerifyModule"))(module, action, message);
}
