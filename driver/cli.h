/* The command line of tgc: `tgc COMMAND [option | argument]...`. -x 4, -x=4, --x 4 and --x=4 are equal for every option. */
#ifndef TG_CLI_H
#define TG_CLI_H

#include "ir/base/diag.h"
#include "passes/pass.h"

/* X(id, name, what stands after the name, help). The verbs of a compiled program come last. */
#define TG_COMMANDS(X)                                                                                  \
    X(CHECK, "check", "FILE.tg", "find errors and give warnings")                                       \
    X(COMPILE, "compile", "FILE.tg", "write a program that trains the model")                           \
    X(OPT, "opt", "FILE|-", "run passes on a graph in text form")                                       \
    X(REPLAY, "replay", "PROGRAM DUMP", "find the line of the value that was not finite")               \
    X(EXPLAIN, "explain", "-Wname", "say what a warning means")                                         \
    X(TRAIN, "train", "FILE.tg", "compile, and train the model")                                        \
    X(EVAL, "eval", "FILE.tg", "compile, and evaluate the objective over the validation set")           \
    X(PREDICT, "predict", "FILE.tg [EXPORT] [INPUT]...", "compile, and run an exported function")       \
    X(INFO, "info", "FILE.tg", "compile, and list parameters, memory and settings")                     \
    X(BENCH, "bench", "FILE.tg", "compile, and time a training step")

typedef enum Command {
#define X(id, ...) COMMAND_##id,
    TG_COMMANDS(X)
#undef X
    COMMAND_COUNT
} Command;

typedef enum CliOption {
#define OPTION(id, ...) CLI_##id,
#include "driver/options.def"
#undef OPTION
    CLI_OPTION_COUNT
} CliOption;

typedef Vec(const char *) Texts;

typedef struct Cli {
    Command command;
    const char *value[CLI_OPTION_COUNT]; /* NULL: not given; "" for a flag; the last one counts */
    Texts sets, disabled, warnings;      /* of --set, --disable-pass; -W without the W */
    Texts passed;                        /* options for the program, as --name=value or --name */
    Texts arguments;
} Cli;

const char *cli_command_name(Command command);
/* The command named `name`; COMMAND_COUNT and `*why` if there is none. */
Command cli_command(Arena *arena, const char *name, const char **why);
/* argv[0] is the first word after the command. TG_USAGE and `*why`. */
TG_CHECKED Status cli_parse(Arena *arena, Command command, int argc, char **argv, Cli *cli, const char **why);
/* Of one command; COMMAND_COUNT: of tgc. */
void cli_help(Str *to, Command command);

#endif
