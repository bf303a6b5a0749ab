/* The syntax tree. Written by the parser, checked by sema (names), read by lower (values, types). Every node is an Ast in the
   file's arena; children hang in `kid` in the order that the comments give, absent ones are NULL. */
#ifndef TG_AST_H
#define TG_AST_H

#include "ir/base/diag.h"
#include "ir/base/str.h"

/* X(kind, "what --emit=ast prints", children) */
#define TG_AST_KINDS(X)                                                                                                     \
    /* file level */                                                                                                        \
    X(FILE, "file")           /* items */                                                                                   \
    X(CONST, "const")         /* name; [type], value: one per name of `const a = 1, b = 2` */                               \
    X(IMPORT, "import")       /* text: path; name: after `as`, or NULL: then what the file declares (not what it imports)    \
                                 stands in a scope between the library's and the importing file's */                        \
    X(DATA, "data")           /* name; params, then FIELDs and at most one SPLIT */                                         \
    X(FIELD, "field")         /* name; type, source (an expression: CALL) */                                                \
    X(SPLIT, "split")         /* SETTINGs */                                                                                \
    X(MODULE, "module")       /* name; params, then members: PARAM, STATE, BIND, FN */                                      \
    X(OPTIMIZER, "optimizer") /* name; params, then members */                                                              \
    X(TRAIN, "train")         /* SETTINGs */                                                                                \
    X(SETTING, "setting")     /* name; value */                                                                             \
    X(FN, "fn")               /* name or NULL (the call); params, [result type], block; flag: export */                     \
    X(PARAMS, "params")       /* ARGs */                                                                                    \
    X(ARG, "arg")             /* name; [type], [default] */                                                                 \
    X(PARAM, "param")         /* name; type, [init], [guard] */                                                             \
    X(STATE, "state")         /* name; [type], init, [guard] */                                                             \
    X(BIND, "bind")           /* NAMES, value, [guard]; `a, b = e`, at file level, in a module or in a block; a typed       \
                                 `y: f32[B] = e` has the type as 4th child (guard NULL) */                                  \
    X(NAMES, "names")         /* NAMEs */                                                                                   \
    X(MARK, "mark")           /* name of the mark; the instance, then arguments */                                          \
    /* types */                                                                                                             \
    X(TYPE, "type")           /* name: f32, a data block's or a type variable; dims; flag: it has brackets; text: the       \
                                 name after a dot (`a.Digits`) or NULL */                                                   \
    X(RECORD_TYPE, "record-type") /* FIELDs without source */                                                               \
    X(DIM_NEW, "=dim")        /* name: `=name`, always new */                                                               \
    X(ELLIPSIS, "...")                                                                                                      \
    /* statements */                                                                                                        \
    X(BLOCK, "do")            /* statements */                                                                              \
    X(ASSIGN, ":=")           /* name; value */                                                                             \
    X(RETURN, "return")       /* value */                                                                                   \
    X(FOR, "for")             /* NAMES, iterated, block */                                                                  \
    X(IF, "if")               /* condition, block, [block or IF] */                                                         \
    /* expressions */                                                                                                       \
    X(NAME, "name")           /* name */                                                                                    \
    X(INT, "int")             /* integer, text */                                                                           \
    X(FLOAT, "float")         /* number, text */                                                                            \
    X(PERCENT, "percent")     /* number: 0.8 for 80%; text */                                                               \
    X(STRING, "string")       /* text, escapes resolved */                                                                  \
    X(BOOL, "bool")           /* flag */                                                                                    \
    X(UNARY, "unary")         /* op; x: - not */                                                                            \
    X(BINARY, "binary")       /* op; x, y: + - * / @ ^ ++ < > <= >= == != and or */                                         \
    X(COND, "cond")           /* condition, then, else */                                                                   \
    X(LAMBDA, "->")           /* name of the parameter; body */                                                             \
    X(RANGE, "..")            /* from, to */                                                                                \
    X(CALL, "call")           /* callee, then arguments: expressions, NAMED, PATTERN */                                     \
    X(NAMED, "named")         /* name; value */                                                                             \
    X(PATTERN, "pattern")     /* two LISTs: [B, T, (H, D)] -> [B, H, T, D] */                                               \
    X(INDEX, "at")            /* value, then subscripts: expressions, SLICE, ELLIPSIS */                                    \
    X(SLICE, "slice")         /* [from], [to], [step] */                                                                    \
    X(DOT, ".")               /* name; value */                                                                             \
    X(TUPLE, "tuple")         /* two or more */                                                                             \
    X(LIST, "list")           /* elements; ELLIPSIS in patterns */                                                          \
    X(COMPREHENSION, "list-for") /* element, NAMES, iterated, [condition] */                                                \
    X(RECORD, "record")       /* NAMEDs; `{ loss }` is NAMED loss with NAME loss */                                         \
    X(ERROR, "error")         /* what the parser skipped; reported already */

typedef enum AstKind {
#define X(kind, text) AST_##kind,
    TG_AST_KINDS(X)
#undef X
    AST_KIND_COUNT
} AstKind;

/* Operators of UNARY and BINARY: the characters, two-character ones as below. */
enum { AST_CONCAT = 256, AST_LE, AST_GE, AST_EQ, AST_NE, AST_AND, AST_OR, AST_NOT };

typedef struct Ast Ast;
struct Ast {
    uint8_t kind;
    bool flag;
    uint16_t op;
    Loc loc;          /* the whole of it, as far as it stands on one line */
    Loc name_loc;     /* of `name` */
    const char *name; /* interned: equal names are one pointer */
    const char *text;
    int64_t integer;
    double number;
    uint32_t kid_count;
    Ast **kid;
};

/* A parsed file and those it imports. */
typedef struct Unit Unit;
struct Unit {
    Ast *file;
    const char *path;
    Unit **imports; /* in the order of the IMPORT items */
    uint32_t import_count;
};

/* Parses `path` and what it imports (paths relative to the importing file; cycles are errors). All errors are reported; the tree
   is usable even then (AST_ERROR stands for what was skipped). TG_MODEL when there were errors, TG_IO for a file. */
TG_CHECKED Status tg_parse_file(Arena *arena, Diags *diags, Sources *sources, const char *path, Unit **unit);
/* The library: all files of frontend/std, embedded in tgc, as one unit. It parses without errors. */
TG_CHECKED Status tg_parse_std(Arena *arena, Diags *diags, Sources *sources, Unit **unit);
/* The tree as S-expressions, one item a line: --emit=ast. */
void tg_ast_print(Str *to, const Ast *ast);

/* Names: every name used is known in its scope (with "did you mean"), no duplicates, every misplaced word; both branches of every
   `if`. Reports and returns TG_MODEL on errors. */
TG_CHECKED Status tg_sema(Arena *arena, Diags *diags, const Unit *unit, const Unit *std);

/* What a statement, an argument or a name bound by one is. */
typedef struct SeenShape {
    Loc loc;
    const char *name;  /* NULL: what is returned */
    const char *shape; /* "f32[B, 64]", "{ h: f32[B, 8], c: f32[B, 8] }" */
    bool objective;    /* of the objective in training, no other function of the graph */
} SeenShape;

/* What the command line adds. */
/* A line of an --autocast file: what the instances whose paths match compute in. */
typedef struct PrecisionRule {
    const char *pattern; /* net.blocks.*.attn */
    bool in_f32;         /* else the classes of the ops decide, whatever holds around it */
    Loc loc;
} PrecisionRule;

typedef struct LowerOptions {
    const char *const *sets; /* NAME=VALUE */
    uint32_t set_count;
    const PrecisionRule *precision_rules;
    uint32_t precision_rule_count;
    bool fold;
    bool check_only; /* the graph will not be compiled: what is not built yet has its shape and is no error */
    void (*see)(void *context, const SeenShape *shape); /* NULL, or called for all shapes of the user's files, as they come */
    void *see_context;
} LowerOptions;

struct Graph;
/* Evaluates the program at compile time and gives graph@model (docs/lowering.md). Reports; TG_MODEL on errors, TG_USAGE when a
   --set names nothing. */
TG_CHECKED Status tg_lower(Arena *arena, Diags *diags, const Sources *sources, const Unit *unit, const Unit *std,
                           const LowerOptions *options, struct Graph **graph);

#endif
