/* Text that grows in an arena: printers write into it, parsers read from it. */
#ifndef TG_STR_H
#define TG_STR_H

#include "ir/base/arena.h"

typedef struct Str {
    Arena *arena;
    char *text; /* NUL-terminated; "" when empty */
    size_t length, capacity;
} Str;

Str tg_str(Arena *arena);
void tg_str_add(Str *str, const char *text, size_t length);
void tg_str_printf(Str *str, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The shortest decimal text that reads back to exactly this f64 ("0.1", "1e-08", "inf", "-inf", "nan"), in `out`. */
enum { TG_NUMBER_TEXT = 32 };
const char *tg_number_text(double value, char out[TG_NUMBER_TEXT]);

/* Three digits of it: "512 B", "51.3 MiB". */
const char *tg_bytes_text(Arena *arena, double bytes);

/* The name of `names` that is closest to `name` by edits (at most 1 and a third of its length), or NULL. */
const char *tg_closest(const char *name, const char *const *names, uint32_t count);

#endif
