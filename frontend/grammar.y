/* The model language. LALR(1), no conflicts. Each rule builds its node of frontend/ast.h. */
%require "3.8"
%define api.pure full
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param { void *scanner }
%parse-param { Lex *lex }
%code requires { #include "frontend/parse.h" }
%union { const char *name; int op; Ast *ast; AstList *list; }
%code {
#include "lexer.h"
/* The stack has its full size from the start, so that the parser owns no memory. */
#define YYINITDEPTH PARSE_STACK
#define YYMAXDEPTH PARSE_STACK
static void yyerror(Span *span, void *scanner, Lex *lex, const char *text);
#define KIDS(...) (Ast *[]){__VA_ARGS__}, sizeof((Ast *[]){__VA_ARGS__}) / sizeof(Ast *)
#define N(kind, span, ...) ast_make(lex, AST_##kind, &(span), KIDS(__VA_ARGS__))
#define NN(kind, span, name, name_span, ...) ast_named(lex, AST_##kind, &(span), name, &(name_span), KIDS(__VA_ARGS__))
#define LEAF(kind, span) ast_make(lex, AST_##kind, &(span), NULL, 0)
#define LEAF_NAMED(kind, span, name) ast_named(lex, AST_##kind, &(span), name, &(span), NULL, 0)
#define LIST(kind, span, list) ast_of_list(lex, AST_##kind, &(span), list)
#define OP(span, op, x, y) ast_op(lex, AST_BINARY, &(span), op, x, y)
#define ADD(list, x) list_add(lex, list, x)
#define ONE(x) list_add(lex, list_new(lex), x)
#define NONE list_new(lex)
}
%token <name> NL "end of line" NAME "a name" INT "an integer" FLOAT "a number" PERCENT "a percentage"
%token <name> STRING "a string" BOOL "true or false"
%token MODULE "'module'" FN "'fn'" EXPORT "'export'" CONST "'const'" RETURN "'return'"
%token IF "'if'" THEN "'then'" ELSE "'else'" FOR "'for'"
%token AND "'and'" OR "'or'" NOT "'not'"
%token <name> IMPORT "'import'" AS "'as'" IN "'in'" FROM "'from'" DATA "'data'"
%token <name> SPLIT "'split'" PARAM "'param'" STATE "'state'"
%token <name> OPTIMIZER "'optimizer'" TRAIN "'train'"
%token ASSIGN "':='" ARROW "'->'" ELLIPSIS "'...'" DOTDOT "'..'" CONCAT "'++'" EQ "'=='" NE "'!='" LE "'<='" GE "'>='"
%token YYEOF 0 "end of file"

%type <name> name
%type <op> rel
%type <list> item consts fields settings members param_list type_fields dims stmts elems exprs record args
%type <list> arg_list subs names_list
%type <ast> const field setting member binding inst mark fn params params_opt param type type_opt init_opt guard_opt ret_opt
%type <ast> dim block stmt if iter names expr or and not cmp add mul unary power postfix primary list elem
%type <ast> record_field arg sub bound
%start file
%%
file: items ;
items: %empty | items item NL { list_join(lex, lex->items, $2); } | items error NL { yyerrok; } ;

item: CONST consts                          { $$ = $2; }
    | IMPORT STRING                         { Ast *a = LEAF(IMPORT, @$); a->text = $2; $$ = ONE(a); }
    | IMPORT STRING AS name
        { Ast *a = ast_named(lex, AST_IMPORT, &@$, $4, &@4, NULL, 0); a->text = $2; $$ = ONE(a); }
    | DATA name params_opt '{' fields '}'
        { Ast *a = ast_with_list(lex, AST_DATA, &@$, $3, $5); ast_set_name(lex, a, $2, &@2); $$ = ONE(a); }
    | MODULE name params_opt '{' members '}'
        { Ast *a = ast_with_list(lex, AST_MODULE, &@$, $3, $5); ast_set_name(lex, a, $2, &@2); $$ = ONE(a); }
    | OPTIMIZER name params_opt '{' members '}'
        { Ast *a = ast_with_list(lex, AST_OPTIMIZER, &@$, $3, $5); ast_set_name(lex, a, $2, &@2); $$ = ONE(a); }
    | TRAIN '{' settings '}'                { $$ = ONE(LIST(TRAIN, @$, $3)); }
    | EXPORT fn                             { $2->flag = true; $$ = ONE($2); }
    | fn                                    { $$ = ONE($1); }
    | binding                               { $$ = ONE($1); }
    ;
consts: const { $$ = ONE($1); } | consts ',' const { $$ = ADD($1, $3); } ;
const: name '=' expr { $$ = NN(CONST, @$, $1, @1, NULL, $3); }
    | name ':' type '=' expr { $$ = NN(CONST, @$, $1, @1, $3, $5); } ;

/* data */
fields: %empty { $$ = NONE; } | fields field NL { $$ = ADD($1, $2); } | fields error NL { $$ = $1; yyerrok; } ;
field: name ':' type FROM postfix           { $$ = NN(FIELD, @$, $1, @1, $3, $5); }
     | SPLIT '{' settings '}'               { $$ = LIST(SPLIT, @$, $3); }
     ;

/* settings: train { }, split { }; a comma does as well as a newline */
settings: %empty { $$ = NONE; } | settings setting sep { $$ = ADD($1, $2); } | settings error NL { $$ = $1; yyerrok; } ;
setting: name '=' expr { $$ = NN(SETTING, @$, $1, @1, $3); } ;
sep: ',' | NL ;

/* module and optimizer */
members: %empty { $$ = NONE; } | members member NL { $$ = ADD($1, $2); } | members error NL { $$ = $1; yyerrok; } ;
member: PARAM name ':' type init_opt guard_opt  { $$ = NN(PARAM, @$, $2, @2, $4, $5, $6); }
      | STATE name type_opt '=' inst guard_opt  { $$ = NN(STATE, @$, $2, @2, $3, $5, $6); }
      | binding
      | fn
      ;
type_opt: %empty { $$ = NULL; } | ':' type { $$ = $2; } ;
init_opt: %empty { $$ = NULL; } | '=' inst { $$ = $2; } ;
binding: names '=' inst guard_opt { $$ = N(BIND, @$, $1, $3, $4); } ;
guard_opt: %empty { $$ = NULL; } | IF expr { $$ = $2; } ;
inst: expr | inst mark { $$ = ast_attach(lex, $2, $1, &@$); } ;   /* Linear(C, C) shard(out) */
mark: NAME { $$ = NN(MARK, @$, $1, @1, NULL); }
    | NAME '(' args ')' { $$ = ast_with_list(lex, AST_MARK, &@$, NULL, $3); ast_set_name(lex, $$, $1, &@1); } ;

/* functions */
fn: FN name params ret_opt block        { $$ = NN(FN, @$, $2, @2, $3, $4, $5); }
  | FN params ret_opt block             { $$ = N(FN, @$, $2, $3, $4); $$->name_loc = lex_loc(lex, &@1); }
  ;
ret_opt: %empty { $$ = NULL; } | ARROW type { $$ = $2; } ;
params_opt: %empty { $$ = LEAF(PARAMS, @$); } | params ;
params: '(' ')' { $$ = LEAF(PARAMS, @$); }
    | '(' param_list comma ')' { $$ = LIST(PARAMS, @$, $2); }
    | '(' error ')' { $$ = LEAF(PARAMS, @$); } ;
param_list: param { $$ = ONE($1); } | param_list ',' param { $$ = ADD($1, $3); } ;
param: name { $$ = NN(ARG, @$, $1, @1, NULL, NULL); } | name ':' type { $$ = NN(ARG, @$, $1, @1, $3, NULL); }
     | name ':' type '=' expr { $$ = NN(ARG, @$, $1, @1, $3, $5); }
    | name '=' expr { $$ = NN(ARG, @$, $1, @1, NULL, $3); } ;

/* types */
type: name { $$ = LEAF_NAMED(TYPE, @$, $1); }
    | name '.' name { $$ = ast_named(lex, AST_TYPE, &@$, $1, &@1, NULL, 0); $$->text = $3; }
    | name '[' ']' { $$ = ast_named(lex, AST_TYPE, &@$, $1, &@1, NULL, 0); $$->flag = true; }
    | name '[' dims comma ']' { $$ = LIST(TYPE, @$, $3); ast_set_name(lex, $$, $1, &@1); $$->flag = true; }
    | '{' type_fields '}' { $$ = LIST(RECORD_TYPE, @$, $2); }
    ;
type_fields: %empty { $$ = NONE; } | type_fields name ':' type sep { $$ = ADD($1, NN(FIELD, @2, $2, @2, $4, NULL)); } ;
dims: dim { $$ = ONE($1); } | dims ',' dim { $$ = ADD($1, $3); } ;
dim: expr | ELLIPSIS { $$ = LEAF(ELLIPSIS, @$); }
    | '=' name { $$ = ast_named(lex, AST_DIM_NEW, &@$, $2, &@2, NULL, 0); } ;

/* statements; there are no expression statements, so a line that begins with - or [ can only be a mistake */
block: '{' stmts '}' { $$ = LIST(BLOCK, @$, $2); } ;
stmts: %empty { $$ = NONE; } | stmts stmt NL { $$ = ADD($1, $2); } | stmts error NL { $$ = $1; yyerrok; } ;
stmt: names '=' expr                    { $$ = N(BIND, @$, $1, $3, NULL); }
    | name ':' type '=' expr            { $$ = N(BIND, @$, N(NAMES, @1, LEAF_NAMED(NAME, @1, $1)), $5, NULL, $3); }
    | name ASSIGN expr                  { $$ = NN(ASSIGN, @$, $1, @1, $3); }
    | RETURN expr                       { $$ = N(RETURN, @$, $2); }
    | FOR names IN iter block           { $$ = N(FOR, @$, $2, $4, $5); }
    | if
    ;
if: IF expr block { $$ = N(IF, @$, $2, $3, NULL); }
  | IF expr block ELSE block { $$ = N(IF, @$, $2, $3, $5); }
  | IF expr block ELSE if { $$ = N(IF, @$, $2, $3, $5); } ;
iter: expr | add DOTDOT add { $$ = N(RANGE, @$, $1, $3); } ;
names: names_list { $$ = LIST(NAMES, @$, $1); } ;
names_list: name { $$ = ONE(LEAF_NAMED(NAME, @1, $1)); }
    | names_list ',' name { $$ = ADD($1, LEAF_NAMED(NAME, @3, $3)); } ;
comma: %empty | ',' ;

/* expressions, loosest first */
expr: or
    | IF expr THEN expr ELSE expr       { $$ = N(COND, @$, $2, $4, $6); }
    | name ARROW expr                   { $$ = NN(LAMBDA, @$, $1, @1, $3); }
    ;
or:  and | or OR and                    { $$ = OP(@$, AST_OR, $1, $3); } ;
and: not | and AND not                  { $$ = OP(@$, AST_AND, $1, $3); } ;
not: cmp | NOT not                      { $$ = ast_op(lex, AST_UNARY, &@$, AST_NOT, $2, NULL); } ;
cmp: add | add rel add                  { $$ = OP(@$, $2, $1, $3); } ;   /* no chains */
rel: '<' { $$ = '<'; }
    | '>' { $$ = '>'; }
    | LE { $$ = AST_LE; }
    | GE { $$ = AST_GE; }
    | EQ { $$ = AST_EQ; }
    | NE { $$ = AST_NE; } ;
add: mul | add '+' mul { $$ = OP(@$, '+', $1, $3); } | add '-' mul { $$ = OP(@$, '-', $1, $3); }
   | add CONCAT mul { $$ = OP(@$, AST_CONCAT, $1, $3); } ;
mul: unary | mul '*' unary { $$ = OP(@$, '*', $1, $3); } | mul '/' unary { $$ = OP(@$, '/', $1, $3); }
   | mul '@' unary { $$ = OP(@$, '@', $1, $3); } ;
unary: power | '-' unary                { $$ = ast_op(lex, AST_UNARY, &@$, '-', $2, NULL); } ;
power: postfix | postfix '^' unary      { $$ = OP(@$, '^', $1, $3); } ;        /* -x^2 is -(x^2), 2^-1 is allowed */
postfix: primary
       | postfix '(' args ')'           { $$ = ast_with_list(lex, AST_CALL, &@$, $1, $3); }
       | postfix '[' subs comma ']'     { $$ = ast_with_list(lex, AST_INDEX, &@$, $1, $3); }
       | postfix '.' name               { $$ = NN(DOT, @$, $3, @3, $1); }
       ;
primary: name { $$ = LEAF_NAMED(NAME, @$, $1); }
       | INT { $$ = ast_number(lex, AST_INT, &@$, $1); }
       | FLOAT { $$ = ast_number(lex, AST_FLOAT, &@$, $1); }
       | PERCENT { $$ = ast_number(lex, AST_PERCENT, &@$, $1); }
       | STRING { $$ = LEAF(STRING, @$); $$->text = $1; }
       | BOOL { $$ = LEAF(BOOL, @$); $$->flag = $1[0] == 't'; }
       | '(' expr ')' { $$ = $2; }
       | '(' expr ',' exprs comma ')'   { $$ = ast_with_list(lex, AST_TUPLE, &@$, $2, $4); }
       | '(' error ')'                  { $$ = LEAF(ERROR, @$); }
       | list
       | '{' record '}'                 { $$ = LIST(RECORD, @$, $2); }
       ;
list: '[' ']' { $$ = LEAF(LIST, @$); } | '[' elems comma ']' { $$ = LIST(LIST, @$, $2); }
    | '[' inst FOR names IN iter ']' { $$ = N(COMPREHENSION, @$, $2, $4, $6, NULL); }
    | '[' inst FOR names IN iter IF expr ']' { $$ = N(COMPREHENSION, @$, $2, $4, $6, $8); } ;
elems: elem { $$ = ONE($1); } | elems ',' elem { $$ = ADD($1, $3); } ;
elem: inst | ELLIPSIS { $$ = LEAF(ELLIPSIS, @$); } ;
exprs: expr { $$ = ONE($1); } | exprs ',' expr { $$ = ADD($1, $3); } ;
record: %empty { $$ = NONE; } | record record_field sep { $$ = ADD($1, $2); } ;
record_field: name { $$ = NN(NAMED, @$, $1, @1, LEAF_NAMED(NAME, @1, $1)); }
    | name ':' expr { $$ = NN(NAMED, @$, $1, @1, $3); } ;
args: %empty { $$ = NONE; } | arg_list comma | error { $$ = ONE(LEAF(ERROR, @$)); } ;
arg_list: arg { $$ = ONE($1); } | arg_list ',' arg { $$ = ADD($1, $3); } ;
arg: expr | name '=' expr { $$ = NN(NAMED, @$, $1, @1, $3); } | list ARROW list { $$ = N(PATTERN, @$, $1, $3); } ;
subs: sub { $$ = ONE($1); } | subs ',' sub { $$ = ADD($1, $3); } ;
sub: expr | ELLIPSIS { $$ = LEAF(ELLIPSIS, @$); } | bound ':' bound { $$ = N(SLICE, @$, $1, $3, NULL); }
   | bound ':' bound ':' bound { $$ = N(SLICE, @$, $1, $3, $5); } ;
bound: %empty { $$ = NULL; } | expr ;

/* words that only mean something in one place stay usable as names */
name: NAME | IMPORT | AS | IN | FROM | DATA | SPLIT | PARAM | STATE | OPTIMIZER | TRAIN ;
%%
static void yyerror(Span *span, void *scanner, Lex *lex, const char *text) {
    (void)scanner;
    (void)text; /* the parser's stack is full, its only message */
    lex_error(lex, span, "nested too deeply");
    lex->stop = true;
}

static bool is_in(const yysymbol_kind_t *set, yysymbol_kind_t kind) {
    for (; *set != YYSYMBOL_YYEMPTY; set++)
        if (*set == kind)
            return true;
    return false;
}

/* Symbols that one word stands for in a message, or that are plain where an operand has just ended. */
static const yysymbol_kind_t soft_words[] = {YYSYMBOL_IMPORT, YYSYMBOL_AS, YYSYMBOL_IN, YYSYMBOL_FROM, YYSYMBOL_DATA,
    YYSYMBOL_SPLIT, YYSYMBOL_PARAM, YYSYMBOL_STATE, YYSYMBOL_OPTIMIZER, YYSYMBOL_TRAIN, YYSYMBOL_YYEMPTY};
#define OPERAND(c) yytranslate[(unsigned char)(c)]
static bool begins_operand(yysymbol_kind_t kind) {
    static const yysymbol_kind_t kinds[] = {YYSYMBOL_NAME, YYSYMBOL_INT, YYSYMBOL_FLOAT, YYSYMBOL_PERCENT,
        YYSYMBOL_STRING, YYSYMBOL_BOOL, YYSYMBOL_IF, YYSYMBOL_NOT, YYSYMBOL_ELLIPSIS, YYSYMBOL_YYEMPTY};
    return is_in(kinds, kind) || kind == OPERAND('-') || kind == OPERAND('(') ||
           kind == OPERAND('[') || kind == OPERAND('{');
}
static bool continues_operand(yysymbol_kind_t kind) {
    static const yysymbol_kind_t kinds[] = {YYSYMBOL_AND, YYSYMBOL_OR, YYSYMBOL_CONCAT, YYSYMBOL_EQ, YYSYMBOL_NE,
        YYSYMBOL_LE, YYSYMBOL_GE, YYSYMBOL_ARROW, YYSYMBOL_DOTDOT, YYSYMBOL_YYEMPTY};
    if (is_in(kinds, kind))
        return true;
    for (const char *c = "+-*/@^<>([."; *c; c++)
        if (kind == OPERAND(*c))
            return true;
    return false;
}

/* "X, Y or Z" of what could stand here; NULL when that is too much to be of help. */
static const char *expected_text(Lex *lex, const yysymbol_kind_t *expected) {
    const yysymbol_kind_t *all = expected;
    bool operand = is_in(expected, YYSYMBOL_INT), after_operand = is_in(expected, OPERAND('*'));
    const char *names[5];
    int count = 0;
    if (operand)
        names[count++] = "an expression";
    for (; *expected != YYSYMBOL_YYEMPTY; expected++) {
        bool soft = is_in(soft_words, *expected) && *expected != YYSYMBOL_FROM && *expected != YYSYMBOL_IN;
        if (soft || (operand && begins_operand(*expected)) || (after_operand && continues_operand(*expected)))
            continue;
        if (is_in(all, OPERAND(')')) &&
            (*expected == OPERAND('=') || *expected == OPERAND('[') || *expected == OPERAND('.')))
            continue;
        if ((*expected == YYSYMBOL_FROM || *expected == YYSYMBOL_IN) && (operand || is_in(all, YYSYMBOL_AS)))
            continue;
        if (count == 4)
            return NULL;
        names[count++] = yysymbol_name(*expected);
    }
    Str text = tg_str(lex->arena);
    for (int i = 0; i < count; i++)
        tg_str_printf(&text, "%s%s", i == 0 ? "" : i == count - 1 ? " or " : ", ", names[i]);
    return count ? text.text : NULL;
}

static const char *found_text(Lex *lex, yysymbol_kind_t found) {
    if (found == YYSYMBOL_YYEOF || (found == YYSYMBOL_NL && lex->text[lex->token] != '}'))
        return yysymbol_name(found);
    if (found == YYSYMBOL_NL)
        return "'}'";
    size_t length = lex->offset - lex->token;
    return tg_arena_printf(lex->arena, "'%.*s%s'", (int)(length < 40 ? length : 40), lex->text + lex->token,
                           length > 40 ? "..." : "");
}

/* What people write who come from other languages. */
static const char *hint(yysymbol_kind_t found, const yysymbol_kind_t *expected) {
    bool statement = is_in(expected, YYSYMBOL_RETURN);
    if (statement && (continues_operand(found) || found == OPERAND('{')))
        return "a statement cannot begin with this; an operator goes at the end of the line that continues";
    if (statement && found == YYSYMBOL_FN)
        return "a function cannot stand inside a function; is a '}' missing above?";
    if (found == OPERAND('(') && is_in(expected, YYSYMBOL_ASSIGN))
        return "a statement cannot be a call alone: bind its value to a name";
    if ((found == OPERAND('<') || found == OPERAND('>') || found == YYSYMBOL_LE || found == YYSYMBOL_GE ||
         found == YYSYMBOL_EQ || found == YYSYMBOL_NE) && is_in(expected, YYSYMBOL_AND))
        return "comparisons do not chain: write a < b and b < c";
    if (found == OPERAND('=') && is_in(expected, YYSYMBOL_EQ))
        return "'=' binds a name; equality is ==";
    return NULL;
}

static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, Lex *lex) {
    (void)scanner;
    yysymbol_kind_t expected[YYNTOKENS + 1] = {0};
    int count = yypcontext_expected_tokens(context, expected, YYNTOKENS);
    expected[count < 0 ? 0 : count] = YYSYMBOL_YYEMPTY;
    yysymbol_kind_t found = yypcontext_token(context);
    const char *what = found_text(lex, found), *advice = hint(found, expected), *wanted = expected_text(lex, expected);
    const char *text = advice ? tg_arena_printf(lex->arena, "unexpected %s: %s", what, advice)
                     : wanted ? tg_arena_printf(lex->arena, "expected %s, found %s", wanted, what)
                              : tg_arena_printf(lex->arena, "unexpected %s", what);
    lex_syntax_error(lex, yypcontext_location(context), text);
    return 0;
}
