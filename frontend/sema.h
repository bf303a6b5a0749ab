/* The scopes that sema*.c share. Private to them. */
#ifndef TG_SEMA_H
#define TG_SEMA_H

#include "frontend/ast.h"
#include "ir/base/map.h"

typedef enum SymbolKind {
    SYM_BUILTIN,
    SYM_OUTER, /* the library's, an imported file's */
    SYM_FILE,
    SYM_ARGUMENT,
    SYM_DIMENSION, /* of a signature; a type variable as well */
    SYM_MEMBER,
    SYM_LOCAL,
    SYM_LOOP, /* of a for, a comprehension, a lambda */
} SymbolKind;

typedef struct Symbol {
    const char *name;
    Loc loc;
    SymbolKind kind;
    const Ast *ast;   /* its declaration; NULL for builtins */
    const Unit *unit; /* of `import ... as name` */
    uint32_t hidden;  /* index + 1 of the symbol that this one hides; 0: none */
    uint32_t reads;
    bool alone; /* bound alone, not as one of several names */
    bool gone;  /* its loop has ended */
} Symbol;

/* One file being checked. Symbols form a stack; `top` leads from a name to the innermost one. */
typedef struct Sema {
    Arena *arena;
    Diags *diags;
    const Unit *unit, *std;
    Map top;     /* name -> index + 1 of the symbol it means here; 0: none */
    Map unknown; /* names reported already */
    Vec(Symbol) symbols;
    uint32_t function;   /* symbols from here on are the current function's */
    const char *updated; /* in an optimizer's `update`: the name of the parameter, which may be assigned */
} Sema;

/* scopes (sema_scope.c) */
Symbol *sema_push(Sema *s, SymbolKind kind, const char *name, Loc loc, const Ast *ast);
void sema_pop(Sema *s, uint32_t count); /* until `count` symbols are left */
Symbol *sema_find(Sema *s, const char *name);
/* Takes a loop's name out of the middle of the stack. */
void sema_hide(Sema *s, uint32_t symbol);
/* The symbol that the name means; reports when it means none. */
Symbol *sema_use(Sema *s, const char *name, Loc loc);
/* ", did you mean 'x'?" for `name` among `names`, or "". */
const char *sema_hint(Sema *s, const char *name, const char *const *names, uint32_t count);
/* After an error with a hint: the same as a fix-it for the name at `loc`. */
void sema_fixit(Sema *s, Loc loc, const char *name, const char *const *names, uint32_t count);
/* Two nodes of `kind` with one name among kids `from` .. */
void sema_duplicates(Sema *s, const Ast *parent, uint32_t from, AstKind kind, const char *what);
bool sema_is(const char *name, const char *const *list); /* list ends with NULL */

/* expressions and types (sema_expr.c) */
typedef enum TypePlace { TYPE_PLAIN, TYPE_SIGNATURE, TYPE_RESULT } TypePlace;
void sema_expr(Sema *s, const Ast *ast);
void sema_type(Sema *s, const Ast *type, TypePlace place);
/* In a signature: dimensions that are one word become names before compound ones are read. */
void sema_bind_dims(Sema *s, const Ast *type);

/* functions (sema_fn.c); `update`: an optimizer's */
void sema_fn(Sema *s, const Ast *fn, bool update);
void sema_arguments(Sema *s, const Ast *params); /* of a module, an optimizer, a data block */

/* data, split and train (sema_settings.c) */
void sema_data(Sema *s, const Ast *data);
void sema_train(Sema *s, const Ast *train);
bool sema_has_split(const Ast *data, const char *name);

#endif
