/* The one seam for memory and the one for files: every allocation and every file operation of tgc and of its programs goes
   through a TgHost, so that a test can make the n-th call fail. All functions set errno as their namesakes do. */
#ifndef TG_HOST_H
#define TG_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct TgHost TgHost;
struct TgHost {
    void *(*resize)(const TgHost *host, void *old, size_t bytes); /* realloc; bytes 0 frees and gives NULL */
    int (*open)(const TgHost *host, const char *path, int flags, mode_t mode);
    ssize_t (*read)(const TgHost *host, int fd, void *to, size_t bytes);
    ssize_t (*write)(const TgHost *host, int fd, const void *from, size_t bytes);
    int (*fsync)(const TgHost *host, int fd);
    int (*rename)(const TgHost *host, const char *from, const char *to);
    int (*close)(const TgHost *host, int fd);
    void *context; /* a test's own */
};

/* The operating system's. */
const TgHost *tg_host(void);

static inline void *tg_new(const TgHost *host, size_t bytes) { return host->resize(host, NULL, bytes); }
static inline void tg_free(const TgHost *host, void *p) { (void)host->resize(host, p, 0); }

#endif
