/* tgc new table: reads a CSV file and writes a model that predicts one column from the others. */
#include "driver/new.h"

#include "ir/base/map.h"
#include "runtime/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEWEST_ROWS = 10,
    MOST_CLASSES = 10,      /* whole numbers of so few values are classes */
    MOST_CATEGORIES = 1000, /* of a text column */
    STEPS = 1500,           /* about so many are trained */
    LARGEST_BATCH = 32,
    LINE = 100, /* columns of the source */
};

typedef enum Kind { KIND_OUT, KIND_NUMBER, KIND_TEXT } Kind;

typedef struct Column {
    const char *name, *why; /* why: it is left out */
    const char *word;       /* the first cell that is no number */
    Kind kind;
    int64_t numbers, words, missing;
    double low, high, mean, squares; /* squares: of differences from the mean, summed */
    double last;
    bool whole, counts; /* whole numbers; each one more than the row's before */
    Map values;         /* texts that are there */
} Column;

typedef struct Table {
    Starter *s;
    const char *path;
    char separator;
    Column *columns;
    uint32_t count;
    int64_t rows;
    const Column *target;
    uint32_t number_count, text_count; /* inputs */
    bool missing;                      /* some numbers of the inputs are */
} Table;

static Status fail(const Table *t, const char *why) {
    tg_error(t->s->p->diags, (Loc){0}, "%s", why);
    return TG_MODEL;
}

/* ---- reading ---- */

/* Welford's update of mean and squares. */
static void add_number(Column *c, double value) {
    c->low = c->numbers == 0 || value < c->low ? value : c->low;
    c->high = c->numbers == 0 || value > c->high ? value : c->high;
    c->whole = c->whole && value == floor(value) && fabs(value) < 1e9;
    c->counts = c->counts && (c->numbers == 0 || value == c->last + 1);
    c->last = value;
    double before = value - c->mean;
    c->mean += before / (double)++c->numbers;
    c->squares += before * (value - c->mean);
}

static void add_cell(Column *c, const char *cell) {
    char *end;
    if (tg_csv_missing(cell)) {
        c->missing++;
        return;
    }
    double value = strtod(cell, &end);
    bool is_number = end != cell && end[strspn(end, " \t")] == '\0' && isfinite(value);
    if (c->values.count <= MOST_CATEGORIES)
        tg_map_put(&c->values, cell, strlen(cell), NULL);
    if (is_number)
        add_number(c, value);
    else if (c->words++ == 0)
        c->word = cell;
}

static Status read_header(Table *t, Csv *csv) {
    Arena *arena = csv->arena;
    bool more;
    TG_TRY(tg_csv_row(csv, &more));
    if (!more)
        return tg_csv_bad(csv, "the file is empty; a row of column names is expected");
    t->count = csv->cells.count;
    t->columns = TG_ALLOC(arena, Column, t->count);
    for (uint32_t i = 0; i < t->count; i++)
        t->columns[i] = (Column){.name = csv->cells.at[i], .whole = true, .counts = true, .values = tg_map(arena)};
    return TG_OK;
}

/* What separates the names of the first line: commas, or, if there are none, semicolons or tabs. */
static char separator_of(const Csv *csv) {
    size_t line = strcspn(csv->next, "\r\n");
    if (memchr(csv->next, ',', line))
        return ',';
    return memchr(csv->next, ';', line) ? ';' : memchr(csv->next, '\t', line) ? '\t' : ',';
}

static Status read_rows(Table *t, Csv *csv) {
    TG_TRY(read_header(t, csv));
    for (;;) {
        bool more;
        TG_TRY(tg_csv_row(csv, &more));
        if (!more)
            return TG_OK;
        if (csv->cells.count == 1 && csv->cells.at[0][0] == '\0')
            continue;
        if (csv->cells.count != t->count)
            return tg_csv_bad(csv, "%u cells where the header has %u", csv->cells.count, t->count);
        for (uint32_t i = 0; i < t->count; i++)
            add_cell(&t->columns[i], csv->cells.at[i]);
        t->rows++;
    }
}

static Status read_table(Table *t) {
    Arena *arena = t->s->p->arena;
    const char *why = "";
    Csv csv;
    Status status = tg_csv_open(&csv, arena, t->path, &why);
    if (status == TG_OK) {
        t->separator = csv.separator = separator_of(&csv);
        status = read_rows(t, &csv);
    }
    if (status != TG_OK)
        tg_error(t->s->p->diags, (Loc){0}, "%s", why);
    else if (t->rows < FEWEST_ROWS)
        return fail(t, tg_arena_printf(arena, "%s has %lld rows; %d is the least to learn and validate from", t->path,
                                       (long long)t->rows, FEWEST_ROWS));
    return status;
}

/* ---- what the columns are ---- */

static const char *reason(const Table *t, const Column *c) {
    for (const Column *other = t->columns; other < t->columns + t->count; other++)
        if (other != c && strcmp(other->name, c->name) == 0)
            return "there are two of this name";
    if (c->name[0] == '\0' || strpbrk(c->name, "\r\n"))
        return "it has no name of one line";
    if (c->numbers + c->words == 0)
        return "it is empty";
    if (c->words && c->numbers > c->words)
        return tg_arena_printf(t->s->p->arena, "most cells are numbers, '%.40s' is none", c->word);
    if (c->words && (c->values.count > MOST_CATEGORIES || (int64_t)c->values.count > t->rows / 2))
        return "nearly every row has a text of its own";
    if (!c->words && c->counts && c->whole && (c->low == 0 || c->low == 1) && c != t->target)
        return "it counts the rows";
    return NULL;
}

static Status find_target(Table *t) {
    Pipeline *p = t->s->p;
    const char *name = p->cli->value[CLI_COLUMN];
    const char **names = TG_ALLOC(p->arena, const char *, t->count);
    Str all = tg_str(p->arena);
    for (uint32_t i = 0; i < t->count; i++) {
        names[i] = t->columns[i].name;
        tg_str_printf(&all, "%s'%s'", i ? ", " : "", names[i]);
        if (name && strcmp(names[i], name) == 0 && t->target == NULL)
            t->target = &t->columns[i];
    }
    if (t->target)
        return TG_OK;
    const char *closest = name ? tg_closest(name, names, t->count) : NULL;
    if (name == NULL)
        tg_error(p->diags, (Loc){0}, "which column is to be predicted? --target COLUMN");
    else
        tg_error(p->diags, (Loc){0}, "%s has no column '%s'%s%s%s", t->path, name, closest ? ", did you mean '" : "",
                 closest ? closest : "", closest ? "'?" : "");
    tg_note(p->diags, (Loc){0}, "its columns: %s", all.text);
    return TG_USAGE;
}

static Status check_target(Table *t) {
    const Column *c = t->target;
    Arena *arena = t->s->p->arena;
    if (c->why)
        return fail(t, tg_arena_printf(arena, "the column '%s' cannot be predicted: %s", c->name, c->why));
    if (c->missing)
        return fail(
            t, tg_arena_printf(arena,
                               "the target '%s' is missing in %lld of %lld rows: take them out of the file, nothing "
                               "can be learned from them",
                               c->name, (long long)c->missing, (long long)t->rows));
    if (c->words ? c->values.count < 2 : c->low == c->high)
        return fail(t, tg_arena_printf(arena, "the target '%s' is the same in every row", c->name));
    return TG_OK;
}

static Status classify(Table *t) {
    TG_TRY(find_target(t));
    for (uint32_t i = 0; i < t->count; i++) {
        Column *c = &t->columns[i];
        c->why = reason(t, c);
        c->kind = c->why ? KIND_OUT : c->words ? KIND_TEXT : KIND_NUMBER;
        if (c == t->target)
            continue;
        t->number_count += c->kind == KIND_NUMBER;
        t->text_count += c->kind == KIND_TEXT;
        t->missing = t->missing || (c->kind == KIND_NUMBER && c->missing);
    }
    TG_TRY(check_target(t));
    if (t->number_count + t->text_count)
        return TG_OK;
    Status status =
        fail(t, tg_arena_printf(t->s->p->arena, "%s has no column to predict '%s' from", t->path, t->target->name));
    for (uint32_t i = 0; i < t->count && i < 20; i++)
        if (t->columns[i].why)
            tg_note(t->s->p->diags, (Loc){0}, "'%s' is left out: %s", t->columns[i].name, t->columns[i].why);
    return status;
}

/* Classes of the target; 0: it is a number to come close to. */
static int64_t class_count(const Column *target) {
    if (target->kind == KIND_TEXT)
        return target->values.count;
    bool few = target->whole && target->values.count <= MOST_CLASSES && target->high - target->low < 2 * MOST_CLASSES;
    return few ? (int64_t)(target->high - target->low) + 1 : 0;
}

/* ---- writing ---- */

static bool is_input(const Table *t, uint32_t i, Kind kind) {
    return &t->columns[i] != t->target && t->columns[i].kind == kind;
}

static int64_t category_count(const Column *c) { return c->values.count + (c->missing != 0); }

/* About the square root of the number of categories. */
static int64_t embedding_width(const Column *c) {
    int64_t width = (int64_t)ceil(sqrt((double)category_count(c))) + 1;
    return width < 16 ? width : 16;
}

static void write_source(Table *t, const char *column) {
    Str *to = &t->s->text;
    tg_str_printf(to, "from csv(path, columns = ");
    starter_string(to, column);
}

static void write_source_end(Table *t) {
    const char *separator = t->separator == ','   ? ""
                            : t->separator == ';' ? ", separator = \";\""
                                                  : ", separator = \"\\t\"";
    tg_str_printf(&t->s->text, "%s)\n", separator);
}

static void write_numbers(Table *t) {
    Str *to = &t->s->text;
    tg_str_printf(to, "    numbers: f32[%u] from csv(path, columns = [", t->number_count);
    size_t line = 50;
    const char *separator = "";
    for (uint32_t i = 0; i < t->count; i++) {
        if (!is_input(t, i, KIND_NUMBER))
            continue;
        bool full = line + strlen(t->columns[i].name) > LINE;
        tg_str_printf(to, "%s%s", separator, full ? "\n        " : separator[0] ? " " : "");
        starter_string(to, t->columns[i].name);
        line = (full ? 8 : line) + strlen(t->columns[i].name) + 4;
        separator = ",";
    }
    tg_str_printf(to, "]%s", t->missing ? ", missing = mean" : "");
    write_source_end(t);
}

static void write_data(Table *t, int64_t classes) {
    Str *to = &t->s->text;
    tg_str_printf(to, "const path = ");
    starter_string(to, starter_path(t->s, t->path));
    tg_str_printf(to, "\n\ndata Table {\n");
    if (t->number_count)
        write_numbers(t);
    uint32_t text = 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (is_input(t, i, KIND_TEXT)) {
            tg_str_printf(to, "    text%u: i32 ", ++text);
            write_source(t, t->columns[i].name);
            tg_str_printf(to, ", categories = true%s", t->columns[i].missing ? ", missing = \"(none)\"" : "");
            write_source_end(t);
        }
    tg_str_printf(to, "    target: %s ", classes ? "i32" : "f32");
    write_source(t, t->target->name);
    tg_str_printf(to, "%s", t->target->kind == KIND_TEXT ? ", categories = true" : "");
    write_source_end(t);
    tg_str_printf(to, "    split { train = 80%%, test = 20%% }\n}\n\n");
}

static const char standardize[] = "// Takes the mean away and divides by the deviation: those of the batch in "
                                  "training, running ones, kept as state, elsewhere.\n"
                                  "module Standardize(n: int, momentum: f32 = 0.1) {\n"
                                  "    state mu:  f32[n] = zeros\n"
                                  "    state var: f32[n] = ones\n"
                                  "\n"
                                  "    fn (x: f32[B, n]) -> f32[B, n] {\n"
                                  "        if training {\n"
                                  "            m    = mean(x, axis = 0)\n"
                                  "            v    = mean((x - m) ^ 2, axis = 0)\n"
                                  "            mu  := mix(mu, m, momentum)\n"
                                  "            var := mix(var, v, momentum)\n"
                                  "            return (x - m) * rsqrt(v + 1e-6)\n"
                                  "        }\n"
                                  "        return (x - mu) * rsqrt(var + 1e-6)\n"
                                  "    }\n"
                                  "}\n\n";

/* "numbers, text1, text2", each with `before` in front and, if `typed`, its type behind. */
static void write_inputs(Table *t, const char *before, bool typed) {
    Str *to = &t->s->text;
    if (t->number_count) {
        tg_str_printf(to, "%snumbers", before);
        if (typed)
            tg_str_printf(to, ": f32[B, %u]", t->number_count);
    }
    for (uint32_t i = 0; i < t->text_count; i++)
        tg_str_printf(to, "%s%stext%u%s", i || t->number_count ? ", " : "", before, i + 1, typed ? ": i32[B]" : "");
}

static void write_net(Table *t, int64_t outputs) {
    Str *to = &t->s->text;
    int64_t width = t->number_count;
    if (t->number_count)
        tg_str_add(to, standardize, sizeof standardize - 1);
    tg_str_printf(to, "module Net(hidden: int, out: int) {\n");
    if (t->number_count)
        tg_str_printf(to, "    input  = Standardize(%u)\n", t->number_count);
    uint32_t text = 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (is_input(t, i, KIND_TEXT)) {
            int64_t own = embedding_width(&t->columns[i]);
            tg_str_printf(to, "    embed%u = Embedding(%lld, %lld)\n", ++text,
                          (long long)category_count(&t->columns[i]), (long long)own);
            width += own;
        }
    tg_str_printf(to,
                  "    fc1    = Linear(%lld, hidden)\n    fc2    = Linear(hidden, hidden)\n    fc3    = Linear(hidden, "
                  "out)\n\n    fn (",
                  (long long)width);
    write_inputs(t, "", true);
    tg_str_printf(to, ") -> f32[B, out] {\n        x = ");
    bool joined = text + (t->number_count != 0) > 1;
    tg_str_printf(to, "%s%s", joined ? "concat([" : "", t->number_count ? "input(numbers)" : "");
    for (uint32_t i = 0; i < text; i++)
        tg_str_printf(to, "%sembed%u(text%u)", i || t->number_count ? ", " : "", i + 1, i + 1);
    tg_str_printf(to, "%s\n        return fc3(relu(fc2(relu(fc1(x)))))\n    }\n}\n\nnet = Net(%d, %lld)\n\n",
                  joined ? "], axis = -1)" : "", t->rows < 1000 ? 32 : 64, (long long)outputs);
}

static void write_regression(Table *t) {
    Str *to = &t->s->text;
    tg_str_printf(to,
                  "// Mean and deviation of the target: the network's own numbers lie around -2 .. 2.\nconst centre = "
                  "%.4g, scale = %.4g\n\n",
                  t->target->mean, sqrt(t->target->squares / (double)t->rows));
    write_net(t, 1);
    tg_str_printf(to, "fn objective(b: Table) {\n    y    = net(");
    write_inputs(t, "b.", false);
    tg_str_printf(
        to,
        ")[:, 0]\n    loss = mse(y, (b.target - centre) / scale)\n    return { loss, rmse: scale * sqrt(loss) }\n}\n\n"
        "export fn predict(");
    write_inputs(t, "", true);
    tg_str_printf(to, ") {\n    return { value: centre + scale * net(");
    write_inputs(t, "", false);
    tg_str_printf(to, ")[:, 0] }\n}\n\n");
}

static void write_classes(Table *t, int64_t classes) {
    Str *to = &t->s->text;
    write_net(t, classes);
    int64_t low = t->target->kind == KIND_TEXT ? 0 : (int64_t)t->target->low;
    const char *offset =
        low == 0 ? "" : tg_arena_printf(to->arena, low > 0 ? " - %lld" : " + %lld", llabs((long long)low));
    const char *back =
        low == 0 ? "" : tg_arena_printf(to->arena, low > 0 ? " + %lld" : " - %lld", llabs((long long)low));
    tg_str_printf(to, "fn objective(b: Table) {\n    y     = net(");
    write_inputs(t, "b.", false);
    tg_str_printf(to,
                  ")\n    label = b.target%s\n    return { loss: cross_entropy(y, label), accuracy: accuracy(y, label) "
                  "}\n}\n\nexport fn predict(",
                  offset);
    write_inputs(t, "", true);
    tg_str_printf(to, ") {\n    p = softmax(net(");
    write_inputs(t, "", false);
    tg_str_printf(to, "))\n    return { class: argmax(p)%s, confidence: max(p, axis = -1) }\n}\n\n", back);
}

static void write_train(Table *t) {
    int64_t records = t->rows * 8 / 10, batch = records / 4 < LARGEST_BATCH ? records / 4 : LARGEST_BATCH;
    int64_t steps = (records + batch - 1) / batch, epochs = (STEPS + steps - 1) / steps;
    epochs = epochs < 3 ? 3 : epochs > 100 ? 100 : epochs;
    tg_str_printf(
        &t->s->text,
        "train {\n    data      = Table.train\n    validate  = Table.test\n    objective = objective\n    batch     = "
        "%lld\n"
        "    epochs    = %lld\n    optimizer = AdamW(lr = warmup_cosine(3e-3, warmup = 50))\n    seed      = 1\n}\n",
        (long long)batch, (long long)epochs);
}

static void write_comments(Table *t) {
    Str *to = &t->s->text;
    tg_str_printf(to, "// Predicts %s of a table of %lld rows from %u numbers and %u texts of the same row.\n",
                  t->target->name, (long long)t->rows, t->number_count, t->text_count);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->columns[i].kind == KIND_OUT && !strpbrk(t->columns[i].name, "\r\n"))
            tg_str_printf(to, "// Left out: '%s': %s.\n", t->columns[i].name, t->columns[i].why);
    tg_str_printf(to, "\n");
}

Status starter_table(Starter *s) {
    Table t = {.s = s, .path = starter_data(s, "table")};
    if (t.path == NULL)
        return TG_USAGE;
    TG_TRY(read_table(&t));
    TG_TRY(classify(&t));
    int64_t classes = class_count(t.target);
    write_comments(&t);
    write_data(&t, classes);
    classes ? write_classes(&t, classes) : write_regression(&t);
    write_train(&t);
    return TG_OK;
}
