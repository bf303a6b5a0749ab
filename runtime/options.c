#include "runtime/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOR_TRAIN = 1 << VERB_TRAIN,
    FOR_EVAL = 1 << VERB_EVAL,
    FOR_PREDICT = 1 << VERB_PREDICT,
    FOR_SAMPLE = 1 << VERB_SAMPLE,
    FOR_INFO = 1 << VERB_INFO,
    FOR_DATA = 1 << VERB_DATA,
    FOR_BENCH = 1 << VERB_BENCH,
};

typedef struct OptionRow {
    const char *name;
    unsigned verbs;
    const char *value, *help;
} OptionRow;

static const OptionRow rows[OPTION_COUNT] = {
#define OPTION(id, name, verbs, value, help) {name, verbs, value, help},
#include "runtime/options.def"
#undef OPTION
};

typedef struct VerbRow {
    const char *name, *arguments, *help;
    bool takes_arguments;
} VerbRow;

static const VerbRow verbs[VERB_COUNT] = {
    {"train", "", "train the model and save its weights", false},
    {"eval", "", "evaluate the objective over the validation set", false},
    {"predict", " [EXPORT] [INPUT]...",
     "run an exported function on .npy or .idx files, numbers, or records of the data", true},
    {"sample", " [EXPORT]", "write text with an exported function from a window of tokens to logits", true},
    {"info", "", "parameters, memory, settings, data and functions", false},
    {"data", "", "what the data yields: counts, ranges, balance of classes, the first records", false},
    {"bench", "", "time a training step and its floor: the dots alone", false},
};

const char *tg_option_name(OptionId id) { return rows[id].name; }

static Status unknown(Arena *arena, const char *what, const char *dashes, const char *name, const char *const *names,
                      uint32_t count, const char **why) {
    const char *close = tg_closest(name, names, count);
    *why = tg_arena_printf(arena, "unknown %s '%s%s'%s%s%s%s", what, dashes, name, close ? "; did you mean '" : "",
                           close ? dashes : "", close ? close : "", close ? "'?" : "");
    return TG_USAGE;
}

static Status parse_verb(Arena *arena, const char *name, Options *options, const char **why) {
    const char *names[VERB_COUNT];
    for (int i = 0; i < VERB_COUNT; i++) {
        names[i] = verbs[i].name;
        if (strcmp(name, names[i]) == 0) {
            options->verb = (VerbId)i;
            return TG_OK;
        }
    }
    return unknown(arena, "command", "", name, names, VERB_COUNT, why);
}

static Status find_option(Arena *arena, const char *name, VerbId verb, OptionId *id, const char **why) {
    const char *names[OPTION_COUNT];
    uint32_t count = 0;
    for (int i = 0; i < OPTION_COUNT; i++) {
        bool taken = (rows[i].verbs >> verb & 1) != 0;
        if (strcmp(rows[i].name, name) == 0) {
            *id = (OptionId)i;
            if (taken)
                return TG_OK;
            *why = tg_arena_printf(arena, "'%s' takes no --%s", verbs[verb].name, name);
            return TG_USAGE;
        }
        if (taken)
            names[count++] = rows[i].name;
    }
    return unknown(arena, "option", "--", name, names, count, why);
}

/* No file and no folder has an empty name. */
static bool takes_path(OptionId id) {
    const char *value = rows[id].value;
    return strcmp(value, "FILE") == 0 || strcmp(value, "DIR") == 0 || strcmp(value, "PATH") == 0;
}

/* argv[*at] is an option; steps over its value. */
static Status parse_option(Arena *arena, int argc, char **argv, int *at, Options *options, const char **why) {
    const char *text = argv[*at] + (argv[*at][1] == '-' ? 2 : 1);
    const char *equals = strchr(text, '=');
    const char *name = equals == NULL ? text : tg_arena_str(arena, text, (size_t)(equals - text));
    OptionId id;
    TG_TRY(find_option(arena, name, options->verb, &id, why));
    const char *value = equals == NULL ? NULL : equals + 1;
    if (rows[id].value[0] == '\0') {
        if (value != NULL) {
            *why = tg_arena_printf(arena, "--%s takes no value", name);
            return TG_USAGE;
        }
        value = "";
    } else if (value == NULL && *at + 1 < argc)
        value = argv[++*at];
    if (value == NULL || (value[0] == '\0' && takes_path(id))) {
        *why = tg_arena_printf(arena, "--%s wants a value: --%s %s", name, name, rows[id].value);
        return TG_USAGE;
    }
    options->value[id] = value;
    if (id == OPT_SET)
        tg_push(arena, &options->sets, value);
    return TG_OK;
}

static bool is_option(const char *text) {
    return text[0] == '-' && text[1] != '\0' && !(text[1] >= '0' && text[1] <= '9') && text[1] != '.';
}

Status tg_options_parse(Arena *arena, int argc, char **argv, Options *options, const char **why) {
    *options = (Options){0};
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-help") == 0 || strcmp(argv[1], "help") == 0) {
        options->help = options->no_verb = true;
        *why = "a command is missing";
        return argc < 2 ? TG_USAGE : TG_OK;
    }
    TG_TRY(parse_verb(arena, argv[1], options, why));
    bool only_arguments = false;
    for (int i = 2; i < argc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (!only_arguments && is_option(argv[i]))
            TG_TRY(parse_option(arena, argc, argv, &i, options, why));
        else
            tg_push(arena, &options->arguments, argv[i]);
    }
    options->help = options->value[OPT_HELP] != NULL;
    if (options->arguments.count > 0 && !verbs[options->verb].takes_arguments) {
        *why =
            tg_arena_printf(arena, "'%s' takes no argument '%s'", verbs[options->verb].name, options->arguments.at[0]);
        return TG_USAGE;
    }
    return TG_OK;
}

Status tg_options_count(Arena *arena, const Options *options, OptionId id, int64_t least, int64_t otherwise,
                        int64_t *count, const char **why) {
    const char *text = options->value[id];
    *count = otherwise;
    if (text == NULL)
        return TG_OK;
    char *end;
    errno = 0;
    *count = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && *count >= least)
        return TG_OK;
    *why = tg_arena_printf(arena, "--%s: '%s' is not a whole number of %lld or more", rows[id].name, text,
                           (long long)least);
    return TG_USAGE;
}

void tg_options_help(Str *to, const Options *options, const char *program) {
    if (options->no_verb) {
        tg_str_printf(to, "usage: %s COMMAND [--option[=VALUE]]...\n\ncommands:\n", program);
        for (int i = 0; i < VERB_COUNT; i++)
            tg_str_printf(to, "  %-9s %s\n", verbs[i].name, verbs[i].help);
        tg_str_printf(to, "\n'%s COMMAND --help' lists the options of a command.\n", program);
        return;
    }
    const VerbRow *verb = &verbs[options->verb];
    tg_str_printf(to, "usage: %s %s%s [--option[=VALUE]]...\n\n%s\n\noptions:\n", program, verb->name, verb->arguments,
                  verb->help);
    for (int i = 0; i < OPTION_COUNT; i++)
        if ((rows[i].verbs >> options->verb & 1) != 0)
            tg_str_printf(to, "  --%s%s%-*s %s\n", rows[i].name, rows[i].value[0] ? "=" : "",
                          22 - (int)strlen(rows[i].name) - (rows[i].value[0] != '\0'), rows[i].value, rows[i].help);
}
