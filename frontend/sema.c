/* Names: what each file and module declares, then what every use of a name means. */
#include "frontend/sema.h"

#include <string.h>

static void push_builtins(Sema *s) {
    static const char *const names[] = {
#define BUILTIN(name, ...) #name,
#include "frontend/builtins.def"
#undef BUILTIN
    };
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        sema_push(s, SYM_BUILTIN, names[i], (Loc){0}, NULL);
}

/* Declares `name`; an error when the scope that began at `scope` has it already. */
static Symbol *declare(Sema *s, SymbolKind kind, uint32_t scope, const char *name, Loc loc, const Ast *ast) {
    const Symbol *old = sema_find(s, name);
    if (old && old - s->symbols.at >= scope && kind != SYM_OUTER) {
        tg_error(s->diags, loc, "'%s' is declared twice", name);
        tg_note(s->diags, old->loc, "the first declaration is here");
    }
    return sema_push(s, kind, name, loc, ast);
}

static void declare_item(Sema *s, SymbolKind kind, uint32_t scope, const Ast *item, const Unit *imported) {
    if (item->kind == AST_BIND) {
        const Ast *names = item->kid[0];
        for (uint32_t i = 0; i < names->kid_count; i++)
            if (strcmp(names->kid[i]->name, "_") != 0)
                declare(s, kind, scope, names->kid[i]->name, names->kid[i]->loc, item);
    } else if (item->name)
        declare(s, kind, scope, item->name, item->name_loc, item)->unit = imported;
}

/* What the file of another unit declares, but for the names of its own imports. */
static void push_outer(Sema *s, const Unit *unit) {
    for (uint32_t i = 0; i < unit->file->kid_count; i++)
        if (unit->file->kid[i]->kind != AST_IMPORT)
            declare_item(s, SYM_OUTER, 0, unit->file->kid[i], NULL);
}

static void declare_file(Sema *s) {
    const Ast *file = s->unit->file;
    for (uint32_t i = 0, next = 0; i < file->kid_count; i++)
        if (file->kid[i]->kind == AST_IMPORT && file->kid[i]->name == NULL)
            push_outer(s, s->unit->imports[next++]);
        else
            next += file->kid[i]->kind == AST_IMPORT;
    uint32_t scope = s->symbols.count;
    for (uint32_t i = 0, next = 0; i < file->kid_count; i++) {
        bool is_import = file->kid[i]->kind == AST_IMPORT;
        declare_item(s, SYM_FILE, scope, file->kid[i], is_import ? s->unit->imports[next] : NULL);
        next += is_import;
    }
}

/* A guard sees the arguments first, then the members. */
static void check_guard(Sema *s, const Ast *owner, const Ast *guard) {
    if (guard == NULL)
        return;
    const Ast *params = owner->kid[0];
    uint32_t before = s->symbols.count;
    for (uint32_t i = 0; i < params->kid_count; i++)
        sema_push(s, SYM_ARGUMENT, params->kid[i]->name, params->kid[i]->name_loc, params->kid[i]);
    sema_expr(s, guard);
    sema_pop(s, before);
}

static void check_member(Sema *s, const Ast *owner, const Ast *member) {
    switch (member->kind) {
    case AST_PARAM:
    case AST_STATE:
        sema_type(s, member->kid[0], TYPE_PLAIN);
        sema_expr(s, member->kid[1]);
        check_guard(s, owner, member->kid[2]);
        break;
    case AST_BIND:
        sema_expr(s, member->kid[1]);
        check_guard(s, owner, member->kid[2]);
        break;
    case AST_FN:
        sema_fn(s, member, owner->kind == AST_OPTIMIZER && member->name && strcmp(member->name, "update") == 0);
        break;
    default:
        break;
    }
}

static const Ast *member_fn(Sema *s, const Ast *owner, const char *name) {
    const Ast *found = NULL;
    for (uint32_t i = 1; i < owner->kid_count; i++) {
        const Ast *member = owner->kid[i];
        bool same =
            member->kind == AST_FN && (name ? member->name && strcmp(member->name, name) == 0 : member->name == NULL);
        if (same && found && name == NULL) {
            tg_error(s->diags, member->name_loc, "%s has two calls", owner->name);
            tg_note(s->diags, found->name_loc, "the first one is here");
        }
        if (same && found == NULL)
            found = member;
    }
    return found;
}

/* The members of an optimizer may speak of the parameter that `update` is given. */
static void check_update(Sema *s, const Ast *optimizer) {
    const Ast *update = member_fn(s, optimizer, "update");
    if (update == NULL || update->kid[0]->kid_count != 2) {
        tg_error(s->diags, update ? update->name_loc : optimizer->name_loc,
                 "an optimizer needs 'fn update(p, g)': a parameter and its gradient");
        return;
    }
    const Ast *parameter = update->kid[0]->kid[0];
    sema_push(s, SYM_ARGUMENT, parameter->name, parameter->name_loc, parameter);
}

static void check_module(Sema *s, const Ast *module) {
    uint32_t before = s->symbols.count;
    sema_arguments(s, module->kid[0]);
    (void)member_fn(s, module, NULL);
    if (module->kind == AST_OPTIMIZER)
        check_update(s, module);
    uint32_t scope = s->symbols.count;
    for (uint32_t i = 1; i < module->kid_count; i++)
        declare_item(s, SYM_MEMBER, scope, module->kid[i], NULL);
    for (uint32_t i = 1; i < module->kid_count; i++)
        check_member(s, module, module->kid[i]);
    sema_pop(s, before);
}

static void check_item(Sema *s, const Ast *item) {
    switch (item->kind) {
    case AST_CONST:
        sema_type(s, item->kid[0], TYPE_PLAIN);
        sema_expr(s, item->kid[1]);
        break;
    case AST_BIND:
        sema_expr(s, item->kid[1]);
        if (item->kid[2])
            tg_error(s->diags, item->kid[2]->loc, "only members of a module can have a condition");
        break;
    case AST_FN:
        if (item->name == NULL)
            tg_error(s->diags, item->name_loc, "a function at file level needs a name");
        sema_fn(s, item, false);
        break;
    case AST_DATA:
        sema_data(s, item);
        break;
    case AST_MODULE:
    case AST_OPTIMIZER:
        check_module(s, item);
        break;
    case AST_TRAIN:
        sema_train(s, item);
        break;
    default:
        break;
    }
}

static void check_trains(Sema *s) {
    const Ast *first = NULL;
    for (uint32_t i = 0; i < s->unit->file->kid_count; i++) {
        const Ast *item = s->unit->file->kid[i];
        if (item->kind != AST_TRAIN)
            continue;
        if (first) {
            tg_error(s->diags, item->loc, "a program has one train block");
            tg_note(s->diags, first->loc, "the first one is here");
        }
        first = first ? first : item;
    }
}

static void check_unit(Arena *arena, Diags *diags, const Unit *unit, const Unit *std, Map *done) {
    bool is_new;
    tg_map_put(done, &unit, sizeof unit, &is_new);
    if (!is_new)
        return;
    for (uint32_t i = 0; i < unit->import_count; i++)
        check_unit(arena, diags, unit->imports[i], std, done);
    Sema s = {.arena = arena, .diags = diags, .unit = unit, .std = std, .top = tg_map(arena), .unknown = tg_map(arena)};
    push_builtins(&s);
    if (unit != std)
        push_outer(&s, std);
    declare_file(&s);
    s.function = s.symbols.count;
    for (uint32_t i = 0; i < unit->file->kid_count; i++)
        check_item(&s, unit->file->kid[i]);
    check_trains(&s);
}

Status tg_sema(Arena *arena, Diags *diags, const Unit *unit, const Unit *std) {
    uint32_t before = diags->errors;
    Map done = tg_map(arena);
    check_unit(arena, diags, unit, std, &done);
    return diags->errors == before ? TG_OK : TG_MODEL;
}
