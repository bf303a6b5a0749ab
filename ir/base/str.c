#include "ir/base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Str tg_str(Arena *arena) { return (Str){.arena = arena, .text = tg_arena_alloc(arena, 1), .capacity = 1}; }

static void reserve(Str *str, size_t more) {
    size_t need = str->length + more + 1;
    if (need <= str->capacity)
        return;
    size_t grown = str->capacity * 2 > need ? str->capacity * 2 : need;
    str->text = tg_arena_grow(str->arena, str->text, str->capacity, grown);
    str->capacity = grown;
}

void tg_str_add(Str *str, const char *text, size_t length) {
    reserve(str, length);
    if (length > 0)
        memcpy(str->text + str->length, text, length);
    str->length += length;
    str->text[str->length] = '\0';
}

void tg_str_printf(Str *str, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    reserve(str, (size_t)length);
    vsnprintf(str->text + str->length, (size_t)length + 1, format, again);
    va_end(again);
    str->length += (size_t)length;
}

const char *tg_number_text(double value, char out[TG_NUMBER_TEXT]) {
    if (isnan(value))
        return strcpy(out, "nan");
    if (isinf(value))
        return strcpy(out, value < 0 ? "-inf" : "inf");
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, TG_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    return out;
}

enum { LONGEST_NAME = 64 };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Characters to insert, delete or replace, and neighbours to swap, from `a` to `b`. */
static uint32_t edits(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n >= LONGEST_NAME || m >= LONGEST_NAME)
        return UINT32_MAX;
    uint32_t rows[3][LONGEST_NAME]; /* row i % 3: from the first i characters of `a` */
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

const char *tg_closest(const char *name, const char *const *names, uint32_t count) {
    const char *closest = NULL;
    uint32_t limit = (uint32_t)strlen(name) / 3 + 1, best = limit + 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t distance = edits(name, names[i]);
        if (distance < best) {
            best = distance;
            closest = names[i];
        }
    }
    return closest;
}

const char *tg_bytes_text(Arena *arena, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    enum { LAST = sizeof units / sizeof *units - 1 };
    int unit = 0;
    for (; bytes >= 1000 && unit < LAST; unit++)
        bytes /= 1024;
    return tg_arena_printf(arena, "%.*f %s", unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2, bytes, units[unit]);
}
