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

static void list_rewrite(const PassContext *context, const char *rule, LocsId locs, bool runs) {
    const Graph *graph = context->in;
    Loc loc = tg_locs_first(graph, locs);
    FILE *to = context->options->dump;
    fprintf(to, "BISECT: %srunning rewrite (%" PRId64 ") %s: %s", runs ? "" : "NOT ", context->asked, context->pass->name, rule);
    if (loc.line && graph->sources && loc.file < graph->sources->files.count)
        fprintf(to, " at %s:%" PRIu32, graph->sources->files.at[loc.file].path, loc.line);
    fputc('\n', to);
}

bool tg_rewrite(PassContext *context, const char *rule, LocsId locs) {
    context->asked++;
    if (context->options && context->options->bisect_limit >= 0) {
        bool runs = context->asked <= context->options->bisect_limit;
        list_rewrite(context, rule, locs, runs);
        if (!runs)
            return false;
    }
    tg_counted(context, rule, 1);
    return true;
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
