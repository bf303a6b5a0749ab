#include "passes/rewrite.h"

#include <inttypes.h>
#include <string.h>

void tg_counted(PassContext *context, const char *rule, uint64_t count) {
    if (count == 0)
        return;
    for (uint32_t i = context->counts.count; i > 0; i--) {
        RewriteCount *known = &context->counts.at[i - 1];
        if (known->pass == context->pass && strcmp(known->rule, rule) == 0) {
            known->count += count;
            return;
        }
    }
    tg_push(context->arena, &context->counts, (RewriteCount){context->pass, rule, count});
}

static void list_rewrite(const PassContext *context, const char *rule, Loc loc, bool needed, bool runs) {
    const Graph *graph = context->in;
    FILE *to = context->options->dump;
    if (to == NULL)
        return;
    fprintf(to, "BISECT: %srunning rewrite (%" PRId64 ") %s: %s", runs ? "" : "NOT ", context->asked, context->pass->name, rule);
    if (loc.line && graph->sources && loc.file < graph->sources->files.count)
        fprintf(to, " at %s:%" PRIu32, graph->sources->files.at[loc.file].path, loc.line);
    fprintf(to, "%s\n", needed ? " (needed)" : "");
}

static bool ask(PassContext *context, const char *rule, Loc loc, bool needed) {
    context->asked++;
    if (context->options && context->options->bisect_limit >= 0) {
        bool must = needed && !context->options->limit_needed;
        bool runs = must || context->asked <= context->options->bisect_limit;
        list_rewrite(context, rule, loc, must, runs);
        if (!runs)
            return false;
        if (context->asked == context->options->bisect_limit) {
            context->limit_pass = context->pass;
            context->limit_rule = rule;
            context->limit_loc = loc;
        }
    }
    tg_counted(context, rule, 1);
    return true;
}

bool tg_rewrite(PassContext *context, const char *rule, LocsId locs) {
    return ask(context, rule, tg_locs_first(context->in, locs), false);
}

bool tg_needed_rewrite(PassContext *context, const char *rule, LocsId locs) {
    return ask(context, rule, tg_locs_first(context->in, locs), true);
}

static bool may(void *context, const char *rule, Loc loc) { return ask(context, rule, loc, false); }

Builder tg_pass_builder(PassContext *context, Graph *graph, Func *func) {
    Builder b = tg_builder(graph, func, context->fold);
    context->gate = (BuilderGate){may, context};
    if (context->options && context->options->bisect_limit >= 0)
        b.gate = &context->gate;
    return b;
}

void tg_pass_map(PassContext *context, const Func *from, const Func *to, const NodeId *map) {
    tg_push(context->arena, &context->maps, (PassMap){from, to, map});
}

static bool says(const PassContext *context, const bool *set) { return set && set[context->pass - tg_pass(0)]; }

bool tg_says_remarks(const PassContext *context) {
    return says(context, context->options ? context->options->remarks : NULL);
}

bool tg_says_missed(const PassContext *context) {
    return says(context, context->options ? context->options->missed : NULL);
}

void tg_pass_remark(const PassContext *context, LocsId locs, const char *text) {
    tg_remark(context->diags, tg_locs_first(context->in, locs), "%s [-Rpass=%s]", text, context->pass->name);
}

void tg_pass_missed(const PassContext *context, LocsId locs, const char *text) {
    tg_remark(context->diags, tg_locs_first(context->in, locs), "%s [-Rpass-missed=%s]", text, context->pass->name);
}

void tg_rewrites_print(Str *to, const PassContext *context) {
    for (uint32_t i = 0; i < context->counts.count; i++) {
        const RewriteCount *row = &context->counts.at[i];
        tg_str_printf(to, "%-12s %-24s %10" PRIu64 "\n", row->pass ? row->pass->name : "-", row->rule, row->count);
    }
}
