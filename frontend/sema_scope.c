/* The stack of names. */
#include "frontend/sema.h"

#include <string.h>

Symbol *sema_push(Sema *s, SymbolKind kind, const char *name, Loc loc, const Ast *ast) {
    uint64_t *place = tg_map_put(&s->top, name, strlen(name), NULL);
    Symbol symbol = {.name = name, .loc = loc, .kind = kind, .ast = ast, .hidden = (uint32_t)*place, .alone = true};
    tg_push(s->arena, &s->symbols, symbol);
    *place = s->symbols.count;
    return &s->symbols.at[s->symbols.count - 1];
}

static void reveal(Sema *s, const Symbol *symbol) {
    *tg_map_put(&s->top, symbol->name, strlen(symbol->name), NULL) = symbol->hidden;
}

void sema_pop(Sema *s, uint32_t count) {
    while (s->symbols.count > count) {
        const Symbol *symbol = &s->symbols.at[--s->symbols.count];
        if (!symbol->gone)
            reveal(s, symbol);
    }
}

void sema_hide(Sema *s, uint32_t symbol) {
    reveal(s, &s->symbols.at[symbol]);
    s->symbols.at[symbol].gone = true;
}

Symbol *sema_find(Sema *s, const char *name) {
    const uint64_t *place = tg_map_find(&s->top, name, strlen(name));
    return place && *place ? &s->symbols.at[*place - 1] : NULL;
}

static const char *closest_of(const char *name, const char *const *names, uint32_t count) {
    size_t length = strlen(name);
    return length > 2 && length < 80 ? tg_closest(name, names, count) : NULL; /* short ones are all alike */
}

const char *sema_hint(Sema *s, const char *name, const char *const *names, uint32_t count) {
    const char *closest = closest_of(name, names, count);
    return closest ? tg_arena_printf(s->arena, ", did you mean '%s'?", closest) : "";
}

void sema_fixit(Sema *s, Loc loc, const char *name, const char *const *names, uint32_t count) {
    const char *closest = closest_of(name, names, count);
    if (closest)
        tg_fixit(s->diags, loc, closest);
}

static void report_unknown(Sema *s, const char *name, Loc loc) {
    bool is_new;
    tg_map_put(&s->unknown, name, strlen(name), &is_new);
    if (!is_new)
        return;
    if (s->diags->errors > s->diags->error_limit) {
        tg_error(s->diags, loc, "unknown name");
        return;
    }
    const char **names = TG_ALLOC(s->arena, const char *, s->symbols.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->symbols.count; i++)
        if (!s->symbols.at[i].gone)
            names[count++] = s->symbols.at[i].name;
    size_t length = strlen(name);
    tg_error(s->diags, loc, "unknown name '%.*s%s'%s", (int)(length < 80 ? length : 80), name, length < 80 ? "" : "...",
             sema_hint(s, name, names, count));
    sema_fixit(s, loc, name, names, count);
}

Symbol *sema_use(Sema *s, const char *name, Loc loc) {
    Symbol *symbol = sema_find(s, name);
    if (strcmp(name, "_") == 0 && symbol == NULL)
        tg_error(s->diags, loc, "'_' is no name: it stands for what is not used, and for a dimension of a result");
    else if (symbol == NULL)
        report_unknown(s, name, loc);
    else
        symbol->reads++;
    return symbol;
}

void sema_duplicates(Sema *s, const Ast *parent, uint32_t from, AstKind kind, const char *what) {
    if (parent->kid_count < from + 2)
        return;
    Map seen = tg_map(s->arena);
    for (uint32_t i = from; i < parent->kid_count; i++) {
        const Ast *kid = parent->kid[i];
        if (kid == NULL || kid->kind != kind || strcmp(kid->name, "_") == 0)
            continue;
        bool is_new;
        uint64_t *place = tg_map_put(&seen, kid->name, strlen(kid->name), &is_new);
        if (is_new)
            *place = i;
        else {
            tg_error(s->diags, kid->name_loc, "%s '%s' is given twice", what, kid->name);
            tg_note(s->diags, parent->kid[*place]->name_loc, "the first one is here");
        }
    }
}

bool sema_is(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(name, *list) == 0)
            return true;
    return false;
}
