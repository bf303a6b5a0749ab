#include "ir/base/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *host_resize(const TgHost *host, void *old, size_t bytes) {
    (void)host;
    if (bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, bytes);
}

static int host_open(const TgHost *host, const char *path, int flags, mode_t mode) {
    (void)host;
    return open(path, flags | O_CLOEXEC, mode);
}

static ssize_t host_read(const TgHost *host, int fd, void *to, size_t bytes) {
    (void)host;
    return read(fd, to, bytes);
}

static ssize_t host_write(const TgHost *host, int fd, const void *from, size_t bytes) {
    (void)host;
    return write(fd, from, bytes);
}

static int host_fsync(const TgHost *host, int fd) {
    (void)host;
    return fsync(fd);
}

static int host_rename(const TgHost *host, const char *from, const char *to) {
    (void)host;
    return rename(from, to);
}

static int host_close(const TgHost *host, int fd) {
    (void)host;
    return close(fd);
}

const TgHost *tg_host(void) {
    static const TgHost os = {
        .resize = host_resize,
        .open = host_open,
        .read = host_read,
        .write = host_write,
        .fsync = host_fsync,
        .rename = host_rename,
        .close = host_close,
    };
    return &os;
}
