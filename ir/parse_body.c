/* Nodes and results of the text form. */
#include "ir/parse.h"

#include "ir/attrs.h"
#include "ir/build.h"

#include <string.h>

/* ---- attributes ---- */

static bool parse_ints(Parser *p, Ints *list) {
    Vec(int64_t) read = {0};
    int64_t value;
    if (!ir_accept(p, '[')) {
        if (!ir_parse_int(p, &value))
            return false;
        tg_push(p->arena, &read, value);
    } else if (!ir_accept(p, ']')) {
        do {
            if (!ir_parse_int(p, &value))
                return false;
            tg_push(p->arena, &read, value);
        } while (ir_accept(p, ','));
        if (!ir_expect(p, ']'))
            return false;
    }
    *list = (Ints){read.at, read.count};
    return true;
}

static bool parse_dense(Parser *p, TypeId type, const double **values) {
    Vec(double) read = {0};
    if (!ir_expect(p, '['))
        return false;
    if (!ir_accept(p, ']')) {
        do {
            double value;
            if (!ir_parse_number(p, &value))
                return false;
            tg_push(p->arena, &read, value);
        } while (ir_accept(p, ','));
        if (!ir_expect(p, ']'))
            return false;
    }
    int64_t wanted = tg_type_count(tg_type_of(&p->graph->types, type), 1);
    if (wanted != read.count)
        return ir_fail(p, "%u values for a type of %lld elements", read.count, (long long)wanted);
    *values = read.count ? read.at : TG_ALLOC(p->arena, double, 1);
    return true;
}

static bool parse_reference(Parser *p, AttrKind kind, uint32_t *ref) {
    const char *name;
    if (!ir_parse_marked(p, kind == ATTR_SCALAR ? '$' : '@', &name))
        return false;
    int32_t found = kind == ATTR_BUFFER   ? tg_buffer_find(p->graph, name)
                    : kind == ATTR_SCALAR ? tg_scalar_find(p->graph, name)
                                          : -1;
    for (uint32_t i = 0; kind == ATTR_FUNC && i < p->graph->funcs.count; i++)
        if (p->graph->funcs.at[i]->name == name)
            found = (int32_t)i;
    *ref = (uint32_t)found;
    return found >= 0 || ir_fail(p, "there is no %s `%s`",
                                 kind == ATTR_BUFFER   ? "buffer"
                                 : kind == ATTR_SCALAR ? "scalar"
                                                       : "function",
                                 name);
}

static bool parse_attr_value(Parser *p, const AttrField *field, TypeId type, Attr *attr) {
    switch (field->kind) {
    case ATTR_LIST:
        return parse_ints(p, &attr->list[field->list]);
    case ATTR_NUMBER:
        return ir_parse_number(p, &attr->number);
    case ATTR_DENSE:
        return parse_dense(p, type, &attr->dense);
    case ATTR_KEY:
        return ir_parse_unsigned(p, &attr->key);
    default:
        return ir_fail(p, "this attribute is not written with a name");
    }
}

static bool parse_precision(Parser *p, Precision *precision) {
    int choice;
    if (!ir_parse_choice(p, tg_precision_name, PRECISION_COUNT, "precision: f32 or low", &choice))
        return false;
    *precision = (Precision)choice;
    return true;
}

/* `word=value` pairs and the text, in any order, up to something else. */
static bool parse_attrs(Parser *p, Op op, TypeId type, Attr *attr, Precision *precision) {
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t count = tg_attr_fields(op, fields);
    for (;;) {
        if (ir_peek(p) == '"') {
            if (!ir_parse_string(p, &attr->text))
                return false;
            continue;
        }
        size_t length = ir_peek_word(p);
        if (length == 0 || p->place.at + length >= p->end || p->place.at[length] != '=')
            return true;
        static const char mark[] = "precision";
        if (length == sizeof mark - 1 && memcmp(p->place.at, mark, length) == 0) {
            p->place.at += length + 1;
            if (!parse_precision(p, precision))
                return false;
            continue;
        }
        const AttrField *field = NULL;
        for (uint32_t i = 0; i < count; i++)
            if (tg_attr_field_is(&fields[i], p->place.at, length))
                field = &fields[i];
        if (field == NULL)
            return ir_fail(p, "%s has no attribute `%.*s`", tg_op(op)->name, (int)length, p->place.at);
        p->place.at += length + 1;
        if (!parse_attr_value(p, field, type, attr))
            return false;
    }
}

/* ---- nodes ---- */

typedef struct Values {
    Map ids; /* names of nodes */
    Builder builder;
} Values;

static bool parse_value(Parser *p, Values *values, NodeId *id) {
    const char *name;
    if (!ir_parse_marked(p, '%', &name))
        return false;
    uint64_t *known = tg_map_find(&values->ids, name, strlen(name));
    if (known == NULL)
        return ir_fail(p, "there is no value `%%%s` before this", name);
    *id = (NodeId)*known;
    return true;
}

/* Whether a `%name` here begins the next node. */
static bool begins_node(Parser *p) {
    Place back = p->place;
    const char *name;
    p->place.at++;
    bool begins = (p->place.at < p->end && *p->place.at != '"' && !ir_is_name(*p->place.at)) ||
                  !ir_parse_name(p, &name) || ir_peek(p) == ':' || ir_peek(p) == '=';
    p->place = back;
    return begins;
}

typedef struct Operands {
    Vec(NodeId) ids;
} Operands;

static bool parse_operands(Parser *p, Values *values, Operands *operands) {
    if (ir_peek(p) != '%' || begins_node(p))
        return true;
    do {
        NodeId id;
        if (!parse_value(p, values, &id))
            return false;
        tg_push(p->arena, &operands->ids, id);
    } while (ir_accept(p, ','));
    return true;
}

static bool parse_op(Parser *p, Op *op) {
    size_t length = ir_peek_word(p);
    *op = tg_op_named(tg_arena_str(p->arena, p->place.at, length));
    if (*op == OP_COUNT)
        return ir_fail(p, "there is no operation `%.*s`", (int)length, p->place.at);
    p->place.at += length;
    return true;
}

static bool parse_references(Parser *p, Op op, Attr *attr) {
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t count = tg_attr_fields(op, fields);
    for (uint32_t i = 0; i < count; i++) {
        AttrKind kind = fields[i].kind;
        if ((kind == ATTR_BUFFER || kind == ATTR_SCALAR || kind == ATTR_FUNC) && !parse_reference(p, kind, &attr->ref))
            return false;
    }
    return true;
}

/* Reports at the node's begin, not behind it. */
static bool bad_node(Parser *p, Place begin, const char *why) {
    p->place = begin;
    return ir_fail(p, "%s", why);
}

static bool add_node(Parser *p, Values *values, Place begin, const char *name, Op op, const Attr *attr,
                     const Operands *operands, TypeId type) {
    const char *why;
    Builder *b = &values->builder;
    TypeId inferred = tg_infer(p->graph, b->func, op, attr, operands->ids.at, operands->ids.count, type, &why);
    if (why != NULL)
        return bad_node(p, begin, why);
    if (inferred != type) {
        Str text = tg_str(p->arena);
        tg_str_printf(&text, "%s gives ", tg_op(op)->name);
        if (inferred)
            tg_type_print(&text, tg_type_of(&p->graph->types, inferred));
        else
            tg_str_printf(&text, "no value");
        return bad_node(p, begin, text.text);
    }
    bool is_new;
    uint64_t *place = tg_map_put(&values->ids, name, strlen(name), &is_new);
    if (!is_new)
        return bad_node(p, begin, tg_arena_printf(p->arena, "there are two values `%%%s`", name));
    *place = tg_build(b, op, attr, operands->ids.at, operands->ids.count, type);
    return *place != 0 || bad_node(p, begin, b->error);
}

static bool parse_node(Parser *p, Values *values) {
    const char *name;
    Operands operands = {0};
    Attr attr = {0};
    TypeId type = 0;
    Op op;
    ir_skip_space(p);
    Place begin = p->place;
    values->builder.precision = PRECISION_BY_CLASS;
    if (!ir_parse_marked(p, '%', &name) || (ir_accept(p, ':') && !ir_parse_type(p, &type)) || !ir_expect(p, '=') ||
        !parse_op(p, &op) || !parse_references(p, op, &attr) || !parse_operands(p, values, &operands) ||
        !parse_attrs(p, op, type, &attr, &values->builder.precision) || !ir_parse_locs(p, &values->builder.locs))
        return false;
    return add_node(p, values, begin, name, op, &attr, &operands, type);
}

/* ---- bodies ---- */

static bool parse_result(Parser *p, Values *values, bool store) {
    const char *name;
    uint32_t buffer = 0;
    NodeId node;
    ir_skip_space(p);
    if (store ? !parse_reference(p, ATTR_BUFFER, &buffer) : !ir_parse_name(p, &name))
        return false;
    if (!parse_value(p, values, &node) || !ir_parse_locs(p, &values->builder.locs))
        return false;
    if (store)
        tg_result_store(&values->builder, buffer, node);
    else
        tg_result_value(&values->builder, name, node);
    return true;
}

bool ir_parse_body(Parser *p, Func *func) {
    Values values = {.ids = tg_map(p->arena), .builder = tg_builder(p->graph, func, false)};
    while (!ir_accept(p, '}')) {
        bool good;
        if (ir_peek(p) == '%')
            good = parse_node(p, &values);
        else if (ir_accept_word(p, "return"))
            good = parse_result(p, &values, false);
        else if (ir_accept_word(p, "store"))
            good = parse_result(p, &values, true);
        else
            return ir_fail(p, "expected a value, `return`, `store` or `}`");
        if (!good)
            return false;
    }
    return true;
}
