/* The steps that the commands share: from a source file to a plan. */
#ifndef TG_PIPELINE_H
#define TG_PIPELINE_H

#include "codegen/codegen.h"
#include "driver/cli.h"
#include "frontend/ast.h"

typedef enum Stage { STAGE_AST, STAGE_NAMES, STAGE_MODEL, STAGE_STEP, STAGE_KERNEL, STAGE_PLAN } Stage;

typedef struct Shapes Shapes;

typedef struct Pipeline {
    Arena *arena;
    Diags *diags;
    Sources *sources;
    const Cli *cli;
    Texts run_sets;  /* of --set: those that the program takes */
    Unit *unit, *std;
    bool named; /* names are checked */
    DType low; /* of mixed precision; DT_F32: there is none */
    Graph *model, *step, *kernel;
    int64_t plain_bytes, recompute_bytes; /* of the plan, without and with recomputation; 0: not asked for */
    Lowered lowered;
    const char *doing;      /* the part that runs: "parsing"; NULL: none yet */
    PassContext *passes;    /* while passes run */
    PassContext *ran;       /* once they have */
    bool quiet;             /* passes print nothing */
    bool reads_graph;       /* the input is a graph's text: source files are only named in it */
    Shapes *shapes; /* of --shapes, once lowering has begun; or NULL */
} Pipeline;

/* What -p asks for: p->low. */
TG_CHECKED Status precision_choose(Pipeline *p);
/* Says it to the model's graph. */
void precision_apply(Pipeline *p);
/* Reads the rules of --autocast. */
TG_CHECKED Status precision_rules(Pipeline *p, LowerOptions *options);
PassOptions pipeline_pass_options(Pipeline *p, Status *status);
/* Their part that is for compiler developers: --print-changed, --opt-bisect-limit, -Rpass, -Rpass-missed. False: reported. */
bool pass_reports(Pipeline *p, PassOptions *options);
/* --stats, once all passes have run. */
void pass_stats(const Pipeline *p, const PassContext *context);
/* From cli->arguments.at[0] up to `until`; what an earlier call has reached stays. A compile command's --set all go to the
   compiler; a program's verb keeps those that name run-time settings in `run_sets`. */
TG_CHECKED Status pipeline_run(Pipeline *p, Stage until);
/* "not built yet", TG_USAGE, for values of -p, -dp, --target ... that are none so far. */
TG_CHECKED Status pipeline_check_options(Pipeline *p);
/* Prints how long the part took that began at `start` seconds; with --time-report. */
double pipeline_seconds(void);
/* What runs from here on; when it begins. */
double pipeline_begin(Pipeline *p, const char *part);
/* For passes, until `passes` is NULL again. */
PassContext *pipeline_passes(Pipeline *p);
void pipeline_time(const Pipeline *p, const char *part, double start);
/* path/digits.tg: digits */
const char *pipeline_base_name(const Pipeline *p);
LlvmRequest pipeline_request(const Pipeline *p);

/* Commands. */
TG_CHECKED Status command_check(Pipeline *p);
TG_CHECKED Status command_compile(Pipeline *p);
TG_CHECKED Status command_opt(Pipeline *p);
TG_CHECKED Status command_llc(Pipeline *p);
TG_CHECKED Status command_diff(Pipeline *p); /* TG_DIFFERS: they are not the same */
TG_CHECKED Status command_reduce(Pipeline *p);
TG_CHECKED Status command_bisect(Pipeline *p); /* TG_DIFFERS: something goes wrong, and is named */
TG_CHECKED Status command_explain(Pipeline *p);
TG_CHECKED Status command_replay(Pipeline *p);
TG_CHECKED Status command_profile(Pipeline *p);
TG_CHECKED Status command_fit(Pipeline *p);
TG_CHECKED Status command_ranges(Pipeline *p);
TG_CHECKED Status command_run(Pipeline *p); /* train, eval, predict, info, bench; does not come back when all is well */
TG_CHECKED Status command_new(Pipeline *p);
TG_CHECKED Status command_completion(Pipeline *p);
TG_CHECKED Status command_man(Pipeline *p);
TG_CHECKED Status bundle_write(Pipeline *p); /* --bundle */
bool is_model(const char *path); /* it ends in .tg */
/* A graph's text, "-" from standard input, verified. */
TG_CHECKED Status read_graph(Pipeline *p, const char *path, Graph **graph);
/* `path` NULL or "-": standard output. */
TG_CHECKED Status write_text(Pipeline *p, const char *path, const Str *text);
/* Names of --emit; NULL behind the last. */
const char *emit_stage_name(int index);
/* --emit=cuda, cubin, ptxas, and that --arch stands only with the last two (cuda.c) */
TG_CHECKED Status cuda_text(Pipeline *p, const Lowered *lowered, Str *to);
TG_CHECKED Status cuda_binary(Pipeline *p, const Lowered *lowered, Str *to);
TG_CHECKED Status cuda_usage(Pipeline *p, const Lowered *lowered, Str *to);
TG_CHECKED Status cuda_check_arch(Pipeline *p);
bool cuda_is_emitted(const Pipeline *p);
/* --shapes: what lowering sees is kept; later the source is printed with it. */
void shapes_watch(Pipeline *p, LowerOptions *options);
void shapes_print(Pipeline *p, FILE *to);
const char *shapes_of_line(Pipeline *p, uint32_t line); /* what it prints in the margin; "": nothing */
/* --recompute, --memory: what they say; from graph@model to graph@step as they say; TG_MEMORY: it does not fit, and what to do. */
TG_CHECKED Status recompute_options(Pipeline *p, Recompute *recompute, double *memory);
TG_CHECKED Status recompute_run(Pipeline *p, PassContext *context, const PassOptions *options, Graph **step);
void recompute_note(Pipeline *p);
void recompute_report(Str *to, const Pipeline *p);
LoopTarget pipeline_target(const Pipeline *p);
/* --report */
void report_print(Str *to, const TgPlan *plan);

#endif
