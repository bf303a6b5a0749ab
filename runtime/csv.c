#include "runtime/csv.h"

#include "runtime/data.h"

#include <string.h>
#include <strings.h>

Status tg_csv_open(Csv *csv, Arena *arena, const char *path, const char **why) {
    unsigned char *data = NULL;
    size_t bytes = 0;
    TG_TRY(tg_data_load(arena, path, &data, &bytes, why));
    tg_csv_open_text(csv, arena, path, data, bytes, why);
    return TG_OK;
}

void tg_csv_open_text(Csv *csv, Arena *arena, const char *path, const unsigned char *text, size_t bytes,
                      const char **why) {
    char *copy = tg_arena_str(arena, (const char *)text, bytes);
    *csv = (Csv){.arena = arena, .path = path, .next = copy, .end = copy + bytes, .separator = ',', .why = why};
}

Status tg_csv_bad(Csv *csv, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(csv->arena, format, args);
    va_end(args);
    *csv->why = tg_arena_printf(csv->arena, "%s:%lld: %s", csv->path, (long long)csv->line, text);
    return TG_MODEL;
}

/* Reads a quoted cell in place; `next` is behind the opening quote. */
static Status quoted_cell(Csv *csv) {
    char *to = csv->next;
    int64_t opened = csv->line;
    for (;; csv->next++) {
        if (csv->next == csv->end) {
            csv->line = opened;
            return tg_csv_bad(csv, "a quote is not closed");
        }
        if (*csv->next == '\n')
            csv->line++;
        if (*csv->next == '"') {
            if (csv->next[1] != '"')
                break;
            csv->next++;
        }
        *to++ = *csv->next;
    }
    csv->next++;
    *to = '\0';
    return TG_OK;
}

Status tg_csv_row(Csv *csv, bool *more) {
    const char stops[] = {csv->separator, '\r', '\n', '\0'};
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as spreadsheets write it */
    csv->cells.count = 0;
    if (csv->line++ == 0 && strncmp(csv->next, mark, 3) == 0)
        csv->next += 3;
    *more = csv->next < csv->end;
    while (csv->next < csv->end) {
        char *cell = csv->next;
        bool quoted = *cell == '"';
        if (quoted) {
            csv->next = ++cell;
            TG_TRY(quoted_cell(csv));
        }
        size_t length = strcspn(csv->next, stops);
        if (quoted && length > 0)
            return tg_csv_bad(csv, "text follows a closing quote");
        csv->next += length;
        char stop = *csv->next;
        if (stop == '\0' && csv->next < csv->end)
            return tg_csv_bad(csv, "a zero byte: this is no text in UTF-8 (UTF-16 has to be converted)");
        *csv->next = '\0';
        tg_push(csv->arena, &csv->cells, cell);
        if (csv->next == csv->end)
            return TG_OK;
        csv->next++;
        if (stop == '\r' && *csv->next == '\n')
            csv->next++;
        if (stop != csv->separator)
            return TG_OK;
        if (csv->next == csv->end)
            tg_push(csv->arena, &csv->cells, csv->end);
    }
    return TG_OK;
}

bool tg_csv_missing(const char *cell) {
    static const char *const words[] = {"", "NA", "N/A", "nan", "null"};
    size_t begin = strspn(cell, " \t"), length = strlen(cell + begin);
    while (length > 0 && strchr(" \t", cell[begin + length - 1]) != NULL)
        length--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncasecmp(words[i], cell + begin, length) == 0)
            return true;
    return false;
}
