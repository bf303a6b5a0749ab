/* --emit=ast: the tree as S-expressions. */
#include "frontend/ast.h"

#include <string.h>

static void add(Str *to, const char *text) { tg_str_add(to, text, strlen(text)); }

static const char *kind_text(AstKind kind) {
    static const char *const names[] = {
#define X(kind, text) [AST_##kind] = text,
        TG_AST_KINDS(X)
#undef X
    };
    return names[kind];
}

static const char *op_text(uint16_t op, char one[2]) {
    static const char *const names[] = {"++", "<=", ">=", "==", "!=", "and", "or", "not"};
    if (op >= AST_CONCAT)
        return names[op - AST_CONCAT];
    one[0] = (char)op;
    one[1] = '\0';
    return one;
}

static void print_string(Str *to, const char *text) {
    add(to, "\"");
    for (; *text; text++) {
        if (*text == '\n' || *text == '\t')
            add(to, *text == '\n' ? "\\n" : "\\t");
        else {
            if (*text == '"' || *text == '\\')
                add(to, "\\");
            tg_str_add(to, text, 1);
        }
    }
    add(to, "\"");
}

static void print(Str *to, const Ast *ast);

static void print_kids(Str *to, const Ast *ast) {
    for (uint32_t i = 0; i < ast->kid_count; i++) {
        add(to, " ");
        print(to, ast->kid[i]);
    }
}

/* name, name.name, name[dims] */
static void print_type(Str *to, const Ast *ast) {
    add(to, ast->name);
    if (ast->text)
        tg_str_printf(to, ".%s", ast->text);
    if (!ast->flag)
        return;
    add(to, "[");
    for (uint32_t i = 0; i < ast->kid_count; i++) {
        add(to, i ? " " : "");
        print(to, ast->kid[i]);
    }
    add(to, "]");
}

/* Those that are one word; false: the node is none of them. */
static bool print_leaf(Str *to, const Ast *ast) {
    switch (ast->kind) {
    case AST_NAME:
        add(to, ast->name);
        return true;
    case AST_INT:
    case AST_FLOAT:
    case AST_PERCENT:
        add(to, ast->text);
        return true;
    case AST_STRING:
        print_string(to, ast->text);
        return true;
    case AST_BOOL:
        add(to, ast->flag ? "true" : "false");
        return true;
    case AST_ELLIPSIS:
        add(to, "...");
        return true;
    case AST_ERROR:
        add(to, "?");
        return true;
    case AST_DIM_NEW:
        tg_str_printf(to, "=%s", ast->name);
        return true;
    case AST_TYPE:
        print_type(to, ast);
        return true;
    default:
        return false;
    }
}

static void print(Str *to, const Ast *ast) {
    if (ast == NULL) {
        add(to, "_");
        return;
    }
    if (print_leaf(to, ast))
        return;
    char one[2];
    bool is_op = ast->kind == AST_UNARY || ast->kind == AST_BINARY;
    tg_str_printf(to, "(%s%s", ast->kind == AST_FN && ast->flag ? "export " : "",
                  is_op ? op_text(ast->op, one) : kind_text((AstKind)ast->kind));
    if (ast->name)
        tg_str_printf(to, " %s", ast->name);
    if (ast->kind == AST_IMPORT) {
        add(to, " ");
        print_string(to, ast->text);
    }
    print_kids(to, ast);
    add(to, ")");
}

void tg_ast_print(Str *to, const Ast *ast) {
    if (ast->kind != AST_FILE) {
        print(to, ast);
        return;
    }
    for (uint32_t i = 0; i < ast->kid_count; i++) {
        print(to, ast->kid[i]);
        add(to, "\n");
    }
}
