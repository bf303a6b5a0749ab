/* Columns of CSV files, chosen by name: numbers, or in fields of integers words, which are numbered.

   Cells without a value are an error unless `missing` says what to take. Words: docs/data.md. */
#include "ir/base/map.h"
#include "runtime/csv.h"
#include "runtime/data.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum Missing { MISSING_ERROR, MISSING_NUMBER, MISSING_MEAN, MISSING_NAME } Missing;

/* A cell of a column of integers, kept until it is known whether the column has words. */
typedef struct Cell {
    const char *text, *path;
    int64_t line;
} Cell;

typedef struct Column {
    const char *name;
    uint32_t place; /* in the header of the file that is being read */
    double sum;     /* of the numbers that are there */
    int64_t numbers;
    Vec(int64_t) gaps; /* rows without one */
    Vec(Cell) cells;   /* of integers */
} Column;

typedef struct Table {
    Arena *arena;
    const DataRequest *request;
    const char **why;
    Csv csv;
    uint32_t header; /* cells of a row */
    Column *columns;
    uint32_t count;
    bool integers;
    Missing missing;
    double missing_number;
    const char *missing_name; /* of a category */
    const char *categories;   /* "true", "false", NULL: as the column is */
    int64_t rows, room;
    unsigned char *values; /* of numbers: rows x count */
} Table;

static void read_options(Table *table) {
    const char *number = tg_data_option(table->arena, table->request, "missing");
    table->missing_name = tg_data_option(table->arena, table->request, "missing_name");
    table->categories = tg_data_option(table->arena, table->request, "categories");
    table->missing = table->missing_name != NULL ? MISSING_NAME : MISSING_ERROR;
    if (number == NULL)
        return;
    table->missing = strcmp(number, "mean") == 0 ? MISSING_MEAN : MISSING_NUMBER;
    table->missing_number = strtod(number, NULL);
}

static void name_columns(Table *table) {
    const char *names = table->request->columns;
    table->count = 1;
    for (const char *at = names; *at != '\0'; at++)
        table->count += *at == '\n';
    table->columns = TG_ALLOC(table->arena, Column, table->count);
    for (uint32_t i = 0; i < table->count; i++) {
        size_t length = strcspn(names, "\n");
        table->columns[i].name = tg_arena_str(table->arena, names, length);
        names += length + (names[length] == '\n');
    }
}

enum { SHOWN_COLUMNS = 12 };

static Status no_column(Table *table, const char *name) {
    const char *const *header = (const char *const *)table->csv.cells.at;
    const char *close = tg_closest(name, header, table->header), *other = strpbrk(header[0], ";\t");
    if (close == NULL && table->header == 1 && other != NULL)
        return tg_csv_bad(&table->csv,
                          "there is no column '%s'; the cells seem to be separated by %s, say separator = \"%s\"", name,
                          *other == ';' ? "semicolons" : "tabs", *other == ';' ? ";" : "\\t");
    if (close != NULL)
        return tg_csv_bad(&table->csv, "there is no column '%s'; did you mean '%s'?", name, close);
    Str list = tg_str(table->arena);
    for (uint32_t i = 0; i < table->header && i < SHOWN_COLUMNS; i++)
        tg_str_printf(&list, "%s'%.40s'", i > 0 ? ", " : "", header[i]);
    return tg_csv_bad(&table->csv, "there is no column '%s'; there are %s%s", name, list.text,
                      table->header > SHOWN_COLUMNS ? ", ..." : "");
}

/* Finds the columns in the header of the file. */
static Status place_columns(Table *table) {
    bool more = false;
    TG_TRY(tg_csv_row(&table->csv, &more));
    if (!more)
        return tg_csv_bad(&table->csv, "it is empty; a row of column names is expected");
    table->header = table->csv.cells.count;
    for (uint32_t i = 0; i < table->count; i++) {
        Column *column = &table->columns[i];
        column->place = table->header;
        for (uint32_t h = 0; h < table->header; h++) {
            if (strcmp(table->csv.cells.at[h], column->name) != 0)
                continue;
            if (column->place < table->header)
                return tg_csv_bad(&table->csv, "there are two columns '%s'", column->name);
            column->place = h;
        }
        if (column->place == table->header)
            return no_column(table, column->name);
    }
    return TG_OK;
}

static bool is_number(const char *cell, double *value) {
    char *end;
    *value = strtod(cell, &end);
    return end != cell && end[strspn(end, " \t")] == '\0';
}

static Status no_value(Table *table, const Column *column, const char *cell) {
    const char *instead = table->integers ? "missing = 0 (or another number, or a category's name)"
                                          : "missing = 0 (or another number) or missing = mean";
    return tg_csv_bad(&table->csv, "column '%s': %s%s%s; csv(..., %s) takes a value instead", column->name,
                      *cell != '\0' ? "'" : "the cell is empty", cell, *cell != '\0' ? "' is no value" : "", instead);
}

static Status number(Table *table, const Column *column, const char *cell, double *value) {
    DType dtype = table->request->dtype;
    if (!is_number(cell, value))
        return tg_csv_bad(&table->csv, "column '%s': '%.40s' is not a number", column->name, cell);
    double rounded = tg_round_to(dtype, *value);
    if (tg_is_float(dtype) ? isinf(rounded) && strpbrk(cell, "iI") == NULL : rounded != *value)
        return tg_csv_bad(&table->csv, "column '%s': %.40s is not a value of %s", column->name, cell,
                          tg_dtype(dtype)->name);
    return TG_OK;
}

/* A cell of numbers into its place; gaps are filled when all is read. */
static Status put_number(Table *table, Column *column, uint32_t index, const char *cell, int64_t row) {
    double value = table->missing_number;
    if (!tg_csv_missing(cell)) {
        TG_TRY(number(table, column, cell, &value));
        column->sum += value;
        column->numbers++;
    } else if (table->missing == MISSING_ERROR || table->missing == MISSING_NAME) {
        return no_value(table, column, cell);
    } else {
        tg_push(table->arena, &column->gaps, row);
    }
    tg_element_set(table->request->dtype, table->values, row * table->count + index, value);
    return TG_OK;
}

static void make_room(Table *table, int64_t rows) {
    if (rows <= table->room)
        return;
    size_t each = tg_dtype(table->request->dtype)->bytes * (size_t)table->count;
    int64_t grown = 2 * table->room > rows ? 2 * table->room : rows > 256 ? rows : 256;
    table->values = tg_arena_grow(table->arena, table->values, (size_t)table->room * each, (size_t)grown * each);
    table->room = grown;
}

static Status read_rows(Table *table) {
    for (;;) {
        bool more = false;
        TG_TRY(tg_csv_row(&table->csv, &more));
        if (!more)
            return TG_OK;
        char *const *cells = table->csv.cells.at;
        if (table->csv.cells.count == 1 && cells[0][0] == '\0' && table->header > 1)
            continue;
        if (table->csv.cells.count != table->header)
            return tg_csv_bad(&table->csv, "%u cells where the header has %u", table->csv.cells.count, table->header);
        if (!table->integers)
            make_room(table, table->rows + 1);
        for (uint32_t i = 0; i < table->count; i++) {
            Column *column = &table->columns[i];
            const char *cell = cells[column->place];
            if (table->integers)
                tg_push(table->arena, &column->cells, (Cell){cell, table->csv.path, table->csv.line});
            else
                TG_TRY(put_number(table, column, i, cell, table->rows));
        }
        table->rows++;
    }
}

/* The path is a command, a file, or a pattern for several files, which are taken in the order of their names. */
static Status read_files(Table *table) {
    const DataRequest *request = table->request;
    const char *separator = tg_data_option(table->arena, request, "separator");
    const char *single[] = {request->path}, *const *paths = single;
    size_t count = 1;
    glob_t found = {0};
    bool pattern = request->output == NULL && strpbrk(request->path, "*?[") != NULL;
    if (pattern && glob(request->path, 0, NULL, &found) != 0) {
        *table->why = tg_arena_printf(table->arena, "no file matches %s", request->path);
        return TG_IO;
    }
    if (pattern) {
        count = found.gl_pathc;
        const char **kept = TG_ALLOC(table->arena, const char *, count);
        for (size_t i = 0; i < count; i++)
            kept[i] = tg_arena_str(table->arena, found.gl_pathv[i], strlen(found.gl_pathv[i]));
        paths = kept;
        globfree(&found);
    }
    for (size_t i = 0; i < count; i++) {
        if (request->output != NULL)
            tg_csv_open_text(&table->csv, table->arena, paths[i], request->output, request->output_bytes, table->why);
        else
            TG_TRY(tg_csv_open(&table->csv, table->arena, paths[i], table->why));
        if (separator != NULL)
            table->csv.separator = *separator;
        TG_TRY(place_columns(table));
        TG_TRY(read_rows(table));
    }
    return TG_OK;
}

/* ---- words ---- */

static void go_to(Table *table, const Cell *cell) {
    table->csv.path = cell->path;
    table->csv.line = cell->line;
}

static const char *words_name(const Table *table, const Column *column) {
    const char *field = table->request->field != NULL ? table->request->field : "";
    return table->count == 1 ? field : tg_arena_printf(table->arena, "%s.%s", field, column->name);
}

/* Words: when there is no number in the column. A column of both is more likely to have a mistake in it. */
static Status has_words(Table *table, const Column *column, bool *words) {
    const Cell *number = NULL, *word = NULL;
    *words = table->categories != NULL && strcmp(table->categories, "true") == 0;
    if (table->categories != NULL)
        return TG_OK;
    for (uint32_t i = 0; i < column->cells.count && (number == NULL || word == NULL); i++) {
        double value;
        const Cell *cell = &column->cells.at[i];
        if (tg_csv_missing(cell->text))
            continue;
        bool numeric = is_number(cell->text, &value);
        number = numeric && number == NULL ? cell : number;
        word = !numeric && word == NULL ? cell : word;
    }
    *words = word != NULL && number == NULL;
    if (word == NULL || number == NULL)
        return TG_OK;
    go_to(table, word);
    return tg_csv_bad(
        &table->csv,
        "column '%s': '%.40s' is not a number, but line %lld has %.40s; csv(..., categories = true) numbers "
        "all cells as words",
        column->name, word->text, (long long)number->line, number->text);
}

static bool is_utf8(const char *text) {
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    while (at < end) {
        int length = tg_utf8_length(at, end);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* Gives the cells without a category the one that `missing` says. */
static Status name_gaps(Table *table, Column *column) {
    for (uint32_t i = 0; i < column->cells.count; i++) {
        Cell *cell = &column->cells.at[i];
        go_to(table, cell);
        if (!tg_csv_missing(cell->text)) {
            if (!is_utf8(cell->text))
                return tg_csv_bad(&table->csv, "column '%s': a category is text in UTF-8", column->name);
        } else if (table->missing == MISSING_NAME) {
            cell->text = table->missing_name;
        } else {
            bool empty = *cell->text == '\0';
            return tg_csv_bad(&table->csv,
                              "column '%s': %s%s%s; csv(..., missing = \"unknown\") makes a category of the cells "
                              "without one",
                              column->name, empty ? "the cell is empty" : "'", cell->text,
                              empty ? "" : "' is no value");
        }
    }
    return TG_OK;
}

static const DataWords *collect_words(Table *table, const Column *column, DataVocabulary *vocabulary,
                                      const char *name) {
    uint32_t count = column->cells.count;
    const char **words = TG_ALLOC(table->arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; i++)
        words[i] = column->cells.at[i].text;
    if (count > 0)
        qsort(words, count, sizeof *words, by_bytes);
    return tg_data_words_add(table->arena, vocabulary, name, table->request->path, words, count);
}

static Status put_words(Table *table, Column *column, uint32_t index, const DataWords *words) {
    DType dtype = table->request->dtype;
    for (uint32_t i = 0; i < column->cells.count; i++) {
        const Cell *cell = &column->cells.at[i];
        int64_t place = tg_data_word_place(words, cell->text);
        go_to(table, cell);
        if (place < 0) {
            const char *close = tg_closest(cell->text, words->at, words->count);
            return tg_csv_bad(&table->csv, "column '%s': the category '%.40s' is not among the %u of %s%s%s%s",
                              column->name, cell->text, words->count, words->origin,
                              close != NULL ? "; did you mean '" : "", close != NULL ? close : "",
                              close != NULL ? "'?" : "");
        }
        if (tg_round_to(dtype, (double)place) != (double)place)
            return tg_csv_bad(&table->csv, "column '%s' has %u categories, more than %s has values", column->name,
                              words->count, tg_dtype(dtype)->name);
        tg_element_set(dtype, table->values, (int64_t)i * table->count + index, (double)place);
    }
    return TG_OK;
}

static Status put_integers(Table *table, Column *column, uint32_t index) {
    for (uint32_t i = 0; i < column->cells.count; i++) {
        go_to(table, &column->cells.at[i]);
        TG_TRY(put_number(table, column, index, column->cells.at[i].text, i));
    }
    return TG_OK;
}

static Status put_column(Table *table, uint32_t index) {
    Column *column = &table->columns[index];
    const char *name = words_name(table, column);
    DataVocabulary none = {0}, *vocabulary = table->request->vocabulary ? table->request->vocabulary : &none;
    const DataWords *known = tg_data_words(vocabulary, name);
    bool words = known != NULL && known->count > 0;
    if (known == NULL)
        TG_TRY(has_words(table, column, &words));
    if (!words) {
        if (known == NULL)
            (void)tg_data_words_add(table->arena, vocabulary, name, table->request->path, NULL, 0);
        return put_integers(table, column, index);
    }
    TG_TRY(name_gaps(table, column));
    if (known == NULL)
        known = collect_words(table, column, vocabulary, name);
    return put_words(table, column, index, known);
}

/* ---- all columns ---- */

static Status fill_gaps(Table *table) {
    for (uint32_t i = 0; i < table->count && table->missing == MISSING_MEAN; i++) {
        const Column *column = &table->columns[i];
        if (column->gaps.count > 0 && column->numbers == 0)
            return tg_csv_bad(&table->csv, "column '%s' has no number at all, so it has no mean", column->name);
        for (uint32_t g = 0; g < column->gaps.count; g++)
            tg_element_set(table->request->dtype, table->values, column->gaps.at[g] * table->count + i,
                           column->sum / (double)column->numbers);
    }
    return TG_OK;
}

/* One column gives single numbers, several a list, unless the field's shape has as many places. */
static void shape_of(const Table *table, DataArray *array) {
    const DataRequest *request = table->request;
    *array = (DataArray){.dtype = request->dtype,
                         .rank = table->count == 1 ? 1 : 2,
                         .dims = {table->rows, table->count},
                         .values = table->values};
    int64_t places = 1;
    for (int i = 0; request->dims != NULL && i < request->rank; i++)
        places *= request->dims[i];
    if (request->dims == NULL || places != table->count)
        return;
    array->rank = (uint8_t)(request->rank + 1);
    memcpy(array->dims + 1, request->dims, request->rank * sizeof request->dims[0]);
}

Status tg_read_csv(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    Table table = {.arena = arena, .request = request, .why = why, .integers = !tg_is_float(request->dtype)};
    read_options(&table);
    name_columns(&table);
    TG_TRY(read_files(&table));
    if (table.integers)
        make_room(&table, table.rows);
    for (uint32_t i = 0; table.integers && i < table.count; i++)
        TG_TRY(put_column(&table, i));
    TG_TRY(fill_gaps(&table));
    shape_of(&table, array);
    return TG_OK;
}
