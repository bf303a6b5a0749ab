#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *info, int flag, struct FTW *where) {
    (void)info, (void)flag, (void)where;
    return remove(path);
}

void scratch_run(void (*body)(Scratch *scratch)) {
    unsetenv("TG_DATA"); /* it would replace the folders that tests write their data to */
    Arena arena;
    Scratch scratch = {.arena = &arena, .folder = "/tmp/tg-test-XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(scratch.folder));
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard)) {
        CU_FAIL_FATAL("no memory");
    }
    body(&scratch);
    tg_arena_deinit(&arena);
    CU_ASSERT_EQUAL(nftw(scratch.folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

const char *scratch_path(Scratch *scratch, const char *name) {
    return tg_arena_printf(scratch->arena, "%s/%s", scratch->folder, name);
}

const char *scratch_write(Scratch *scratch, const char *name, const void *data, size_t bytes) {
    const char *path = scratch_path(scratch, name);
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(data, 1, bytes, file), bytes);
    CU_ASSERT_EQUAL(fclose(file), 0);
    return path;
}

const char *scratch_text(Scratch *scratch, const char *name, const char *text) {
    return scratch_write(scratch, name, text, strlen(text));
}

static ssize_t failing_write(const TgHost *host, int fd, const void *from, size_t bytes) {
    FailingHost *failing = host->context;
    if (++failing->writes == failing->write_fails_at) {
        errno = ENOSPC;
        return -1;
    }
    return write(fd, from, bytes);
}

static void *failing_resize(const TgHost *host, void *old, size_t bytes) {
    FailingHost *failing = host->context;
    if (bytes > 0 && ++failing->allocations == failing->allocation_fails_at)
        return NULL;
    return tg_host()->resize(host, old, bytes);
}

void failing_host_init(FailingHost *failing, int write_fails_at, int allocation_fails_at) {
    *failing =
        (FailingHost){.host = *tg_host(), .write_fails_at = write_fails_at, .allocation_fails_at = allocation_fails_at};
    failing->host.write = failing_write;
    failing->host.resize = failing_resize;
    failing->host.context = failing;
}
