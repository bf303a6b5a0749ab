/* What passes tell compiler developers: --print-changed, --opt-bisect-limit, --stats, -Rpass, -Rpass-missed. */
#include "driver/pipeline.h"
#include "passes/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool bisect_limit(Pipeline *p, const char *text, PassOptions *options) {
    char *end;
    errno = 0;
    long long limit = strtoll(text, &end, 10);
    if (end == text || *end || limit < 0 || errno) {
        tg_error(p->diags, (Loc){0}, "--opt-bisect-limit is a number of rewrites, not '%s'", text);
        return false;
    }
    options->bisect_limit = limit;
    return true;
}

static bool matches(Pipeline *p, const char *option, const char *pattern, bool *set) {
    const char *why;
    if (pattern == NULL || tg_pass_match(p->arena, pattern, set, &why) == TG_OK)
        return true;
    tg_error(p->diags, (Loc){0}, "-%s: %s", option, why);
    return false;
}

bool pass_reports(Pipeline *p, PassOptions *options) {
    const char *const *value = p->cli->value;
    bool ok = true;
    options->print_diff = value[CLI_PRINT_CHANGED] != NULL;
    if (options->print_diff && strcmp(value[CLI_PRINT_CHANGED], "diff") != 0) {
        tg_error(p->diags, (Loc){0}, "--print-changed prints a diff, so it is --print-changed=diff, not '%s'",
                 value[CLI_PRINT_CHANGED]);
        ok = false;
    }
    if (value[CLI_BISECT_LIMIT])
        ok = bisect_limit(p, value[CLI_BISECT_LIMIT], options) && ok;
    ok = matches(p, "Rpass", value[CLI_REMARKS], options->remarks) && ok;
    return matches(p, "Rpass-missed", value[CLI_MISSED], options->missed) && ok;
}

void pass_stats(const Pipeline *p, const PassContext *context) {
    if (p->cli->value[CLI_STATS] == NULL)
        return;
    Str text = tg_str(p->arena);
    tg_rewrites_print(&text, context);
    fwrite(text.text, 1, text.length, stderr);
}
