/* The command line of tgc: `tgc COMMAND [option | argument]...`. -x 4, -x=4, --x 4 and --x=4 are equal for every option. */
#ifndef TG_CLI_H
#define TG_CLI_H

#include "ir/base/diag.h"
#include "passes/pass.h"

/* X(id, name, what stands after the name, the least and the most arguments, help). The verbs of a compiled program come last. */
#define TG_COMMANDS(X)                                                                                    \
    X(NEW, "new", "mlp|gpt|table [NAME.tg]", 1, 2, "write a model to start from, for your data")          \
    X(CHECK, "check", "FILE.tg", 1, 1, "find errors and give warnings")                                   \
    X(COMPILE, "compile", "FILE.tg", 1, 1, "write a program that trains the model")                       \
    X(OPT, "opt", "FILE|-", 1, 1, "run passes on a graph in text form")                                   \
    X(LLC, "llc", "FILE|-", 1, 1, "turn loops of kernels into LLVM IR, assembly or CUDA C")               \
    X(DIFF, "diff", "FILE FILE", 2, 2, "compare two graphs, or the graphs of two models, by structure")   \
    X(REDUCE, "reduce", "FILE.tgir", 1, 1, "shrink a graph for which a test script exits 0")               \
    X(BISECT, "bisect", "FILE", 1, 1, "find the pass, the rewrite and the value that go wrong")            \
    X(REPLAY, "replay", "PROGRAM DUMP", 2, 2, "find the line of the value that was not finite")           \
    X(EXPLAIN, "explain", "-Wname | FILE.tg:LINE", 0, MANY, "say what a warning means, or what a line became") \
    X(PROFILE, "profile", "TRACE", 1, 1, "show where the time of training steps goes")                    \
    X(FIT, "fit", "FILE.tg", 1, 1, "find the largest batch, or other size, that fits into memory")                    \
    X(RANGES, "ranges", "FILE.tg", 1, 1, "show which values of a training step do not fit into f16, bf16 and fp8")       \
    X(COMPLETION, "completion", "bash|zsh", 1, 1, "print completions for a shell")                        \
    X(MAN, "man", "", 0, 0, "print the manual page, in troff")                                            \
    X(TRAIN, "train", "FILE.tg", 1, 1, "compile, and train the model")                                    \
    X(EVAL, "eval", "FILE.tg", 1, 1, "compile, and evaluate the objective over the validation set")       \
    X(PREDICT, "predict", "FILE.tg [EXPORT] [INPUT]...", 1, MANY, "compile, and run an exported function") \
    X(SAMPLE, "sample", "FILE.tg [EXPORT]", 1, 2, "compile, and write text with an exported function") \
    X(INFO, "info", "FILE.tg", 1, 1, "compile, and list parameters, memory and settings")                 \
    X(DATA, "data", "FILE.tg", 1, 1, "compile, and show what the data yields")                            \
    X(BENCH, "bench", "FILE.tg", 1, 1, "compile, and time a training step")

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

typedef struct OptionRow {
    const char *name;
    unsigned commands; /* a bit each */
    const char *value, *help;
} OptionRow;

typedef struct CommandRow {
    const char *name, *arguments;
    uint32_t least, most;
    const char *help;
} CommandRow;

const CommandRow *cli_command_row(Command command);
/* The first option of the command (COMMAND_COUNT: of any) in the table from `*at` on; NULL: there is no more. */
const OptionRow *cli_next_option(Command command, uint32_t *at);
const char *cli_dashes(const OptionRow *row); /* "-o", "--set" */
bool cli_takes_warnings(Command command);     /* -Wname */
const char *cli_command_name(Command command);
/* The command named `name`; COMMAND_COUNT and `*why` if there is none. */
Command cli_command(Arena *arena, const char *name, const char **why);
/* argv[0] is the first word after the command. TG_USAGE and `*why`. */
TG_CHECKED Status cli_parse(Arena *arena, Command command, int argc, char **argv, Cli *cli, const char **why);
/* Of one command; COMMAND_COUNT: of tgc. */
void cli_help(Str *to, Command command);

#endif
