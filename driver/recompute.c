/* --recompute and --memory: how much the pass recompute does. A budget is met by the least recomputation with which the plan fits: the
   plan is the judge, made again and again from the graph that the pass reads. */
#include "driver/pipeline.h"
#include "driver/units.h"

#include <string.h>

/* What comes before the pass, and from it on. */
static const char before[] = "clean", from_it[] = "recompute,layout", all_from_it[] = "recompute,layout,fuse";

typedef struct Budget {
    Pipeline *p;
    const PassOptions *options;
    const Graph *graph; /* what the pass reads */
    double memory;      /* 0: any */
    Recompute wanted, chosen;
    uint32_t candidates;
    int64_t plain, bytes, least; /* of the plan: without recomputation, as chosen, the least so far */
} Budget;

static const char *const mode_names[] = {[RECOMPUTE_NONE] = "none", [RECOMPUTE_AUTO] = "auto", [RECOMPUTE_FULL] = "full"};

static Status read_mode(Pipeline *p, Recompute *recompute) {
    const char *text = p->cli->value[CLI_RECOMPUTE];
    bool bounded = p->cli->value[CLI_MEMORY] && p->cli->command != COMMAND_FIT;
    recompute->mode = text == NULL && bounded ? RECOMPUTE_AUTO : RECOMPUTE_NONE;
    for (int i = 0; i <= RECOMPUTE_FULL; i++)
        if (text && strcmp(text, mode_names[i]) == 0)
            recompute->mode = (RecomputeMode)i;
    if (text == NULL || strcmp(text, mode_names[recompute->mode]) == 0)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "--recompute is none, auto or full, not '%s'", text);
    return TG_USAGE;
}

Status recompute_options(Pipeline *p, Recompute *recompute, double *memory) {
    *memory = 0;
    *recompute = (Recompute){0};
    TG_TRY(read_mode(p, recompute));
    if (p->cli->command == COMMAND_FIT && recompute->mode == RECOMPUTE_AUTO)
        recompute->mode = RECOMPUTE_FULL; /* so far it may go */
    return p->cli->command == COMMAND_FIT ? TG_OK : units_memory(p->diags, p->cli->value[CLI_MEMORY], memory);
}

/* ---- plans ---- */

static Status plan_bytes(Budget *budget, Arena *arena, Recompute recompute, int64_t *bytes) {
    Diags quiet;
    tg_diags_init(&quiet, arena, budget->p->sources, NULL);
    PassContext context = {.arena = arena, .diags = &quiet, .recompute = recompute};
    PassOptions options = tg_pass_options();
    options.verify_each = false;
    options.no_fold = budget->options->no_fold, options.no_fuse = budget->options->no_fuse;
    options.disabled = budget->options->disabled;
    memcpy(options.disable, budget->options->disable, sizeof options.disable);
    Graph *kernel, mine = *budget->graph;
    mine.arena = arena;
    Lowered lowered;
    TG_TRY(tg_passes_run(&context, &options, all_from_it, &mine, &kernel));
    TG_TRY(tg_plan_build(arena, &quiet, kernel, "", pipeline_target(budget->p), &lowered));
    *bytes = lowered.plan->arena_bytes;
    budget->candidates = context.recomputed.candidates;
    return TG_OK;
}

/* In memory of its own, which is free again afterwards. */
static Status probe(Budget *budget, Recompute recompute, int64_t *bytes) {
    Arena arena;
    tg_arena_init(&arena, budget->p->arena->host);
    Status status = setjmp(arena.guard) ? TG_MEMORY : plan_bytes(budget, &arena, recompute, bytes);
    tg_arena_deinit(&arena);
    if (status == TG_OK && (budget->least == 0 || *bytes < budget->least))
        budget->least = *bytes;
    return status;
}

static bool fits(const Budget *budget, int64_t bytes) { return budget->memory == 0 || (double)bytes <= budget->memory; }

static Status try(Budget *budget, Recompute recompute, bool *is_small) {
    int64_t bytes;
    TG_TRY(probe(budget, recompute, &bytes));
    *is_small = fits(budget, bytes);
    if (*is_small)
        budget->chosen = recompute, budget->bytes = bytes;
    return TG_OK;
}

/* The fewest dear values with which it fits, if with all of them it does. */
static Status try_dear(Budget *budget) {
    bool is_small;
    TG_TRY(try(budget, (Recompute){RECOMPUTE_AUTO, 0}, &is_small));
    if (is_small)
        return TG_OK;
    uint32_t low = 0, high = budget->candidates;
    TG_TRY(try(budget, (Recompute){RECOMPUTE_AUTO, high}, &is_small));
    while (is_small && high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        bool middle_fits;
        TG_TRY(try(budget, (Recompute){RECOMPUTE_AUTO, middle}, &middle_fits));
        if (middle_fits)
            high = middle;
        else
            low = middle;
    }
    return TG_OK;
}

static Status too_large(const Budget *budget) {
    Pipeline *p = budget->p;
    Arena *arena = p->arena;
    const char *how = budget->wanted.mode == RECOMPUTE_NONE ? "" : ", with all that can be computed again";
    tg_error(p->diags, (Loc){0}, "the program does not fit into %s: its plan takes %s at least%s (--memory=%lld)",
             tg_bytes_text(arena, budget->memory), tg_bytes_text(arena, (double)budget->least), how, (long long)budget->least);
    if (budget->wanted.mode == RECOMPUTE_NONE)
        tg_note(p->diags, (Loc){0}, "--recompute=auto computes values again instead of keeping them");
    const char *file = p->cli->arguments.at[0], *memory = p->cli->value[CLI_MEMORY], *mode = mode_names[budget->wanted.mode];
    tg_note(p->diags, (Loc){0}, "a smaller batch takes less, and a smaller 'micro', the records that are computed at once: "
            "'tgc fit %s --vary=micro --memory=\"%s\" --recompute=%s' finds the largest that fits", file, memory, mode);
    return TG_MEMORY;
}

static Status choose(Budget *budget) {
    bool is_small;
    TG_TRY(probe(budget, (Recompute){0}, &budget->plain));
    budget->chosen = budget->wanted, budget->bytes = budget->plain;
    if (budget->memory > 0 && budget->wanted.mode != RECOMPUTE_FULL && fits(budget, budget->plain)) {
        budget->chosen = (Recompute){0};
        return TG_OK;
    }
    if (budget->wanted.mode == RECOMPUTE_AUTO && budget->memory > 0)
        TG_TRY(try_dear(budget));
    else if (budget->wanted.mode != RECOMPUTE_NONE)
        TG_TRY(try(budget, budget->wanted, &is_small));
    if (budget->bytes >= budget->plain) /* it would be for nothing */
        budget->chosen = (Recompute){0};
    return fits(budget, budget->bytes) ? TG_OK : too_large(budget);
}

/* ---- what is said of it ---- */

/* "31 values and 12 dots ..." */
static const char *price_text(const Pipeline *p) {
    const Recomputed *r = &p->ran->recomputed;
    const char *dear = r->dear ? tg_arena_printf(p->arena, ", with %u dots and the like", r->dear) : "";
    return tg_arena_printf(p->arena, "%u values are computed again%s: %s operations a micro-batch, %.2g %% more", r->values, dear,
                           units_count(p->arena, r->flops), r->step_flops > 0 ? 100 * r->flops / r->step_flops : 0);
}

static const char *saving_text(const Pipeline *p) {
    return tg_arena_printf(p->arena, "%s of memory instead of %s", tg_bytes_text(p->arena, (double)p->recompute_bytes),
                           tg_bytes_text(p->arena, (double)p->plain_bytes));
}

void recompute_note(Pipeline *p) {
    if (p->plain_bytes && p->ran->recompute.mode != RECOMPUTE_NONE)
        tg_note(p->diags, (Loc){0}, "%s; %s", price_text(p), saving_text(p));
    else if (p->plain_bytes && p->cli->value[CLI_MEMORY] == NULL)
        tg_note(p->diags, (Loc){0}, "nothing is computed again: it would save no memory");
}

void recompute_report(Str *to, const Pipeline *p) {
    const Recompute *how = &p->ran->recompute;
    tg_str_printf(to, "recompute     %s", mode_names[how->mode]);
    if (how->mode != RECOMPUTE_NONE)
        tg_str_printf(to, ": %s; %s", price_text(p), saving_text(p));
    tg_str_printf(to, "\n");
}

Status recompute_run(Pipeline *p, PassContext *context, const PassOptions *options, Graph **step) {
    Budget budget = {.p = p, .options = options};
    Graph *cut;
    TG_TRY(recompute_options(p, &budget.wanted, &budget.memory));
    TG_TRY(tg_phases_run(context, options, before, p->model, &cut));
    budget.graph = cut;
    if (budget.memory > 0 || (budget.wanted.mode != RECOMPUTE_NONE && p->cli->command != COMMAND_FIT))
        TG_TRY(choose(&budget));
    else
        budget.chosen = budget.wanted;
    context->recompute = budget.chosen;
    p->plain_bytes = budget.plain;
    p->recompute_bytes = budget.bytes;
    return tg_passes_run(context, options, from_it, cut, step);
}
