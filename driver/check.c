/* tgc check: all that can be said of a model without compiling it. */
#include "driver/pipeline.h"

static bool has_train(const Ast *file) {
    for (uint32_t i = 0; i < file->kid_count; i++)
        if (file->kid[i]->kind == AST_TRAIN)
            return true;
    return false;
}

/* A file without `train` is there to be imported: it has no values yet, only names. */
Status command_check(Pipeline *p) {
    TG_TRY(pipeline_run(p, STAGE_NAMES));
    bool whole = has_train(p->unit->file);
    if (!whole && p->cli->value[CLI_SHAPES]) {
        tg_error(p->diags, p->unit->file->loc,
                 "the file has no 'train { }': shapes are known where values are, so name the "
                 "file that imports this one");
        return TG_MODEL;
    }
    Status status = whole ? pipeline_run(p, STAGE_MODEL) : TG_OK;
    shapes_print(p, stdout);
    TG_TRY(status);
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
