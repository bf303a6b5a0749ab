/* tgc man: the manual page in troff, from the tables of commands, options and warnings. */
#include "driver/pipeline.h"

#include <string.h>

typedef struct Pair {
    const char *name, *text;
} Pair;

static const Pair exits[] = {
    {"0", "all is well"},
    {"1", "tgc diff: the graphs are not the same; tgc bisect: something goes wrong"},
    {"2", "the command line is wrong"},
    {"3", "the model or its data is wrong"},
    {"4", "a file cannot be read or written"},
    {"5", "there is not enough memory"},
    {"6", "another process of the run failed or was not heard of in time"},
    {"7", "a value of the training was not finite"},
    {"70", "a bug in tgc"},
};

static const Pair variables[] = {
    {"CC", "the compiler that links programs (cc)"},
    {"NO_COLOR", "messages without colours, if set"},
    {"TGC_LIB", "the folder of tgc's own libraries (../lib beside tgc)"},
    {"TG_DATA", "where relative paths of data start, as --data-root"},
    {"TG_THREADS", "threads to compute with, as --threads"},
    {"TMPDIR", "where programs are put together (/tmp)"},
    {"XDG_CACHE_HOME", "compiled programs are kept in its folder tgc (~/.cache)"},
};

static const Pair examples[] = {
    {"tgc new table --data people.csv --target price -o people.tg", "write a model that predicts a column of a table"},
    {"tgc check --shapes people.tg", "see the shape of every line"},
    {"tgc train people.tg --epochs 50", "train it"},
    {"tgc compile people.tg -o people && ./people eval", "a program of its own, that needs no tgc"},
};

/* Text of the table: nothing in it is troff's. */
static void add(Str *to, const char *text) {
    if (*text == '.' || *text == '\'')
        tg_str_printf(to, "\\&");
    for (; *text; text++)
        if (*text == '-')
            tg_str_printf(to, "\\-");
        else if (*text == '\\')
            tg_str_printf(to, "\\e");
        else
            tg_str_add(to, text, 1);
}

static void add_pairs(Str *to, const char *title, const Pair *pairs, size_t count) {
    tg_str_printf(to, ".SH %s\n", title);
    for (size_t i = 0; i < count; i++) {
        tg_str_printf(to, ".TP\n\\fB");
        add(to, pairs[i].name);
        tg_str_printf(to, "\\fR\n");
        add(to, pairs[i].text);
        tg_str_printf(to, "\n");
    }
}

static void add_commands(Str *to) {
    tg_str_printf(to, ".SH COMMANDS\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const CommandRow *row = cli_command_row((Command)i);
        tg_str_printf(to, ".TP\n\\fBtgc %s\\fR \\fI", row->name);
        add(to, row->arguments);
        tg_str_printf(to, "\\fR\n");
        add(to, row->help);
        tg_str_printf(to, "\n");
    }
}

static void add_takers(Str *to, const OptionRow *row) {
    const char *separator = "";
    for (int i = 0; i < COMMAND_COUNT; i++)
        if (row->commands >> i & 1) {
            tg_str_printf(to, "%s%s", separator, cli_command_name((Command)i));
            separator = ", ";
        }
}

static void add_options(Str *to) {
    tg_str_printf(
        to,
        ".SH OPTIONS\nAn option's value follows it after a space or an equals sign. The commands that take it stand "
        "in brackets.\n");
    const OptionRow *row;
    for (uint32_t at = 0; (row = cli_next_option(COMMAND_COUNT, &at)); at++) {
        tg_str_printf(to, ".TP\n\\fB");
        add(to, cli_dashes(row));
        add(to, row->name);
        tg_str_printf(to, "\\fR");
        if (row->value[0]) {
            tg_str_printf(to, "=\\fI");
            add(to, row->value);
            tg_str_printf(to, "\\fR");
        }
        tg_str_printf(to, "\n");
        add(to, row->help);
        tg_str_printf(to, "\n(");
        add_takers(to, row);
        tg_str_printf(to, ")\n");
    }
}

static void add_warnings(Str *to) {
    tg_str_printf(
        to, ".SH WARNINGS\n\\fB\\-Wno\\-\\fINAME\\fR switches one off, \\fB\\-Werror=\\fINAME\\fR makes it an error, "
            "\\fB\\-Werror\\fR all of them.\n");
    for (int w = 0; w < WARNING_COUNT; w++) {
        tg_str_printf(to, ".TP\n\\fB\\-W");
        for (const char *c = tg_warning_name((Warning)w); *c; c++)
            tg_str_printf(to, *c == '_' ? "\\-" : "%c", *c);
        tg_str_printf(to, "\\fR\n");
        add(to, tg_warning_text((Warning)w));
        tg_str_printf(to, "\n");
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

Status command_man(Pipeline *p) {
    Str text = tg_str(p->arena);
    tg_str_printf(
        &text,
        ".TH TGC 1 \"\" \"tgc %s\" \"User Commands\"\n"
        ".SH NAME\ntgc \\- compile model definitions to programs that train them\n"
        ".SH SYNOPSIS\n.B tgc\n.I COMMAND\n[\\fIOPTION\\fR]... \\fIFILE\\fR\n"
        ".SH DESCRIPTION\nA model and how it is trained stand in one .tg file. tgc checks it, compiles it to a "
        "native program, and runs that program's commands: train, eval, predict, sample, info and bench.\n",
        TGC_VERSION);
    add_commands(&text);
    add_options(&text);
    add_warnings(&text);
    add_pairs(&text, "EXIT STATUS", exits, COUNT(exits));
    add_pairs(&text, "ENVIRONMENT", variables, COUNT(variables));
    add_pairs(&text, "EXAMPLES", examples, COUNT(examples));
    fwrite(text.text, 1, text.length, stdout);
    return TG_OK;
}
