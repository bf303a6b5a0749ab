/* tgc check: all that can be said of a model without compiling it. */
#include "driver/pipeline.h"

Status command_check(Pipeline *p) {
    TG_TRY(pipeline_run(p, STAGE_MODEL));
    if (p->diags->errors)
        return TG_MODEL;
    if (p->diags->json)
        return TG_OK;
    uint32_t warnings = p->diags->warnings;
    if (warnings)
        fprintf(stderr, "%s: ok, %u warning%s\n", p->cli->arguments.at[0], warnings, warnings == 1 ? "" : "s");
    else
        fprintf(stderr, "%s: ok\n", p->cli->arguments.at[0]);
    return TG_OK;
}
