/* Words, numbers, types and places of the text form. */
#include "ir/parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

Loc ir_here(const Parser *p) {
    size_t column = (size_t)(p->place.at - p->place.line_start) + 1;
    uint16_t at = column < UINT16_MAX ? (uint16_t)column : UINT16_MAX;
    return (Loc){.file = p->source, .line = p->place.line, .column = at, .end_column = at};
}

void ir_skip_space(Parser *p) {
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

char ir_peek(Parser *p) {
    ir_skip_space(p);
    return p->place.at < p->end ? *p->place.at : '\0';
}

bool ir_accept(Parser *p, char c) {
    if (c == '\0' || ir_peek(p) != c)
        return false;
    p->place.at++;
    return true;
}

bool ir_expect(Parser *p, char c) { return ir_accept(p, c) || ir_fail(p, "expected `%c`", c); }

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
bool ir_is_name(char c) { return is_word(c) || c == '.' || c == '/' || c == '-'; }

/* The word that comes next, not taken; its length 0: there is none. */
size_t ir_peek_word(Parser *p) {
    ir_skip_space(p);
    size_t length = 0;
    while (p->place.at + length < p->end && is_word(p->place.at[length]))
        length++;
    return length;
}

bool ir_accept_word(Parser *p, const char *word) {
    size_t length = ir_peek_word(p);
    if (length != strlen(word) || memcmp(p->place.at, word, length) != 0)
        return false;
    p->place.at += length;
    return true;
}

bool ir_expect_word(Parser *p, const char *word) {
    return ir_accept_word(p, word) || ir_fail(p, "expected `%s`", word);
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

bool ir_parse_string(Parser *p, const char **text) {
    if (!ir_expect(p, '"'))
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
        } else if (c == '\\' && at + 1 < p->end && at[1] != '\n') {
            c = at[1];
            p->place.at++;
        }
        if (c == '\0')
            return ir_fail(p, "a string cannot hold this character");
        tg_str_add(&read, &c, 1);
    }
    *text = tg_intern(p->graph, read.text);
    return (p->place.at < p->end && *p->place.at == '"' && p->place.at++) || ir_fail(p, "the string has no end");
}

/* What follows a mark: a name or a string. */
bool ir_parse_name(Parser *p, const char **name) {
    if (p->place.at < p->end && *p->place.at == '"')
        return ir_parse_string(p, name);
    const char *from = p->place.at;
    while (p->place.at < p->end && ir_is_name(*p->place.at))
        p->place.at++;
    if (p->place.at == from)
        return ir_fail(p, "expected a name");
    *name = tg_intern(p->graph, tg_arena_str(p->arena, from, (size_t)(p->place.at - from)));
    return true;
}

bool ir_parse_marked(Parser *p, char mark, const char **name) { return ir_expect(p, mark) && ir_parse_name(p, name); }

bool ir_parse_int(Parser *p, int64_t *value) {
    ir_skip_space(p);
    char *end;
    errno = 0;
    long long read = strtoll(p->place.at, &end, 10);
    if (end == p->place.at || errno != 0)
        return ir_fail(p, "expected an integer below 2^63");
    p->place.at = end;
    *value = read;
    return true;
}

bool ir_parse_unsigned(Parser *p, uint64_t *value) {
    char *end;
    if (!isdigit((unsigned char)ir_peek(p)))
        return ir_fail(p, "expected a number that is not negative");
    errno = 0;
    unsigned long long read = strtoull(p->place.at, &end, 0);
    if (errno != 0)
        return ir_fail(p, "this number does not fit 64 bits");
    p->place.at = end;
    *value = read;
    return true;
}

bool ir_parse_number(Parser *p, double *value) {
    ir_skip_space(p);
    char *end;
    *value = strtod(p->place.at, &end);
    if (end == p->place.at)
        return ir_fail(p, "expected a number");
    p->place.at = end;
    return true;
}

/* ---- types ---- */

static bool parse_dim(Parser *p, Dim *dim) {
    *dim = (Dim){.size = 1, .batch = ir_accept_word(p, "B")};
    if (dim->batch && !ir_accept(p, '*'))
        return true;
    uint64_t size;
    if (!ir_parse_unsigned(p, &size))
        return false;
    dim->size = (int64_t)size;
    return size <= INT64_MAX && (size > 0 || !dim->batch) ? true : ir_fail(p, "a dimension cannot have this size");
}

static bool parse_dims(Parser *p, Type *type) {
    do {
        Dim dim;
        if (type->rank == TG_MAX_RANK)
            return ir_fail(p, "a type has at most %d dimensions", TG_MAX_RANK);
        if (!parse_dim(p, &dim))
            return false;
        if (dim.batch && tg_type_batch_axis(type) >= 0)
            return ir_fail(p, "a type has the batch in one dimension only");
        type->dims[type->rank++] = dim;
    } while (ir_accept(p, ','));
    return ir_expect(p, ']');
}

bool ir_parse_type(Parser *p, TypeId *id) {
    Type type = {.scaled = ir_accept_word(p, "scaled")};
    size_t length = ir_peek_word(p);
    type.dtype = tg_dtype_named(tg_arena_str(p->arena, p->place.at, length));
    if (type.dtype == DT_COUNT)
        return ir_fail(p, "expected an element type");
    p->place.at += length;
    if (ir_accept(p, '[') && !parse_dims(p, &type))
        return false;
    if (ir_accept(p, '{')) {
        uint64_t sharding;
        if (!ir_parse_unsigned(p, &sharding) || !ir_expect(p, '}'))
            return false;
        type.sharding = (uint32_t)sharding;
    }
    if (tg_type_count(&type, 1) < 0)
        return ir_fail(p, "a type of more than 2^63 elements");
    *id = tg_type(&p->graph->types, &type);
    return true;
}

/* ---- places ---- */

static bool parse_place(Parser *p, Loc *loc) {
    uint64_t file, line, column, end_column;
    if (!ir_parse_unsigned(p, &file) || !ir_expect(p, ':') || !ir_parse_unsigned(p, &line) || !ir_expect(p, ':') ||
        !ir_parse_unsigned(p, &column) || !ir_expect(p, '-') || !ir_parse_unsigned(p, &end_column))
        return false;
    if (file >= p->files.count)
        return ir_fail(p, "there is no file %llu", (unsigned long long)file);
    if (line == 0 || line > UINT32_MAX || column > UINT16_MAX || end_column > UINT16_MAX)
        return ir_fail(p, "this is no place in a file");
    *loc = (Loc){.file = p->files.at[file], .column = (uint16_t)column, .end_column = (uint16_t)end_column, .line = (uint32_t)line};
    return true;
}

bool ir_parse_locs(Parser *p, LocsId *locs) {
    *locs = 0;
    if (!ir_accept_word(p, "loc"))
        return true;
    if (!ir_expect(p, '('))
        return false;
    while (ir_peek(p) != ')') {
        Loc loc;
        if (!parse_place(p, &loc))
            return false;
        *locs = tg_locs_union(p->graph, *locs, tg_locs_one(p->graph, loc));
    }
    return ir_expect(p, ')');
}

bool ir_parse_loc(Parser *p, Loc *loc) {
    *loc = (Loc){0};
    return !ir_accept_word(p, "loc") || (ir_expect(p, '(') && parse_place(p, loc) && ir_expect(p, ')'));
}

bool ir_parse_choice(Parser *p, const char *(*name_of)(int), int count, const char *what, int *choice) {
    for (*choice = 0; *choice < count; (*choice)++)
        if (ir_accept_word(p, name_of(*choice)))
            return true;
    return ir_fail(p, "expected the %s", what);
}
