#include "codegen/cache.h"

#include "ir/base/file.h"
#include "ir/base/map.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Programs are run from there: nobody else may be able to put files into it. */
static bool is_private(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 022) == 0;
}

static bool usable(const char *path, bool chosen_by_user) {
    char why[512];
    if (tg_make_directories(path, why, sizeof why) != TG_OK)
        return false;
    return access(path, R_OK | W_OK | X_OK) == 0 && (chosen_by_user || is_private(path));
}

const char *tg_cache_directory(Arena *arena) {
    const char *own = getenv("TGC_CACHE"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (own && own[0])
        return usable(own, true) ? own : NULL;
    const char *candidates[3] = {NULL};
    uint32_t count = 0;
    if (caches && caches[0] == '/')
        candidates[count++] = tg_arena_printf(arena, "%s/tgc", caches);
    else if (home && home[0] == '/')
        candidates[count++] = tg_arena_printf(arena, "%s/.cache/tgc", home);
    candidates[count++] = tg_arena_printf(arena, "/tmp/tgc-%u", (unsigned)geteuid());
    for (uint32_t i = 0; i < count; i++)
        if (usable(candidates[i], false))
            return candidates[i];
    return NULL;
}

/* Changes when the file does. */
static void add_file(Str *to, const char *path) {
    struct stat status;
    if (stat(path, &status) == 0)
        tg_str_printf(to, "%s %lld %lld.%09ld\n", path, (long long)status.st_size, (long long)status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec);
}

static void add_compiler(Str *to) {
    const char *libraries = tg_library_directory(to->arena);
    add_file(to, "/proc/self/exe");
    add_file(to, tg_arena_printf(to->arena, "%s/libtgc_llvm.so", libraries));
    add_file(to, tg_arena_printf(to->arena, "%s/libtgrt_whole.a", libraries));
    tg_str_printf(to, "abi %d plan %d\n", TG_ABI_VERSION, TG_PLAN_VERSION);
}

Status tg_cache_key(Arena *arena, Diags *diags, const LlvmRequest *request, const char **key) {
    Str all = tg_str(arena);
    const char *why;
    add_compiler(&all);
    tg_str_printf(&all, "cpu %s optimize %d\n", request->cpu && request->cpu[0] ? request->cpu : tg_host_cpu(arena),
                  request->optimize);
    if (tg_plan_check(arena, request->lowered->plan, &why) != TG_OK) {
        tg_error(diags, (Loc){0}, "internal error: %s", why);
        return TG_INTERNAL;
    }
    TG_TRY(tg_plan_write(&all, request->lowered->plan));
    for (uint32_t i = 0; i < request->lowered->kernels.count; i++)
        tg_loop_print(&all, request->lowered->kernels.at[i]);
    *key = tg_arena_printf(arena, "%016llx%016llx", (unsigned long long)tg_hash(all.text, all.length, 1),
                           (unsigned long long)tg_hash(all.text, all.length, 2));
    return TG_OK;
}
