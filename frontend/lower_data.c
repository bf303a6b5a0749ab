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

/* What a reader's arguments are, in the order in which they may be given without names; see docs/data.md. */
typedef struct ReaderRow {
    const char *name;
    const char *arguments[6];
} ReaderRow;

static const ReaderRow readers[] = {
    {"idx", {"path"}},
    {"csv", {"path", "columns", "missing", "categories", "separator"}},
    {"text", {"path", "tokenizer"}},
    {"npy", {"path"}},
    {"records", {"path"}},
    {"images", {"path"}},
    {"folders", {"path"}},
};

static const ReaderRow *reader_of(Lower *l, const Ast *source) {
    const char *name = source->kind == AST_CALL && source->kid[0]->kind == AST_NAME ? source->kid[0]->name : NULL;
    for (uint32_t i = 0; name && i < sizeof readers / sizeof *readers; i++)
        if (strcmp(name, readers[i].name) == 0)
            return &readers[i];
    lower_fail(l, source->loc, "a field comes from idx, csv, text, npy, records, images or folders");
    return NULL;
}

static bool check_reader_arguments(Lower *l, const ReaderRow *reader, const Ast *call) {
    uint32_t count = 0, given = 0;
    while (reader->arguments[count])
        count++;
    for (uint32_t i = 1; i < call->kid_count; i++) {
        const Ast *kid = call->kid[i];
        bool known = kid->kind != AST_NAMED && ++given <= count;
        for (uint32_t k = 0; kid->kind == AST_NAMED && k < count; k++)
            known |= strcmp(kid->name, reader->arguments[k]) == 0;
        if (known)
            continue;
        Str list = tg_str(l->arena);
        for (uint32_t k = 0; k < count; k++)
            tg_str_printf(&list, "%s%s", k ? ", " : "", reader->arguments[k]);
        if (kid->kind == AST_NAMED)
            lower_fail(l, kid->loc, "'%s' has no argument '%s'; it has: %s", reader->name, kid->name, list.text);
        else
            lower_fail(l, kid->loc, "'%s' has no %u arguments; it has: %s", reader->name, given, list.text);
        return false;
    }
    return true;
}

static void add_option(Lower *l, DataField *field, const char *name, const char *value) {
    const char *before = field->options ? field->options : "";
    field->options = tg_arena_printf(l->graph->arena, "%s%s%s=%s", before, *before ? "\n" : "", name, value);
}

static bool read_tokenizer(Lower *l, Env *env, const Ast *ast, DataField *field) {
    const Type *type = tg_type_of(&l->graph->types, field->type);
    if (type->rank != 2 || type->dims[1].size < 2 || !tg_is_integer(type->dtype)) {
        lower_fail(l, field->loc, "text gives windows of at least two integers, as in: u16[T + 1]");
        return false;
    }
    Value name = ast ? lower_eval(l, env, ast) : lower_string("bytes");
    if (lower_is_error(name))
        return false;
    if (name.kind == VAL_STRING && strcmp(name.text, "bytes") == 0)
        return true;
    if (name.kind != VAL_STRING || strcmp(name.text, "characters") != 0) {
        lower_fail(l, ast->loc, "the tokenizers are \"bytes\" and \"characters\"");
        return false;
    }
    add_option(l, field, "tokenizer", "characters");
    return true;
}

/* A number, the name mean, or a category. */
static bool read_missing(Lower *l, Env *env, const Ast *ast, DataField *field) {
    if (ast->kind == AST_NAME && strcmp(ast->name, "mean") == 0) {
        DType dtype = tg_type_of(&l->graph->types, field->type)->dtype;
        if (!tg_is_float(dtype)) {
            lower_fail(l, ast->loc, "a mean is no %s: give the number to take for a cell without one", tg_dtype(dtype)->name);
            return false;
        }
        add_option(l, field, "missing", "mean");
        return true;
    }
    Value value = lower_eval(l, env, ast);
    if (lower_is_error(value))
        return false;
    char text[TG_NUMBER_TEXT];
    bool word = value.kind == VAL_STRING && *value.text && strchr(value.text, '\n') == NULL;
    if (!word && !lower_is_number(value)) {
        lower_fail(l, ast->loc, "'missing' is the number to take for a cell without one, mean, or the name of a category");
        return false;
    }
    add_option(l, field, word ? "missing_name" : "missing", word ? value.text : tg_number_text(lower_number(value), text));
    return true;
}

static bool read_categories(Lower *l, Env *env, const Ast *ast, DataField *field) {
    Value value = lower_eval(l, env, ast);
    if (lower_is_error(value))
        return false;
    if (value.kind != VAL_BOOL) {
        lower_fail(l, ast->loc, "'categories' is true or false, not %s", lower_kind_text(l, value));
        return false;
    }
    if (value.truth && !tg_is_integer(tg_type_of(&l->graph->types, field->type)->dtype)) {
        lower_fail(l, ast->loc, "categories are numbered, so the field '%s' is of an integer type", field->name);
        return false;
    }
    add_option(l, field, "categories", value.truth ? "true" : "false");
    return true;
}

static bool read_separator(Lower *l, Env *env, const Ast *ast, DataField *field) {
    Value value = lower_eval(l, env, ast);
    if (lower_is_error(value))
        return false;
    if (value.kind != VAL_STRING || strlen(value.text) != 1 || strchr("\"\r\n", *value.text)) {
        lower_fail(l, ast->loc, "'separator' is one character, as in \";\" or \"\\t\"");
        return false;
    }
    add_option(l, field, "separator", value.text);
    return true;
}

static bool read_csv_arguments(Lower *l, Env *env, const Ast *source, DataField *field) {
    const Ast *columns = argument(source, "columns", 1), *missing = argument(source, "missing", 2);
    const Ast *categories = argument(source, "categories", 3), *separator = argument(source, "separator", 4);
    if (!columns) {
        lower_fail(l, source->loc, "'csv' needs 'columns': a name or a list of names");
        return false;
    }
    return read_columns(l, env, columns, field) && (!missing || read_missing(l, env, missing, field)) &&
           (!categories || read_categories(l, env, categories, field)) &&
           (!separator || read_separator(l, env, separator, field));
}

static bool read_source(Lower *l, Env *env, const Ast *source, DataField *field) {
    const ReaderRow *reader = reader_of(l, source);
    if (!reader || !check_reader_arguments(l, reader, source))
        return false;
    field->reader = reader->name;
    const Ast *path = argument(source, "path", 0);
    Value text = path ? lower_eval(l, env, path) : lower_none();
    if (lower_is_error(text))
        return false;
    if (text.kind != VAL_STRING || !*text.text) {
        lower_fail(l, source->loc, "'%s' needs the path of a file", reader->name);
        return false;
    }
    field->path = text.text;
    if (strcmp(reader->name, "csv") == 0)
        return read_csv_arguments(l, env, source, field);
    return strcmp(reader->name, "text") != 0 || read_tokenizer(l, env, argument(source, "tokenizer", 1), field);
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
            *(*part->name == 'b' ? &set->by : &set->stratify) = tg_intern(l->graph, part->kid[0]->name);
            continue;
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
    if (set->by_runs && (set->by || set->stratify)) {
        lower_fail(l, split->loc, "a text is split in runs, not by the value of a field");
        return false;
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
