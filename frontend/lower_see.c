/* Tells LowerOptions.see what statements and arguments are: the margin of `tgc check --shapes`. */
#include "frontend/value.h"

#include <string.h>

enum { MOST_SHOWN = 4 }; /* elements of a list */

static bool see_value(Lower *l, Value value, Str *text);

static bool see_list(Lower *l, const ListValue *list, Str *text) {
    bool seen = false;
    tg_str_printf(text, "[");
    for (uint32_t i = 0; i < list->count && i < MOST_SHOWN; i++) {
        tg_str_printf(text, "%s", i ? ", " : "");
        seen |= see_value(l, list->at[i], text);
    }
    tg_str_printf(text, list->count > MOST_SHOWN ? ", …]" : "]");
    return seen;
}

static bool see_record(Lower *l, const RecordValue *record, Str *text) {
    bool seen = false;
    tg_str_printf(text, "{");
    for (uint32_t i = 0; i < record->count; i++) {
        tg_str_printf(text, "%s%s: ", i ? ", " : " ", record->names[i]);
        seen |= see_value(l, record->values[i], text);
    }
    tg_str_printf(text, " }");
    return seen;
}

/* Is there a shape in it? */
static bool see_value(Lower *l, Value value, Str *text) {
    switch ((ValueKind)value.kind) {
    case VAL_LIST:
        return see_list(l, value.list, text);
    case VAL_RECORD:
        return see_record(l, value.record, text);
    case VAL_BUFFER:
        tg_type_print(text, tg_type_of(&l->graph->types, l->graph->buffers.at[value.buffer].type));
        return true;
    default:
        tg_str_printf(text, "%s", lower_kind_text(l, value));
        return lower_is_tensor(value);
    }
}

static void see(Lower *l, Loc loc, const char *name, Value value) {
    Str text = tg_str(l->arena);
    if (lower_in_std(l, loc) || !l->func || !see_value(l, value, &text))
        return;
    SeenShape shape = {loc, name, text.text, l->func->func->kind == FUNC_OBJECTIVE};
    l->options->see(l->options->see_context, &shape);
}

void lower_see_statement(Lower *l, Env *env, const Ast *statement, Value result) {
    if (!l->options->see)
        return;
    const Binding *target = statement->kind == AST_ASSIGN ? lower_find(env, statement->name) : NULL;
    if (statement->kind == AST_RETURN)
        see(l, statement->loc, NULL, result);
    if (target)
        see(l, statement->loc, statement->name, target->value);
    for (uint32_t i = 0; statement->kind == AST_BIND && i < statement->kid[0]->kid_count; i++) {
        const Ast *name = statement->kid[0]->kid[i];
        see(l, name->loc, name->name, lower_find_here(env, name->name)->value);
    }
}

void lower_see_arguments(Lower *l, const Closure *closure, const Env *arguments) {
    const Ast *params = closure->ast->kid[0];
    for (uint32_t i = 0; l->options->see && i < params->kid_count; i++) {
        const Binding *binding = lower_find_here(arguments, params->kid[i]->name);
        if (binding)
            see(l, params->kid[i]->loc, binding->name, binding->value);
    }
}
