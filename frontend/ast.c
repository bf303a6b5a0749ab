/* How the grammar makes nodes: with their places, and no deeper than AST_DEPTH. */
#include "frontend/parse.h"
#include "grammar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct DeepAst {
    Ast ast;
    uint32_t depth; /* levels below and including this one */
} DeepAst;

static uint32_t depth_of(const Ast *ast) { return ast ? ((const DeepAst *)ast)->depth : 0; }

static uint32_t deepest(Ast *const *kids, uint32_t count) {
    uint32_t depth = 0;
    for (uint32_t i = 0; i < count; i++)
        if (depth_of(kids[i]) > depth)
            depth = depth_of(kids[i]);
    return depth;
}

static void report_depth(Lex *lex, const Span *span) {
    if (lex->deep)
        return;
    lex->deep = true;
    lex_error(lex, span, "nested too deeply (more than %d levels)", AST_DEPTH);
}

Ast *ast_make(Lex *lex, AstKind kind, const Span *span, Ast *const *kids, uint32_t count) {
    DeepAst *node = TG_ALLOC(lex->arena, DeepAst, 1);
    Ast *ast = &node->ast;
    ast->kind = (uint8_t)kind;
    ast->loc = lex_loc(lex, span);
    node->depth = deepest(kids, count) + 1;
    if (node->depth > AST_DEPTH) {
        report_depth(lex, span);
        ast->kind = AST_ERROR;
        node->depth = 1;
        return ast;
    }
    ast->kid_count = count;
    if (count)
        ast->kid = tg_arena_copy(lex->arena, kids, count * sizeof *kids);
    return ast;
}

void ast_set_name(Lex *lex, Ast *ast, const char *name, const Span *name_span) {
    ast->name = name;
    ast->name_loc = lex_loc(lex, name_span);
}

Ast *ast_named(Lex *lex, AstKind kind, const Span *span, const char *name, const Span *name_span, Ast *const *kids,
               uint32_t count) {
    Ast *ast = ast_make(lex, kind, span, kids, count);
    ast_set_name(lex, ast, name, name_span);
    return ast;
}

Ast *ast_of_list(Lex *lex, AstKind kind, const Span *span, const AstList *list) {
    return ast_make(lex, kind, span, list->at, list->count);
}

Ast *ast_with_list(Lex *lex, AstKind kind, const Span *span, Ast *first, const AstList *list) {
    Ast **kids = TG_ALLOC(lex->arena, Ast *, list->count + 1);
    kids[0] = first;
    if (list->count)
        memcpy(kids + 1, list->at, list->count * sizeof *kids);
    return ast_make(lex, kind, span, kids, list->count + 1);
}

Ast *ast_attach(Lex *lex, Ast *mark, Ast *to, const Span *span) {
    if (mark->kind != AST_MARK)
        return mark;
    mark->kid[0] = to;
    Ast *ast = ast_make(lex, AST_MARK, span, mark->kid, mark->kid_count);
    ast->name = mark->name;
    ast->name_loc = mark->name_loc;
    return ast;
}

Ast *ast_op(Lex *lex, AstKind kind, const Span *span, int op, Ast *x, Ast *y) {
    Ast *ast = ast_make(lex, kind, span, (Ast *[]){x, y}, y ? 2 : 1);
    ast->op = (uint16_t)op;
    return ast;
}

static void set_integer(Lex *lex, Ast *ast, const Span *span, const char *digits) {
    errno = 0;
    ast->integer = strtoll(digits, NULL, 10);
    ast->number = (double)ast->integer;
    if (errno == ERANGE)
        lex_error(lex, span, "this integer does not fit in 64 bits");
}

Ast *ast_number(Lex *lex, AstKind kind, const Span *span, const char *text) {
    Ast *ast = ast_make(lex, kind, span, NULL, 0);
    ast->text = text;
    char *digits = tg_arena_str(lex->arena, text, strlen(text)), *to = digits;
    for (const char *from = text; *from; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    if (kind == AST_INT)
        set_integer(lex, ast, span, digits);
    else
        ast->number = strtod(digits, NULL);
    if (kind == AST_PERCENT)
        ast->number /= 100;
    if (ast->number - ast->number != 0)
        lex_error(lex, span, "this number is too large for 64 bits");
    return ast;
}

AstList *list_new(Lex *lex) { return TG_ALLOC(lex->arena, AstList, 1); }

AstList *list_add(Lex *lex, AstList *list, Ast *ast) {
    tg_push(lex->arena, list, ast);
    return list;
}

AstList *list_join(Lex *lex, AstList *list, const AstList *more) {
    for (uint32_t i = 0; i < more->count; i++)
        tg_push(lex->arena, list, more->at[i]);
    return list;
}
