/* Reads the text form of graphs (docs/ir.md has the grammar). Bodies of kernels are read before those of other
   functions: what a call gives follows from its kernel. */
#include "ir/attrs.h"
#include "ir/build.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Place {
    const char *at, *line_start;
    uint32_t line;
} Place;

typedef struct Parser {
    Arena *arena;
    Diags *diags;
    Sources *sources;
    uint16_t source;
    Place place;
    const char *end;
    Graph *graph;
    Vec(uint16_t) files; /* index into sources of each `file` line */
} Parser;

typedef struct Body {
    Func *func;
    Place place; /* behind its `{` */
} Body;

/* ---- characters and words ---- */

static Loc here(const Parser *p) {
    size_t column = (size_t)(p->place.at - p->place.line_start) + 1;
    uint16_t at = column < UINT16_MAX ? (uint16_t)column : UINT16_MAX;
    return (Loc){.file = p->source, .line = p->place.line, .column = at, .end_column = at};
}

#define fail(p, ...) (tg_error((p)->diags, here(p), __VA_ARGS__), false)

static void skip_space(Parser *p) {
    for (;; p->place.at++) {
        const char *at = p->place.at;
        if (at < p->end && *at == '\n') {
            p->place.line++;
            p->place.line_start = at + 1;
        } else if (at + 1 < p->end && at[0] == '/' && at[1] == '/') {
            while (p->place.at < p->end && *p->place.at != '\n')
                p->place.at++;
            p->place.at--;
        } else if (at >= p->end || !isspace((unsigned char)*at)) {
            return;
        }
    }
}

static char peek(Parser *p) {
    skip_space(p);
    return p->place.at < p->end ? *p->place.at : '\0';
}

static bool accept(Parser *p, char c) {
    if (c == '\0' || peek(p) != c)
        return false;
    p->place.at++;
    return true;
}

static bool expect(Parser *p, char c) { return accept(p, c) || fail(p, "expected `%c`", c); }

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
static bool is_name(char c) { return is_word(c) || c == '.' || c == '/' || c == '-'; }

/* The word that comes next, not taken; its length 0: there is none. */
static size_t peek_word(Parser *p) {
    skip_space(p);
    size_t length = 0;
    while (p->place.at + length < p->end && is_word(p->place.at[length]))
        length++;
    return length;
}

static bool accept_word(Parser *p, const char *word) {
    size_t length = peek_word(p);
    if (length != strlen(word) || memcmp(p->place.at, word, length) != 0)
        return false;
    p->place.at += length;
    return true;
}

static bool expect_word(Parser *p, const char *word) { return accept_word(p, word) || fail(p, "expected `%s`", word); }

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static bool parse_string(Parser *p, const char **text) {
    if (!expect(p, '"'))
        return false;
    Str read = tg_str(p->arena);
    for (; p->place.at < p->end && *p->place.at != '"'; p->place.at++) {
        const char *at = p->place.at;
        char c = *at;
        if (c == '\n' || c == '\0')
            break;
        if (c == '\\' && at + 3 < p->end && at[1] == 'x' && hex_digit(at[2]) >= 0 && hex_digit(at[3]) >= 0) {
            c = (char)(hex_digit(at[2]) * 16 + hex_digit(at[3]));
            p->place.at += 3;
        } else if (c == '\\' && at + 1 < p->end) {
            c = at[1];
            p->place.at++;
        }
        if (c == '\0' || c == '\n')
            return fail(p, "a string cannot hold this character");
        tg_str_add(&read, &c, 1);
    }
    *text = tg_intern(p->graph, read.text);
    return (p->place.at < p->end && *p->place.at == '"' && p->place.at++) || fail(p, "the string has no end");
}

/* What follows a mark: a name or a string. */
static bool parse_name(Parser *p, const char **name) {
    if (p->place.at < p->end && *p->place.at == '"')
        return parse_string(p, name);
    const char *from = p->place.at;
    while (p->place.at < p->end && is_name(*p->place.at))
        p->place.at++;
    if (p->place.at == from)
        return fail(p, "expected a name");
    *name = tg_intern(p->graph, tg_arena_str(p->arena, from, (size_t)(p->place.at - from)));
    return true;
}

static bool parse_marked(Parser *p, char mark, const char **name) { return expect(p, mark) && parse_name(p, name); }

static bool parse_int(Parser *p, int64_t *value) {
    skip_space(p);
    char *end;
    errno = 0;
    long long read = strtoll(p->place.at, &end, 10);
    if (end == p->place.at || errno != 0)
        return fail(p, "expected an integer below 2^63");
    p->place.at = end;
    *value = read;
    return true;
}

static bool parse_unsigned(Parser *p, uint64_t *value) {
    char *end;
    if (!isdigit((unsigned char)peek(p)))
        return fail(p, "expected a number that is not negative");
    errno = 0;
    unsigned long long read = strtoull(p->place.at, &end, 0);
    if (errno != 0)
        return fail(p, "this number does not fit 64 bits");
    p->place.at = end;
    *value = read;
    return true;
}

static bool parse_number(Parser *p, double *value) {
    skip_space(p);
    char *end;
    *value = strtod(p->place.at, &end);
    if (end == p->place.at)
        return fail(p, "expected a number");
    p->place.at = end;
    return true;
}

/* ---- types ---- */

static bool parse_dim(Parser *p, Dim *dim) {
    *dim = (Dim){.size = 1, .batch = accept_word(p, "B")};
    if (dim->batch && !accept(p, '*'))
        return true;
    uint64_t size;
    if (!parse_unsigned(p, &size))
        return false;
    dim->size = (int64_t)size;
    return size <= INT64_MAX && (size > 0 || !dim->batch) ? true : fail(p, "a dimension cannot have this size");
}

static bool parse_dims(Parser *p, Type *type) {
    do {
        Dim dim;
        if (type->rank == TG_MAX_RANK)
            return fail(p, "a type has at most %d dimensions", TG_MAX_RANK);
        if (!parse_dim(p, &dim))
            return false;
        if (dim.batch && tg_type_batch_axis(type) >= 0)
            return fail(p, "a type has the batch in one dimension only");
        type->dims[type->rank++] = dim;
    } while (accept(p, ','));
    return expect(p, ']');
}

static bool parse_type(Parser *p, TypeId *id) {
    Type type = {.scaled = accept_word(p, "scaled")};
    size_t length = peek_word(p);
    type.dtype = tg_dtype_named(tg_arena_str(p->arena, p->place.at, length));
    if (type.dtype == DT_COUNT)
        return fail(p, "expected an element type");
    p->place.at += length;
    if (accept(p, '[') && !parse_dims(p, &type))
        return false;
    if (accept(p, '{')) {
        uint64_t sharding;
        if (!parse_unsigned(p, &sharding) || !expect(p, '}'))
            return false;
        type.sharding = (uint32_t)sharding;
    }
    if (tg_type_count(&type, 1) < 0)
        return fail(p, "a type of more than 2^63 elements");
    *id = tg_type(&p->graph->types, &type);
    return true;
}

/* ---- places ---- */

static bool parse_place(Parser *p, Loc *loc) {
    uint64_t file, line, column, end_column;
    if (!parse_unsigned(p, &file) || !expect(p, ':') || !parse_unsigned(p, &line) || !expect(p, ':') ||
        !parse_unsigned(p, &column) || !expect(p, '-') || !parse_unsigned(p, &end_column))
        return false;
    if (file >= p->files.count)
        return fail(p, "there is no file %llu", (unsigned long long)file);
    if (line == 0 || line > UINT32_MAX || column > UINT16_MAX || end_column > UINT16_MAX)
        return fail(p, "this is no place in a file");
    *loc = (Loc){p->files.at[file], (uint16_t)column, (uint16_t)end_column, (uint32_t)line};
    return true;
}

static bool parse_locs(Parser *p, LocsId *locs) {
    *locs = 0;
    if (!accept_word(p, "loc"))
        return true;
    if (!expect(p, '('))
        return false;
    while (peek(p) != ')') {
        Loc loc;
        if (!parse_place(p, &loc))
            return false;
        *locs = tg_locs_union(p->graph, *locs, tg_locs_one(p->graph, loc));
    }
    return expect(p, ')');
}

static bool parse_loc(Parser *p, Loc *loc) {
    *loc = (Loc){0};
    return !accept_word(p, "loc") || (expect(p, '(') && parse_place(p, loc) && expect(p, ')'));
}

static bool parse_file(Parser *p) {
    uint64_t number;
    const char *path;
    if (!parse_unsigned(p, &number) || !parse_string(p, &path))
        return false;
    if (number != p->files.count)
        return fail(p, "files count from 0");
    Source source = {.path = path, .text = ""};
    for (uint32_t i = 0; i < p->sources->files.count; i++)
        if (strcmp(p->sources->files.at[i].path, path) == 0)
            source = p->sources->files.at[i];
    tg_push(p->arena, &p->files, tg_source_add(p->sources, p->arena, source.path, source.text, source.length));
    return true;
}

/* ---- attributes ---- */

static bool parse_ints(Parser *p, Ints *list) {
    Vec(int64_t) read = {0};
    int64_t value;
    if (!accept(p, '[')) {
        if (!parse_int(p, &value))
            return false;
        tg_push(p->arena, &read, value);
    } else if (!accept(p, ']')) {
        do {
            if (!parse_int(p, &value))
                return false;
            tg_push(p->arena, &read, value);
        } while (accept(p, ','));
        if (!expect(p, ']'))
            return false;
    }
    *list = (Ints){read.at, read.count};
    return true;
}

static bool parse_dense(Parser *p, TypeId type, const double **values) {
    Vec(double) read = {0};
    if (!expect(p, '['))
        return false;
    if (!accept(p, ']')) {
        do {
            double value;
            if (!parse_number(p, &value))
                return false;
            tg_push(p->arena, &read, value);
        } while (accept(p, ','));
        if (!expect(p, ']'))
            return false;
    }
    int64_t wanted = tg_type_count(tg_type_of(&p->graph->types, type), 1);
    if (wanted != read.count)
        return fail(p, "%u values for a type of %lld elements", read.count, (long long)wanted);
    *values = read.count ? read.at : TG_ALLOC(p->arena, double, 1);
    return true;
}

static bool parse_reference(Parser *p, AttrKind kind, uint32_t *ref) {
    const char *name;
    if (!parse_marked(p, kind == ATTR_SCALAR ? '$' : '@', &name))
        return false;
    int32_t found = kind == ATTR_BUFFER   ? tg_buffer_find(p->graph, name)
                    : kind == ATTR_SCALAR ? tg_scalar_find(p->graph, name)
                                          : -1;
    for (uint32_t i = 0; kind == ATTR_FUNC && i < p->graph->funcs.count; i++)
        if (p->graph->funcs.at[i]->name == name)
            found = (int32_t)i;
    *ref = (uint32_t)found;
    return found >= 0 || fail(p, "there is no %s `%s`",
                              kind == ATTR_BUFFER   ? "buffer"
                              : kind == ATTR_SCALAR ? "scalar"
                                                    : "function",
                              name);
}

static bool parse_attr_value(Parser *p, const AttrField *field, TypeId type, Attr *attr) {
    switch (field->kind) {
    case ATTR_LIST:
        return parse_ints(p, &attr->list[field->list]);
    case ATTR_NUMBER:
        return parse_number(p, &attr->number);
    case ATTR_DENSE:
        return parse_dense(p, type, &attr->dense);
    case ATTR_KEY:
        return parse_unsigned(p, &attr->key);
    default:
        return fail(p, "this attribute is not written with a name");
    }
}

/* `word=value` pairs and the text, in any order, up to something else. */
static bool parse_attrs(Parser *p, Op op, TypeId type, Attr *attr) {
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t count = tg_attr_fields(op, fields);
    for (;;) {
        if (peek(p) == '"') {
            if (!parse_string(p, &attr->text))
                return false;
            continue;
        }
        size_t length = peek_word(p);
        if (length == 0 || p->place.at + length >= p->end || p->place.at[length] != '=')
            return true;
        const AttrField *field = NULL;
        for (uint32_t i = 0; i < count; i++)
            if (tg_attr_field_is(&fields[i], p->place.at, length))
                field = &fields[i];
        if (field == NULL)
            return fail(p, "%s has no attribute `%.*s`", tg_op(op)->name, (int)length, p->place.at);
        p->place.at += length + 1;
        if (!parse_attr_value(p, field, type, attr))
            return false;
    }
}

/* ---- nodes ---- */

typedef struct Values {
    Map ids; /* names of nodes */
    Builder builder;
} Values;

static bool parse_value(Parser *p, Values *values, NodeId *id) {
    const char *name;
    if (!parse_marked(p, '%', &name))
        return false;
    uint64_t *known = tg_map_find(&values->ids, name, strlen(name));
    if (known == NULL)
        return fail(p, "there is no value `%%%s` before this", name);
    *id = (NodeId)*known;
    return true;
}

/* Whether a `%name` here begins the next node. */
static bool begins_node(Parser *p) {
    Place back = p->place;
    const char *name;
    p->place.at++;
    bool begins = (p->place.at < p->end && *p->place.at != '"' && !is_name(*p->place.at)) || !parse_name(p, &name) ||
                  peek(p) == ':' || peek(p) == '=';
    p->place = back;
    return begins;
}

typedef struct Operands {
    Vec(NodeId) ids;
} Operands;

static bool parse_operands(Parser *p, Values *values, Operands *operands) {
    if (peek(p) != '%' || begins_node(p))
        return true;
    do {
        NodeId id;
        if (!parse_value(p, values, &id))
            return false;
        tg_push(p->arena, &operands->ids, id);
    } while (accept(p, ','));
    return true;
}

static bool parse_op(Parser *p, Op *op) {
    size_t length = peek_word(p);
    *op = tg_op_named(tg_arena_str(p->arena, p->place.at, length));
    if (*op == OP_COUNT)
        return fail(p, "there is no operation `%.*s`", (int)length, p->place.at);
    p->place.at += length;
    return true;
}

static bool parse_references(Parser *p, Op op, Attr *attr) {
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t count = tg_attr_fields(op, fields);
    for (uint32_t i = 0; i < count; i++) {
        AttrKind kind = fields[i].kind;
        if ((kind == ATTR_BUFFER || kind == ATTR_SCALAR || kind == ATTR_FUNC) && !parse_reference(p, kind, &attr->ref))
            return false;
    }
    return true;
}

/* Reports at the node's begin, not behind it. */
static bool bad_node(Parser *p, Place begin, const char *why) {
    p->place = begin;
    return fail(p, "%s", why);
}

static bool add_node(Parser *p, Values *values, Place begin, const char *name, Op op, const Attr *attr,
                     const Operands *operands, TypeId type) {
    const char *why;
    Builder *b = &values->builder;
    TypeId inferred = tg_infer(p->graph, b->func, op, attr, operands->ids.at, operands->ids.count, type, &why);
    if (why != NULL)
        return bad_node(p, begin, why);
    if (inferred != type) {
        Str text = tg_str(p->arena);
        tg_str_printf(&text, "%s gives ", tg_op(op)->name);
        if (inferred)
            tg_type_print(&text, tg_type_of(&p->graph->types, inferred));
        else
            tg_str_printf(&text, "no value");
        return bad_node(p, begin, text.text);
    }
    bool is_new;
    uint64_t *place = tg_map_put(&values->ids, name, strlen(name), &is_new);
    if (!is_new)
        return bad_node(p, begin, tg_arena_printf(p->arena, "there are two values `%%%s`", name));
    *place = tg_build(b, op, attr, operands->ids.at, operands->ids.count, type);
    return *place != 0 || bad_node(p, begin, b->error);
}

static bool parse_node(Parser *p, Values *values) {
    const char *name;
    Operands operands = {0};
    Attr attr = {0};
    TypeId type = 0;
    Op op;
    skip_space(p);
    Place begin = p->place;
    if (!parse_marked(p, '%', &name) || (accept(p, ':') && !parse_type(p, &type)) || !expect(p, '=') ||
        !parse_op(p, &op) || !parse_references(p, op, &attr) || !parse_operands(p, values, &operands) ||
        !parse_attrs(p, op, type, &attr) || !parse_locs(p, &values->builder.locs))
        return false;
    return add_node(p, values, begin, name, op, &attr, &operands, type);
}

/* ---- functions ---- */

static bool parse_result(Parser *p, Values *values, bool store) {
    const char *name;
    uint32_t buffer = 0;
    NodeId node;
    skip_space(p);
    if (store ? !parse_reference(p, ATTR_BUFFER, &buffer) : !parse_name(p, &name))
        return false;
    if (!parse_value(p, values, &node) || !parse_locs(p, &values->builder.locs))
        return false;
    if (store)
        tg_result_store(&values->builder, buffer, node);
    else
        tg_result_value(&values->builder, name, node);
    return true;
}

static bool parse_body(Parser *p, Func *func) {
    Values values = {.ids = tg_map(p->arena), .builder = tg_builder(p->graph, func, false)};
    while (!accept(p, '}')) {
        bool good;
        if (peek(p) == '%')
            good = parse_node(p, &values);
        else if (accept_word(p, "return"))
            good = parse_result(p, &values, false);
        else if (accept_word(p, "store"))
            good = parse_result(p, &values, true);
        else
            return fail(p, "expected a value, `return`, `store` or `}`");
        if (!good)
            return false;
    }
    return true;
}

static bool parse_func_args(Parser *p, Func *func) {
    if (!expect(p, '('))
        return false;
    if (accept(p, ')'))
        return true;
    do {
        FuncArg arg;
        if (!parse_marked(p, '%', &arg.name) || !expect(p, ':') || !parse_type(p, &arg.type) || !parse_loc(p, &arg.loc))
            return false;
        tg_push(p->arena, &func->args, arg);
    } while (accept(p, ','));
    return expect(p, ')');
}

/* Goes past a body; braces stand in strings or in pairs. */
static bool skip_body(Parser *p) {
    const char *text;
    for (int depth = 1; depth > 0;) {
        char c = peek(p);
        if (c == '\0')
            return fail(p, "the function has no end");
        if (c == '"') {
            if (!parse_string(p, &text))
                return false;
            continue;
        }
        depth += (c == '{') - (c == '}');
        p->place.at++;
    }
    return true;
}

/* The number of a word among names[0 .. count), which are given by a function. */
static bool parse_choice(Parser *p, const char *(*name_of)(int), int count, const char *what, int *choice) {
    for (*choice = 0; *choice < count; (*choice)++)
        if (accept_word(p, name_of(*choice)))
            return true;
    return fail(p, "expected the %s", what);
}

static bool parse_func_head(Parser *p, Body *body) {
    const char *name;
    int kind;
    if (!parse_marked(p, '@', &name) ||
        !parse_choice(p, tg_func_kind_name, FUNC_KERNEL + 1, "kind of the function", &kind))
        return false;
    for (uint32_t i = 0; i < p->graph->funcs.count; i++)
        if (p->graph->funcs.at[i]->name == name)
            return fail(p, "there are two functions `%s`", name);
    body->func = tg_func_new(p->graph, (FuncKind)kind, name);
    if (!parse_func_args(p, body->func) || !expect(p, '{'))
        return false;
    body->place = p->place;
    return skip_body(p);
}

/* ---- the graph ---- */

static bool parse_buffer(Parser *p) {
    Buffer buffer = {0};
    int class;
    if (!parse_marked(p, '@', &buffer.name) || !expect(p, ':') || !parse_type(p, &buffer.type) ||
        !parse_choice(p, tg_buffer_class_name, BUFFER_SUM + 1, "class of the buffer", &class))
        return false;
    buffer.class = (BufferClass) class;
    buffer.frozen = accept_word(p, "frozen");
    if (!parse_loc(p, &buffer.loc))
        return false;
    if (tg_buffer_find(p->graph, buffer.name) >= 0)
        return fail(p, "there are two buffers `%s`", buffer.name);
    tg_buffer_add(p->graph, buffer);
    return true;
}

static bool parse_scalar(Parser *p) {
    Scalar scalar = {0};
    int class;
    if (!parse_marked(p, '$', &scalar.name) ||
        !parse_choice(p, tg_scalar_class_name, SCALAR_COMPUTED + 1, "class of the scalar", &class))
        return false;
    scalar.class = (ScalarClass) class;
    char next = peek(p);
    bool has_value = isdigit((unsigned char)next) || next == '-' || next == '.' || next == 'i' || next == 'n';
    if ((has_value && !parse_number(p, &scalar.value)) || !parse_loc(p, &scalar.loc))
        return false;
    if (tg_scalar_find(p->graph, scalar.name) >= 0)
        return fail(p, "there are two scalars `%s`", scalar.name);
    tg_scalar_add(p->graph, scalar);
    return true;
}

/* `name="text"`, or nothing. */
static bool parse_option(Parser *p, const char *name, const char **text) {
    *text = NULL;
    return !accept_word(p, name) || (expect(p, '=') && parse_string(p, text));
}

static bool parse_setting(Parser *p) {
    Setting setting;
    if (!parse_string(p, &setting.name) || !parse_option(p, "value", &setting.value) ||
        !parse_option(p, "origin", &setting.origin))
        return false;
    setting.runtime = accept_word(p, "runtime");
    tg_push(p->arena, &p->graph->settings, setting);
    return true;
}

static bool parse_columns(Parser *p, DataField *field) {
    Vec(const char *) names = {0};
    if (!accept_word(p, "columns"))
        return true;
    if (!expect(p, '=') || !expect(p, '['))
        return false;
    do {
        const char *name;
        if (!parse_string(p, &name))
            return false;
        tg_push(p->arena, &names, name);
    } while (accept(p, ','));
    field->columns = names.at;
    field->column_count = names.count;
    return expect(p, ']');
}

static bool parse_data_field(Parser *p, DataSet *set) {
    DataField field = {0};
    if (!parse_string(p, &field.name) || !expect(p, ':') || !parse_type(p, &field.type) ||
        !parse_option(p, "reader", &field.reader) || !parse_option(p, "path", &field.path) ||
        !parse_columns(p, &field) || !parse_loc(p, &field.loc))
        return false;
    tg_push(p->arena, &set->fields, field);
    return true;
}

static bool parse_data(Parser *p) {
    DataSet set = {0};
    bool validate = accept_word(p, "validate");
    if (!validate && !expect_word(p, "train"))
        return false;
    if (!parse_string(p, &set.name) || !parse_option(p, "split", &set.split))
        return false;
    set.by_runs = accept_word(p, "runs");
    if (!expect(p, '{'))
        return false;
    while (!accept(p, '}')) {
        Split part;
        if (accept_word(p, "field")) {
            if (!parse_data_field(p, &set))
                return false;
        } else if (!expect_word(p, "part") || !parse_string(p, &part.name) || !parse_number(p, &part.share)) {
            return false;
        } else {
            tg_push(p->arena, &set.splits, part);
        }
    }
    *(validate ? &p->graph->training.validate : &p->graph->training.train) = set;
    return true;
}

static bool parse_option_int(Parser *p, const char *name, int64_t *value) {
    return !accept_word(p, name) || (expect(p, '=') && parse_int(p, value));
}

static bool parse_train(Parser *p) {
    Training *t = &p->graph->training;
    int64_t clip_scalar = -1;
    if (!parse_option_int(p, "batch", &t->batch) || !parse_option_int(p, "micro", &t->micro) ||
        !parse_option_int(p, "lanes", &t->lanes) || !parse_option_int(p, "steps", &t->steps) ||
        !parse_option_int(p, "epochs", &t->epochs) ||
        (accept_word(p, "clip_norm") && (!expect(p, '=') || !parse_number(p, &t->clip_norm))) ||
        !parse_option_int(p, "clip_scalar", &clip_scalar) ||
        (accept_word(p, "seed") && (!expect(p, '=') || !parse_unsigned(p, &t->seed))) ||
        !parse_option(p, "loss", &t->loss))
        return false;
    t->shuffle = accept_word(p, "shuffle");
    t->clip_scalar = (int32_t)clip_scalar;
    return (clip_scalar >= -1 && clip_scalar < p->graph->scalars.count) ||
           fail(p, "there is no scalar %lld", (long long)clip_scalar);
}

typedef struct Bodies {
    Vec(Body) all;
} Bodies;

static bool parse_item(Parser *p, Bodies *bodies) {
    if (accept_word(p, "func")) {
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
        if (accept_word(p, items[i].word))
            return items[i].parse(p);
    return fail(p, "expected `func`, `buffer`, `scalar`, `setting`, `train`, `data`, `file` or `}`");
}

static bool parse_bodies(Parser *p, const Bodies *bodies, bool kernels) {
    for (uint32_t i = 0; i < bodies->all.count; i++) {
        const Body *body = &bodies->all.at[i];
        if ((body->func->kind == FUNC_KERNEL) != kernels)
            continue;
        p->place = body->place;
        if (!parse_body(p, body->func))
            return false;
    }
    return true;
}

static bool parse_graph(Parser *p) {
    int level;
    Bodies bodies = {0};
    if (!expect_word(p, "graph") || !expect(p, '@') ||
        !parse_choice(p, tg_level_name, LEVEL_KERNEL + 1, "level of the graph", &level) ||
        !parse_option(p, "path", &p->graph->path) || !expect(p, '{'))
        return false;
    p->graph->level = (Level)level;
    while (!accept(p, '}'))
        if (!parse_item(p, &bodies))
            return false;
    if (peek(p) != '\0' || p->place.at < p->end)
        return fail(p, "expected nothing after the graph");
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
