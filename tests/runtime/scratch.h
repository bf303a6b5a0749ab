/* A folder of a test's own, and the guard around its arena. */
#ifndef TG_TESTS_SCRATCH_H
#define TG_TESTS_SCRATCH_H

#include "ir/base/arena.h"

typedef struct Scratch {
    Arena *arena;
    char folder[64];
} Scratch;

/* Runs `body` with a fresh folder and arena, and removes both. */
void scratch_run(void (*body)(Scratch *scratch));
const char *scratch_path(Scratch *scratch, const char *name);
const char *scratch_write(Scratch *scratch, const char *name, const void *data, size_t bytes);
const char *scratch_text(Scratch *scratch, const char *name, const char *text);

/* A host whose n-th write (from 1) fails with ENOSPC, or whose n-th allocation gives NULL; 0: none does. */
typedef struct FailingHost {
    TgHost host;
    int write_fails_at, writes;
    int allocation_fails_at, allocations;
} FailingHost;
void failing_host_init(FailingHost *failing, int write_fails_at, int allocation_fails_at);

#endif
