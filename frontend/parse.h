/* What the lexer, the grammar and parse.c share. Private to the frontend. */
#ifndef TG_PARSE_H
#define TG_PARSE_H

#include "frontend/ast.h"
#include "ir/base/map.h"

enum {
    LEX_BRACKETS = 200, /* open brackets at once */
    AST_DEPTH = 1000,   /* levels of the tree: what recursion over it may rely on */
    PARSE_STACK = 6000, /* symbols on the parser's stack */
};

/* A range of the source; lines and columns count from 1, the end is one past it. */
typedef struct Span {
    int first_line, first_column, last_line, last_column;
} Span;

typedef struct Bracket {
    char open;
    Span span;
} Bracket;

typedef Vec(Ast *) AstList;

typedef struct Lex {
    Arena *arena;
    Diags *diags;
    const char *text;
    size_t length, offset; /* offset: behind the current token */
    size_t token;          /* where the current token begins */
    Vec(size_t) lines;     /* where each line begins */
    Map *names;            /* interned names of the whole compilation */
    AstList *items;        /* of the file */
    uint16_t file;
    int line, column; /* behind the current token */
    int token_line, token_column;
    int last;       /* the token before: what the newline rule needs */
    int error_line; /* of the last error reported; 0: none */
    int quiet_line; /* a syntax error on this line follows from one that was reported */
    uint32_t errors;
    bool unwinding; /* closing brackets that the source leaves open */
    bool stop;      /* nothing that follows is worth reading */
    bool deep;      /* reported that the tree is too deep */
    int depth;
    Bracket brackets[LEX_BRACKETS];
} Lex;

/* lexer */
void lex_advance(Lex *lex, Span *span, size_t bytes);
/* The current token has not been read: it comes again. */
void lex_retract(Lex *lex, Span *span);
const char *lex_intern(Lex *lex, const char *text, size_t length);
/* The string literal `text` (with its first quote, and its last one if `closed`) with escapes resolved. */
const char *lex_string(Lex *lex, const Span *span, const char *text, size_t length, bool closed);
Loc lex_loc(const Lex *lex, const Span *span);
void lex_error(Lex *lex, const Span *span, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool lex_in_parens(const Lex *lex);
bool lex_open(Lex *lex, char bracket, const Span *span);
void lex_close(Lex *lex, char bracket);
/* The token that must come before what stands here, since the source left brackets open: their closing ones, one a
   call, or an end of line; 0 when all is well. */
int lex_unwind(Lex *lex, const Span *span, bool braces);
/* The same before a closing bracket. */
int lex_unwind_to(Lex *lex, char bracket);
/* May a statement not end after `token`? */
bool lex_continues(int token);
/* May a '}' follow `token` as it is, without an end of line between? */
bool lex_may_close(int token);

/* grammar */
void lex_syntax_error(Lex *lex, const Span *span, const char *text);
Ast *ast_make(Lex *lex, AstKind kind, const Span *span, Ast *const *kids, uint32_t count);
Ast *ast_named(Lex *lex, AstKind kind, const Span *span, const char *name, const Span *name_span, Ast *const *kids,
               uint32_t count);
Ast *ast_of_list(Lex *lex, AstKind kind, const Span *span, const AstList *list);
/* `first` and then the list. */
Ast *ast_with_list(Lex *lex, AstKind kind, const Span *span, Ast *first, const AstList *list);
Ast *ast_op(Lex *lex, AstKind kind, const Span *span, int op, Ast *x, Ast *y);
Ast *ast_number(Lex *lex, AstKind kind, const Span *span, const char *text);
void ast_set_name(Lex *lex, Ast *ast, const char *name, const Span *name_span);
/* `mark` of the instance `to`. */
Ast *ast_attach(Lex *lex, Ast *mark, Ast *to, const Span *span);
AstList *list_new(Lex *lex);
AstList *list_add(Lex *lex, AstList *list, Ast *ast);
AstList *list_join(Lex *lex, AstList *list, const AstList *more);

#endif
