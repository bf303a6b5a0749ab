/* CSV with a header row: RFC 4180 quoting, numeric columns chosen by name. */
#include "ir/base/map.h"
#include "runtime/csv.h"
#include "runtime/data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The header's places of the columns that are asked for. */
static Status choose(Csv *csv, const char *columns, uint32_t **places, uint32_t *count) {
    uint32_t wanted = 1, header = csv->cells.count;
    for (const char *at = columns; *at != '\0'; at++)
        wanted += *at == '\n';
    *places = TG_ALLOC(csv->arena, uint32_t, wanted);
    *count = wanted;
    for (uint32_t i = 0; i < wanted; i++) {
        size_t length = strcspn(columns, "\n");
        const char *name = tg_arena_str(csv->arena, columns, length);
        columns += length + (columns[length] == '\n');
        uint32_t found = 0;
        while (found < header && strcmp(csv->cells.at[found], name) != 0)
            found++;
        if (found == header) {
            const char *close = tg_closest(name, (const char *const *)csv->cells.at, header);
            return tg_csv_bad(csv, "there is no column '%s'%s%s%s", name, close ? "; did you mean '" : "", close ? close : "",
                       close ? "'?" : "");
        }
        (*places)[i] = found;
    }
    return TG_OK;
}

static Status number(Csv *csv, const char *cell, const char *column, DType dtype, double *value) {
    char *end;
    *value = strtod(cell, &end);
    if (end == cell || end[strspn(end, " \t")] != '\0')
        return tg_csv_bad(csv, "column '%s': '%.40s' is not a number", column, cell);
    if (!tg_is_float(dtype) && tg_round_to(dtype, *value) != *value)
        return tg_csv_bad(csv, "column '%s': %.40s is not a value of %s", column, cell, tg_dtype(dtype)->name);
    return TG_OK;
}

Status tg_read_csv(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    Csv csv;
    TG_TRY(tg_csv_open(&csv, arena, request->path, why));
    bool more = false;
    TG_TRY(tg_csv_row(&csv, &more));
    if (!more)
        return tg_csv_bad(&csv, "the file is empty; a row of column names is expected");
    uint32_t *places = NULL, wanted = 0, header = csv.cells.count;
    TG_TRY(choose(&csv, request->columns, &places, &wanted));
    const char **names = TG_ALLOC(arena, const char *, wanted);
    for (uint32_t i = 0; i < wanted; i++)
        names[i] = csv.cells.at[places[i]];
    int each = tg_dtype(request->dtype)->bytes;
    int64_t rows = 0, room = 0;
    unsigned char *values = NULL;
    for (;;) {
        TG_TRY(tg_csv_row(&csv, &more));
        if (!more)
            break;
        if (csv.cells.count == 1 && csv.cells.at[0][0] == '\0')
            continue;
        if (csv.cells.count != header)
            return tg_csv_bad(&csv, "%u cells where the header has %u", csv.cells.count, header);
        if (rows == room) {
            int64_t grown = room > 0 ? 2 * room : 256;
            values = tg_arena_grow(arena, values, (size_t)room * wanted * each, (size_t)grown * wanted * each);
            room = grown;
        }
        for (uint32_t i = 0; i < wanted; i++) {
            double value;
            TG_TRY(number(&csv, csv.cells.at[places[i]], names[i], request->dtype, &value));
            tg_element_set(request->dtype, values, rows * wanted + i, value);
        }
        rows++;
    }
    bool single = strchr(request->columns, '\n') == NULL;
    *array = (DataArray){.dtype = request->dtype, .rank = single ? 1 : 2, .dims = {rows, wanted}, .values = values};
    return TG_OK;
}
