#include "runtime/cpu/arena.h"

#include <string.h>
#include <sys/mman.h>

/* PIECE: what one thread touches at a time. From HUGE_FROM bytes on a huge page costs less than its small pages. */
enum { SMALL_ALIGN = 4096, HUGE_PAGE = 2 << 20, HUGE_FROM = 256 << 10, MARGIN = 4096, PIECE = 256 << 10, POISON = 255 };

static void touch(void *context, int thread, int64_t first, int64_t last) {
    (void)thread;
    const CpuArena *arena = context;
    size_t begin = (size_t)first * PIECE, end = (size_t)last * PIECE;
    if (end > arena->bytes)
        end = arena->bytes;
    memset(arena->memory + begin, arena->poison ? POISON : 0, end - begin);
}

Status tg_cpu_arena_open(CpuArena *arena, const TgHost *host, TgPool *pool, size_t bytes, bool poison) {
    size_t align = bytes >= HUGE_FROM ? HUGE_PAGE : SMALL_ALIGN;
    *arena = (CpuArena){.host = host, .poison = poison};
    if (bytes > SIZE_MAX / 2)
        return TG_MEMORY;
    bytes += MARGIN;
    size_t room = (bytes + align - 1) / align * align;
    arena->block = tg_new(host, room + align);
    if (!arena->block)
        return TG_MEMORY;
    arena->memory = (char *)arena->block + (align - (uintptr_t)arena->block % align) % align;
    arena->bytes = bytes;
    if (align == HUGE_PAGE)
        (void)madvise(arena->memory, room, MADV_HUGEPAGE);
    int64_t pieces = (int64_t)((bytes + PIECE - 1) / PIECE);
    if (pool)
        tg_pool_run(pool, touch, arena, pieces);
    else
        touch(arena, 0, 0, pieces);
    return TG_OK;
}

void tg_cpu_arena_close(CpuArena *arena) {
    if (arena->block)
        tg_free(arena->host, arena->block);
    *arena = (CpuArena){0};
}

size_t tg_cpu_arena_touched(const CpuArena *arena) {
    if (!arena->poison)
        return 0;
    size_t end = arena->bytes;
    while (end > 0 && (unsigned char)arena->memory[end - 1] == POISON)
        end--;
    return end;
}
