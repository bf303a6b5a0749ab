/* Blocks of settings: data with its split, and train. */
#include "frontend/sema.h"

#include <string.h>

bool sema_has_split(const Ast *data, const char *name) {
    for (uint32_t i = 1; i < data->kid_count; i++)
        if (data->kid[i]->kind == AST_SPLIT)
            for (uint32_t k = 0; k < data->kid[i]->kid_count; k++)
                if (strcmp(data->kid[i]->kid[k]->name, name) == 0)
                    return true;
    return false;
}

static bool names_field(const Ast *data, const Ast *value) {
    for (uint32_t i = 1; i < data->kid_count; i++)
        if (data->kid[i]->kind == AST_FIELD && value->kind == AST_NAME && strcmp(data->kid[i]->name, value->name) == 0)
            return true;
    return false;
}

static void check_split(Sema *s, const Ast *data, const Ast *split) {
    static const char *const of_fields[] = {"by", "stratify", NULL};
    sema_duplicates(s, split, 0, AST_SETTING, "setting");
    for (uint32_t i = 0; i < split->kid_count; i++) {
        const Ast *setting = split->kid[i], *value = setting->kid[0];
        if (!sema_is(setting->name, of_fields))
            sema_expr(s, value);
        else if (!names_field(data, value))
            tg_error(s->diags, value->loc, "'%s' names a field of %s", setting->name, data->name);
    }
}

static void check_source(Sema *s, const Ast *source) {
    static const char *const readers[] = {"idx", "csv", "text", "images", "folders", "npy", "records", NULL};
    enum { READERS = sizeof readers / sizeof *readers - 1 };
    const Ast *callee = source->kind == AST_CALL ? source->kid[0] : NULL;
    if (callee == NULL || callee->kind != AST_NAME) {
        tg_error(s->diags, source->loc, "a field comes from a call of a reader, as in: from idx(\"file\")");
        return;
    }
    if (!sema_is(callee->name, readers)) {
        tg_error(s->diags, callee->loc, "unknown reader '%s'%s", callee->name,
                 sema_hint(s, callee->name, readers, READERS));
        sema_fixit(s, callee->loc, callee->name, readers, READERS);
    }
    sema_duplicates(s, source, 1, AST_NAMED, "argument");
    for (uint32_t i = 1; i < source->kid_count; i++)
        sema_expr(s, source->kid[i]);
}

void sema_data(Sema *s, const Ast *data) {
    uint32_t before = s->symbols.count;
    const Ast *first_split = NULL;
    sema_arguments(s, data->kid[0]);
    sema_duplicates(s, data, 1, AST_FIELD, "field");
    for (uint32_t i = 1; i < data->kid_count; i++) {
        const Ast *kid = data->kid[i];
        if (kid->kind == AST_FIELD) {
            sema_type(s, kid->kid[0], TYPE_PLAIN);
            check_source(s, kid->kid[1]);
        } else if (kid->kind == AST_SPLIT) {
            check_split(s, data, kid);
            if (first_split) {
                tg_error(s->diags, kid->loc, "data %s has two splits", data->name);
                tg_note(s->diags, first_split->loc, "the first one is here");
            }
            first_split = kid;
        }
    }
    sema_pop(s, before);
}

void sema_train(Sema *s, const Ast *train) {
    static const char *const known[] = {"data",      "validate", "objective",   "batch",          "micro",
                                        "lanes",     "epochs",   "steps",       "optimizer",      "seed",
                                        "clip_norm", "shuffle",  "batch_stats", "validate_every", "stop",
                                        "keep_best", "average",  "loss_scale",  "show",           NULL};
    enum { KNOWN = sizeof known / sizeof *known - 1 };
    static const char *const needed[] = {"data", "objective", "optimizer", NULL};
    static const char *const decided[] = {"stop", "keep_best", NULL};
    sema_duplicates(s, train, 0, AST_SETTING, "setting");
    for (uint32_t i = 0; i < train->kid_count; i++) {
        const Ast *setting = train->kid[i];
        if (!sema_is(setting->name, known)) {
            tg_error(s->diags, setting->name_loc, "unknown setting '%s'%s", setting->name,
                     sema_hint(s, setting->name, known, KNOWN));
            sema_fixit(s, setting->name_loc, setting->name, known, KNOWN);
        }
        uint32_t before = s->symbols.count;
        if (sema_is(setting->name, decided)) /* by the fields of a validation */
            sema_push(s, SYM_ARGUMENT, "val", setting->loc, setting);
        sema_expr(s, setting->kid[0]);
        sema_pop(s, before);
    }
    for (const char *const *name = needed; *name; name++) {
        bool found = false;
        for (uint32_t i = 0; i < train->kid_count; i++)
            found = found || strcmp(train->kid[i]->name, *name) == 0;
        if (!found)
            tg_error(s->diags, train->loc, "train needs the setting '%s'", *name);
    }
}
