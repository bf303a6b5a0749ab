#include "driver/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *units_count(Arena *arena, double count) {
    static const char *const units[] = {"", " k", " M", " G", " T"};
    int unit = 0;
    for (; count >= 1000 && unit < 4; unit++)
        count /= 1000;
    return tg_arena_printf(arena, "%.*f%s", unit == 0 || count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2, count, units[unit]);
}

const char *units_time(Arena *arena, double microseconds) {
    return microseconds < 1e4 ? tg_arena_printf(arena, "%.4g µs", microseconds)
                              : tg_arena_printf(arena, "%.4g ms", 1e-3 * microseconds);
}

static const double most_memory = 0x1p50;

static bool read_bytes(const char *text, double *bytes) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},     {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
                 {"KB", 1e3},  {"MB", 1e6},  {"GB", 1e9},     {"TB", 1e12},    {"K", 0x1p10},   {"M", 0x1p20},
                 {"G", 0x1p30}, {"T", 0x1p40}};
    char *end;
    double amount = strtod(text, &end);
    if (end == text || !isfinite(amount) || amount <= 0 || strpbrk(text, "xXpP"))
        return false;
    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].name) == 0) {
            *bytes = amount * units[i].bytes;
            return true;
        }
    return false;
}

Status units_memory(Diags *diags, const char *text, double *bytes) {
    if (text == NULL)
        return TG_OK;
    if (!read_bytes(text, bytes)) {
        tg_error(diags, (Loc){0}, "--memory is a size, as 24GiB or 800MB, not '%s'", text);
        return TG_USAGE;
    }
    if (*bytes > most_memory) {
        tg_error(diags, (Loc){0}, "--memory=%s is more than 1 PiB", text);
        return TG_USAGE;
    }
    return TG_OK;
}
