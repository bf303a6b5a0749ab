#include "ir/base/diag.h"

#include <stdlib.h>
#include <string.h>

typedef struct WarningRow {
    const char *name, *text;
    bool on;
} WarningRow;

static const WarningRow *warning_row(Warning warning) {
    static const WarningRow rows[] = {
#define X(name, on, text) {#name, text, on},
        TG_WARNINGS(X)
#undef X
    };
    return &rows[warning];
}

void tg_diags_init(Diags *diags, Arena *arena, const Sources *sources, FILE *out) {
    *diags = (Diags){.arena = arena, .sources = sources, .out = out, .error_limit = 20};
    for (int w = 0; w < WARNING_COUNT; w++)
        diags->state[w] = warning_row((Warning)w)->on ? WARNING_ON : WARNING_OFF;
}

const char *tg_warning_text(Warning warning) { return warning_row(warning)->text; }

const char *tg_warning_name(Warning warning) {
    static const char *const names[] = {
#define X(name, on, text) #name,
        TG_WARNINGS(X)
#undef X
    };
    return names[warning];
}

/* Names are written with dashes, the table has them with underscores. */
static bool same_name(const char *written, const char *row) {
    for (; *written && *row; written++, row++)
        if (*written != *row && !(*written == '-' && *row == '_'))
            return false;
    return *written == *row;
}

bool tg_diags_flag(Diags *diags, const char *flag) {
    WarningState to = WARNING_ON;
    if (strcmp(flag, "error") == 0) {
        for (int w = 0; w < WARNING_COUNT; w++)
            if (diags->state[w] == WARNING_ON)
                diags->state[w] = WARNING_AS_ERROR;
        return true;
    }
    if (strncmp(flag, "no-", 3) == 0) {
        to = WARNING_OFF;
        flag += 3;
    } else if (strncmp(flag, "error=", 6) == 0) {
        to = WARNING_AS_ERROR;
        flag += 6;
    }
    for (int w = 0; w < WARNING_COUNT; w++)
        if (same_name(flag, warning_row((Warning)w)->name)) {
            diags->state[w] = to;
            return true;
        }
    return false;
}

uint16_t tg_source_add(Sources *sources, Arena *arena, const char *path, const char *text, size_t length) {
    tg_push(arena, &sources->files, (Source){.path = path, .text = text, .length = length});
    return (uint16_t)(sources->files.count - 1);
}

static const Source *source_of(const Diags *diags, Loc loc) {
    if (loc.line == 0 || diags->sources == NULL || loc.file >= diags->sources->files.count)
        return NULL;
    return &diags->sources->files.at[loc.file];
}

/* The text of a line; its length without the line end. */
static const char *line_text(const Source *source, uint32_t line, size_t *length) {
    const char *p = source->text, *end = source->text + source->length;
    for (uint32_t n = 1; n < line; n++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (newline == NULL)
            return NULL;
        p = newline + 1;
    }
    const char *newline = memchr(p, '\n', (size_t)(end - p));
    *length = (size_t)((newline ? newline : end) - p);
    if (*length > 0 && p[*length - 1] == '\r')
        --*length;
    return p;
}

enum { WIDEST_LINE = 200 };

/* The line that holds `loc`; NULL: there is none, or it is too long for a screen. */
static const char *shown_line(const Source *source, Loc loc, size_t *length) {
    const char *text = line_text(source, loc.line, length);
    bool shown = text && *length <= WIDEST_LINE && loc.column > 0 && loc.column <= *length + 1;
    return shown ? text : NULL;
}

static void indent(Str *to, const char *line, uint32_t column) {
    for (uint32_t i = 1; i < column; i++) {
        unsigned char c = (unsigned char)line[i - 1];
        if ((c & 0xc0) != 0x80) /* continuation bytes of UTF-8 take no room */
            tg_str_add(to, c == '\t' ? "\t" : " ", 1);
    }
}

/* The source line and, below it, a caret with the range. */
static void show_line(Str *to, const Source *source, Loc loc) {
    size_t length = 0;
    const char *text = shown_line(source, loc, &length);
    if (text == NULL)
        return;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        tg_str_add(to, (unsigned char)c < ' ' && c != '\t' ? "?" : &c, 1);
    }
    tg_str_add(to, "\n", 1);
    indent(to, text, loc.column);
    tg_str_add(to, "^", 1);
    for (uint32_t i = loc.column + 1u; i < loc.end_column && i <= length; i++)
        if (((unsigned char)text[i - 1] & 0xc0) != 0x80)
            tg_str_add(to, "~", 1);
    tg_str_add(to, "\n", 1);
}

static void add_json_text(Str *to, const char *text) {
    tg_str_add(to, "\"", 1);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            tg_str_printf(to, "\\%c", c);
        else if (c < ' ')
            tg_str_printf(to, "\\u%04x", c);
        else
            tg_str_add(to, text, 1);
    }
    tg_str_add(to, "\"", 1);
}

static const char *severity_name(Severity severity) {
    static const char *const names[] = {"note", "remark", "warning", "error"};
    return names[severity];
}

static void emit(Diags *diags, const Str *text) {
    if (diags->capture)
        tg_str_add(diags->capture, text->text, text->length);
    else if (diags->out)
        fwrite(text->text, 1, text->length, diags->out);
}

static void print_text(Diags *diags, Severity severity, Loc loc, const char *message, const char *suffix) {
    static const char *const colors[] = {"\033[1;36m", "\033[1;34m", "\033[1;35m", "\033[1;31m"};
    Str text = tg_str(diags->arena);
    const Source *source = source_of(diags, loc);
    if (source)
        tg_str_printf(&text, "%s:%u:%u: ", source->path, loc.line, loc.column);
    else
        tg_str_printf(&text, "tgc: ");
    tg_str_printf(&text, "%s%s:%s %s%s\n", diags->color ? colors[severity] : "", severity_name(severity),
                  diags->color ? "\033[0m" : "", message, suffix);
    if (source)
        show_line(&text, source, loc);
    emit(diags, &text);
}

/* `key` with `value`, if that is not NULL. */
static void add_json_pair(Str *to, const char *key, const char *value) {
    if (value == NULL)
        return;
    tg_str_printf(to, ", \"%s\": ", key);
    add_json_text(to, value);
}

static void print_json(Diags *diags, Severity severity, Loc loc, const char *message, const char *warning,
                       const char *replacement) {
    Str text = tg_str(diags->arena);
    tg_str_printf(&text, "{\"severity\": \"%s\", \"message\": ", severity_name(severity));
    add_json_text(&text, message);
    const Source *source = source_of(diags, loc);
    if (source) {
        tg_str_printf(&text, ", \"file\": ");
        add_json_text(&text, source->path);
        tg_str_printf(&text, ", \"line\": %u, \"column\": %u, \"end_column\": %u", loc.line, loc.column, loc.end_column);
    }
    add_json_pair(&text, "warning", warning);
    add_json_pair(&text, "replacement", replacement);
    tg_str_printf(&text, "}\n");
    emit(diags, &text);
}

static bool past_limit(const Diags *diags) { return diags->errors > diags->error_limit; }

static void report(Diags *diags, Severity severity, Loc loc, const char *warning, const char *message) {
    diags->muted = severity == SEV_NOTE ? diags->muted : false;
    if (past_limit(diags) || diags->muted)
        return;
    const char *suffix = warning ? tg_arena_printf(diags->arena, " [-W%s]", warning) : "";
    if (diags->json)
        print_json(diags, severity, loc, message, warning, NULL);
    else
        print_text(diags, severity, loc, message, suffix);
}

#define FORMATTED(diags, message)                                        \
    va_list args;                                                        \
    va_start(args, format);                                              \
    const char *message = tg_arena_vprintf((diags)->arena, format, args); \
    va_end(args)

void tg_error(Diags *diags, Loc loc, const char *format, ...) {
    FORMATTED(diags, message);
    diags->errors++;
    report(diags, SEV_ERROR, loc, NULL, message);
}

void tg_warn(Diags *diags, Warning warning, Loc loc, const char *format, ...) {
    if (diags->state[warning] == WARNING_OFF) {
        diags->muted = true;
        return;
    }
    FORMATTED(diags, message);
    bool as_error = diags->state[warning] == WARNING_AS_ERROR;
    if (as_error)
        diags->errors++;
    else
        diags->warnings++;
    char name[64];
    snprintf(name, sizeof name, "%s", tg_warning_name(warning));
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    report(diags, as_error ? SEV_ERROR : SEV_WARNING, loc, name, message);
}

void tg_remark(Diags *diags, Loc loc, const char *format, ...) {
    FORMATTED(diags, message);
    report(diags, SEV_REMARK, loc, NULL, message);
}

void tg_note(Diags *diags, Loc loc, const char *format, ...) {
    FORMATTED(diags, message);
    report(diags, SEV_NOTE, loc, NULL, message);
}

/* In text it stands below the caret, in the place of what it replaces. */
void tg_fixit(Diags *diags, Loc loc, const char *text) {
    const Source *source = source_of(diags, loc);
    if (past_limit(diags) || diags->muted || source == NULL)
        return;
    if (diags->json) {
        print_json(diags, SEV_NOTE, loc, tg_arena_printf(diags->arena, "write '%s'", text), NULL, text);
        return;
    }
    size_t length;
    const char *line = shown_line(source, loc, &length);
    Str shown = tg_str(diags->arena);
    if (line == NULL)
        return;
    indent(&shown, line, loc.column);
    tg_str_printf(&shown, "%s\n", text);
    emit(diags, &shown);
}
