/* tgc check --shapes: the source with the shape of what each line gives in the margin. */
#include "driver/pipeline.h"

#include <string.h>

enum { WIDEST_COLUMN = 80, TAB = 8 };

/* One name at a place of the source; what the objective gives in training is shown rather than what other functions do.
 */
typedef struct Seen {
    SeenShape shape;
    bool varied; /* another call gives another one */
} Seen;

struct Shapes {
    Arena *arena;
    uint16_t file;
    Vec(Seen) all;
};

static bool same_name(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static Seen *find(Shapes *shapes, const SeenShape *shape) {
    for (uint32_t i = 0; i < shapes->all.count; i++) {
        Seen *seen = &shapes->all.at[i];
        if (seen->shape.loc.line == shape->loc.line && seen->shape.loc.column == shape->loc.column &&
            same_name(seen->shape.name, shape->name))
            return seen;
    }
    return NULL;
}

static void see(void *context, const SeenShape *shape) {
    Shapes *shapes = context;
    if (shape->loc.file != shapes->file)
        return;
    Seen *seen = find(shapes, shape);
    if (seen == NULL)
        tg_push(shapes->arena, &shapes->all, (Seen){*shape, false});
    else if (shape->objective && !seen->shape.objective)
        *seen = (Seen){*shape, false};
    else if (shape->objective == seen->shape.objective)
        seen->varied = seen->varied || strcmp(shape->shape, seen->shape.shape) != 0;
}

void shapes_watch(Pipeline *p, LowerOptions *options) {
    p->shapes = TG_ALLOC(p->arena, Shapes, 1);
    *p->shapes = (Shapes){.arena = p->arena, .file = p->unit->file->loc.file};
    options->see = see;
    options->see_context = p->shapes;
}

static const char *type_text(const Pipeline *p, TypeId type) {
    Str text = tg_str(p->arena);
    tg_type_print(&text, tg_type_of(&p->model->types, type));
    return text.text;
}

static void add_fields(Pipeline *p, const DataSet *set) {
    for (uint32_t i = 0; i < set->fields.count; i++) {
        const DataField *field = &set->fields.at[i];
        see(p->shapes, &(SeenShape){field->loc, field->name, type_text(p, field->type), true});
    }
}

/* Declarations: fields of the data, parameters and states. Those of the library's modules stand where an instance is
 * made. */
static void add_declarations(Pipeline *p) {
    const Training *training = &p->model->training;
    add_fields(p, &training->train);
    for (uint32_t i = 0; i < training->validate.count; i++)
        add_fields(p, &training->validate.at[i]);
    for (uint32_t i = 0; i < p->model->buffers.count; i++) {
        const Buffer *buffer = &p->model->buffers.at[i];
        const char *dot = strrchr(buffer->name, '.');
        if (buffer->class == BUFFER_PARAM || buffer->class == BUFFER_STATE)
            see(p->shapes, &(SeenShape){buffer->loc, dot ? dot + 1 : buffer->name, type_text(p, buffer->type), true});
    }
}

/* What stands in the margin of a line, in the order of the columns; names only where there are several shapes. */
static void print_margin(Str *to, const Shapes *shapes, uint32_t line) {
    uint32_t count = 0, shown = 0, column = 0;
    for (uint32_t i = 0; i < shapes->all.count; i++)
        count += shapes->all.at[i].shape.loc.line == line;
    while (shown < count) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < shapes->all.count; i++) {
            Loc loc = shapes->all.at[i].shape.loc;
            if (loc.line == line && loc.column >= column && loc.column < next)
                next = loc.column;
        }
        for (uint32_t i = 0; i < shapes->all.count; i++) {
            const Seen *seen = &shapes->all.at[i];
            if (seen->shape.loc.line != line || seen->shape.loc.column != next)
                continue;
            bool named = count > 1 && seen->shape.name;
            tg_str_printf(to, "%s%s%s%s%s", shown ? ", " : "", named ? seen->shape.name : "", named ? ": " : "",
                          seen->shape.shape, seen->varied ? " …" : "");
            shown++;
        }
        column = next + 1;
    }
}

/* The line as a terminal shows it: tabs as spaces; returns its width. */
static size_t print_line(Str *to, const char *line, size_t length) {
    size_t width = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)line[i];
        size_t spaces = c == '\t' ? TAB - width % TAB : 0;
        if (spaces)
            tg_str_printf(to, "%*s", (int)spaces, "");
        else if (c != '\r')
            tg_str_add(to, line + i, 1);
        width += spaces ? spaces : (c & 0xc0) != 0x80 && c != '\r';
    }
    return width;
}

typedef struct Line {
    Str text, margin;
    size_t width;
} Line;

static uint32_t read_lines(const Shapes *shapes, const Source *source, Line *lines) {
    const char *at = source->text, *end = at + source->length;
    uint32_t count = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        Line *line = &lines[count++];
        *line = (Line){.text = tg_str(shapes->arena), .margin = tg_str(shapes->arena)};
        line->width = print_line(&line->text, at, (size_t)((stop ? stop : end) - at));
        print_margin(&line->margin, shapes, count);
        at = stop ? stop + 1 : end;
    }
    return count;
}

void shapes_print(Pipeline *p, FILE *to) {
    if (p->shapes == NULL)
        return;
    const Source *source = &p->sources->files.at[p->shapes->file];
    size_t newlines = 1, column = 0;
    for (const char *at = source->text; at < source->text + source->length; at++)
        newlines += *at == '\n';
    Line *lines = TG_ALLOC(p->arena, Line, newlines);
    if (p->model && p->diags->errors == 0)
        add_declarations(p);
    uint32_t count = read_lines(p->shapes, source, lines);
    for (uint32_t i = 0; i < count; i++)
        if (lines[i].margin.length && lines[i].width > column && lines[i].width <= WIDEST_COLUMN)
            column = lines[i].width;
    for (uint32_t i = 0; i < count; i++)
        if (lines[i].margin.length)
            fprintf(to, "%s%*s  | %s\n", lines[i].text.text,
                    lines[i].width < column ? (int)(column - lines[i].width) : 0, "", lines[i].margin.text);
        else
            fprintf(to, "%s\n", lines[i].text.text);
}

const char *shapes_of_line(Pipeline *p, uint32_t line) {
    Str text = tg_str(p->arena);
    print_margin(&text, p->shapes, line);
    return text.text;
}
