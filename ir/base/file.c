#include "ir/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024 };

/* Up to its end; 0, or the errno. */
static int read_all(Arena *arena, int fd, char **text, size_t *length) {
    const TgHost *host = arena->host;
    char *data = tg_arena_alloc(arena, CHUNK + 1);
    size_t have = 0, capacity = CHUNK;
    ssize_t got;
    while ((got = host->read(host, fd, data + have, capacity - have)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        have += (size_t)got;
        if (have == capacity) {
            data = tg_arena_grow(arena, data, capacity + 1, 2 * capacity + 1);
            capacity *= 2;
        }
    }
    if (got < 0)
        return errno;
    data[have] = '\0';
    *text = data;
    *length = have;
    return 0;
}

/* With no memory left the file is closed before the arena's own guard takes over. */
static int read_and_close(Arena *arena, int fd, char **text, size_t *length) {
    jmp_buf outer;
    memcpy(&outer, &arena->guard, sizeof outer);
    if (setjmp(arena->guard)) {
        memcpy(&arena->guard, &outer, sizeof outer);
        (void)arena->host->close(arena->host, fd);
        longjmp(arena->guard, 1);
    }
    int error = read_all(arena, fd, text, length);
    memcpy(&arena->guard, &outer, sizeof outer);
    (void)arena->host->close(arena->host, fd);
    return error;
}

Status tg_file_read(Arena *arena, const char *path, char **text, size_t *length, const char **why) {
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : arena->host->open(arena->host, path, O_RDONLY, 0);
    if (fd < 0) {
        *why = tg_arena_printf(arena, "cannot open %s: %s", path, strerror(errno));
        return TG_IO;
    }
    int error = standard ? read_all(arena, fd, text, length) : read_and_close(arena, fd, text, length);
    if (error == 0)
        return TG_OK;
    *why = tg_arena_printf(arena, "cannot read %s: %s", path, strerror(error));
    return TG_IO;
}

static Status failed(TgFileWriter *file, const char *action) {
    snprintf(file->why, sizeof file->why, "cannot %s %.180s: %s", action, file->path, strerror(errno));
    return TG_IO;
}

Status tg_file_begin(TgFileWriter *file, const TgHost *host, const char *path, unsigned mode) {
    *file = (TgFileWriter){.host = host, .fd = -1};
    if (snprintf(file->path, sizeof file->path, "%s", path) >= (int)sizeof file->path) {
        errno = ENAMETOOLONG;
        return failed(file, "write");
    }
    snprintf(file->temporary, sizeof file->temporary, "%s.%ld.part", path, (long)getpid());
    file->fd = host->open(host, file->temporary, O_WRONLY | O_CREAT | O_TRUNC, (mode_t)mode);
    return file->fd < 0 ? failed(file, "write") : TG_OK;
}

Status tg_file_write(TgFileWriter *file, const void *data, size_t bytes) {
    const char *next = data;
    while (bytes > 0) {
        ssize_t wrote = file->host->write(file->host, file->fd, next, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return failed(file, "write");
        next += wrote;
        bytes -= (size_t)wrote;
    }
    return TG_OK;
}

/* A rename is on disk only when the directory that holds the name is. */
static Status sync_directory(TgFileWriter *file) {
    char directory[sizeof file->path];
    strcpy(directory, file->path);
    char *slash = strrchr(directory, '/');
    if (slash == NULL)
        strcpy(directory, ".");
    else
        slash[slash == directory ? 1 : 0] = '\0';
    int fd = file->host->open(file->host, directory, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return failed(file, "sync the directory of");
    /* Some file systems cannot sync a directory and say EINVAL: there is nothing more to do on them. */
    int result = file->host->fsync(file->host, fd);
    int error = errno;
    (void)file->host->close(file->host, fd);
    errno = error;
    return result == 0 || error == EINVAL ? TG_OK : failed(file, "sync the directory of");
}

Status tg_file_commit(TgFileWriter *file) {
    if (file->host->fsync(file->host, file->fd) != 0)
        return failed(file, "sync");
    int fd = file->fd;
    file->fd = -1;
    if (file->host->close(file->host, fd) != 0)
        return failed(file, "close");
    if (file->host->rename(file->host, file->temporary, file->path) != 0)
        return failed(file, "rename");
    file->temporary[0] = '\0';
    return sync_directory(file);
}

Status tg_file_put(TgFileWriter *file, const TgHost *host, const char *path, const void *data, size_t bytes) {
    Status status = tg_file_begin(file, host, path, 0666);
    if (status == TG_OK)
        status = tg_file_write(file, data, bytes);
    if (status == TG_OK)
        status = tg_file_commit(file);
    tg_file_abandon(file);
    return status;
}

void tg_file_abandon(TgFileWriter *file) {
    if (file->fd >= 0)
        (void)file->host->close(file->host, file->fd);
    file->fd = -1;
    if (file->temporary[0] != '\0')
        (void)unlink(file->temporary);
    file->temporary[0] = '\0';
}

Status tg_make_directories(const char *path, char *why, size_t why_bytes) {
    char part[4096];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
        snprintf(why, why_bytes, "path is too long: %.64s...", path);
        return TG_IO;
    }
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            snprintf(why, why_bytes, "cannot make directory %s: %s", part, strerror(errno));
            return TG_IO;
        }
        *p = kept;
        if (kept == '\0')
            return TG_OK;
    }
}
