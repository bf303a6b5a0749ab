#include "driver/cli.h"

#include <string.h>

/* Rows of runtime/options.def speak of verbs, those of driver/options.def of commands. */
enum {
    FOR_NEW = 1 << COMMAND_NEW,
    FOR_CHECK = 1 << COMMAND_CHECK,
    FOR_COMPILE = 1 << COMMAND_COMPILE,
    FOR_OPT = 1 << COMMAND_OPT,
    FOR_LLC = 1 << COMMAND_LLC,
    FOR_DIFF = 1 << COMMAND_DIFF,
    FOR_REDUCE = 1 << COMMAND_REDUCE,
    FOR_BISECT = 1 << COMMAND_BISECT,
    FOR_EXPLAIN = 1 << COMMAND_EXPLAIN,
    FOR_REPLAY = 1 << COMMAND_REPLAY,
    FOR_PROFILE = 1 << COMMAND_PROFILE,
    FOR_FIT = 1 << COMMAND_FIT,
    FOR_RANGES = 1 << COMMAND_RANGES,
    FOR_COMPLETION = 1 << COMMAND_COMPLETION,
    FOR_MAN = 1 << COMMAND_MAN,
    FOR_TRAIN = 1 << COMMAND_TRAIN,
    FOR_EVAL = 1 << COMMAND_EVAL,
    FOR_PREDICT = 1 << COMMAND_PREDICT,
    FOR_SAMPLE = 1 << COMMAND_SAMPLE,
    FOR_INFO = 1 << COMMAND_INFO,
    FOR_DATA = 1 << COMMAND_DATA,
    FOR_BENCH = 1 << COMMAND_BENCH,
    FOR_RUN = FOR_TRAIN | FOR_EVAL | FOR_PREDICT | FOR_SAMPLE | FOR_INFO | FOR_DATA | FOR_BENCH,
    FOR_MODEL = FOR_CHECK | FOR_COMPILE | FOR_RUN,
    FOR_ALL = (1 << COMMAND_COUNT) - 1,
    MANY = 1000000, /* arguments */
};

static const OptionRow rows[] = {
#define OPTION(id, name, commands, value, help) {name, commands, value, help},
#include "driver/options.def"
#include "runtime/options.def"
#undef OPTION
};
enum { ROWS = sizeof rows / sizeof *rows };

static const CommandRow commands[COMMAND_COUNT] = {
#define X(id, name, arguments, least, most, help) {name, arguments, least, most, help},
    TG_COMMANDS(X)
#undef X
};

const char *cli_command_name(Command command) { return commands[command].name; }

static const char *hint(Arena *arena, const char *name, const char *const *names, uint32_t count, const char *dashes) {
    const char *closest = tg_closest(name, names, count);
    return closest ? tg_arena_printf(arena, ", did you mean '%s%s'?", dashes, closest) : "";
}

Command cli_command(Arena *arena, const char *name, const char **why) {
    const char *names[COMMAND_COUNT];
    for (int i = 0; i < COMMAND_COUNT; i++) {
        names[i] = commands[i].name;
        if (strcmp(names[i], name) == 0)
            return (Command)i;
    }
    *why = tg_arena_printf(arena, "unknown command '%s'%s", name, hint(arena, name, names, COMMAND_COUNT, ""));
    return COMMAND_COUNT;
}

static bool takes(Command command, const OptionRow *row) {
    return command == COMMAND_COUNT || row->commands >> command & 1;
}

static const OptionRow *find(Arena *arena, Command command, const char *name, const char **why) {
    const char *names[ROWS];
    uint32_t count = 0;
    bool elsewhere = false;
    for (int i = 0; i < ROWS; i++) {
        bool same = strcmp(rows[i].name, name) == 0;
        if (same && takes(command, &rows[i]))
            return &rows[i];
        elsewhere = elsewhere || same;
        if (takes(command, &rows[i]))
            names[count++] = rows[i].name;
    }
    *why = elsewhere ? tg_arena_printf(arena, "'tgc %s' takes no --%s", commands[command].name, name)
                     : tg_arena_printf(arena, "unknown option '--%s'%s", name, hint(arena, name, names, count, "--"));
    return NULL;
}

static void keep(Arena *arena, Cli *cli, const OptionRow *row, const char *value) {
    CliOption id = (CliOption)(row - rows);
    if (id >= CLI_OPTION_COUNT) {
        tg_push(arena, &cli->passed,
                row->value[0] ? tg_arena_printf(arena, "--%s=%s", row->name, value)
                              : tg_arena_printf(arena, "--%s", row->name));
        return;
    }
    cli->value[id] = value;
    if (id == CLI_SET)
        tg_push(arena, &cli->sets, value);
    if (id == CLI_DISABLE_PASS)
        tg_push(arena, &cli->disabled, value);
}

/* No file and no folder has an empty name. */
static bool takes_path(const OptionRow *row) {
    return strcmp(row->value, "FILE") == 0 || strcmp(row->value, "DIR") == 0 || strcmp(row->value, "PATH") == 0 ||
           strcmp(row->value, "SCRIPT") == 0;
}

/* argv[*at] is an option; steps over its value. */
static Status parse_option(Arena *arena, int argc, char **argv, int *at, Cli *cli, const char **why) {
    const char *text = argv[*at] + (argv[*at][1] == '-' ? 2 : 1);
    if (text[0] == 'W') {
        tg_push(arena, &cli->warnings, text + 1);
        return TG_OK;
    }
    if (text[0] == 'O' && text[1] >= '0' && text[1] <= '9' && text[2] == '\0')
        text = tg_arena_printf(arena, "O=%c", text[1]);
    const char *equals = strchr(text, '=');
    const char *name = equals ? tg_arena_str(arena, text, (size_t)(equals - text)) : text;
    const OptionRow *row = find(arena, cli->command, name, why);
    if (row == NULL)
        return TG_USAGE;
    bool is_flag = row->value[0] == '\0';
    if (is_flag && equals) {
        *why = tg_arena_printf(arena, "--%s takes no value", name);
        return TG_USAGE;
    }
    const char *value = is_flag ? "" : equals ? equals + 1 : *at + 1 < argc ? argv[*at + 1] : NULL;
    if (value == NULL || (value[0] == '\0' && takes_path(row))) {
        *why = tg_arena_printf(arena, "--%s wants a value: --%s=%s", name, name, row->value);
        return TG_USAGE;
    }
    *at += !is_flag && equals == NULL;
    keep(arena, cli, row, value);
    return TG_OK;
}

/* Not "-", and no negative number. */
static bool is_option(const char *text) {
    return text[0] == '-' && text[1] != '\0' && strchr("0123456789.", text[1]) == NULL;
}

static Status check_count(Arena *arena, const CommandRow *row, const Texts *given, const char **why) {
    bool is_file = strncmp(row->arguments, "FILE", 4) == 0, is_empty = given->count && given->at[0][0] == '\0';
    if (given->count < row->least || (is_empty && row->least))
        *why = tg_arena_printf(arena, "which %s? tgc %s %s", is_file ? "file" : "one", row->name, row->arguments);
    else if (given->count > row->most)
        *why = tg_arena_printf(arena, "'tgc %s' takes %s, not '%s'%s", row->name,
                               row->most == 0   ? "no argument"
                               : is_file        ? row->most == 1 ? "one file" : "two files"
                               : row->most == 1 ? "one argument"
                                                : "two arguments",
                               given->at[row->most], row->most ? " as well" : "");
    else
        return TG_OK;
    return TG_USAGE;
}

Status cli_parse(Arena *arena, Command command, int argc, char **argv, Cli *cli, const char **why) {
    *cli = (Cli){.command = command};
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (!only_arguments && is_option(argv[i]))
            TG_TRY(parse_option(arena, argc, argv, &i, cli, why));
        else
            tg_push(arena, &cli->arguments, argv[i]);
    }
    return cli->value[CLI_HELP] ? TG_OK : check_count(arena, &commands[command], &cli->arguments, why);
}

/* A row of the program's that tgc has as well for a command. */
static bool is_repeated(int row) {
    for (int i = 0; i < CLI_OPTION_COUNT && row >= CLI_OPTION_COUNT; i++)
        if (strcmp(rows[i].name, rows[row].name) == 0 && (rows[i].commands & rows[row].commands))
            return true;
    return false;
}

const CommandRow *cli_command_row(Command command) { return &commands[command]; }

const OptionRow *cli_next_option(Command command, uint32_t *at) {
    while (*at < ROWS && (!takes(command, &rows[*at]) || is_repeated((int)*at)))
        ++*at;
    return *at < ROWS ? &rows[*at] : NULL;
}

const char *cli_dashes(const OptionRow *row) { return row->name[1] ? "--" : "-"; }

bool cli_takes_warnings(Command command) { return (FOR_MODEL | FOR_EXPLAIN) >> command & 1; }

static void help_rows(Str *to, Command command, int from, int until) {
    enum { WIDTH = 30 };
    for (int i = from; i < until; i++) {
        if (!takes(command, &rows[i]) || is_repeated(i))
            continue;
        const char *dashes = cli_dashes(&rows[i]), *value = rows[i].value;
        int width = (int)(strlen(dashes) + strlen(rows[i].name) + strlen(value)) + (value[0] != '\0');
        tg_str_printf(to, "  %s%s%s%s%*s %s\n", dashes, rows[i].name, value[0] ? "=" : "", value,
                      width < WIDTH ? WIDTH - width : 0, "", rows[i].help);
    }
}

void cli_help(Str *to, Command command) {
    if (command == COMMAND_COUNT) {
        tg_str_printf(to, "usage: tgc COMMAND [OPTION]... FILE\n\ncommands:\n");
        for (int i = 0; i < COMMAND_COUNT; i++)
            tg_str_printf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
        tg_str_printf(
            to, "\n'tgc COMMAND --help' lists the options of a command, 'tgc --version' says which tgc this is.\n");
        return;
    }
    tg_str_printf(to, "usage: tgc %s [OPTION]... %s\n\n%s\n\noptions:\n", commands[command].name,
                  commands[command].arguments, commands[command].help);
    help_rows(to, command, 0, CLI_OPTION_COUNT);
    if (FOR_MODEL >> command & 1)
        tg_str_printf(
            to, "  -W[no-|error=]NAME             switch a warning on or off, or make it an error; -Werror: all\n");
    if (FOR_RUN >> command & 1) {
        tg_str_printf(to, "\noptions of the program:\n");
        help_rows(to, command, CLI_OPTION_COUNT, ROWS);
    }
}
