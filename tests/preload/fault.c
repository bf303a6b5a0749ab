/* Preloaded into the program that $TG_FAULT_PROGRAM names (its children are left alone), it makes one call fail: $TG_FAULT is
   KIND:N, the N-th call (from 1) of that kind that our own code makes. Calls that libc, LLVM or oneDNN make are not ours.

   When the process ends, it writes to $TG_FAULT_LOG: "KIND COUNT" for each kind, "failed" if the call was reached, and "live COUNT
   ADDRESS..." if our code has not given back as much memory and as many files as it took; the addresses are offsets in the program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* X(kind, errno when it fails) */
#define KINDS(X)        \
    X(memory, ENOMEM)   \
    X(open, EMFILE)     \
    X(read, EIO)        \
    X(write, ENOSPC)    \
    X(fsync, EIO)       \
    X(rename, EACCES)   \
    X(close, EIO)       \
    X(ftruncate, ENOSPC) \
    X(mkdir, ENOSPC)

typedef enum Kind {
#define X(kind, error) KIND_##kind,
    KINDS(X)
#undef X
    KIND_COUNT
} Kind;

static const char *const names[] = {
#define X(kind, error) #kind,
    KINDS(X)
#undef X
};
static const int errors[] = {
#define X(kind, error) error,
    KINDS(X)
#undef X
};

enum { LIVE = 1 << 16, FILES = 1024, MODULES = 64 };

typedef struct Range {
    uintptr_t begin, end;
    bool ours;
} Range;

static struct {
    bool active;
    Kind kind;
    long at;
    atomic_long calls[KIND_COUNT];
    atomic_bool failed;
    Range modules[MODULES];
    atomic_int module_count;
    pthread_mutex_t lock;
    struct {
        void *memory;
        const void *from;
    } live[LIVE]; /* open addressing */
    const void *files[FILES];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define CALLER __builtin_return_address(0)

/* ---- whose call it is ---- */

static int add_module(struct dl_phdr_info *info, size_t size, void *first) {
    (void)size;
    Range range = {UINTPTR_MAX, 0, *(bool *)first || strstr(info->dlpi_name, "libtgc_llvm") != NULL ||
                                       strstr(info->dlpi_name, "libtgrt_dnn") != NULL};
    *(bool *)first = false; /* the program comes first */
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, end = begin + info->dlpi_phdr[i].p_memsz;
        range.begin = begin < range.begin ? begin : range.begin;
        range.end = end > range.end ? end : range.end;
    }
    int count = atomic_load(&state.module_count);
    for (int i = 0; i < count; i++)
        if (state.modules[i].begin == range.begin)
            return 0;
    if (count < MODULES) {
        state.modules[count] = range;
        atomic_store(&state.module_count, count + 1);
    }
    return 0;
}

static const Range *module_of(const void *caller) {
    for (int i = 0; i < atomic_load(&state.module_count); i++)
        if ((uintptr_t)caller >= state.modules[i].begin && (uintptr_t)caller < state.modules[i].end)
            return &state.modules[i];
    return NULL;
}

static bool is_ours(const void *caller) {
    if (!state.active)
        return false;
    const Range *module = module_of(caller);
    if (module == NULL) { /* opened since */
        bool first = true;
        dl_iterate_phdr(add_module, &first);
        module = module_of(caller);
    }
    return module != NULL && module->ours;
}

/* Counts the call; true: it is the one that fails, and errno says so. */
static bool fails(Kind kind, const void *caller) {
    if (!is_ours(caller) || atomic_fetch_add(&state.calls[kind], 1) + 1 != state.at || kind != state.kind)
        return false;
    atomic_store(&state.failed, true);
    errno = errors[kind];
    return true;
}

/* ---- what is not given back ---- */

static void keep(void *memory, const void *caller) {
    if (memory == NULL || !is_ours(caller))
        return;
    pthread_mutex_lock(&state.lock);
    uint32_t i = (uint32_t)((uintptr_t)memory >> 4);
    while (state.live[i % LIVE].memory != NULL && state.live[i % LIVE].memory != (void *)-1)
        i++;
    state.live[i % LIVE].memory = memory;
    state.live[i % LIVE].from = caller;
    pthread_mutex_unlock(&state.lock);
}

static void forget(const void *memory) {
    if (memory == NULL || !state.active)
        return;
    pthread_mutex_lock(&state.lock);
    for (uint32_t i = (uint32_t)((uintptr_t)memory >> 4), n = 0; n < LIVE && state.live[i % LIVE].memory != NULL; i++, n++)
        if (state.live[i % LIVE].memory == memory) {
            state.live[i % LIVE].memory = (void *)-1; /* was used */
            break;
        }
    pthread_mutex_unlock(&state.lock);
}

/* ---- memory ---- */

/* glibc's own, which need no dlsym: that would ask for memory itself. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

void *malloc(size_t bytes) {
    if (fails(KIND_memory, CALLER))
        return NULL;
    void *memory = __libc_malloc(bytes);
    keep(memory, CALLER);
    return memory;
}

void *calloc(size_t count, size_t bytes) {
    if (fails(KIND_memory, CALLER))
        return NULL;
    void *memory = __libc_calloc(count, bytes);
    keep(memory, CALLER);
    return memory;
}

void *realloc(void *old, size_t bytes) {
    if (fails(KIND_memory, CALLER))
        return NULL;
    forget(old);
    void *memory = __libc_realloc(old, bytes);
    keep(memory, CALLER);
    return memory;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    if (fails(KIND_memory, CALLER))
        return NULL;
    void *memory = __libc_memalign(alignment, bytes);
    keep(memory, CALLER);
    return memory;
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    if (fails(KIND_memory, CALLER))
        return ENOMEM;
    *memory = __libc_memalign(alignment, bytes);
    keep(*memory, CALLER);
    return *memory == NULL ? ENOMEM : 0;
}

void free(void *memory) {
    forget(memory);
    __libc_free(memory);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (fails(KIND_memory, CALLER))
        return MAP_FAILED;
    void *memory = NEXT(mmap)(address, bytes, protection, flags, fd, offset);
    if (memory != MAP_FAILED)
        keep(memory, CALLER);
    return memory;
}

int munmap(void *memory, size_t bytes) {
    forget(memory);
    return NEXT(munmap)(memory, bytes);
}

/* ---- files ---- */

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    if (fails(KIND_open, CALLER))
        return -1;
    int fd = NEXT(open)(path, flags, mode);
    if (fd >= 0 && fd < FILES && is_ours(CALLER))
        state.files[fd] = CALLER;
    return fd;
}

ssize_t read(int fd, void *to, size_t bytes) { return fails(KIND_read, CALLER) ? -1 : NEXT(read)(fd, to, bytes); }

/* A disk that becomes full takes a part. */
ssize_t write(int fd, const void *from, size_t bytes) {
    if (!fails(KIND_write, CALLER))
        return NEXT(write)(fd, from, bytes);
    (void)!NEXT(write)(fd, from, bytes / 2);
    errno = errors[KIND_write];
    return -1;
}

int fsync(int fd) { return fails(KIND_fsync, CALLER) ? -1 : NEXT(fsync)(fd); }

int rename(const char *from, const char *to) { return fails(KIND_rename, CALLER) ? -1 : NEXT(rename)(from, to); }

/* The file is closed all the same, as Linux does. */
int close(int fd) {
    bool failed = fails(KIND_close, CALLER);
    if (fd >= 0 && fd < FILES)
        state.files[fd] = NULL;
    int result = NEXT(close)(fd);
    errno = failed ? errors[KIND_close] : errno;
    return failed ? -1 : result;
}

int ftruncate(int fd, off_t bytes) { return fails(KIND_ftruncate, CALLER) ? -1 : NEXT(ftruncate)(fd, bytes); }

int mkdir(const char *path, mode_t mode) { return fails(KIND_mkdir, CALLER) ? -1 : NEXT(mkdir)(path, mode); }

/* ---- begin and end ---- */

static void choose(const char *fault) {
    const char *colon = fault != NULL ? strchr(fault, ':') : NULL;
    for (int kind = 0; colon != NULL && kind < KIND_COUNT; kind++)
        if (strlen(names[kind]) == (size_t)(colon - fault) && strncmp(fault, names[kind], strlen(names[kind])) == 0) {
            state.kind = kind;
            state.at = atol(colon + 1);
        }
}

__attribute__((constructor)) static void begin(void) {
    const char *program = getenv("TG_FAULT_PROGRAM");
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (program == NULL || length <= 0)
        return;
    path[length] = '\0';
    bool first = true;
    dl_iterate_phdr(add_module, &first);
    choose(getenv("TG_FAULT"));
    state.active = strcmp(path, program) == 0;
}

static void list(FILE *log) {
    int count = 0;
    for (int i = 0; i < LIVE; i++)
        count += state.live[i].memory != NULL && state.live[i].memory != (void *)-1;
    fprintf(log, "live %d", count);
    for (int i = 0; i < LIVE; i++)
        if (state.live[i].memory != NULL && state.live[i].memory != (void *)-1)
            fprintf(log, " %#lx", (unsigned long)((uintptr_t)state.live[i].from - module_of(state.live[i].from)->begin));
    for (int i = 0; i < FILES; i++)
        if (state.files[i] != NULL)
            fprintf(log, " file:%#lx", (unsigned long)((uintptr_t)state.files[i] - module_of(state.files[i])->begin));
    fprintf(log, "\n");
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("TG_FAULT_LOG");
    if (!state.active || path == NULL)
        return;
    state.active = false;
    FILE *log = fopen(path, "w");
    if (log == NULL)
        return;
    for (int kind = 0; kind < KIND_COUNT; kind++)
        fprintf(log, "%s %ld\n", names[kind], atomic_load(&state.calls[kind]));
    if (atomic_load(&state.failed))
        fprintf(log, "failed\n");
    list(log);
    (void)fclose(log);
}
