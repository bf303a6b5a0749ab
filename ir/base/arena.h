/* Memory of one phase: allocated piece by piece, freed as a whole.
   An arena never returns NULL. With no memory left it jumps to the guard of the phase that owns it:

       Arena arena;
       tg_arena_init(&arena, host);
       if (setjmp(arena.guard)) { tg_arena_deinit(&arena); return TG_MEMORY; }

   Code between guard and allocation owns nothing but arena memory, so nothing leaks. */
#ifndef TG_ARENA_H
#define TG_ARENA_H

#include "ir/base/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
    const TgHost *host;
    ArenaBlock *blocks; /* the newest first */
    char *next, *end;   /* free part of the newest block */
    size_t bytes;       /* handed out so far */
    jmp_buf guard;      /* set by the owner before the first allocation */
} Arena;

void tg_arena_init(Arena *arena, const TgHost *host);
void tg_arena_deinit(Arena *arena);

/* `bytes` zeroed bytes, aligned to 16. */
void *tg_arena_alloc(Arena *arena, size_t bytes);
/* Room for `bytes`, the first `old_bytes` copied from `old`; grows in place when `old` is the newest piece. */
void *tg_arena_grow(Arena *arena, void *old, size_t old_bytes, size_t bytes);
void *tg_arena_copy(Arena *arena, const void *from, size_t bytes);
char *tg_arena_str(Arena *arena, const char *text, size_t length); /* NUL-terminated copy */
char *tg_arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *tg_arena_vprintf(Arena *arena, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#define TG_ALLOC(arena, type, count) ((type *)tg_arena_alloc((arena), sizeof(type) * (size_t)(count)))

#endif
