/* From kernels and plan to a program: through the cache, or object and link in a folder for the purpose. */
#include "codegen/cache.h"
#include "ir/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif

extern char **environ;

/* The folder of one build and the files that may lie in it. */
typedef struct Workshop {
    Arena *arena;
    Diags *diags;
    const char *folder, *object, *program, *log;
} Workshop;

static Status fail(Diags *diags, const char *what, const char *path) {
    tg_error(diags, (Loc){0}, "cannot %s %s: %s", what, path, strerror(errno));
    return TG_IO;
}

static Status open_workshop(Workshop *w) {
    const char *temporary = getenv("TMPDIR");
    char *folder = tg_arena_printf(w->arena, "%s/tgc-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL)
        return fail(w->diags, "make a temporary folder", folder);
    w->folder = folder;
    w->object = tg_arena_printf(w->arena, "%s/model.o", folder);
    w->program = tg_arena_printf(w->arena, "%s/model", folder);
    w->log = tg_arena_printf(w->arena, "%s/cc.log", folder);
    return TG_OK;
}

static void close_workshop(const Workshop *w) {
    if (w->folder == NULL)
        return;
    unlink(w->object);
    unlink(w->program);
    unlink(w->log);
    rmdir(w->folder);
}

static Status write_whole(Diags *diags, const TgHost *host, const char *path, unsigned mode, const char *data,
                          size_t bytes) {
    TgFileWriter file;
    Status status = tg_file_begin(&file, host, path, mode);
    if (status == TG_OK)
        status = tg_file_write(&file, data, bytes);
    if (status == TG_OK)
        status = tg_file_commit(&file);
    if (status == TG_OK)
        return TG_OK;
    tg_file_abandon(&file);
    if (diags)
        tg_error(diags, (Loc){0}, "%s", file.why);
    return status;
}

enum { MOST_ARGUMENTS = 48 };

/* The linker's command: $CC may hold words. */
static char **link_command(Workshop *w) {
    const char *cc = getenv("CC"), *libraries = tg_library_directory(w->arena);
    char **argv = TG_ALLOC(w->arena, char *, MOST_ARGUMENTS + 1);
    uint32_t count = 0;
    char *words = tg_arena_printf(w->arena, "%s", cc && cc[strspn(cc, " ")] ? cc : "cc"), *rest;
    for (char *word = strtok_r(words, " ", &rest); word && count < MOST_ARGUMENTS / 2;
         word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    const char *const arguments[] = {
        "-o",
        w->program,
        w->object,
        "-Wl,--whole-archive",
        tg_arena_printf(w->arena, "%s/libtgrt_whole.a", libraries),
        "-Wl,--no-whole-archive",
        "-rdynamic",
        "-lm",
        "-lpthread",
        "-ldl",
#ifdef SANITIZED
        "-fsanitize=address,undefined",
#endif
    };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        argv[count++] = tg_arena_printf(w->arena, "%s", arguments[i]);
    return argv;
}

/* Runs it with its output in the log; `*exit_status` as waitpid gives it. Returns an errno, 0: it ran. */
static int run_command(const Workshop *w, char **argv, int *exit_status) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    pid_t child;
    error = posix_spawn_file_actions_addopen(&actions, 1, w->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (error == 0)
        error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (error == 0 && waitpid(child, exit_status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return error;
}

static Status link_program(Workshop *w) {
    char **argv = link_command(w);
    int exit_status = 0, error = run_command(w, argv, &exit_status);
    if (error == ENOENT) {
        tg_error(w->diags, (Loc){0}, "cannot link the program: there is no C compiler '%s'", argv[0]);
        tg_note(w->diags, (Loc){0}, "install one (Debian, Ubuntu: apt install gcc), or name one in CC");
        return TG_IO;
    }
    if (error) {
        errno = error;
        return fail(w->diags, "run", argv[0]);
    }
    if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0)
        return TG_OK;
    char *log = NULL;
    size_t length;
    const char *why;
    tg_error(w->diags, (Loc){0}, "cannot link the program: '%s' %s %d", argv[0],
             WIFSIGNALED(exit_status) ? "was killed by signal" : "ended with status",
             WIFSIGNALED(exit_status) ? WTERMSIG(exit_status) : WEXITSTATUS(exit_status));
    if (tg_file_read(w->arena, w->log, &log, &length, &why) == TG_OK && length > 0)
        tg_note(w->diags, (Loc){0}, "it said:\n%s", log);
    return TG_IO;
}

static Status build_in(Workshop *w, const LlvmRequest *request, char **program, size_t *bytes) {
    const LlvmModule *llvm;
    const char *why;
    TG_TRY(tg_llvm_open(w->arena, w->diags, &llvm));
    Str object = tg_str(w->arena);
    TG_TRY(llvm->object(w->arena, w->diags, request, &object));
    TG_TRY(open_workshop(w));
    TG_TRY(write_whole(w->diags, w->arena->host, w->object, 0600, object.text, object.length));
    TG_TRY(link_program(w));
    Status status = tg_file_read(w->arena, w->program, program, bytes, &why);
    if (status != TG_OK)
        tg_error(w->diags, (Loc){0}, "%s", why);
    return status;
}

/* The bytes of a new program. With no memory left the folder is removed before the arena's own guard takes over. */
static Status build_program(Arena *arena, Diags *diags, const LlvmRequest *request, char **program, size_t *bytes) {
    Workshop *w = TG_ALLOC(arena, Workshop, 1);
    *w = (Workshop){.arena = arena, .diags = diags};
    jmp_buf outer;
    memcpy(&outer, &arena->guard, sizeof outer);
    if (setjmp(arena->guard)) {
        memcpy(&arena->guard, &outer, sizeof outer);
        close_workshop(w);
        longjmp(arena->guard, 1);
    }
    Status status = build_in(w, request, program, bytes);
    memcpy(&arena->guard, &outer, sizeof outer);
    close_workshop(w);
    return status;
}

/* A rename would replace a device or fail late on a directory. */
static Status check_target(Diags *diags, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode))
        return TG_OK;
    tg_error(diags, (Loc){0}, "cannot write %s: %s", path,
             S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a plain file");
    return TG_IO;
}

/* What the program will say of itself, and the name of its cache entry; NULL: there is no cache. */
static Status find_entry(Arena *arena, Diags *diags, const LlvmRequest *request, const char **entry) {
    TgPlan *plan = request->lowered->plan;
    const char *key, *directory = tg_cache_directory(arena);
    if (plan->cpu == NULL || plan->cpu[0] == '\0')
        plan->cpu = request->cpu && request->cpu[0] ? request->cpu : tg_host_cpu(arena);
    TG_TRY(tg_cache_key(arena, diags, request, &key));
    *entry = directory ? tg_arena_printf(arena, "%s/%s", directory, key) : NULL;
    return TG_OK;
}

/* Takes the program from the cache, or builds it and puts it there; a cache that cannot be written is no error. */
static Status get_program(Arena *arena, Diags *diags, const LlvmRequest *request, const char *entry, char **program,
                          size_t *bytes, bool *hit) {
    const char *why;
    *hit = entry && tg_file_read(arena, entry, program, bytes, &why) == TG_OK;
    if (*hit)
        return TG_OK;
    TG_TRY(build_program(arena, diags, request, program, bytes));
    if (entry && write_whole(NULL, arena->host, entry, 0700, *program, *bytes) == TG_MEMORY)
        return TG_MEMORY;
    return TG_OK;
}

Status tg_program_write(Arena *arena, Diags *diags, const LlvmRequest *request, const char *path, bool *cache_hit) {
    const char *entry;
    char *program;
    size_t bytes;
    bool hit;
    TG_TRY(check_target(diags, path));
    TG_TRY(find_entry(arena, diags, request, &entry));
    TG_TRY(get_program(arena, diags, request, entry, &program, &bytes, &hit));
    if (cache_hit)
        *cache_hit = hit;
    return write_whole(diags, arena->host, path, 0777, program, bytes);
}

Status tg_program_cached(Arena *arena, Diags *diags, const LlvmRequest *request, const char **path) {
    const char *entry;
    char *program;
    size_t bytes;
    bool hit;
    TG_TRY(find_entry(arena, diags, request, &entry));
    *path = entry;
    if (entry && access(entry, X_OK) == 0)
        return TG_OK;
    TG_TRY(get_program(arena, diags, request, entry, &program, &bytes, &hit));
    if (entry && access(entry, X_OK) == 0)
        return TG_OK;
    const char *temporary = getenv("TMPDIR");
    char *folder = tg_arena_printf(arena, "%s/tgc-run-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    if (mkdtemp(folder) == NULL)
        return fail(diags, "make a temporary folder", folder);
    *path = tg_arena_printf(arena, "%s/model", folder);
    return write_whole(diags, arena->host, *path, 0700, program, bytes);
}
