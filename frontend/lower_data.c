/* Data blocks: the record that a batch is made of, and where each field comes from. */
#include "frontend/value.h"

#include <string.h>

Value lower_data_call(Lower *l, Env *env, const Ast *call, const DataValue *data) {
    DataValue *with = tg_arena_copy(l->arena, data, sizeof *with);
    with->arguments = lower_env(l, data->declaration->env);
    if (!lower_arguments(l, env, call, data->declaration->ast->kid[0], with->arguments, data->declaration->ast->name))
        return lower_error_value();
    return (Value){.kind = VAL_DATA, .data = with};
}

static const Ast *argument(const Ast *call, const char *name, uint32_t position) {
    uint32_t at = 0;
    for (uint32_t i = 1; i < call->kid_count; i++) {
        if (call->kid[i]->kind == AST_NAMED) {
            if (strcmp(call->kid[i]->name, name) == 0)
                return call->kid[i]->kid[0];
        } else if (at++ == position) {
            return call->kid[i];
        }
    }
    return NULL;
}

static bool read_columns(Lower *l, Env *env, const Ast *ast, DataField *field) {
    Value value = lower_eval(l, env, ast);
    if (lower_is_error(value))
        return false;
    ListValue single = {&value, 1}, *list = value.kind == VAL_LIST ? value.list : &single;
    const char **names = TG_ALLOC(l->graph->arena, const char *, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->at[i].kind != VAL_STRING) {
            lower_fail(l, ast->loc, "'columns' is a name or a list of names, not %s", lower_kind_text(l, list->at[i]));
            return false;
        }
        names[i] = list->at[i].text;
    }
    field->columns = names;
    field->column_count = list->count;
    int64_t needed = tg_type_count(tg_type_of(&l->graph->types, field->type), 1);
    if (needed == list->count)
        return true;
    lower_fail(l, ast->loc, "%u columns for a field of %lld number%s", list->count, (long long)needed,
               needed == 1 ? "" : "s");
    lower_note(l, field->loc, "the field is declared here");
    return false;
}

static bool read_source(Lower *l, Env *env, const Ast *source, DataField *field) {
    static const char *const readers[] = {"idx", "csv", "text", "npy", "images", "folders"};
    const char *reader = source->kind == AST_CALL && source->kid[0]->kind == AST_NAME ? source->kid[0]->name : NULL;
    for (uint32_t i = 0; reader && i < sizeof readers / sizeof *readers; i++)
        if (strcmp(reader, readers[i]) == 0)
            field->reader = readers[i];
    if (!field->reader) {
        lower_fail(l, source->loc, "a field comes from idx, csv, text, npy, images or folders");
        return false;
    }
    const Ast *path = argument(source, "path", 0), *columns = argument(source, "columns", 1);
    Value text = path ? lower_eval(l, env, path) : lower_none();
    if (lower_is_error(text))
        return false;
    if (text.kind != VAL_STRING) {
        lower_fail(l, source->loc, "'%s' needs the path of a file", reader);
        return false;
    }
    field->path = text.text;
    if (strcmp(reader, "csv") == 0) {
        if (columns)
            return read_columns(l, env, columns, field);
        lower_fail(l, source->loc, "'csv' needs 'columns': a name or a list of names");
        return false;
    }
    if (strcmp(reader, "text") != 0)
        return true;
    const Ast *tokenizer = argument(source, "tokenizer", 1);
    Value name = tokenizer ? lower_eval(l, env, tokenizer) : lower_string("bytes");
    if (name.kind == VAL_STRING && strcmp(name.text, "bytes") == 0)
        return true;
    if (!lower_is_error(name))
        lower_fail(l, tokenizer->loc, "the only tokenizer that is built is \"bytes\"");
    return false;
}

static bool read_field(Lower *l, Env *env, const Ast *ast, DataSet *set) {
    Type type;
    if (!lower_declared_type(l, env, ast->kid[0], true, &type))
        return false;
    DataField field = {
        .name = tg_intern(l->graph, ast->name), .type = tg_type(&l->graph->types, &type), .loc = ast->loc};
    if (!read_source(l, env, ast->kid[1], &field))
        return false;
    set->by_runs |= strcmp(field.reader, "text") == 0;
    tg_push(l->graph->arena, &set->fields, field);
    return true;
}

static bool read_split(Lower *l, Env *env, const Ast *split, DataSet *set) {
    double sum = 0;
    for (uint32_t i = 0; i < split->kid_count; i++) {
        const Ast *part = split->kid[i];
        if (strcmp(part->name, "by") == 0 || strcmp(part->name, "stratify") == 0) {
            lower_fail(l, part->loc, "splits with '%s' are not built yet", part->name);
            return false;
        }
        Value share = lower_eval(l, env, part->kid[0]);
        if (lower_is_error(share))
            return false;
        if (!lower_is_number(share) || lower_number(share) <= 0 || lower_number(share) > 1) {
            lower_fail(l, part->loc, "the share '%s' is a percentage above 0%% and up to 100%%", part->name);
            return false;
        }
        sum += lower_number(share);
        tg_push(l->graph->arena, &set->splits, (Split){tg_intern(l->graph, part->name), lower_number(share)});
    }
    if (sum <= 1 + 1e-9)
        return true;
    lower_fail(l, split->loc, "the shares of the split are %g%% together, more than 100%%", sum * 100);
    return false;
}

static bool choose_split(Lower *l, const DataValue *data, DataSet *set, Loc use) {
    set->split = data->split;
    if (!*data->split)
        return true;
    const char **names = TG_ALLOC(l->arena, const char *, set->splits.count + 1);
    for (uint32_t i = 0; i < set->splits.count; i++) {
        names[i] = set->splits.at[i].name;
        if (strcmp(names[i], data->split) == 0)
            return true;
    }
    const char *closest = tg_closest(data->split, names, set->splits.count);
    lower_fail(l, use,
               closest ? "the data block '%s' has no split '%s'; did you mean '%s'?"
                       : "the data block '%s' has no split '%s'",
               set->name, data->split, closest);
    lower_note(l, data->declaration->ast->loc, "it is declared here");
    return false;
}

bool lower_data_set(Lower *l, const DataValue *data, DataSet *set) {
    const Ast *ast = data->declaration->ast;
    Env *env = data->arguments;
    if (!env) {
        env = lower_env(l, data->declaration->env);
        const Ast no_arguments = {.kind = AST_CALL, .loc = l->user_loc.line ? l->user_loc : ast->loc};
        if (!lower_arguments(l, env, &no_arguments, ast->kid[0], env, ast->name))
            return false;
    }
    *set = (DataSet){.name = tg_intern(l->graph, ast->name), .split = ""};
    for (uint32_t i = 1; i < ast->kid_count; i++) {
        bool ok = ast->kid[i]->kind != AST_FIELD || read_field(l, env, ast->kid[i], set);
        ok = ok && (ast->kid[i]->kind != AST_SPLIT || read_split(l, env, ast->kid[i], set));
        if (!ok)
            return false;
    }
    if (!set->fields.count) {
        lower_fail(l, ast->loc, "the data block '%s' has no fields", ast->name);
        return false;
    }
    return choose_split(l, data, set, l->user_loc.line ? l->user_loc : ast->loc);
}
