/* Settings: what --set overrides, what becomes a run-time scalar, and the list for the manifest. */
#include "frontend/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *lower_origin(Lower *l, Loc loc) {
    if (!loc.line || lower_in_std(l, loc))
        return "default";
    return tg_arena_printf(l->arena, "%s:%u", l->sources->files.at[loc.file].path, loc.line);
}

static bool is_known(const Lower *l, const char *name) {
    for (uint32_t i = 0; i < l->known_settings.count; i++)
        if (strcmp(l->known_settings.at[i], name) == 0)
            return true;
    return false;
}

const char *lower_set(Lower *l, const char *name) {
    if (!is_known(l, name))
        tg_push(l->arena, &l->known_settings, name);
    size_t length = strlen(name);
    const char *text = NULL;
    for (uint32_t i = 0; i < l->options->set_count; i++) {
        const char *set = l->options->sets[i];
        if (strncmp(set, name, length) != 0 || set[length] != '=')
            continue;
        l->set_used[i] = true;
        text = set + length + 1;
    }
    return text;
}

Value lower_set_value(const char *text) {
    char *end;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return lower_bool(*text == 't');
    if (strcmp(text, "none") == 0)
        return lower_none();
    errno = 0;
    long long integer = strtoll(text, &end, 10);
    if (end != text && !*end && errno == 0)
        return lower_int(integer);
    double number = strtod(text, &end);
    if (end != text && !*end)
        return lower_float(number);
    if (end != text && strcmp(end, "%") == 0)
        return lower_float(number / 100);
    return lower_string(text);
}

void lower_record_setting(Lower *l, const char *name, Value value, const char *origin, bool runtime) {
    char number[TG_NUMBER_TEXT];
    const char *text;
    switch ((ValueKind)value.kind) {
    case VAL_INT:
        text = tg_arena_printf(l->arena, "%lld", (long long)value.integer);
        break;
    case VAL_FLOAT:
        text = tg_arena_printf(l->arena, "%s", tg_number_text(value.number, number));
        break;
    case VAL_BOOL:
        text = value.truth ? "true" : "false";
        break;
    case VAL_STRING:
        text = value.text;
        break;
    case VAL_NONE:
        text = "none";
        break;
    default:
        return;
    }
    for (uint32_t i = 0; i < l->graph->settings.count; i++)
        if (strcmp(l->graph->settings.at[i].name, name) == 0) {
            l->graph->settings.at[i] = (Setting){name, text, origin, runtime};
            return;
        }
    tg_push(l->graph->arena, &l->graph->settings, (Setting){name, text, origin, runtime});
}

Value lower_runtime_scalar(Lower *l, const char *name, ScalarClass class, double value, Loc loc) {
    uint32_t scalar = tg_scalar_add(
        l->graph, (Scalar){.name = tg_intern(l->graph, name), .class = class, .value = value, .loc = loc});
    lower_builder(l)->locs = tg_locs_one(l->graph, lower_in_std(l, loc) && l->user_loc.line ? l->user_loc : loc);
    return lower_scalar(l, tg_scalar(lower_builder(l), scalar));
}

static bool literal(const Ast *ast, Value *value) {
    bool minus = ast->kind == AST_UNARY && ast->op == '-';
    if (minus)
        ast = ast->kid[0];
    switch ((AstKind)ast->kind) {
    case AST_INT:
        *value = lower_int(minus ? -ast->integer : ast->integer);
        return true;
    case AST_FLOAT:
    case AST_PERCENT:
        *value = lower_float(minus ? -ast->number : ast->number);
        return true;
    case AST_BOOL:
        *value = lower_bool(ast->flag);
        return !minus;
    case AST_STRING:
        *value = lower_string(ast->text);
        return !minus;
    default:
        return false;
    }
}

static bool needed_now(const Lower *l, const char *path) {
    for (uint32_t i = 0; i < l->compile_time.count; i++)
        if (strcmp(l->compile_time.at[i], path) == 0)
            return true;
    return false;
}

Value lower_setting(Lower *l, Env *env, const Ast *ast, const char *path, bool is_default) {
    Value value;
    const char *text = lower_set(l, path);
    bool whole = text != NULL;
    if (text)
        value = lower_set_value(text);
    else
        whole = literal(ast, &value);
    if (!whole) {
        const char *before = l->setting;
        l->setting = ast->kind == AST_CALL ? path : NULL;
        value = lower_eval(l, env, ast);
        l->setting = before;
    }
    const char *origin = text ? "--set" : is_default ? "default" : lower_origin(l, ast->loc);
    bool runtime = whole && lower_is_number(value) && !needed_now(l, path);
    if (runtime) {
        Value scalar = lower_runtime_scalar(l, path, SCALAR_SETTING, lower_number(value), ast->loc);
        const char **settings = TG_ALLOC(l->arena, const char *, 1);
        settings[0] = path;
        RuntimeForm *form = TG_ALLOC(l->arena, RuntimeForm, 1);
        *form = (RuntimeForm){l->func->func, scalar.tensor->node, settings, 1};
        value.runtime = form;
    }
    if (runtime || !value.runtime)
        lower_record_setting(l, path, value, origin, runtime);
    return value;
}

bool lower_settings_known(Lower *l) {
    bool all = true;
    for (uint32_t i = 0; i < l->options->set_count; i++) {
        const char *set = l->options->sets[i], *equals = strchr(set, '=');
        if (l->set_used[i])
            continue;
        all = false;
        if (!equals) {
            tg_error(l->diags, (Loc){0}, "--set %s: write NAME=VALUE", set);
            continue;
        }
        const char *name = tg_arena_str(l->arena, set, (size_t)(equals - set));
        const char *closest = tg_closest(name, l->known_settings.at, l->known_settings.count);
        tg_error(l->diags, (Loc){0},
                 closest ? "--set %s: there is no setting '%s'; did you mean '%s'?"
                         : "--set %s: there is no setting '%s'",
                 set, name, closest);
        Str list = tg_str(l->arena);
        for (uint32_t k = 0; k < l->known_settings.count; k++)
            tg_str_printf(&list, "%s%s", k ? ", " : "", l->known_settings.at[k]);
        tg_note(l->diags, (Loc){0}, "the settings of this program are %s", list.text);
    }
    return all;
}
