/* -p: the type that the program computes in; --autocast: instances that compute in another. */
#include "driver/pipeline.h"
#include "ir/base/file.h"

#include <string.h>

typedef enum Native { UNIT_ALWAYS, UNIT_BF16, UNIT_NEVER } Native;

typedef struct PrecisionRow {
    const char *name;
    DType low;
    Native unit;              /* what computes in it natively */
    const char *without_unit; /* what happens otherwise */
} PrecisionRow;

static const PrecisionRow precisions[] = {
    {"f32", DT_F32, UNIT_ALWAYS, NULL},
    {"tf32", DT_F32, UNIT_NEVER, "is computed as f32: tf32 is a type of GPUs"},
    {"bf16", DT_BF16, UNIT_BF16, "is emulated: this processor has no bf16 units"},
    {"f16", DT_F16, UNIT_NEVER, "is stored in half and computed in f32: this processor has no f16 units"},
};
enum { PRECISIONS = sizeof precisions / sizeof *precisions, AUTO = PRECISIONS, NAMES };

static bool has_unit(Native unit) {
    switch (unit) {
    case UNIT_ALWAYS: return true;
    case UNIT_BF16: return __builtin_cpu_supports("avx512bf16");
    default: return false; /* dots of f16 are computed in f32 on every processor so far */
    }
}

static int find(const char *name) {
    for (int i = 0; i < PRECISIONS; i++)
        if (strcmp(precisions[i].name, name) == 0)
            return i;
    return strcmp(name, "auto") == 0 ? AUTO : NAMES;
}

static Status unknown(Pipeline *p, const char *name) {
    static const char *const names[] = {"f32", "tf32", "bf16", "f16", "auto"};
    const char *closest = tg_closest(name, names, NAMES);
    tg_error(p->diags, (Loc){0}, "-p %s: there are f32, tf32, bf16, f16 and auto%s%s%s", name,
             closest ? "; did you mean '" : "", closest ? closest : "", closest ? "'?" : "");
    return TG_USAGE;
}

Status precision_choose(Pipeline *p) {
    const char *name = p->cli->value[CLI_PRECISION];
    p->low = DT_F32;
    if (name == NULL)
        return TG_OK;
    int row = find(name);
    if (row == NAMES)
        return unknown(p, name);
    if (row == AUTO) {
        bool native = has_unit(UNIT_BF16);
        p->low = native ? DT_BF16 : DT_F32;
        if (!p->quiet)
            tg_note(p->diags, (Loc){0}, "-p auto: %s", native ? "bf16, which this processor has units for"
                                                              : "f32, since this processor has no bf16 units");
        return TG_OK;
    }
    p->low = precisions[row].low;
    if (!p->quiet && !has_unit(precisions[row].unit))
        tg_warn(p->diags, WARN_emulated_type, (Loc){0}, "%s %s", name, precisions[row].without_unit);
    return TG_OK;
}

void precision_apply(Pipeline *p) {
    Training *training = &p->model->training;
    training->precision = p->low;
    if (training->loss_scale != 0 && p->low != DT_F16 && !p->quiet)
        tg_warn(p->diags, WARN_loss_scale, (Loc){0}, "loss_scale has no effect: only -p f16 scales the loss, this is %s",
                tg_dtype(p->low)->name);
}

/* ---- --autocast ---- */

typedef struct Rules {
    Vec(PrecisionRule) all;
} Rules;

static const char blanks[] = " \t\r";

/* `line` without blanks at both ends; `*column` moves with it. */
static const char *trimmed(Arena *arena, const char *line, size_t length, size_t *column) {
    size_t before = strspn(line, blanks);
    before = before < length ? before : length;
    while (length > before && strchr(blanks, line[length - 1]))
        length--;
    *column += before;
    return tg_arena_str(arena, line + before, length - before);
}

/* PATTERN: f32|low; what stands behind # is a remark. */
static bool read_rule(Pipeline *p, const char *line, size_t length, Loc loc, Rules *rules) {
    const char *end = memchr(line, '#', length), *colon;
    length = end ? (size_t)(end - line) : length;
    size_t column = 0, value_column = 0;
    const char *pattern = trimmed(p->arena, line, length, &column);
    if (*pattern == 0)
        return true;
    loc.column = loc.end_column = (uint16_t)(column + 1);
    colon = memchr(line, ':', length);
    if (colon == NULL || colon == line + column) {
        tg_error(p->diags, loc, "expected a line like 'net.blocks.*.attn: f32'");
        return false;
    }
    pattern = trimmed(p->arena, line, (size_t)(colon - line), &(size_t){0});
    value_column = (size_t)(colon - line) + 1;
    const char *value = trimmed(p->arena, colon + 1, length - value_column, &value_column);
    bool in_f32 = strcmp(value, "f32") == 0;
    if (!in_f32 && strcmp(value, "low") != 0) {
        loc.column = loc.end_column = (uint16_t)(value_column + 1);
        tg_error(p->diags, loc, "expected f32, or low for the type of -p, not '%s'", value);
        return false;
    }
    tg_push(p->arena, &rules->all, (PrecisionRule){pattern, in_f32, loc});
    return true;
}

Status precision_rules(Pipeline *p, LowerOptions *options) {
    const char *path = p->cli->value[CLI_AUTOCAST], *why;
    char *text;
    size_t length;
    if (path == NULL)
        return TG_OK;
    Status status = tg_file_read(p->arena, path, &text, &length, &why);
    if (status != TG_OK) {
        tg_error(p->diags, (Loc){0}, "--autocast: %s", why);
        return status;
    }
    Loc loc = {.file = tg_source_add(p->sources, p->arena, path, text, length), .line = 1};
    Rules rules = {0};
    bool ok = true;
    for (const char *line = text; line < text + length; loc.line++) {
        const char *end = memchr(line, '\n', (size_t)(text + length - line));
        end = end ? end : text + length;
        ok = read_rule(p, line, (size_t)(end - line), loc, &rules) && ok;
        line = end + 1;
    }
    options->precision_rules = rules.all.at;
    options->precision_rule_count = rules.all.count;
    return ok ? TG_OK : TG_USAGE;
}
