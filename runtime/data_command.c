/* Data from a command: whatever writes rows or records to its standard output. */
#include "runtime/data.h"
#include "runtime/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 1 << 16, TAIL_BYTES = 1024, SHOWN_BYTES = 200 };

typedef struct Running {
    pid_t pid;
    int out, err; /* ends that we read */
    unsigned char *data;
    size_t bytes, room;
    char tail[TAIL_BYTES + 1]; /* the end of its standard error */
    size_t tail_bytes;
} Running;

static int spawn(const char *command, const char *directory, const int out[2], const int err[2], pid_t *pid) {
    posix_spawn_file_actions_t actions;
    char *const arguments[] = {"/bin/sh", "-c", (char *)(uintptr_t)command, NULL};
    int result = posix_spawn_file_actions_init(&actions);
    if (result != 0)
        return result;
    if (directory[0] != '\0')
        result = posix_spawn_file_actions_addchdir_np(&actions, directory);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    if (result == 0)
        result = tg_spawn(pid, arguments[0], &actions, arguments);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

static int start(const char *command, const char *directory, Running *run) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(err, O_CLOEXEC) != 0) {
        int result = errno;
        close(out[0]);
        close(out[1]);
        return result;
    }
    int result = spawn(command, directory, out, err, &run->pid);
    close(out[1]);
    close(err[1]);
    run->out = out[0];
    run->err = err[0];
    if (result != 0) {
        close(run->out);
        close(run->err);
    }
    return result;
}

/* false: the other end is closed. */
static bool read_out(Arena *arena, Running *run) {
    if (run->room - run->bytes < CHUNK) {
        size_t room = run->room > 0 ? 2 * run->room : 4 * CHUNK;
        run->data = tg_arena_grow(arena, run->data, run->room, room);
        run->room = room;
    }
    ssize_t got = read(run->out, run->data + run->bytes, run->room - run->bytes - 1);
    run->bytes += got > 0 ? (size_t)got : 0;
    return got > 0 || (got < 0 && errno == EINTR);
}

static bool read_err(Running *run) {
    if (run->tail_bytes == TAIL_BYTES) {
        memmove(run->tail, run->tail + TAIL_BYTES / 2, TAIL_BYTES / 2);
        run->tail_bytes = TAIL_BYTES / 2;
    }
    ssize_t got = read(run->err, run->tail + run->tail_bytes, TAIL_BYTES - run->tail_bytes);
    run->tail_bytes += got > 0 ? (size_t)got : 0;
    return got > 0 || (got < 0 && errno == EINTR);
}

static void read_both(Arena *arena, Running *run) {
    struct pollfd ends[2] = {{.fd = run->out, .events = POLLIN}, {.fd = run->err, .events = POLLIN}};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (poll(ends, 2, -1) < 0 && errno != EINTR)
            return;
        if (ends[0].revents != 0 && !read_out(arena, run))
            ends[0].fd = -1;
        if (ends[1].revents != 0 && !read_err(run))
            ends[1].fd = -1;
        ends[0].revents = ends[1].revents = 0;
    }
}

/* The last line that says something. */
static const char *last_words(Running *run) {
    size_t end = run->tail_bytes;
    while (end > 0 && strchr(" \t\r\n", run->tail[end - 1]) != NULL)
        end--;
    run->tail[end] = '\0';
    const char *line = strrchr(run->tail, '\n');
    line = line != NULL ? line + 1 : run->tail;
    size_t length = strlen(line);
    return length > SHOWN_BYTES ? line + length - SHOWN_BYTES : line;
}

static Status ended_well(Arena *arena, const char *command, Running *run, int status, const char **why) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return TG_OK;
    const char *said = last_words(run);
    const char *how = WIFSIGNALED(status) ? tg_arena_printf(arena, "was ended by signal %d", WTERMSIG(status))
                                          : tg_arena_printf(arena, "failed with exit code %d", WEXITSTATUS(status));
    *why = tg_arena_printf(arena, "the command '%s' %s%s%s", command, how, *said != '\0' ? ": " : "", said);
    return TG_IO;
}

Status tg_data_run(Arena *arena, const char *command, const char *directory, unsigned char **data, size_t *bytes,
                   const char **why) {
    Running run = {0};
    command += strspn(command, " ");
    int result = start(command, directory, &run);
    if (result != 0) {
        *why = tg_arena_printf(arena, "the command '%s' cannot start in %s: %s", command,
                               directory[0] != '\0' ? directory : ".", strerror(result));
        return TG_IO;
    }
    read_both(arena, &run);
    close(run.out);
    close(run.err);
    int status = 0;
    while (waitpid(run.pid, &status, 0) < 0)
        if (errno != EINTR) {
            *why = tg_arena_printf(arena, "the command '%s' is gone: %s", command, strerror(errno));
            return TG_IO;
        }
    if (run.data == NULL)
        run.data = tg_arena_alloc(arena, 1);
    run.data[run.bytes] = '\0';
    *data = run.data;
    *bytes = run.bytes;
    return ended_well(arena, command, &run, status, why);
}
