/* Reads the text form of graphs (docs/ir.md has the grammar). Bodies of kernels are read before those of other
   functions: what a call gives follows from its kernel. */
#include "ir/parse.h"

#include <ctype.h>
#include <string.h>

typedef struct Body {
    Func *func;
    Place place; /* behind its `{` */
} Body;

/* ---- functions ---- */

static bool parse_func_args(Parser *p, Func *func) {
    if (!ir_expect(p, '('))
        return false;
    if (ir_accept(p, ')'))
        return true;
    do {
        FuncArg arg;
        if (!ir_parse_marked(p, '%', &arg.name) || !ir_expect(p, ':') || !ir_parse_type(p, &arg.type) ||
            !ir_parse_loc(p, &arg.loc))
            return false;
        tg_push(p->arena, &func->args, arg);
    } while (ir_accept(p, ','));
    return ir_expect(p, ')');
}

/* Goes past a body; braces stand in strings or in pairs. */
static bool skip_body(Parser *p) {
    const char *text;
    for (int depth = 1; depth > 0;) {
        char c = ir_peek(p);
        if (c == '\0')
            return ir_fail(p, "the function has no end");
        if (c == '"') {
            if (!ir_parse_string(p, &text))
                return false;
            continue;
        }
        depth += (c == '{') - (c == '}');
        p->place.at++;
    }
    return true;
}

static bool parse_func_head(Parser *p, Body *body) {
    const char *name;
    int kind;
    if (!ir_parse_marked(p, '@', &name) ||
        !ir_parse_choice(p, tg_func_kind_name, FUNC_KERNEL + 1, "kind of the function", &kind))
        return false;
    for (uint32_t i = 0; i < p->graph->funcs.count; i++)
        if (p->graph->funcs.at[i]->name == name)
            return ir_fail(p, "there are two functions `%s`", name);
    body->func = tg_func_new(p->graph, (FuncKind)kind, name);
    if (!parse_func_args(p, body->func) || !ir_expect(p, '{'))
        return false;
    body->place = p->place;
    return skip_body(p);
}

/* ---- the graph ---- */

static bool parse_file(Parser *p) {
    uint64_t number;
    const char *path;
    if (!ir_parse_unsigned(p, &number) || !ir_parse_string(p, &path))
        return false;
    if (number != p->files.count)
        return ir_fail(p, "files count from 0");
    Source source = {.path = path, .text = ""};
    for (uint32_t i = 0; i < p->sources->files.count; i++)
        if (strcmp(p->sources->files.at[i].path, path) == 0)
            source = p->sources->files.at[i];
    tg_push(p->arena, &p->files, tg_source_add(p->sources, p->arena, source.path, source.text, source.length));
    return true;
}

static bool parse_option_int(Parser *p, const char *name, int64_t *value) {
    return !ir_accept_word(p, name) || (ir_expect(p, '=') && ir_parse_int(p, value));
}

static bool parse_buffer(Parser *p) {
    Buffer buffer = {0};
    int class;
    if (!ir_parse_marked(p, '@', &buffer.name) || !ir_expect(p, ':') || !ir_parse_type(p, &buffer.type) ||
        !ir_parse_choice(p, tg_buffer_class_name, BUFFER_SUM + 1, "class of the buffer", &class))
        return false;
    buffer.class = (BufferClass) class;
    buffer.frozen = ir_accept_word(p, "frozen");
    if (buffer.class == BUFFER_SUM && !parse_option_int(p, "lanes", &buffer.lanes))
        return false;
    if (!ir_parse_loc(p, &buffer.loc))
        return false;
    if (tg_buffer_find(p->graph, buffer.name) >= 0)
        return ir_fail(p, "there are two buffers `%s`", buffer.name);
    tg_buffer_add(p->graph, buffer);
    return true;
}

static bool parse_scalar(Parser *p) {
    Scalar scalar = {0};
    int class;
    if (!ir_parse_marked(p, '$', &scalar.name) ||
        !ir_parse_choice(p, tg_scalar_class_name, SCALAR_COMPUTED + 1, "class of the scalar", &class))
        return false;
    scalar.class = (ScalarClass) class;
    char next = ir_peek(p);
    bool has_value = isdigit((unsigned char)next) || next == '-' || next == '.' || next == 'i' || next == 'n';
    if ((has_value && !ir_parse_number(p, &scalar.value)) || !ir_parse_loc(p, &scalar.loc))
        return false;
    if (tg_scalar_find(p->graph, scalar.name) >= 0)
        return ir_fail(p, "there are two scalars `%s`", scalar.name);
    tg_scalar_add(p->graph, scalar);
    return true;
}

/* `name="text"`, or nothing. */
static bool parse_option(Parser *p, const char *name, const char **text) {
    *text = NULL;
    return !ir_accept_word(p, name) || (ir_expect(p, '=') && ir_parse_string(p, text));
}

static bool parse_setting(Parser *p) {
    Setting setting;
    if (!ir_parse_string(p, &setting.name) || !parse_option(p, "value", &setting.value) ||
        !parse_option(p, "origin", &setting.origin))
        return false;
    setting.runtime = ir_accept_word(p, "runtime");
    tg_push(p->arena, &p->graph->settings, setting);
    return true;
}

static bool parse_columns(Parser *p, DataField *field) {
    Vec(const char *) names = {0};
    if (!ir_accept_word(p, "columns"))
        return true;
    if (!ir_expect(p, '=') || !ir_expect(p, '['))
        return false;
    do {
        const char *name;
        if (!ir_parse_string(p, &name))
            return false;
        tg_push(p->arena, &names, name);
    } while (ir_accept(p, ','));
    field->columns = names.at;
    field->column_count = names.count;
    return ir_expect(p, ']');
}

static bool parse_data_field(Parser *p, DataSet *set) {
    DataField field = {0};
    if (!ir_parse_string(p, &field.name) || !ir_expect(p, ':') || !ir_parse_type(p, &field.type) ||
        !parse_option(p, "reader", &field.reader) || !parse_option(p, "path", &field.path) ||
        !parse_columns(p, &field) || !parse_option(p, "options", &field.options) || !ir_parse_loc(p, &field.loc))
        return false;
    tg_push(p->arena, &set->fields, field);
    return true;
}

static bool parse_data(Parser *p) {
    DataSet set = {0};
    bool validate = ir_accept_word(p, "validate");
    if (!validate && !ir_expect_word(p, "train"))
        return false;
    if (!ir_parse_string(p, &set.name) || !parse_option(p, "as", &set.as) || !parse_option(p, "split", &set.split))
        return false;
    set.by_runs = ir_accept_word(p, "runs");
    if (!parse_option(p, "by", &set.by) || !parse_option(p, "stratify", &set.stratify))
        return false;
    if (!ir_expect(p, '{'))
        return false;
    while (!ir_accept(p, '}')) {
        Split part;
        if (ir_accept_word(p, "field")) {
            if (!parse_data_field(p, &set))
                return false;
        } else if (!ir_expect_word(p, "part") || !ir_parse_string(p, &part.name) || !ir_parse_number(p, &part.share)) {
            return false;
        } else {
            tg_push(p->arena, &set.splits, part);
        }
    }
    if (validate)
        tg_push(p->arena, &p->graph->training.validate, set);
    else
        p->graph->training.train = set;
    return true;
}

static const DType low_types[] = {DT_BF16, DT_F16};
enum { LOW_TYPES = sizeof low_types / sizeof *low_types };
static const char *low_type_name(int choice) { return tg_dtype(low_types[choice])->name; }

static bool parse_train(Parser *p) {
    Training *t = &p->graph->training;
    int64_t clip_scalar = -1;
    if (!parse_option_int(p, "batch", &t->batch) || !parse_option_int(p, "micro", &t->micro) ||
        !parse_option_int(p, "lanes", &t->lanes) || !parse_option_int(p, "steps", &t->steps) ||
        !parse_option_int(p, "epochs", &t->epochs) || !parse_option_int(p, "validate_every", &t->validate_every) ||
        (ir_accept_word(p, "clip_norm") && (!ir_expect(p, '=') || !ir_parse_number(p, &t->clip_norm))) ||
        !parse_option_int(p, "clip_scalar", &clip_scalar) ||
        (ir_accept_word(p, "seed") && (!ir_expect(p, '=') || !ir_parse_unsigned(p, &t->seed))) ||
        !parse_option(p, "loss", &t->loss))
        return false;
    t->shuffle = ir_accept_word(p, "shuffle");
    if (ir_accept_word(p, "precision")) {
        int choice;
        if (!ir_expect(p, '=') || !ir_parse_choice(p, low_type_name, LOW_TYPES, "low type: bf16 or f16", &choice))
            return false;
        t->precision = low_types[choice];
    }
    if (ir_accept_word(p, "loss_scale") && (!ir_expect(p, '=') || !ir_parse_number(p, &t->loss_scale)))
        return false;
    t->clip_scalar = (int32_t)clip_scalar;
    return (clip_scalar >= -1 && clip_scalar < p->graph->scalars.count) ||
           ir_fail(p, "there is no scalar %lld", (long long)clip_scalar);
}

typedef struct Bodies {
    Vec(Body) all;
} Bodies;

static bool parse_item(Parser *p, Bodies *bodies) {
    if (ir_accept_word(p, "func")) {
        Body body;
        if (!parse_func_head(p, &body))
            return false;
        tg_push(p->arena, &bodies->all, body);
        return true;
    }
    static const struct {
        const char *word;
        bool (*parse)(Parser *);
    } items[] = {{"file", parse_file},       {"buffer", parse_buffer}, {"scalar", parse_scalar},
                 {"setting", parse_setting}, {"train", parse_train},   {"data", parse_data}};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        if (ir_accept_word(p, items[i].word))
            return items[i].parse(p);
    return ir_fail(p, "expected `func`, `buffer`, `scalar`, `setting`, `train`, `data`, `file` or `}`");
}

static bool parse_bodies(Parser *p, const Bodies *bodies, bool kernels) {
    for (uint32_t i = 0; i < bodies->all.count; i++) {
        const Body *body = &bodies->all.at[i];
        if ((body->func->kind == FUNC_KERNEL) != kernels)
            continue;
        p->place = body->place;
        if (!ir_parse_body(p, body->func))
            return false;
    }
    return true;
}

static bool parse_graph(Parser *p) {
    int level;
    Bodies bodies = {0};
    if (!ir_expect_word(p, "graph") || !ir_expect(p, '@') ||
        !ir_parse_choice(p, tg_level_name, LEVEL_KERNEL + 1, "level of the graph", &level) ||
        !parse_option(p, "path", &p->graph->path) || !ir_expect(p, '{'))
        return false;
    p->graph->level = (Level)level;
    while (!ir_accept(p, '}'))
        if (!parse_item(p, &bodies))
            return false;
    if (ir_peek(p) != '\0' || p->place.at < p->end)
        return ir_fail(p, "expected nothing after the graph");
    return parse_bodies(p, &bodies, true) && parse_bodies(p, &bodies, false);
}

Status tg_graph_parse(Arena *arena, Diags *diags, Sources *sources, const char *path, const char *text, size_t length,
                      Graph **graph) {
    const char *copy = tg_arena_str(arena, text, length);
    Parser p = {
        .arena = arena,
        .diags = diags,
        .sources = sources,
        .source = tg_source_add(sources, arena, path, copy, length),
        .place = {.at = copy, .line_start = copy, .line = 1},
        .end = copy + length,
        .graph = tg_graph_new(arena, sources, LEVEL_MODEL),
    };
    *graph = p.graph;
    return parse_graph(&p) ? TG_OK : TG_MODEL;
}
