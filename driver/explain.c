/* tgc explain -Wname: what a warning means. */
#include "driver/explain.h"

#include <string.h>

/* Users write dashes where the table has underscores. */
static const char *dashed(Arena *arena, const char *name) {
    char *text = tg_arena_str(arena, name, strlen(name));
    for (char *p = text; *p; p++)
        if (*p == '_')
            *p = '-';
    return text;
}

Status command_explain(Pipeline *p) {
    const Texts *arguments = &p->cli->arguments;
    if (arguments->count && explain_is_line(arguments->at[0])) {
        if (arguments->count == 1 && p->cli->warnings.count == 0)
            return explain_line(p);
        tg_error(p->diags, (Loc){0}, "tgc explain takes one line of a model, and nothing else");
        return TG_USAGE;
    }
    if (p->cli->value[CLI_JSON] || p->cli->value[CLI_TRACE] || p->cli->value[CLI_PRECISION] || p->cli->value[CLI_AUTOCAST] ||
        p->cli->sets.count) {
        tg_error(p->diags, (Loc){0}, "-p, --autocast, --json, --trace and --set explain a line: tgc explain FILE.tg:LINE");
        return TG_USAGE;
    }
    const Texts *wanted = p->cli->warnings.count ? &p->cli->warnings : &p->cli->arguments;
    bool found = false;
    for (int w = 0; w < WARNING_COUNT; w++) {
        const char *name = dashed(p->arena, tg_warning_name((Warning)w));
        bool shown = wanted->count == 0;
        for (uint32_t i = 0; i < wanted->count; i++)
            shown = shown || strcmp(wanted->at[i], name) == 0;
        if (shown)
            printf("-W%s: %s\n", name, tg_warning_text((Warning)w));
        found = found || shown;
    }
    if (found)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "there is no warning -W%s; 'tgc explain' lists all", wanted->at[0]);
    return TG_USAGE;
}
