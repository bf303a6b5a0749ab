/* tgc new: models that train as they stand, written around the data that there is. */
#include "driver/new.h"

#include "ir/base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct StarterRow {
    const char *name;
    Status (*write)(Starter *s);
} StarterRow;

static const StarterRow starters[] = {{"mlp", starter_mlp}, {"gpt", starter_gpt}, {"table", starter_table}};
enum { STARTERS = sizeof starters / sizeof *starters };

static const StarterRow *find_starter(Pipeline *p, const char *name) {
    const char *names[STARTERS];
    for (int i = 0; i < STARTERS; i++) {
        names[i] = starters[i].name;
        if (strcmp(names[i], name) == 0)
            return &starters[i];
    }
    const char *closest = tg_closest(name, names, STARTERS);
    tg_error(p->diags, (Loc){0}, "there is no starter '%s'%s%s%s; there are mlp, gpt and table", name,
             closest ? ", did you mean '" : "", closest ? closest : "", closest ? "'?" : "");
    return NULL;
}

/* The last part of a path without its extension. */
static const char *stem(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strchr(name, '.');
    return tg_arena_str(arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static Status choose_output(Starter *s, const StarterRow *row) {
    Pipeline *p = s->p;
    const Texts *arguments = &p->cli->arguments;
    const char *named = arguments->count > 1 ? arguments->at[1] : NULL, *option = p->cli->value[CLI_OUTPUT];
    const char *data = p->cli->value[CLI_DATA];
    if (named && option) {
        tg_error(p->diags, (Loc){0}, "two names for the output: '%s' and, with -o, '%s'", named, option);
        return TG_USAGE;
    }
    s->output = option ? option : named;
    if (s->output == NULL)
        s->output = tg_arena_printf(p->arena, "%s.tg",
                                    row->write == starter_table && data && data[0] ? stem(p->arena, data) : row->name);
    size_t length = strlen(s->output);
    if (length < 4 || strcmp(s->output + length - 3, ".tg") != 0) {
        tg_error(p->diags, (Loc){0}, "the output '%s' is no NAME.tg", s->output);
        return TG_USAGE;
    }
    s->name = stem(p->arena, s->output);
    struct stat info;
    if (lstat(s->output, &info) != 0)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "%s is there already: remove it, or name another with -o", s->output);
    return TG_IO;
}

const char *starter_data(Starter *s, const char *what) {
    const char *data = s->p->cli->value[CLI_DATA];
    if (data == NULL || data[0] == '\0') {
        tg_error(s->p->diags, (Loc){0}, "which %s? tgc new %s --data FILE", what, s->p->cli->arguments.at[0]);
        return NULL;
    }
    return data;
}

const char *starter_path(Starter *s, const char *path) {
    char full[PATH_MAX];
    if (path[0] == '/' || strchr(s->output, '/') == NULL || realpath(path, full) == NULL)
        return path;
    return tg_arena_str(s->p->arena, full, strlen(full));
}

void starter_string(Str *to, const char *text) {
    tg_str_add(to, "\"", 1);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            tg_str_printf(to, "\\%c", *text);
        else if (*text == '\n' || *text == '\t')
            tg_str_printf(to, "\\%c", *text == '\n' ? 'n' : 't');
        else
            tg_str_add(to, text, 1);
    tg_str_add(to, "\"", 1);
}

Status command_new(Pipeline *p) {
    const StarterRow *row = find_starter(p, p->cli->arguments.at[0]);
    if (row == NULL)
        return TG_USAGE;
    if (p->cli->value[CLI_COLUMN] && row->write != starter_table) {
        tg_error(p->diags, (Loc){0},
                 "--target names a column of a table: tgc new table --data FILE.csv --target COLUMN");
        return TG_USAGE;
    }
    Starter s = {.p = p, .text = tg_str(p->arena)};
    TG_TRY(choose_output(&s, row));
    TG_TRY(row->write(&s));
    TG_TRY(write_text(p, s.output, &s.text));
    printf("wrote %s; next:\n  tgc check --shapes %s\n  tgc train %s\n", s.output, s.output, s.output);
    return TG_OK;
}
