/* What the lexer's rules call: places, names, strings, brackets, errors. */
#include "frontend/parse.h"
#include "grammar.h"

#include <limits.h>
#include <string.h>

void lex_advance(Lex *lex, Span *span, size_t bytes) {
    lex->token = lex->offset;
    lex->token_line = span->first_line = lex->line;
    lex->token_column = span->first_column = lex->column;
    for (const char *p = lex->text + lex->offset, *end = p + bytes; p < end; p++) {
        if (*p == '\n') {
            lex->line++;
            lex->column = 1;
        } else
            lex->column++;
    }
    lex->offset += bytes;
    span->last_line = lex->line;
    span->last_column = lex->column;
}

void lex_retract(Lex *lex, Span *span) {
    lex->offset = lex->token;
    lex->line = span->last_line = lex->token_line;
    lex->column = span->last_column = lex->token_column;
}

const char *lex_intern(Lex *lex, const char *text, size_t length) {
    bool is_new;
    uint64_t *place = tg_map_put(lex->names, text, length, &is_new);
    if (is_new)
        *place = (uint64_t)(uintptr_t)tg_arena_str(lex->arena, text, length);
    return (const char *)(uintptr_t)*place;
}

const char *lex_string(Lex *lex, const Span *span, const char *text, size_t length, bool closed) {
    char *to = tg_arena_str(lex->arena, text + 1, length - 1 - (closed ? 1 : 0)), *result = to;
    for (const char *from = to; *from; from++) {
        if (*from != '\\' || from[1] == '\0') {
            *to++ = *from;
            continue;
        }
        static const char names[] = "nt\"\\", values[] = "\n\t\"\\";
        const char *name = strchr(names, *++from);
        if (name == NULL)
            lex_error(lex, span, "unknown escape \\%c: there are \\n, \\t, \\\" and \\\\", *from);
        *to++ = name ? values[name - names] : *from;
    }
    *to = '\0';
    return result;
}

static uint16_t column16(int column) { return (uint16_t)(column > UINT16_MAX ? UINT16_MAX : column); }

/* One past the last character of the line that is no blank. */
static int line_end(const Lex *lex, int line) {
    size_t begin = lex->lines.at[line - 1];
    size_t end = (uint32_t)line < lex->lines.count ? lex->lines.at[line] - 1 : lex->length;
    while (end > begin && strchr(" \t\r\n", lex->text[end - 1]))
        end--;
    return end - begin < INT_MAX ? (int)(end - begin) + 1 : INT_MAX;
}

Loc lex_loc(const Lex *lex, const Span *span) {
    int end = span->last_line == span->first_line ? span->last_column : line_end(lex, span->first_line);
    return (Loc){.file = lex->file,
                 .line = (uint32_t)span->first_line,
                 .column = column16(span->first_column),
                 .end_column = column16(end > span->first_column ? end : span->first_column)};
}

void lex_error(Lex *lex, const Span *span, const char *format, ...) {
    if (lex->stop)
        return;
    va_list args;
    va_start(args, format);
    const char *text = tg_arena_vprintf(lex->arena, format, args);
    va_end(args);
    lex->errors++;
    lex->error_line = lex->quiet_line = span->first_line;
    tg_error(lex->diags, lex_loc(lex, span), "%s", text);
    if (lex->diags->errors > lex->diags->error_limit)
        lex->stop = true;
}

/* The innermost open bracket is left open, or so it seems: an error behind it may well be the cause. */
static void report_unclosed(Lex *lex, const Bracket *bracket) {
    if (lex->error_line >= bracket->span.first_line)
        return;
    lex_error(lex, &bracket->span, "this '%c' is not closed", bracket->open);
}

void lex_syntax_error(Lex *lex, const Span *span, const char *text) {
    if (span->first_line == lex->quiet_line || (lex->errors && lex->unwinding))
        return;
    const Bracket *open = lex->depth ? &lex->brackets[lex->depth - 1] : NULL;
    lex_error(lex, span, "%s", text);
    if (open && open->open != '{' && open->span.first_line != span->first_line)
        tg_note(lex->diags, lex_loc(lex, &open->span), "this '%c' is still open", open->open);
}

bool lex_in_parens(const Lex *lex) { return lex->depth && lex->brackets[lex->depth - 1].open != '{'; }

bool lex_open(Lex *lex, char bracket, const Span *span) {
    if (lex->depth == LEX_BRACKETS) {
        lex_error(lex, span, "brackets nested too deeply (more than %d)", LEX_BRACKETS);
        lex->stop = true;
        return false;
    }
    lex->brackets[lex->depth++] = (Bracket){bracket, *span};
    return true;
}

static char opening(char closing) { return closing == ')' ? '(' : closing == ']' ? '[' : '{'; }
static char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

void lex_close(Lex *lex, char bracket) {
    if (lex->depth && lex->brackets[lex->depth - 1].open == opening(bracket))
        lex->depth--;
}

bool lex_continues(int token) {
    switch (token) {
    case 0:
    case NL:
    case '{':
    case ',':
    case ':':
    case '=':
    case ASSIGN:
    case ARROW:
    case DOTDOT:
    case CONCAT:
    case '+':
    case '-':
    case '*':
    case '/':
    case '@':
    case '^':
    case '<':
    case '>':
    case EQ:
    case NE:
    case LE:
    case GE:
    case AND:
    case OR:
    case NOT:
    case THEN:
    case ELSE:
        return true;
    default: /* not IN, FROM, ... : they are names as well */
        return false;
    }
}

bool lex_may_close(int token) { return token == 0 || token == NL || token == '{' || token == ','; }

static int close_innermost(Lex *lex) {
    const Bracket *bracket = &lex->brackets[lex->depth - 1];
    report_unclosed(lex, bracket);
    lex->unwinding = true;
    lex->depth--;
    return closing(bracket->open);
}

int lex_unwind(Lex *lex, const Span *span, bool braces) {
    if (lex_in_parens(lex)) {
        int token = close_innermost(lex);
        lex->quiet_line = span->first_line;
        return token;
    }
    if (braces && lex->depth) {
        if (!lex_continues(lex->last))
            return NL;
        return close_innermost(lex);
    }
    if (lex->unwinding && lex->last != NL) {
        lex->unwinding = false;
        return NL;
    }
    lex->unwinding = false;
    return 0;
}

int lex_unwind_to(Lex *lex, char bracket) {
    char open = opening(bracket);
    int at = lex->depth - 1;
    while (at >= 0 && lex->brackets[at].open != open && lex->brackets[at].open != '{')
        at--;
    if (at < 0 || lex->brackets[at].open != open || at == lex->depth - 1)
        return 0;
    int token = close_innermost(lex);
    lex->unwinding = false;
    return token;
}
