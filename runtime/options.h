/* The command line of a compiled program: `PROGRAM VERB [--option[=value]]... [argument]...`. -x and --x are equal, and
   so are
   `--x 4` and `--x=4`. */
#ifndef TG_OPTIONS_H
#define TG_OPTIONS_H

#include "ir/base/status.h"
#include "ir/base/str.h"
#include "ir/base/vec.h"

typedef enum OptionId {
#define OPTION(id, name, verbs, value, help) OPT_##id,
#include "runtime/options.def"
#undef OPTION
    OPTION_COUNT
} OptionId;

typedef enum VerbId { VERB_TRAIN, VERB_EVAL, VERB_PREDICT, VERB_SAMPLE, VERB_INFO, VERB_DATA, VERB_BENCH, VERB_COUNT } VerbId;

typedef struct Options {
    VerbId verb;
    bool help; /* of the verb, or of the program if `no_verb` */
    bool no_verb;
    const char *value[OPTION_COUNT]; /* NULL: not given; a flag's is "" */
    Vec(const char *) sets;          /* of every --set */
    Vec(const char *) arguments;
} Options;

TG_CHECKED Status tg_options_parse(Arena *arena, int argc, char **argv, Options *options, const char **why);
/* The value of an option as a whole number of `least` or more; `otherwise` if it is not given. */
TG_CHECKED Status tg_options_count(Arena *arena, const Options *options, OptionId id, int64_t least, int64_t otherwise,
                                   int64_t *count, const char **why);
const char *tg_option_name(OptionId id);
void tg_options_help(Str *to, const Options *options, const char *program);

#endif
