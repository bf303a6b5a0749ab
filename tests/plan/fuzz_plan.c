/* Any bytes as a plan's body under a valid head: refused with a reason, or a plan that prints and is written again. */
#include "ir/base/map.h"
#include "ir/plan/plan_codec.h"
#include "tests/fuzz/host.h"

#include <stdlib.h>
#include <string.h>

static void try_plan(Arena *arena, const uint8_t *data, size_t bytes) {
    char *plan = tg_arena_alloc(arena, PLAN_HEAD + bytes);
    uint32_t version = TG_PLAN_VERSION;
    uint64_t length = bytes, hash = tg_hash(data, bytes, 0);
    memcpy(plan, PLAN_MAGIC, PLAN_HEAD_VERSION);
    memcpy(plan + PLAN_HEAD_VERSION, &version, 4);
    memcpy(plan + PLAN_HEAD_BYTES, &length, 8);
    memcpy(plan + PLAN_HEAD_HASH, &hash, 8);
    memcpy(plan + PLAN_HEAD, data, bytes);
    TgPlan *read;
    const char *why;
    Status status = tg_plan_read(arena, plan, PLAN_HEAD + bytes, &read, &why);
    if ((status == TG_OK) != (why == NULL))
        abort();
    if (status != TG_OK)
        return;
    Str text = tg_str(arena), again = tg_str(arena);
    tg_plan_print(&text, read);
    if (tg_plan_write(&again, read) != TG_OK || again.length != PLAN_HEAD + bytes ||
        memcmp(again.text, plan, again.length) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    Arena arena;
    tg_arena_init(&arena, fuzz_host(data, bytes));
    if (setjmp(arena.guard))
        abort();
    try_plan(&arena, data, bytes);
    return 0;
}
