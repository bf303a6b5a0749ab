#include "ir/base/arena.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 16, FIRST_BLOCK = 64 * 1024, HUGE_PAGE = 2 << 20, HUGE_BLOCK = 16 << 20 };

struct ArenaBlock {
    ArenaBlock *older;
    size_t bytes;
};

_Static_assert(sizeof(ArenaBlock) % ALIGN == 0, "the first piece of a block is aligned");

/* With the address sanitizer a gap that must not be touched follows every piece, as malloc's have. */
#ifdef TG_SANITIZE
#include <sanitizer/asan_interface.h>
enum { GAP = ALIGN };
static void forbid(const void *from, size_t bytes) { __asan_poison_memory_region(from, bytes); }
static void allow(const void *from, size_t bytes) { __asan_unpoison_memory_region(from, bytes); }
#else
enum { GAP = 0 };
static void forbid(const void *from, size_t bytes) { (void)from, (void)bytes; }
static void allow(const void *from, size_t bytes) { (void)from, (void)bytes; }
#endif

static size_t round_up(size_t bytes) { return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

void tg_arena_init(Arena *arena, const TgHost *host) { *arena = (Arena){.host = host}; }

void tg_arena_deinit(Arena *arena) {
    for (ArenaBlock *block = arena->blocks; block != NULL;) {
        ArenaBlock *older = block->older;
        tg_free(arena->host, block);
        block = older;
    }
    *arena = (Arena){.host = arena->host};
}

/* Large blocks are touched from end to end: by pages of 2 MB that takes a small part of the time. */
static void ask_for_huge_pages(void *block, size_t bytes) {
    uintptr_t begin = ((uintptr_t)block + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1), end = (uintptr_t)block + bytes;
    if (bytes >= HUGE_BLOCK && begin < end)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a wish: without it all is as before */
}

/* Blocks double, so that their number stays small. */
static void add_block(Arena *arena, size_t at_least) {
    size_t bytes = arena->blocks ? arena->blocks->bytes * 2 : FIRST_BLOCK;
    if (bytes < at_least + sizeof(ArenaBlock))
        bytes = at_least + sizeof(ArenaBlock);
    ArenaBlock *block = tg_new(arena->host, bytes);
    if (block == NULL)
        longjmp(arena->guard, 1);
    ask_for_huge_pages(block, bytes);
    *block = (ArenaBlock){.older = arena->blocks, .bytes = bytes};
    arena->blocks = block;
    arena->next = (char *)(block + 1);
    arena->end = (char *)block + bytes;
    forbid(arena->next, bytes - sizeof(ArenaBlock));
}

void *tg_arena_alloc(Arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX / 4)
        longjmp(arena->guard, 1);
    size_t need = round_up(bytes ? bytes : 1) + GAP;
    if (need > (size_t)(arena->end - arena->next))
        add_block(arena, need);
    void *p = arena->next;
    arena->next += need;
    arena->bytes += need;
    allow(p, bytes);
    return memset(p, 0, bytes);
}

void *tg_arena_grow(Arena *arena, void *old, size_t old_bytes, size_t bytes) {
    size_t had = round_up(old_bytes ? old_bytes : 1) + GAP, need = round_up(bytes) + GAP;
    bool newest = old != NULL && (char *)old + had == arena->next;
    if (newest && bytes >= old_bytes && need - had <= (size_t)(arena->end - arena->next)) {
        allow(old, bytes);
        memset((char *)old + old_bytes, 0, bytes - old_bytes);
        arena->next += need - had;
        arena->bytes += need - had;
        return old;
    }
    void *p = tg_arena_alloc(arena, bytes);
    if (old_bytes)
        memcpy(p, old, old_bytes);
    return p;
}

void *tg_arena_copy(Arena *arena, const void *from, size_t bytes) {
    void *p = tg_arena_alloc(arena, bytes);
    if (bytes)
        memcpy(p, from, bytes);
    return p;
}

char *tg_arena_str(Arena *arena, const char *text, size_t length) {
    char *copy = tg_arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *tg_arena_vprintf(Arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = tg_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *tg_arena_printf(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = tg_arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
