/* Names in expressions and types. */
#include "frontend/sema.h"

#include <string.h>

static const char *const type_names[] = {"bool", "u8",  "i8",  "u16", "i16", "i32",   "i64",
                                         "bf16", "f16", "f32", "f64", "int", "float", "string"};
enum { TYPE_NAMES = sizeof type_names / sizeof *type_names };

static void all(Sema *s, const Ast *ast, uint32_t from) {
    for (uint32_t i = from; i < ast->kid_count; i++)
        sema_expr(s, ast->kid[i]);
}

/* Names of the items of a file, for "did you mean". */
static const char *closest_item(Sema *s, const Unit *unit, const char *name, bool *found) {
    const Ast *file = unit->file;
    Vec(const char *) names = {0};
    for (uint32_t i = 0; i < file->kid_count; i++) {
        const Ast *item = file->kid[i];
        if (item->kind == AST_BIND)
            for (uint32_t k = 0; k < item->kid[0]->kid_count; k++)
                tg_push(s->arena, &names, item->kid[0]->kid[k]->name);
        else if (item->name)
            tg_push(s->arena, &names, item->name);
    }
    for (uint32_t i = 0; i < names.count; i++)
        *found = *found || strcmp(names.at[i], name) == 0;
    return sema_hint(s, name, names.at, names.count);
}

static void check_in_unit(Sema *s, const Unit *unit, const char *name, Loc loc) {
    bool found = false;
    const char *hint = closest_item(s, unit, name, &found);
    if (!found)
        tg_error(s->diags, loc, "%s has no '%s'%s", unit->path, name, hint);
}

static void check_dot(Sema *s, const Ast *ast) {
    const Ast *value = ast->kid[0];
    sema_expr(s, value);
    const Symbol *symbol = value->kind == AST_NAME ? sema_find(s, value->name) : NULL;
    if (symbol && symbol->unit)
        check_in_unit(s, symbol->unit, ast->name, ast->name_loc);
    else if (symbol && symbol->ast && symbol->ast->kind == AST_DATA && !sema_has_split(symbol->ast, ast->name)) {
        tg_error(s->diags, ast->name_loc, "data %s has no split '%s'", symbol->name, ast->name);
        tg_note(s->diags, symbol->loc, "it is declared here");
    }
}

static void check_call(Sema *s, const Ast *ast) {
    const Ast *named = NULL;
    for (uint32_t i = 1; i < ast->kid_count; i++) {
        const Ast *kid = ast->kid[i];
        if (kid->kind == AST_NAMED)
            named = kid;
        else if (named && kid->kind != AST_ERROR) {
            tg_error(s->diags, kid->loc, "an argument without a name cannot follow '%s = ...'", named->name);
            break;
        }
    }
    sema_duplicates(s, ast, 1, AST_NAMED, "argument");
    all(s, ast, 0);
}

static void check_loop(Sema *s, const Ast *ast) { /* a comprehension */
    sema_expr(s, ast->kid[2]);
    uint32_t before = s->symbols.count;
    const Ast *names = ast->kid[1];
    sema_duplicates(s, names, 0, AST_NAME, "name");
    for (uint32_t i = 0; i < names->kid_count; i++)
        sema_push(s, SYM_LOOP, names->kid[i]->name, names->kid[i]->loc, names->kid[i]);
    sema_expr(s, ast->kid[3]);
    sema_expr(s, ast->kid[0]);
    sema_pop(s, before);
}

static void check_mark(Sema *s, const Ast *ast) {
    static const char *const marks[] = {"shard", "frozen", "stage", "precision", NULL};
    sema_expr(s, ast->kid[0]);
    if (!sema_is(ast->name, marks)) {
        tg_error(s->diags, ast->name_loc, "unknown mark '%s'%s", ast->name, sema_hint(s, ast->name, marks, 4));
        sema_fixit(s, ast->name_loc, ast->name, marks, 4);
        return;
    }
    bool is_shard = strcmp(ast->name, "shard") == 0; /* its argument names a dimension of what it marks */
    bool is_precision = strcmp(ast->name, "precision") == 0;
    uint32_t wanted = strcmp(ast->name, "frozen") == 0 ? 0 : 1;
    if (ast->kid_count - 1 != wanted)
        tg_error(s->diags, ast->name_loc, "the mark '%s' takes %s", ast->name,
                 wanted ? "one argument" : "no arguments");
    else if (is_precision && (ast->kid[1]->kind != AST_NAME || strcmp(ast->kid[1]->name, "f32") != 0))
        tg_error(s->diags, ast->kid[1]->loc, "an instance is marked 'precision(f32)'; the low type is what -p says");
    else if (!is_shard)
        all(s, ast, 1);
    else if (ast->kid[1]->kind != AST_NAME)
        tg_error(s->diags, ast->kid[1]->loc, "shard names one dimension");
}

/* The pattern's left side binds names, the right side uses them. */
static void bind_pattern(Sema *s, const Ast *side) {
    for (uint32_t i = 0; i < side->kid_count; i++) {
        const Ast *kid = side->kid[i];
        if (kid->kind == AST_TUPLE || kid->kind == AST_LIST) /* a list: of an operand of einsum */
            bind_pattern(s, kid);
        else if (kid->kind == AST_NAME && sema_find(s, kid->name) == NULL)
            sema_push(s, SYM_DIMENSION, kid->name, kid->loc, kid);
        else
            sema_expr(s, kid);
    }
}

static void check_pattern(Sema *s, const Ast *ast) {
    uint32_t before = s->symbols.count;
    bind_pattern(s, ast->kid[0]);
    sema_expr(s, ast->kid[1]);
    sema_pop(s, before);
}

void sema_expr(Sema *s, const Ast *ast) {
    if (ast == NULL)
        return;
    switch (ast->kind) {
    case AST_NAME:
        (void)sema_use(s, ast->name, ast->loc);
        break;
    case AST_DOT:
        check_dot(s, ast);
        break;
    case AST_CALL:
        check_call(s, ast);
        break;
    case AST_COMPREHENSION:
        check_loop(s, ast);
        break;
    case AST_MARK:
        check_mark(s, ast);
        break;
    case AST_PATTERN:
        check_pattern(s, ast);
        break;
    case AST_RECORD:
        sema_duplicates(s, ast, 0, AST_NAMED, "field");
        all(s, ast, 0);
        break;
    case AST_LAMBDA: {
        uint32_t before = s->symbols.count;
        sema_push(s, SYM_LOOP, ast->name, ast->name_loc, ast);
        all(s, ast, 0);
        sema_pop(s, before);
        break;
    }
    default:
        all(s, ast, 0);
    }
}

static bool is_type_symbol(const Symbol *symbol) {
    return symbol && ((symbol->ast && symbol->ast->kind == AST_DATA) || symbol->kind == SYM_DIMENSION);
}

static void check_type_name(Sema *s, const Ast *type, TypePlace place) {
    Symbol *symbol = sema_find(s, type->name);
    if (type->text) {
        if (symbol && symbol->unit)
            check_in_unit(s, symbol->unit, type->text, type->name_loc);
        else if (sema_use(s, type->name, type->name_loc))
            tg_error(s->diags, type->name_loc, "'%s' is not the name of an import", type->name);
        return;
    }
    if (is_type_symbol(symbol)) {
        symbol->reads++;
        return;
    }
    for (uint32_t i = 0; i < TYPE_NAMES; i++)
        if (strcmp(type->name, type_names[i]) == 0)
            return;
    const char *hint = sema_hint(s, type->name, type_names, TYPE_NAMES);
    bool may_be_new = place == TYPE_SIGNATURE && symbol == NULL && hint[0] == '\0';
    if (may_be_new) {
        sema_push(s, SYM_DIMENSION, type->name, type->name_loc, type);
        return;
    }
    tg_error(s->diags, type->name_loc, "'%s' is no type%s", type->name, hint);
    sema_fixit(s, type->name_loc, type->name, type_names, TYPE_NAMES);
}

/* Does the word mean something that a signature does not hide: an argument, or a dimension bound already? */
static bool is_bound_dim(const Sema *s, const Symbol *symbol) {
    if (symbol == NULL)
        return false;
    bool own = symbol - s->symbols.at >= s->function;
    return symbol->kind == SYM_ARGUMENT || (own && symbol->kind == SYM_DIMENSION) ||
           (symbol->kind == SYM_BUILTIN && strcmp(symbol->name, "B") == 0);
}

void sema_bind_dims(Sema *s, const Ast *type) {
    for (uint32_t i = 0; i < type->kid_count; i++) {
        const Ast *dim = type->kid[i];
        if (type->kind == AST_RECORD_TYPE)
            sema_bind_dims(s, dim->kid[0]);
        else if (dim->kind == AST_DIM_NEW ||
                 (dim->kind == AST_NAME && strcmp(dim->name, "_") != 0 && !is_bound_dim(s, sema_find(s, dim->name))))
            sema_push(s, SYM_DIMENSION, dim->name, dim->loc, dim);
    }
}

void sema_type(Sema *s, const Ast *type, TypePlace place) {
    if (type == NULL)
        return;
    if (type->kind == AST_RECORD_TYPE) {
        sema_duplicates(s, type, 0, AST_FIELD, "field");
        for (uint32_t i = 0; i < type->kid_count; i++)
            sema_type(s, type->kid[i]->kid[0], place);
        return;
    }
    check_type_name(s, type, place);
    for (uint32_t i = 0; i < type->kid_count; i++) {
        const Ast *dim = type->kid[i];
        if (dim->kind == AST_NAME && strcmp(dim->name, "_") == 0) {
            if (place != TYPE_RESULT)
                tg_error(s->diags, dim->loc, "'_' stands for a dimension in results only");
        } else if (dim->kind == AST_DIM_NEW && place != TYPE_SIGNATURE)
            tg_error(s->diags, dim->loc, "a new dimension can only be named by an argument of a function");
        else
            sema_expr(s, dim);
    }
}
