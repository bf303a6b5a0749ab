/* The text form of graphs; docs/ir.md has its grammar, ir/parse.c reads it back. */
#include "ir/attrs.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Printer {
    Str *to;
    const Graph *graph;
    bool places;
    uint32_t *files; /* the number in the text of each source file, from 1; 0: nothing refers to it */
} Printer;

/* ---- words ---- */

static void print_string(Str *to, const char *text) {
    tg_str_printf(to, "\"");
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\')
            tg_str_printf(to, "\\%c", c);
        else if (c < ' ' || c == 127)
            tg_str_printf(to, "\\x%02x", c);
        else
            tg_str_add(to, at, 1);
    }
    tg_str_printf(to, "\"");
}

static bool is_plain(const char *name) {
    for (const char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("_./-", *at) == NULL)
            return false;
    return *name != '\0';
}

/* "@net.fc1.weight", or "@\"odd name\"". */
static void print_name(Str *to, const char *mark, const char *name) {
    tg_str_printf(to, "%s", mark);
    if (is_plain(name))
        tg_str_printf(to, "%s", name);
    else
        print_string(to, name);
}

/* The shortest text that is this value once it is rounded to the type, as constants are. */
static void print_rounded(Str *to, DType dtype, double value) {
    char text[TG_NUMBER_TEXT];
    if (value == trunc(value) && fabs(value) < 1e9) {
        tg_str_printf(to, "%.0f", value);
        return;
    }
    for (int digits = 1; isfinite(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (tg_round_to(dtype, strtod(text, NULL)) == value) {
            tg_str_printf(to, "%s", text);
            return;
        }
    }
    tg_str_printf(to, "%s", tg_number_text(value, text));
}

static void print_number(Str *to, double value) { print_rounded(to, DT_F64, value); }

static void print_type(Printer *p, TypeId type) { tg_type_print(p->to, tg_type_of(&p->graph->types, type)); }

/* ---- places ---- */

static void print_place(Printer *p, Loc loc) {
    tg_str_printf(p->to, "%u:%u:%u-%u", p->files[loc.file] - 1, loc.line, loc.column, loc.end_column);
}

static void print_loc(Printer *p, Loc loc) {
    if (!p->places || loc.line == 0)
        return;
    tg_str_printf(p->to, " loc(");
    print_place(p, loc);
    tg_str_printf(p->to, ")");
}

static void print_locs(Printer *p, LocsId locs) {
    if (!p->places || locs == 0)
        return;
    const char *before = " loc(";
    for (LocsId at = locs; at != 0; at = p->graph->loc_next.at[at]) {
        tg_str_printf(p->to, "%s", before);
        print_place(p, p->graph->loc_items.at[at]);
        before = " ";
    }
    tg_str_printf(p->to, ")");
}

static void use_loc(Printer *p, Loc loc) {
    if (loc.line != 0)
        p->files[loc.file] = 1;
}

static void use_locs(Printer *p, LocsId locs) {
    for (LocsId at = locs; at != 0; at = p->graph->loc_next.at[at])
        use_loc(p, p->graph->loc_items.at[at]);
}

static void use_data(Printer *p, const DataSet *set) {
    for (uint32_t i = 0; i < set->fields.count; i++)
        use_loc(p, set->fields.at[i].loc);
}

static void use_func(Printer *p, const Func *func) {
    for (uint32_t i = 0; i < func->args.count; i++)
        use_loc(p, func->args.at[i].loc);
    for (NodeId n = 1; n < func->nodes.count; n++)
        use_locs(p, func->nodes.at[n].locs);
    for (uint32_t i = 0; i < func->results.count; i++)
        use_locs(p, func->results.at[i].locs);
}

/* Numbers the files that some place is in, in the order of the table of sources, and prints them. */
static void print_files(Printer *p) {
    const Graph *graph = p->graph;
    const Sources *sources = graph->sources;
    if (!p->places || sources == NULL)
        return;
    p->files = TG_ALLOC(p->to->arena, uint32_t, sources->files.count + 1);
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        use_loc(p, graph->buffers.at[i].loc);
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        use_loc(p, graph->scalars.at[i].loc);
    use_data(p, &graph->training.train);
    for (uint32_t i = 0; i < graph->training.validate.count; i++)
        use_data(p, &graph->training.validate.at[i]);
    for (uint32_t i = 0; i < graph->funcs.count; i++)
        use_func(p, graph->funcs.at[i]);
    uint32_t used = 0;
    for (uint32_t i = 0; i < sources->files.count; i++) {
        if (p->files[i] == 0)
            continue;
        p->files[i] = ++used;
        tg_str_printf(p->to, "  file %u ", used - 1);
        print_string(p->to, sources->files.at[i].path);
        tg_str_printf(p->to, "\n");
    }
}

/* ---- nodes ---- */

static void print_list(Str *to, Ints list) {
    if (list.count == 1) {
        tg_str_printf(to, "%lld", (long long)list.at[0]);
        return;
    }
    for (uint32_t i = 0; i < list.count; i++)
        tg_str_printf(to, "%s%lld", i ? ", " : "[", (long long)list.at[i]);
    tg_str_printf(to, "]");
}

static void print_dense(Str *to, DType dtype, const double *values, int64_t count) {
    tg_str_printf(to, "[");
    for (int64_t i = 0; i < count; i++) {
        if (i)
            tg_str_printf(to, ", ");
        print_rounded(to, dtype, values[i]);
    }
    tg_str_printf(to, "]");
}

static void print_reference(Printer *p, AttrKind kind, uint32_t ref) {
    const Graph *graph = p->graph;
    tg_str_printf(p->to, " ");
    if (kind == ATTR_BUFFER)
        print_name(p->to, "@", graph->buffers.at[ref].name);
    else if (kind == ATTR_SCALAR)
        print_name(p->to, "$", graph->scalars.at[ref].name);
    else
        print_name(p->to, "@", graph->funcs.at[ref]->name);
}

static bool is_reference(AttrKind kind) { return kind == ATTR_BUFFER || kind == ATTR_SCALAR || kind == ATTR_FUNC; }

/* Whether the attribute says no more than its absence would. */
static bool is_silent(const AttrField *field, const Attr *attr) {
    switch (field->kind) {
    case ATTR_LIST: {
        Ints list = attr->list[field->list];
        return list.count == 0 || (field->standard && list.count == 1 && list.at[0] == *field->standard);
    }
    case ATTR_NUMBER:
        return attr->dense != NULL;
    case ATTR_DENSE:
        return attr->dense == NULL;
    case ATTR_TEXT:
        return attr->text == NULL;
    default:
        return false;
    }
}

static void print_attr(Printer *p, const AttrField *field, const Node *node) {
    const Attr *attr = node->attr;
    const Type *type = tg_type_of(&p->graph->types, node->type);
    if (is_silent(field, attr))
        return;
    tg_str_printf(p->to, " ");
    if (field->kind != ATTR_TEXT)
        tg_str_printf(p->to, "%.*s=", (int)field->length, field->name);
    switch (field->kind) {
    case ATTR_LIST:
        print_list(p->to, attr->list[field->list]);
        break;
    case ATTR_NUMBER:
        print_rounded(p->to, node->op == OP_const || node->op == OP_pad ? type->dtype : DT_F64, attr->number);
        break;
    case ATTR_DENSE:
        print_dense(p->to, type->dtype, attr->dense, tg_type_count(type, 1));
        break;
    case ATTR_KEY:
        tg_str_printf(p->to, "0x%016llx", (unsigned long long)attr->key);
        break;
    default:
        print_string(p->to, attr->text);
        break;
    }
}

static void print_node(Printer *p, const Func *func, NodeId id) {
    const Node *node = tg_node(func, id);
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t count = tg_attr_fields((Op)node->op, fields);
    tg_str_printf(p->to, "%%%u", id);
    if (node->type != 0) {
        tg_str_printf(p->to, " : ");
        print_type(p, node->type);
    }
    tg_str_printf(p->to, " = %s", tg_op((Op)node->op)->name);
    for (uint32_t i = 0; i < count; i++)
        if (is_reference(fields[i].kind))
            print_reference(p, fields[i].kind, node->attr->ref);
    for (uint32_t i = 0; i < node->operand_count; i++)
        tg_str_printf(p->to, "%s%%%u", i ? ", " : " ", tg_operand(func, node, i));
    for (uint32_t i = 0; i < count; i++)
        if (!is_reference(fields[i].kind))
            print_attr(p, &fields[i], node);
    if (node->precision != PRECISION_BY_CLASS)
        tg_str_printf(p->to, " precision=%s", tg_precision_name((int)node->precision));
    print_locs(p, node->locs);
}

/* ---- functions ---- */

static void print_result(Printer *p, const Result *result) {
    if (result->kind == RESULT_VALUE)
        print_name(p->to, "    return ", result->name);
    else
        print_name(p->to, "    store @", p->graph->buffers.at[result->buffer].name);
    tg_str_printf(p->to, " %%%u", result->node);
    print_locs(p, result->locs);
    tg_str_printf(p->to, "\n");
}

static void print_func(Printer *p, const Func *func) {
    print_name(p->to, "  func @", func->name);
    tg_str_printf(p->to, " %s(", tg_func_kind_name((int)func->kind));
    for (uint32_t i = 0; i < func->args.count; i++) {
        print_name(p->to, i ? ", %" : "%", func->args.at[i].name ? func->args.at[i].name : "");
        tg_str_printf(p->to, ": ");
        print_type(p, func->args.at[i].type);
        print_loc(p, func->args.at[i].loc);
    }
    tg_str_printf(p->to, ") {\n");
    for (NodeId n = 1; n < func->nodes.count; n++) {
        tg_str_printf(p->to, "    ");
        print_node(p, func, n);
        tg_str_printf(p->to, "\n");
    }
    for (uint32_t i = 0; i < func->results.count; i++)
        print_result(p, &func->results.at[i]);
    tg_str_printf(p->to, "  }\n");
}

/* ---- the graph ---- */

static void print_buffer(Printer *p, const Buffer *buffer) {
    print_name(p->to, "  buffer @", buffer->name);
    tg_str_printf(p->to, " : ");
    print_type(p, buffer->type);
    tg_str_printf(p->to, " %s%s", tg_buffer_class_name((int)buffer->class), buffer->frozen ? " frozen" : "");
    if (buffer->class == BUFFER_SUM)
        tg_str_printf(p->to, " lanes=%lld", (long long)buffer->lanes);
    print_loc(p, buffer->loc);
    tg_str_printf(p->to, "\n");
}

static void print_scalar(Printer *p, const Scalar *scalar) {
    print_name(p->to, "  scalar $", scalar->name);
    tg_str_printf(p->to, " %s ", tg_scalar_class_name((int)scalar->class));
    print_number(p->to, scalar->value);
    print_loc(p, scalar->loc);
    tg_str_printf(p->to, "\n");
}

static void print_option(Str *to, const char *name, const char *text) {
    if (text == NULL)
        return;
    tg_str_printf(to, " %s=", name);
    print_string(to, text);
}

static void print_setting(Str *to, const Setting *setting) {
    tg_str_printf(to, "  setting ");
    print_string(to, setting->name);
    print_option(to, "value", setting->value);
    print_option(to, "origin", setting->origin);
    tg_str_printf(to, "%s\n", setting->runtime ? " runtime" : "");
}

static void print_columns(Str *to, const DataField *field) {
    if (field->column_count == 0)
        return;
    for (uint32_t i = 0; i < field->column_count; i++) {
        tg_str_printf(to, i ? ", " : " columns=[");
        print_string(to, field->columns[i]);
    }
    tg_str_printf(to, "]");
}

static void print_data(Printer *p, const char *use, const DataSet *set) {
    if (set->name == NULL)
        return;
    tg_str_printf(p->to, "  data %s ", use);
    print_string(p->to, set->name);
    print_option(p->to, "as", set->as);
    print_option(p->to, "split", set->split);
    tg_str_printf(p->to, "%s", set->by_runs ? " runs" : "");
    print_option(p->to, "by", set->by);
    print_option(p->to, "stratify", set->stratify);
    tg_str_printf(p->to, " {\n");
    for (uint32_t i = 0; i < set->fields.count; i++) {
        const DataField *field = &set->fields.at[i];
        tg_str_printf(p->to, "    field ");
        print_string(p->to, field->name);
        tg_str_printf(p->to, " : ");
        print_type(p, field->type);
        print_option(p->to, "reader", field->reader);
        print_option(p->to, "path", field->path);
        print_columns(p->to, field);
        print_option(p->to, "options", field->options);
        print_loc(p, field->loc);
        tg_str_printf(p->to, "\n");
    }
    for (uint32_t i = 0; i < set->splits.count; i++) {
        tg_str_printf(p->to, "    part ");
        print_string(p->to, set->splits.at[i].name);
        tg_str_printf(p->to, " ");
        print_number(p->to, set->splits.at[i].share);
        tg_str_printf(p->to, "\n");
    }
    tg_str_printf(p->to, "  }\n");
}

static void print_training(Printer *p) {
    const Training *t = &p->graph->training;
    if (t->batch | t->micro | t->lanes | t->steps | t->epochs || t->shuffle || t->clip_norm != 0 ||
        t->clip_scalar != -1 || t->seed != 0 || t->loss != NULL) {
        tg_str_printf(p->to,
                      "  train batch=%lld micro=%lld lanes=%lld steps=%lld epochs=%lld", (long long)t->batch,
                      (long long)t->micro, (long long)t->lanes, (long long)t->steps, (long long)t->epochs);
        if (t->validate_every != 0)
            tg_str_printf(p->to, " validate_every=%lld", (long long)t->validate_every);
        tg_str_printf(p->to, " clip_norm=");
        print_number(p->to, t->clip_norm);
        tg_str_printf(p->to, " clip_scalar=%d seed=%llu", t->clip_scalar, (unsigned long long)t->seed);
        print_option(p->to, "loss", t->loss);
        tg_str_printf(p->to, "%s", t->shuffle ? " shuffle" : "");
        if (tg_is_mixed(t))
            tg_str_printf(p->to, " precision=%s", tg_dtype(t->precision)->name);
        if (t->loss_scale != 0) {
            tg_str_printf(p->to, " loss_scale=");
            print_number(p->to, t->loss_scale);
        }
        tg_str_printf(p->to, "\n");
    }
    print_data(p, "train", &t->train);
    for (uint32_t i = 0; i < t->validate.count; i++)
        print_data(p, "validate", &t->validate.at[i]);
}

static void print_graph(Str *to, const Graph *graph, bool places) {
    Printer p = {.to = to, .graph = graph, .places = places && graph->sources != NULL};
    tg_str_printf(to, "graph @%s", tg_level_name((int)graph->level));
    print_option(to, "path", graph->path);
    tg_str_printf(to, " {\n");
    print_files(&p);
    for (uint32_t i = 0; i < graph->buffers.count; i++)
        print_buffer(&p, &graph->buffers.at[i]);
    for (uint32_t i = 0; i < graph->scalars.count; i++)
        print_scalar(&p, &graph->scalars.at[i]);
    for (uint32_t i = 0; i < graph->settings.count; i++)
        print_setting(to, &graph->settings.at[i]);
    print_training(&p);
    for (uint32_t i = 0; i < graph->funcs.count; i++)
        print_func(&p, graph->funcs.at[i]);
    tg_str_printf(to, "}\n");
}

void tg_graph_print(Str *to, const Graph *graph) { print_graph(to, graph, true); }

void tg_graph_print_plain(Str *to, const Graph *graph) { print_graph(to, graph, false); }

void tg_func_print(Str *to, const Graph *graph, const Func *func) {
    print_func(&(Printer){.to = to, .graph = graph}, func);
}

void tg_node_print(Str *to, const Graph *graph, const Func *func, NodeId node) {
    print_node(&(Printer){.to = to, .graph = graph}, func, node);
}
