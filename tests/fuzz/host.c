#include "tests/fuzz/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#define REGION ((size_t)1 << 30)
enum { KEPT = 64 << 20, INPUT = 1000 };

typedef struct Memory {
    char *region;
    size_t used;
    const uint8_t *next; /* of the input */
    size_t left;
} Memory;

/* Blocks of an arena are freed all together: the next input begins at the region's start. */
static void *resize(const TgHost *host, void *old, size_t bytes) {
    Memory *memory = host->context;
    if (bytes == 0)
        return NULL;
    size_t need = (bytes + 15) & ~(size_t)15;
    if (old != NULL || need > REGION - memory->used) {
        fprintf(stderr, "the input takes more than %zu bytes\n", REGION);
        abort();
    }
    char *block = memory->region + memory->used;
    memory->used += need;
    __asan_unpoison_memory_region(block, need); /* what the arena of an earlier input forbade */
    return block;
}

static int open_input(const TgHost *host, const char *path, int flags, mode_t mode) {
    (void)host, (void)flags, (void)mode;
    errno = ENOENT;
    return strcmp(path, FUZZ_FILE) == 0 ? INPUT : -1;
}

static int close_input(const TgHost *host, int fd) {
    (void)host, (void)fd;
    return 0;
}

static ssize_t read_input(const TgHost *host, int fd, void *to, size_t bytes) {
    (void)fd;
    Memory *memory = host->context;
    size_t count = bytes < memory->left ? bytes : memory->left;
    memcpy(to, memory->next, count);
    memory->next += count;
    memory->left -= count;
    return (ssize_t)count;
}

static ssize_t write_nothing(const TgHost *host, int fd, const void *from, size_t bytes) {
    (void)host, (void)fd, (void)from, (void)bytes;
    errno = EROFS;
    return -1;
}

const TgHost *fuzz_host(const uint8_t *input, size_t bytes) {
    static Memory memory;
    static TgHost host = {.resize = resize, .open = open_input, .close = close_input, .read = read_input, .write = write_nothing};
    if (memory.region == NULL) {
        memory.region = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory.region == MAP_FAILED)
            abort();
    }
    if (memory.used > KEPT)
        (void)madvise(memory.region + KEPT, memory.used - KEPT, MADV_DONTNEED);
    memory.used = 0;
    memory.next = input;
    memory.left = bytes;
    host.context = &memory;
    return &host;
}
