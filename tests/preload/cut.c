/* Preloaded, it ends the process at its n-th call that changes files ($TG_CUT, from 1), as a lost machine would: before
   the call, or after half of a write. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KILLED = 137 };
static atomic_long calls;

static long at(void) {
    const char *text = getenv("TG_CUT");
    return text != NULL ? atol(text) : 0;
}

static void count(void) {
    if (atomic_fetch_add(&calls, 1) + 1 == at())
        _exit(KILLED);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & (O_WRONLY | O_RDWR | O_DIRECTORY)) != 0)
        count();
    return NEXT(open)(path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    if (atomic_fetch_add(&calls, 1) + 1 == at()) {
        (void)!NEXT(write)(fd, data, bytes / 2);
        _exit(KILLED);
    }
    return NEXT(write)(fd, data, bytes);
}

int fsync(int fd) {
    count();
    return NEXT(fsync)(fd);
}

int close(int fd) {
    count();
    return NEXT(close)(fd);
}

int rename(const char *from, const char *to) {
    count();
    return NEXT(rename)(from, to);
}

int unlink(const char *path) {
    count();
    return NEXT(unlink)(path);
}

int mkdir(const char *path, mode_t mode) {
    count();
    return NEXT(mkdir)(path, mode);
}
