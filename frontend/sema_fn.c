/* Functions: signatures, statements, what returns, what is never read. */
#include "frontend/sema.h"

#include <string.h>

static bool check_block(Sema *s, const Ast *block);

static bool is_own(const Sema *s, const Symbol *symbol) { return symbol - s->symbols.at >= s->function; }

static const char *symbol_text(const Symbol *symbol) {
    static const char *const texts[] = {"built in",
                                        "of the library or of an import",
                                        "bound at file level",
                                        "an argument",
                                        "a dimension",
                                        "a member, but neither state nor parameter",
                                        "a local name",
                                        "a loop's name"};
    return texts[symbol->kind];
}

static bool is_stored(const Symbol *symbol) {
    return symbol->kind == SYM_MEMBER && (symbol->ast->kind == AST_STATE || symbol->ast->kind == AST_PARAM);
}

/* `x = e` beside a state x: what people write who mean x := e. */
static void warn_about_state(Sema *s, const Symbol *hidden, const Ast *name) {
    if (hidden == NULL || !is_stored(hidden))
        return;
    tg_warn(s->diags, WARN_shadow, name->loc, "this binds a local name and leaves the %s '%s' as it is; := updates it",
            hidden->ast->kind == AST_STATE ? "state" : "parameter", name->name);
    tg_note(s->diags, hidden->loc, "declared here");
}

static void bind(Sema *s, const Ast *names) {
    sema_duplicates(s, names, 0, AST_NAME, "name");
    for (uint32_t i = 0; i < names->kid_count; i++) {
        const Ast *name = names->kid[i];
        const Symbol *symbol = sema_find(s, name->name);
        if (strcmp(name->name, "_") == 0 || (symbol && is_own(s, symbol)))
            continue;
        warn_about_state(s, symbol, name);
        sema_push(s, SYM_LOCAL, name->name, name->loc, name)->alone = names->kid_count == 1;
    }
}

static void check_assign(Sema *s, const Ast *ast) {
    sema_expr(s, ast->kid[0]);
    const Symbol *symbol = sema_find(s, ast->name);
    if (symbol == NULL) {
        (void)sema_use(s, ast->name, ast->name_loc);
        return;
    }
    if (is_stored(symbol) || (s->updated && symbol->kind == SYM_ARGUMENT && strcmp(s->updated, ast->name) == 0))
        return;
    tg_error(s->diags, ast->name_loc, "':=' updates a state or a parameter; '%s' is %s%s", ast->name,
             symbol_text(symbol), is_own(s, symbol) ? ": write =" : "");
    if (symbol->ast)
        tg_note(s->diags, symbol->loc, "declared here");
}

static void check_for(Sema *s, const Ast *ast) {
    const Ast *names = ast->kid[0];
    sema_expr(s, ast->kid[1]);
    sema_duplicates(s, names, 0, AST_NAME, "name");
    uint32_t first = s->symbols.count;
    for (uint32_t i = 0; i < names->kid_count; i++)
        sema_push(s, SYM_LOOP, names->kid[i]->name, names->kid[i]->loc, names->kid[i]);
    check_block(s, ast->kid[2]);
    for (uint32_t i = names->kid_count; i-- > 0;)
        sema_hide(s, first + i);
}

static bool check_if(Sema *s, const Ast *ast) {
    sema_expr(s, ast->kid[0]);
    bool yes = check_block(s, ast->kid[1]);
    const Ast *other = ast->kid[2];
    if (other == NULL)
        return false;
    bool no = other->kind == AST_IF ? check_if(s, other) : check_block(s, other);
    return yes && no;
}

/* True: nothing behind it is reached. */
static bool check_statement(Sema *s, const Ast *ast) {
    switch (ast->kind) {
    case AST_BIND:
        sema_expr(s, ast->kid[1]);
        if (ast->kid_count > 3)
            sema_type(s, ast->kid[3], TYPE_PLAIN);
        bind(s, ast->kid[0]);
        return false;
    case AST_ASSIGN:
        check_assign(s, ast);
        return false;
    case AST_RETURN:
        sema_expr(s, ast->kid[0]);
        if (s->updated)
            tg_error(s->diags, ast->loc, "'update' returns nothing: it updates with :=");
        return true;
    case AST_FOR:
        check_for(s, ast);
        return false;
    case AST_IF:
        return check_if(s, ast);
    default:
        return false;
    }
}

static bool check_block(Sema *s, const Ast *block) {
    bool done = false;
    for (uint32_t i = 0; i < block->kid_count; i++) {
        bool returns = check_statement(s, block->kid[i]);
        if (returns && !done && i + 1 < block->kid_count) {
            tg_error(s->diags, block->kid[i + 1]->loc, "this is never reached");
            tg_note(s->diags, block->kid[i]->loc, "the function has returned here");
        }
        done = done || returns;
    }
    return done;
}

static void check_unread(Sema *s, uint32_t from) {
    if (s->unit == s->std)
        return;
    for (uint32_t i = from; i < s->symbols.count; i++) {
        const Symbol *symbol = &s->symbols.at[i];
        if (symbol->kind == SYM_LOCAL && symbol->reads == 0 && symbol->alone && symbol->name[0] != '_')
            tg_warn(s->diags, WARN_unused, symbol->loc, "'%s' is never read", symbol->name);
    }
}

static void push_arguments(Sema *s, const Ast *params) {
    sema_duplicates(s, params, 0, AST_ARG, "argument");
    for (uint32_t i = 0; i < params->kid_count; i++)
        sema_push(s, SYM_ARGUMENT, params->kid[i]->name, params->kid[i]->name_loc, params->kid[i]);
}

static void check_signature(Sema *s, const Ast *fn) {
    const Ast *params = fn->kid[0];
    TypePlace place = fn->flag ? TYPE_PLAIN : TYPE_SIGNATURE; /* nobody calls an export: its dimensions are values */
    push_arguments(s, params);
    for (uint32_t i = 0; i < params->kid_count && place == TYPE_SIGNATURE; i++)
        if (params->kid[i]->kid[0])
            sema_bind_dims(s, params->kid[i]->kid[0]);
    for (uint32_t i = 0; i < params->kid_count; i++) {
        sema_type(s, params->kid[i]->kid[0], place);
        sema_expr(s, params->kid[i]->kid[1]);
    }
    sema_type(s, fn->kid[1], TYPE_RESULT);
}

void sema_fn(Sema *s, const Ast *fn, bool update) {
    uint32_t before = s->symbols.count, outer = s->function;
    s->function = before;
    check_signature(s, fn);
    if (update)
        s->updated = fn->kid[0]->kid_count ? fn->kid[0]->kid[0]->name : "";
    bool returns = check_block(s, fn->kid[2]);
    if (!returns && !update) {
        tg_error(s->diags, fn->name_loc, "%s%s%s does not return a value%s", fn->name ? "'" : "",
                 fn->name ? fn->name : "this fn", fn->name ? "'" : "", fn->kid[2]->kid_count ? " on every path" : "");
    }
    check_unread(s, before);
    s->updated = NULL;
    s->function = outer;
    sema_pop(s, before);
}

void sema_arguments(Sema *s, const Ast *params) {
    push_arguments(s, params);
    for (uint32_t i = 0; i < params->kid_count; i++) {
        sema_type(s, params->kid[i]->kid[0], TYPE_PLAIN);
        sema_expr(s, params->kid[i]->kid[1]);
    }
}
