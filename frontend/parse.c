/* From files to trees: reading, checking the bytes, parsing, following imports. */
#include "frontend/parse.h"
#include "grammar.h"
#include "ir/base/file.h"
#include "lexer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

extern const struct {
    const char *name, *text;
    size_t length;
} tg_std_files[];

enum { LARGEST_FILE = 256 << 20, MOST_IMPORTS = 1000, DEEPEST_IMPORT = 100, BEGINNING = 8 };

/* Length of the UTF-8 sequence at `p`, 0 if it is none (or overlong, or a surrogate). */
static size_t utf8_length(const unsigned char *p, const unsigned char *end) {
    static const unsigned char second_from[] = {0x80, 0xa0, 0x90}, second_to[] = {0xbf, 0x9f, 0x8f};
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
                    : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                    : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                  : 0;
    if (length == 0 || (size_t)(end - p) < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    unsigned char from = p[0] == 0xe0 ? second_from[1] : p[0] == 0xf0 ? second_from[2] : second_from[0];
    unsigned char to = p[0] == 0xed ? second_to[1] : p[0] == 0xf4 ? second_to[2] : second_to[0];
    return p[1] >= from && p[1] <= to ? length : 0;
}

static void bad_byte(Lex *lex, size_t at) {
    int line = (int)lex->lines.count, column = (int)(at - lex->lines.at[line - 1]) + 1;
    Span span = {line, column, line, column + 1};
    if (lex->text[at] == '\0')
        lex_error(lex, &span, "a zero byte (offset %zu): this is no text file", at);
    else
        lex_error(lex, &span, "byte 0x%02x (offset %zu) is not UTF-8", (unsigned char)lex->text[at], at);
}

/* Where lines begin; reports the first byte that is not text, and that alone in a file that begins with it. */
static void scan_bytes(Lex *lex) {
    tg_push(lex->arena, &lex->lines, 0);
    const unsigned char *text = (const unsigned char *)lex->text;
    bool reported = false;
    for (size_t i = 0; i < lex->length;) {
        size_t length = utf8_length(text + i, text + lex->length);
        if (!reported && (length == 0 || text[i] == '\0')) {
            bad_byte(lex, i);
            reported = true;
            lex->stop = i < BEGINNING;
        }
        i += length ? length : 1;
        if (text[i - 1] == '\n')
            tg_push(lex->arena, &lex->lines, i);
    }
}

static Map *names_of(Arena *arena, Sources *sources) {
    if (sources->names == NULL) {
        sources->names = TG_ALLOC(arena, Map, 1);
        *sources->names = tg_map(arena);
    }
    return sources->names;
}

/* Appends the items of one text. False: there were errors. */
static bool parse_text(Arena *arena, Diags *diags, Sources *sources, uint16_t file, AstList *items) {
    const Source *source = &sources->files.at[file];
    Lex *lex = TG_ALLOC(arena, Lex, 1);
    *lex = (Lex){.arena = arena,
                 .diags = diags,
                 .text = source->text,
                 .length = source->length,
                 .file = file,
                 .items = items,
                 .names = names_of(arena, sources),
                 .line = 1,
                 .column = 1};
    scan_bytes(lex);
    yyscan_t scanner;
    if (yylex_init_extra(lex, &scanner) != 0)
        return false;
    yy_scan_bytes(source->text, (int)source->length, scanner);
    int failed = yyparse(scanner, lex);
    yylex_destroy(scanner);
    return failed == 0 && lex->errors == 0;
}

static Ast *file_of(Arena *arena, uint16_t file, const AstList *items) {
    Ast *ast = TG_ALLOC(arena, Ast, 1);
    *ast = (Ast){.kind = AST_FILE,
                 .loc = {.file = file, .line = 1, .column = 1, .end_column = 1},
                 .kid = items->at,
                 .kid_count = items->count};
    return ast;
}

/* The files of one compilation, and which of them are being read. */
typedef struct Reader {
    Arena *arena;
    Diags *diags;
    Sources *sources;
    Map known; /* real path -> Unit * */
    Vec(const Unit *) open;
    Status status; /* the worst so far */
} Reader;

static void worsen(Reader *reader, Status status) {
    if (reader->status == TG_OK || status == TG_IO)
        reader->status = status;
}

static const char *beside(Arena *arena, const char *importer, const char *path) {
    const char *slash = strrchr(importer, '/');
    if (path[0] == '/' || slash == NULL)
        return path;
    return tg_arena_printf(arena, "%.*s/%s", (int)(slash - importer), importer, path);
}

static bool is_open(const Reader *reader, const Unit *unit) {
    for (uint32_t i = 0; i < reader->open.count; i++)
        if (reader->open.at[i] == unit)
            return true;
    return false;
}

static Unit *read_unit(Reader *reader, const char *path, Loc from);

static void read_imports(Reader *reader, Unit *unit) {
    for (uint32_t i = 0; i < unit->file->kid_count; i++)
        unit->import_count += unit->file->kid[i]->kind == AST_IMPORT;
    unit->imports = TG_ALLOC(reader->arena, Unit *, unit->import_count);
    uint32_t next = 0;
    for (uint32_t i = 0; i < unit->file->kid_count; i++) {
        const Ast *item = unit->file->kid[i];
        if (item->kind == AST_IMPORT)
            unit->imports[next++] = read_unit(reader, beside(reader->arena, unit->path, item->text), item->loc);
    }
}

static Unit *new_unit(Reader *reader, const char *path, uint16_t file, const AstList *items) {
    Unit *unit = TG_ALLOC(reader->arena, Unit, 1);
    *unit = (Unit){.path = path, .file = file_of(reader->arena, file, items)};
    return unit;
}

/* Reports why there is nothing to read at `path`; `from`: the import that wants it. */
static Unit *fail(Reader *reader, const char *path, Loc from, Status status, const char *why) {
    tg_error(reader->diags, from, "%s", why);
    worsen(reader, status);
    AstList none = {0};
    return new_unit(reader, path, from.file, &none);
}

static Unit *known_unit(Reader *reader, Unit *unit, Loc from) {
    if (is_open(reader, unit)) {
        tg_error(reader->diags, from, "%s imports itself, directly or through others", unit->path);
        worsen(reader, TG_MODEL);
    }
    return unit;
}

static Unit *read_unit(Reader *reader, const char *path, Loc from) {
    char real[PATH_MAX];
    if (realpath(path, real) == NULL)
        snprintf(real, sizeof real, "%s", path);
    bool is_new;
    uint64_t *known = tg_map_put(&reader->known, real, strlen(real), &is_new);
    if (!is_new)
        return known_unit(reader, (Unit *)(uintptr_t)*known, from);
    if (reader->known.count > MOST_IMPORTS || reader->open.count > DEEPEST_IMPORT)
        return fail(reader, path, from, TG_MODEL, "too many imports");
    char *text;
    size_t length;
    const char *why;
    Status status = tg_file_read(reader->arena, path, &text, &length, &why);
    if (status == TG_OK && length > LARGEST_FILE) {
        status = TG_MODEL;
        why = tg_arena_printf(reader->arena, "%s: %zu bytes are too much for a model", path, length);
    }
    AstList items = {0};
    if (status != TG_OK) {
        Unit *unit = fail(reader, path, from, status, why);
        *tg_map_put(&reader->known, real, strlen(real), NULL) = (uint64_t)(uintptr_t)unit;
        return unit;
    }
    uint16_t file = tg_source_add(reader->sources, reader->arena, path, text, length);
    if (!parse_text(reader->arena, reader->diags, reader->sources, file, &items))
        worsen(reader, TG_MODEL);
    Unit *unit = new_unit(reader, path, file, &items);
    *tg_map_put(&reader->known, real, strlen(real), NULL) = (uint64_t)(uintptr_t)unit;
    tg_push(reader->arena, &reader->open, unit);
    read_imports(reader, unit);
    reader->open.count--;
    return unit;
}

Status tg_parse_file(Arena *arena, Diags *diags, Sources *sources, const char *path, Unit **unit) {
    Reader reader = {.arena = arena, .diags = diags, .sources = sources, .known = tg_map(arena)};
    *unit = read_unit(&reader, path, (Loc){0});
    return reader.status;
}

Status tg_parse_std(Arena *arena, Diags *diags, Sources *sources, Unit **unit) {
    AstList items = {0};
    bool ok = true;
    uint16_t first = (uint16_t)sources->files.count;
    for (uint32_t i = 0; tg_std_files[i].name; i++) {
        const char *path = tg_arena_printf(arena, "<std>/%s", tg_std_files[i].name);
        uint16_t file = tg_source_add(sources, arena, path, tg_std_files[i].text, tg_std_files[i].length);
        ok = parse_text(arena, diags, sources, file, &items) && ok;
    }
    *unit = TG_ALLOC(arena, Unit, 1);
    **unit = (Unit){.path = "<std>", .file = file_of(arena, first, &items)};
    return ok ? TG_OK : TG_INTERNAL;
}
