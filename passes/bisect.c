#include "passes/bisect.h"

#include <string.h>

typedef struct Search {
    PassContext *user;
    PassOptions options;
    const PassInfo *pass;
    const Graph *in;
    int64_t before; /* rewrites of the passes before */
} Search;

/* Runs the pass with the rewrites up to number `limit`, and compares. */
static Status run(const Search *s, int64_t limit, Diags *diags, PassContext *context, Graph **out) {
    PassOptions options = s->options;
    options.bisect_limit = limit;
    *context = (PassContext){.arena = s->user->arena, .diags = diags, .fold = !options.no_fold, .fuse = !options.no_fuse,
                             .asked = s->before};
    return tg_pass_run(context, &options, s->pass, s->in, out);
}

static Diags quiet_diags(const Search *s) {
    Diags quiet;
    tg_diags_init(&quiet, s->user->arena, s->user->diags->sources, NULL);
    return quiet;
}

static bool is_wrong(const Search *s, int64_t limit) {
    Diags quiet = quiet_diags(s);
    PassContext context;
    Graph *out;
    return run(s, limit, &quiet, &context, &out) == TG_INTERNAL;
}

/* The first limit with which the pass goes wrong; with `wrong` it does. s->before: with none of its own. */
static int64_t first_wrong(const Search *s, int64_t wrong) {
    int64_t right = s->before;
    if (is_wrong(s, right))
        return right;
    while (wrong - right > 1) {
        int64_t half = right + (wrong - right) / 2;
        if (is_wrong(s, half))
            wrong = half;
        else
            right = half;
    }
    return wrong;
}

static void blame(const Search *s, int64_t asked, Bisection *found) {
    int64_t limit = first_wrong(s, asked);
    PassContext context;
    Graph *after = NULL;
    Status status = run(s, limit, s->user->diags, &context, &after);
    *found = (Bisection){.pass = s->pass, .before = s->in, .after = after, .too_large = context.too_large};
    if (limit > s->before) {
        found->rewrite = limit;
        found->rule = context.limit_rule;
        found->loc = context.limit_loc;
    }
    for (uint32_t i = 0; status == TG_INTERNAL && after && i < context.maps.count && found->value.func == NULL; i++)
        tg_validate_values(&context, s->pass, s->in, after, &context.maps.at[i], &found->value);
}

Status tg_bisect_pass(PassContext *context, const PassOptions *options, const PassInfo *pass, const Graph *in, int64_t *asked,
                      Graph **out, Bisection *found) {
    Search s = {.user = context, .options = *options, .pass = pass, .in = in, .before = *asked};
    s.options.validate = s.options.verify_each = s.options.limit_needed = true;
    s.options.dump = NULL;
    Diags quiet = quiet_diags(&s);
    PassContext one;
    Status status = run(&s, INT64_MAX, &quiet, &one, out);
    *asked = one.asked;
    *found = (Bisection){.too_large = one.too_large};
    if (status == TG_INTERNAL)
        blame(&s, one.asked, found);
    else if (status != TG_OK) /* the user's mistake: said aloud */
        return run(&s, INT64_MAX, context->diags, &one, out);
    return TG_OK;
}

Status tg_bisect(PassContext *context, const PassOptions *options, const char *names, const Graph *in, Bisection *found) {
    bool too_large = false;
    int64_t asked = 0;
    Graph *graph = (Graph *)in;
    *found = (Bisection){0};
    for (const char *rest = names; *rest && found->pass == NULL;) {
        size_t length = strcspn(rest, ",");
        const PassInfo *pass;
        TG_TRY(tg_pass_find(context, tg_arena_str(context->arena, rest, length), &pass));
        rest += length + (rest[length] == ',');
        if (tg_pass_is_disabled(options, pass))
            continue;
        TG_TRY(tg_bisect_pass(context, options, pass, graph, &asked, &graph, found));
        too_large = found->too_large = found->too_large || too_large;
    }
    return TG_OK;
}
