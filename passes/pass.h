/* Passes: each reads an immutable graph and appends to a new one. The runner verifies, times, dumps and blames. */
#ifndef TG_PASS_H
#define TG_PASS_H

#include "ir/build.h"

/* What --validate may assume of a pass (the reference evaluator runs before and after it and compares). */
typedef enum PassEffect {
    EFFECT_KEEPS,   /* every value keeps its bits */
    EFFECT_ADDS,    /* adds functions or results; those that were there keep their values */
    EFFECT_REPLACES, /* functions become others (optimizer, batch): compared through whole steps, in f64 */
    EFFECT_ROUNDS,  /* values change by rounding: compared in f64 */
} PassEffect;

typedef struct PassInfo PassInfo;
typedef struct PassOptions PassOptions;

/* How often a rule of a pass has fired. */
typedef struct RewriteCount {
    const PassInfo *pass;
    const char *rule;
    uint64_t count;
} RewriteCount;

/* What the pass that runs says of one function: value `n` of `from` is value map[n] of `to`; 0: it is not there any more. */
typedef struct PassMap {
    const Func *from, *to;
    const NodeId *map;
} PassMap;

/* A cast that mixed precision puts into `func` of the graph that it reads, where `locs` says: of a value of the shape of `type`,
   because of `rule`. */
typedef struct PassCast {
    const Func *func;
    LocsId locs;
    TypeId type;
    DType from, to;
    const char *rule;
} PassCast;

/* What micro's backward half computes again instead of reading it from the forward half (pass recompute). */
typedef enum RecomputeMode {
    RECOMPUTE_NONE,
    RECOMPUTE_AUTO, /* what costs next to nothing; and `dear` dots and the like, in the order of what they save for their price */
    RECOMPUTE_FULL, /* all but checkpoints, which lie so that the least is kept */
    RECOMPUTE_ALL,  /* for tests: what would save nothing too */
} RecomputeMode;

typedef struct Recompute {
    RecomputeMode mode;
    uint32_t dear;
} Recompute;

/* What the pass did, in one micro-batch. */
typedef struct Recomputed {
    uint32_t values;           /* that are not kept */
    uint32_t dear, candidates; /* dots and the like computed again; how many could be */
    double flops, step_flops;  /* of what is computed again; of micro without it */
} Recomputed;

typedef struct PassContext {
    Arena *arena;
    Diags *diags;
    bool fold; /* for tg_builder */
    bool fuse; /* off: every node is a kernel of its own, bits are the same */
    Recompute recompute;
    Recomputed recomputed;

    /* The runner's, for passes/rewrite.h. */
    const PassOptions *options; /* NULL: a pass is run by itself */
    const PassInfo *pass;       /* the one that runs */
    const Graph *in;            /* what it reads */
    int64_t asked;              /* rewrites so far, over all passes */
    const PassInfo *limit_pass; /* of --opt-bisect-limit: whose the last rewrite is that it lets fire, */
    const char *limit_rule;     /* by which rule, */
    Loc limit_loc;              /* and where */
    BuilderGate gate;
    Vec(PassMap) maps;
    bool too_large;             /* --validate has said that it leaves something out */
    Vec(RewriteCount) counts;
    Vec(PassCast) casts; /* of the pass autocast */
} PassContext;

typedef Status PassRun(PassContext *context, const Graph *in, Graph **out);

struct PassInfo {
    const char *name, *summary;
    PassRun *run;
    Level from, to;
    PassEffect effect;
};

enum {
#define PASS(name, ...) PASS_##name,
#include "passes/passes.def"
#undef PASS
    PASS_COUNT
};
const PassInfo *tg_pass(int pass);
int tg_pass_named(const char *name); /* -1: none */
/* Sets `set` for the passes whose name the extended regular expression matches whole. TG_USAGE and `*why`: it is none, or
   matches no pass. */
TG_CHECKED Status tg_pass_match(Arena *arena, const char *pattern, bool set[PASS_COUNT], const char **why);

struct PassOptions {
    bool no_fold, no_fuse;
    bool verify_each;            /* default true: see tg_pass_options */
    bool validate;
    bool time_report;
    const char *print_after;        /* pass name or "all" */
    const char *print_after_change; /* likewise, only when it changed something */
    const char *disable[16];
    uint32_t disabled;
    FILE *dump;                  /* where dumps and the time report go: stderr */
    const char *crash_directory; /* reproducers; "." */
    bool print_diff;             /* after a pass that changed something, what it changed */
    int64_t bisect_limit;        /* this many rewrites fire, no more, and each is listed (in `dump`); -1: no limit, no list */
    bool limit_needed;           /* rewrites that a program cannot do without obey the limit too: only the graph is wanted */
    bool remarks[PASS_COUNT];    /* per pass: say what was done (-Rpass), and what was not and why (-Rpass-missed) */
    bool missed[PASS_COUNT];
};
PassOptions tg_pass_options(void);

/* Reports a name that no pass has. */
TG_CHECKED Status tg_pass_find(PassContext *context, const char *name, const PassInfo **pass);
bool tg_pass_is_disabled(const PassOptions *options, const PassInfo *pass);
/* Runs one pass; verifies, validates and dumps as `options` say. */
TG_CHECKED Status tg_pass_run(PassContext *context, const PassOptions *options, const PassInfo *pass, const Graph *in, Graph **out);
/* Runs the named passes ("a,b") in order; on an internal failure writes a reproducer and names it. */
TG_CHECKED Status tg_passes_run(PassContext *context, const PassOptions *options, const char *names, const Graph *in,
                                Graph **out);
/* The passes of the pipeline that a graph of this level has still to go through: "a,b". */
const char *tg_phases_from(Arena *arena, Level level);
/* The pipeline of phases.c up to `until` (a pass name, or NULL: all). */
TG_CHECKED Status tg_phases_run(PassContext *context, const PassOptions *options, const char *until, const Graph *in,
                                Graph **out);

#endif
