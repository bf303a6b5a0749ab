#include "driver/script.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted; /* a signal handler has nothing else */

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

bool script_is_stopped(void) { return interrupted; }

static Status timeout_of(Pipeline *p, double *seconds) {
    const char *text = p->cli->value[CLI_TIMEOUT];
    *seconds = 60;
    if (text == NULL)
        return TG_OK;
    char *end;
    *seconds = strtod(text, &end);
    if (end != text && *end == '\0' && *seconds > 0 && *seconds <= 1e6)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "--timeout is a number of seconds, not '%s'", text);
    return TG_USAGE;
}

/* A name without a slash is a file of this folder, as every other argument of tgc. */
static Status find(Pipeline *p, const char *name, Script *script) {
    char path[PATH_MAX];
    if (realpath(name, path) == NULL) {
        tg_error(p->diags, (Loc){0}, "cannot run the test script %s: %s", name, strerror(errno));
        return TG_IO;
    }
    script->path = tg_arena_str(p->arena, path, strlen(path));
    if (access(path, X_OK) == 0)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "cannot run the test script %s: %s", name, strerror(errno));
    if (errno == EACCES)
        tg_note(p->diags, (Loc){0}, "make it a program: chmod +x %s", name);
    return TG_IO;
}

Status script_open(Pipeline *p, const char *name, Script *script) {
    const char *temporary = getenv("TMPDIR");
    *script = (Script){0};
    TG_TRY(timeout_of(p, &script->timeout));
    TG_TRY(find(p, name, script));
    const char *place = tg_arena_printf(p->arena, "%s/tgc-XXXXXX", temporary && temporary[0] ? temporary : "/tmp");
    char *folder = tg_arena_str(p->arena, place, strlen(place));
    if (mkdtemp(folder) == NULL) {
        tg_error(p->diags, (Loc){0}, "cannot make %s: %s", place, strerror(errno));
        return TG_IO;
    }
    script->folder = folder;
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return TG_OK;
}

static void become(const Script *script, const char *file) {
    setpgid(0, 0);
    int nothing = open("/dev/null", O_RDWR);
    for (int fd = 0; nothing >= 0 && fd <= 2; fd++)
        dup2(nothing, fd);
    execl(script->path, script->path, file, (char *)NULL);
    _exit(127);
}

enum { MOST_WAIT = 16 }; /* milliseconds */

ScriptEnd script_run(Script *script, const char *file, int *code) {
    *code = 127;
    if (interrupted)
        return SCRIPT_STOPPED;
    pid_t child = fork();
    if (child == 0)
        become(script, file);
    script->runs++;
    if (child < 0)
        return SCRIPT_EXITED;
    setpgid(child, child); /* the one of the two that comes first */
    int status = 0;
    double until = pipeline_seconds() + script->timeout;
    bool ended = false;
    for (int wait = 1; !(ended = waitpid(child, &status, WNOHANG) == child) && !interrupted && pipeline_seconds() < until;
         wait = wait < MOST_WAIT ? 2 * wait : wait)
        poll(NULL, 0, wait); /* an interrupt ends it */
    kill(-child, SIGKILL); /* with what it has left behind */
    while (!ended && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    script->late += !ended && !interrupted;
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    return !ended ? interrupted ? SCRIPT_STOPPED : SCRIPT_LATE : WIFEXITED(status) ? SCRIPT_EXITED : SCRIPT_KILLED;
}

const char *script_end_text(Arena *arena, const Script *script, ScriptEnd end, int code) {
    switch (end) {
    case SCRIPT_EXITED: return tg_arena_printf(arena, "exited with %d", code);
    case SCRIPT_KILLED: return tg_arena_printf(arena, "was ended by signal %d", code);
    case SCRIPT_LATE: return tg_arena_printf(arena, "took longer than %g s", script->timeout);
    default: return "was interrupted";
    }
}

void script_close(Script *script) {
    if (script->folder)
        rmdir(script->folder);
}
