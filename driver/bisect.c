/* tgc bisect: the pass, the rewrite and the first value that go wrong, by the reference evaluator or by a test script. */
#include "driver/script.h"
#include "passes/bisect.h"

#include <string.h>

/* A pipeline of the same file with other options. */
static Pipeline *like(Pipeline *p, const char *limit, bool fold) {
    Cli *cli = tg_arena_copy(p->arena, p->cli, sizeof *cli);
    Pipeline *own = TG_ALLOC(p->arena, Pipeline, 1);
    cli->value[CLI_BISECT_LIMIT] = limit;
    cli->value[CLI_NO_FOLD] = fold ? NULL : "";
    *own = (Pipeline){.arena = p->arena, .diags = p->diags, .sources = p->sources, .cli = cli, .quiet = true};
    return own;
}

static const char *input(const Pipeline *p) { return p->cli->arguments.at[0]; }

/* ---- what was found ---- */

static void say_place(const Pipeline *p, Loc loc) {
    if (loc.line && loc.file < p->sources->files.count)
        printf(" at %s:%u", p->sources->files.at[loc.file].path, loc.line);
    printf("\n");
}

static void say_rewrite(const Pipeline *p, const char *pass, int64_t number, const char *rule, Loc loc) {
    printf("pass     %s\n", pass);
    if (number == 0) {
        printf("rewrite  none: it is wrong with all of them left out\n");
        return;
    }
    printf("rewrite  %lld, %s", (long long)number, rule);
    say_place(p, loc);
}

static void say_node(const Pipeline *p, const char *what, const Graph *graph, const Func *func, NodeId id) {
    Str text = tg_str(p->arena);
    tg_node_print(&text, graph, func, id);
    printf("%-8s %s in @%s", what, text.text, func->name);
    say_place(p, tg_locs_first(graph, tg_node(func, id)->locs));
}

static void say_value(const Pipeline *p, const Bisection *found) {
    const ValueDiffers *value = &found->value;
    char text[2][TG_NUMBER_TEXT];
    if (value->func == NULL)
        return;
    say_node(p, "value", found->before, value->func, value->value);
    say_node(p, "now", found->after, tg_func_find(found->after, value->func->kind, value->func->name), value->copy);
    printf("element  %lld: %s expected, %s got\n", (long long)value->element, tg_number_text(value->expected, text[0]),
           tg_number_text(value->got, text[1]));
}

static Status say(const Pipeline *p, const Bisection *found) {
    if (found->too_large)
        tg_note(p->diags, (Loc){0}, "what has too many elements was not compared: give it smaller sizes%s",
                is_model(input(p)) ? " (--set)" : "");
    if (found->pass == NULL) {
        printf("every pass keeps the values of %s\n", input(p));
        return TG_OK;
    }
    say_rewrite(p, found->pass->name, found->rewrite, found->rule, found->loc);
    say_value(p, found);
    return TG_DIFFERS;
}

static Status say_folding(void) {
    printf("pass     fold, while the graph is built from the source\n");
    return TG_DIFFERS;
}

/* ---- the evaluator judges ---- */

/* What the builder folds while the graph is made of the source comes before all passes: it is told by comparing with none of it. */
static Status compare_folding(Pipeline *p, bool *wrong, bool *too_large) {
    static const PassInfo fold = {.name = "fold", .effect = EFFECT_KEEPS};
    Pipeline *plain = like(p, NULL, false);
    TG_TRY(pipeline_run(plain, STAGE_MODEL));
    PassContext context = {.arena = p->arena, .diags = p->diags, .pass = &fold};
    Status status = tg_validate(&context, &fold, plain->model, p->model);
    *too_large = context.too_large;
    *wrong = status == TG_INTERNAL;
    return *wrong ? TG_OK : status;
}

static Status graph_and_passes(Pipeline *p, Graph **graph, const char **passes) {
    if (is_model(input(p))) {
        TG_TRY(pipeline_run(p, STAGE_MODEL));
        *graph = p->model;
    } else
        TG_TRY(read_graph(p, input(p), graph));
    *passes = p->cli->value[CLI_PASSES];
    if (*passes == NULL)
        *passes = tg_phases_from(p->arena, (*graph)->level);
    if (**passes)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "no pass reads a graph@%s", tg_level_name((int)(*graph)->level));
    return TG_USAGE;
}

static Status by_evaluator(Pipeline *p) {
    Graph *graph;
    const char *passes;
    Status status;
    PassOptions options = pipeline_pass_options(p, &status);
    TG_TRY(status);
    TG_TRY(graph_and_passes(p, &graph, &passes));
    bool wrong = false, too_large = false;
    if (is_model(input(p)))
        TG_TRY(compare_folding(p, &wrong, &too_large));
    if (wrong)
        return say_folding();
    Bisection found;
    PassContext *context = pipeline_passes(p);
    TG_TRY(tg_bisect(context, &options, passes, graph, &found));
    p->passes = NULL;
    found.too_large = found.too_large || too_large;
    return say(p, &found);
}

/* ---- a script judges ---- */

typedef struct Trial {
    Pipeline *p;
    Script script;
    const char *file;
    const PassContext *ran; /* of the last one */
    ScriptEnd end;
    int code;
} Trial;

static Status make_program(Trial *t, Pipeline *own) {
    TG_TRY(pipeline_run(own, STAGE_PLAN));
    t->ran = own->ran;
    LlvmRequest request = pipeline_request(own);
    return tg_program_write(t->p->arena, t->p->diags, &request, t->file, NULL);
}

static Status make_graph(Trial *t, Pipeline *own) {
    Status status;
    PassOptions options = pipeline_pass_options(own, &status);
    TG_TRY(status);
    Graph *graph, *result;
    const char *passes;
    TG_TRY(graph_and_passes(own, &graph, &passes));
    PassContext *context = pipeline_passes(own);
    TG_TRY(tg_passes_run(context, &options, passes, graph, &result));
    t->ran = context;
    Str text = tg_str(t->p->arena);
    tg_graph_print(&text, result);
    return write_text(t->p, t->file, &text);
}

/* Is what the first `limit` rewrites give right? */
static Status judge(Trial *t, int64_t limit, bool fold, bool *right) {
    Pipeline *own = like(t->p, tg_arena_printf(t->p->arena, "%lld", (long long)limit), fold);
    TG_TRY(is_model(input(t->p)) ? make_program(t, own) : make_graph(t, own));
    t->end = script_run(&t->script, t->file, &t->code);
    remove(t->file);
    *right = t->end == SCRIPT_EXITED && t->code == 0;
    if (t->end != SCRIPT_STOPPED)
        return TG_OK;
    tg_error(t->p->diags, (Loc){0}, "interrupted");
    return TG_USAGE;
}

static Status nothing_wrong(Trial *t) {
    tg_error(t->p->diags, (Loc){0}, "nothing is wrong with %s: %s exited with 0", input(t->p), t->p->cli->value[CLI_JUDGE]);
    tg_note(t->p->diags, (Loc){0}, "it gets the program's file (of a graph, the graph after all passes) as its argument and exits 0 "
                                   "if that is right");
    return TG_USAGE;
}

/* With no rewrite it is still wrong. */
static Status without_rewrites(Trial *t) {
    bool right = false;
    if (is_model(input(t->p)))
        TG_TRY(judge(t, 0, false, &right));
    if (right)
        return say_folding();
    printf("pass     none: it is wrong with no rewrite at all; look at the source, what every program needs, and code generation\n");
    return TG_DIFFERS;
}

static Status search(Trial *t) {
    enum { ALL = 1 << 30 };
    bool right;
    TG_TRY(judge(t, ALL, true, &right));
    if (right)
        return nothing_wrong(t);
    int64_t good = 0, wrong = t->ran->asked;
    TG_TRY(judge(t, 0, true, &right));
    if (!right)
        return without_rewrites(t);
    while (wrong - good > 1) {
        int64_t half = good + (wrong - good) / 2;
        TG_TRY(judge(t, half, true, &right));
        *(right ? &good : &wrong) = half;
    }
    TG_TRY(judge(t, wrong, true, &right));
    say_rewrite(t->p, t->ran->limit_pass->name, wrong, t->ran->limit_rule, t->ran->limit_loc);
    printf("test     %s %s; with the rewrites before this one it exited with 0\n", t->p->cli->value[CLI_JUDGE],
           script_end_text(t->p->arena, &t->script, t->end, t->code));
    return TG_DIFFERS;
}

static Status by_script(Pipeline *p) {
    Trial t = {.p = p};
    TG_TRY(script_open(p, p->cli->value[CLI_JUDGE], &t.script));
    t.file = tg_arena_printf(p->arena, "%s/%s", t.script.folder, is_model(input(p)) ? "program" : "graph.tgir");
    Status status = search(&t);
    script_close(&t.script);
    return status;
}

Status command_bisect(Pipeline *p) {
    if (p->cli->value[CLI_PASSES] && is_model(input(p))) {
        tg_error(p->diags, (Loc){0}, "--passes is for a graph; on a model all passes run, but those of --disable-pass");
        return TG_USAGE;
    }
    if (p->cli->value[CLI_JUDGE] && strcmp(input(p), "-") == 0) {
        tg_error(p->diags, (Loc){0}, "with --test the graph is read again and again: it must be a file");
        return TG_USAGE;
    }
    return p->cli->value[CLI_JUDGE] ? by_script(p) : by_evaluator(p);
}
