/* The parser of graphs' text, shared by its files. Functions that take a Parser are true, or have reported why not. */
#ifndef TG_PARSE_H
#define TG_PARSE_H

#include "ir/graph.h"

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

Loc ir_here(const Parser *p);
#define ir_fail(p, ...) (tg_error((p)->diags, ir_here(p), __VA_ARGS__), false)

bool ir_is_name(char c); /* may stand in a name without quotes */
void ir_skip_space(Parser *p);
char ir_peek(Parser *p); /* the next character that is no space, 0 at the end */
bool ir_accept(Parser *p, char c);
bool ir_expect(Parser *p, char c);
size_t ir_peek_word(Parser *p); /* the length of the word that comes next; 0: none does */
bool ir_accept_word(Parser *p, const char *word);
bool ir_expect_word(Parser *p, const char *word);
/* One of the words that `name_of` gives for 0 .. count - 1. */
bool ir_parse_choice(Parser *p, const char *(*name_of)(int), int count, const char *what, int *choice);

bool ir_parse_string(Parser *p, const char **text);
bool ir_parse_name(Parser *p, const char **name); /* without space before it; or a string */
bool ir_parse_marked(Parser *p, char mark, const char **name);
bool ir_parse_int(Parser *p, int64_t *value);
bool ir_parse_unsigned(Parser *p, uint64_t *value);
bool ir_parse_number(Parser *p, double *value);
bool ir_parse_type(Parser *p, TypeId *id);
bool ir_parse_locs(Parser *p, LocsId *locs); /* 0 where no `loc(...)` stands */
bool ir_parse_loc(Parser *p, Loc *loc);
/* Nodes and results up to the `}`. */
bool ir_parse_body(Parser *p, Func *func);

#endif
