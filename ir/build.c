#include "ir/build.h"

#include "ir/attrs.h"
#include "ir/fold.h"

#include <string.h>

Builder tg_builder(Graph *graph, Func *func, bool fold) {
    return (Builder){
        .graph = graph, .func = func, .fold = fold, .shared = tg_map(graph->arena), .scratch = tg_str(graph->arena)};
}

Status tg_builder_status(const Builder *b, Diags *diags) {
    if (b->error == NULL)
        return TG_OK;
    tg_error(diags, tg_locs_first(b->graph, b->error_locs), "internal error: in `%s`: %s", b->func->name, b->error);
    return TG_INTERNAL;
}

static NodeId broken(Builder *b, const char *why) {
    if (b->error == NULL) {
        b->error = why;
        b->error_locs = b->locs;
    }
    return 0;
}

/* ---- attributes ---- */

/* Fills in what an empty list stands for. */
static void complete(Attr *attr, const AttrField *fields, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].kind != ATTR_LIST || fields[i].standard == NULL)
            continue;
        Ints *list = &attr->list[fields[i].list];
        bool unsplit = *fields[i].standard == 1 && list->count == 1 && list->at[0] == 0;
        if (list->count == 0 || unsplit)
            *list = (Ints){fields[i].standard, 1};
    }
}

static const double *rounded(Builder *b, const double *dense, const Type *type) {
    int64_t count = tg_type_count(type, 1);
    double *copy = TG_ALLOC(b->graph->arena, double, count);
    for (int64_t i = 0; i < count; i++)
        copy[i] = tg_round_to(type->dtype, dense[i]);
    return copy;
}

static const Attr *copy_attr(Builder *b, const Attr *attr) {
    Attr *copy = TG_ALLOC(b->graph->arena, Attr, 1);
    *copy = *attr;
    for (int i = 0; i < TG_ATTR_LISTS; i++)
        copy->list[i].at = tg_arena_copy(b->graph->arena, attr->list[i].at, sizeof(int64_t) * attr->list[i].count);
    copy->text = tg_intern(b->graph, attr->text);
    return copy;
}

/* ---- sharing ---- */

static void key_add(Str *key, const void *data, size_t bytes) { tg_str_add(key, data, bytes); }

static void key_attr(Builder *b, const AttrField *field, const Attr *attr, const Type *type) {
    Str *key = &b->scratch;
    switch (field->kind) {
    case ATTR_LIST: {
        Ints list = attr->list[field->list];
        key_add(key, &list.count, sizeof list.count);
        key_add(key, list.at, sizeof *list.at * list.count);
        break;
    }
    case ATTR_NUMBER:
        key_add(key, &attr->number, sizeof attr->number);
        break;
    case ATTR_DENSE:
        if (attr->dense != NULL)
            key_add(key, attr->dense, sizeof *attr->dense * (size_t)tg_type_count(type, 1));
        break;
    case ATTR_KEY:
        key_add(key, &attr->key, sizeof attr->key);
        break;
    case ATTR_TEXT:
        key_add(key, &attr->text, sizeof attr->text);
        break;
    default:
        key_add(key, &attr->ref, sizeof attr->ref);
        break;
    }
}

/* The place of the node that equals this one; 0 in it: there is none yet. */
static uint64_t *shared_place(Builder *b, const Node *node, const NodeId *operands, const AttrField *fields,
                              uint32_t count) {
    b->scratch.length = 0;
    uint32_t head[] = {node->op, node->type, node->operand_count, node->precision};
    key_add(&b->scratch, head, sizeof head);
    key_add(&b->scratch, operands, sizeof *operands * node->operand_count);
    for (uint32_t i = 0; i < count; i++)
        key_attr(b, &fields[i], node->attr, tg_type_of(&b->graph->types, node->type));
    return tg_map_put(&b->shared, b->scratch.text, b->scratch.length, NULL);
}

/* The node also stands for what would have been made here. */
static NodeId merged(Builder *b, NodeId id) {
    Node *node = &b->func->nodes.at[id];
    node->locs = tg_locs_union(b->graph, node->locs, b->locs);
    return id;
}

/* ---- nodes ---- */

static NodeId append(Builder *b, Node node, const NodeId *operands) {
    Arena *arena = b->graph->arena;
    node.operands = b->func->operands.count;
    for (uint32_t i = 0; i < node.operand_count; i++)
        tg_push(arena, &b->func->operands, operands[i]);
    tg_push(arena, &b->func->nodes, node);
    return b->func->nodes.count - 1;
}

static bool may(const Builder *b, const char *rule) {
    return b->gate == NULL || b->gate->may(b->gate->context, rule, tg_locs_first(b->graph, b->locs));
}

/* A function's list of arguments grows with the nodes that read them, when they come in order. */
static void declare_arg(Builder *b, const Attr *attr, TypeId type) {
    if (attr->list[0].at[0] == b->func->args.count)
        tg_push(b->graph->arena, &b->func->args,
                (FuncArg){tg_intern(b->graph, attr->text), type, tg_locs_first(b->graph, b->locs)});
}

static NodeId build(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId wanted,
                    bool owned) {
    const char *why = NULL;
    for (uint32_t i = 0; i < count && b->error != NULL; i++)
        if (operands[i] == 0)
            return 0;
    if (count > UINT16_MAX)
        return broken(b, "too many operands");
    AttrField fields[TG_ATTR_FIELDS];
    uint32_t field_count = tg_attr_fields(op, fields);
    Attr complete_attr = attr ? *attr : (Attr){0};
    complete(&complete_attr, fields, field_count);
    TypeId type = tg_infer(b->graph, b->func, op, &complete_attr, operands, count, wanted, &why);
    if (why != NULL)
        return broken(b, why);
    if (op == OP_const) {
        const Type *of = tg_type_of(&b->graph->types, type);
        complete_attr.number = complete_attr.dense ? 0 : tg_round_to(of->dtype, complete_attr.number);
        complete_attr.dense = complete_attr.dense ? rounded(b, complete_attr.dense, of) : NULL;
    }
    if (op == OP_pad)
        complete_attr.number = tg_round_to(tg_type_of(&b->graph->types, type)->dtype, complete_attr.number);
    complete_attr.text = tg_intern(b->graph, complete_attr.text);
    if (b->fold) {
        NodeId known = tg_fold(b, op, &complete_attr, operands, count, type);
        if (known != 0 && may(b, "fold"))
            return merged(b, known);
    }
    Node node = {.op = (uint16_t)op,
                 .operand_count = (uint16_t)count,
                 .type = type,
                 .locs = b->locs,
                 .precision = b->precision,
                 .attr = &complete_attr};
    uint64_t *place = b->fold ? shared_place(b, &node, operands, fields, field_count) : NULL;
    if (place != NULL && *place != 0 && may(b, "share"))
        return merged(b, (NodeId)*place);
    node.attr = field_count == 0 ? NULL : owned && op != OP_const ? attr : copy_attr(b, &complete_attr);
    NodeId id = append(b, node, operands);
    if (op == OP_arg)
        declare_arg(b, node.attr, type);
    if (place != NULL)
        *place = id;
    return id;
}

NodeId tg_build(Builder *b, Op op, const Attr *attr, const NodeId *operands, uint32_t count, TypeId wanted) {
    return build(b, op, attr, operands, count, wanted, false);
}

NodeId tg_build_like(Builder *b, const Graph *from_graph, const Func *from, NodeId id, const NodeId *operands) {
    const Node *node = tg_node(from, id);
    LocsId locs = b->locs;
    Precision precision = b->precision;
    b->locs = node->locs;
    b->precision = node->precision;
    bool owned = from_graph->arena == b->graph->arena;
    NodeId copy = build(b, (Op)node->op, node->attr, operands, node->operand_count, node->type, owned);
    b->locs = locs;
    b->precision = precision;
    return copy;
}

/* ---- one function per kind of node ---- */

NodeId tg_const(Builder *b, TypeId type, double value) {
    return tg_build(b, OP_const, &(Attr){.number = value}, NULL, 0, type);
}

NodeId tg_arg(Builder *b, uint32_t index, const char *name, TypeId type) {
    int64_t at = index;
    return tg_build(b, OP_arg, &(Attr){.list = {{&at, 1}}, .text = name}, NULL, 0, type);
}

NodeId tg_load(Builder *b, uint32_t buffer) { return tg_build(b, OP_load, &(Attr){.ref = buffer}, NULL, 0, 0); }

NodeId tg_load_lane(Builder *b, uint32_t buffer, int64_t lane) {
    return tg_build(b, OP_load, &(Attr){.list = {{&lane, 1}}, .ref = buffer}, NULL, 0, 0);
}

NodeId tg_scalar(Builder *b, uint32_t scalar) { return tg_build(b, OP_scalar, &(Attr){.ref = scalar}, NULL, 0, 0); }

NodeId tg_iota(Builder *b, TypeId type, int64_t axis) {
    return tg_build(b, OP_iota, &(Attr){.list = {{&axis, 1}}}, NULL, 0, type);
}

NodeId tg_unary(Builder *b, Op op, NodeId x) { return tg_build(b, op, NULL, &x, 1, 0); }

NodeId tg_binary(Builder *b, Op op, NodeId x, NodeId y) { return tg_build(b, op, NULL, (NodeId[]){x, y}, 2, 0); }

NodeId tg_select(Builder *b, NodeId condition, NodeId yes, NodeId no) {
    return tg_build(b, OP_select, NULL, (NodeId[]){condition, yes, no}, 3, 0);
}

NodeId tg_convert(Builder *b, NodeId x, DType dtype) {
    TypeId type = tg_type_with(b->graph, tg_node(b->func, x)->type, dtype);
    return tg_build(b, OP_convert, NULL, &x, 1, type);
}

NodeId tg_reshape(Builder *b, NodeId x, TypeId type) { return tg_build(b, OP_reshape, NULL, &x, 1, type); }

NodeId tg_transpose(Builder *b, NodeId x, const int64_t *perm, uint32_t rank) {
    return tg_build(b, OP_transpose, &(Attr){.list = {{perm, rank}}}, &x, 1, 0);
}

NodeId tg_broadcast(Builder *b, NodeId x, const int64_t *dims, uint32_t rank, TypeId type) {
    return tg_build(b, OP_broadcast, &(Attr){.list = {{dims, rank}}}, &x, 1, type);
}

NodeId tg_broadcast_like(Builder *b, NodeId x, TypeId type) {
    const Type *from = tg_node_type(b->graph, b->func, x);
    Type to = *tg_type_of(&b->graph->types, type);
    if (tg_shape_equal(from, &to))
        return x;
    if (from->rank > to.rank)
        return broken(b, "broadcast: the operand has more dimensions than the result");
    to.dtype = from->dtype;
    to.scaled = from->scaled;
    int64_t dims[TG_MAX_RANK];
    for (int i = 0; i < from->rank; i++)
        dims[i] = to.rank - from->rank + i;
    return tg_broadcast(b, x, dims, from->rank, tg_type(&b->graph->types, &to));
}

NodeId tg_reduce(Builder *b, Op op, NodeId x, const int64_t *axes, uint32_t count, int64_t split) {
    if (count == 0)
        return x;
    if (count > TG_MAX_RANK)
        return broken(b, "a reduction over too many axes");
    int64_t sorted[TG_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > axes[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = axes[i];
    }
    Attr attr = {.list = {{sorted, count}, {&split, op != OP_argmax}}};
    return tg_build(b, op, &attr, &x, 1, 0);
}

NodeId tg_dot(Builder *b, NodeId x, NodeId y, Ints batch_x, Ints batch_y, Ints contract_x, Ints contract_y,
              NodeId bias) {
    Attr attr = {.list = {batch_x, batch_y, contract_x, contract_y}};
    return tg_build(b, OP_dot, &attr, (NodeId[]){x, y, bias}, bias ? 3 : 2, 0);
}

void tg_result_value(Builder *b, const char *name, NodeId node) {
    tg_push(b->graph->arena, &b->func->results,
            (Result){.kind = RESULT_VALUE, .node = node, .name = tg_intern(b->graph, name), .locs = b->locs});
}

void tg_result_store(Builder *b, uint32_t buffer, NodeId node) {
    tg_push(b->graph->arena, &b->func->results,
            (Result){.kind = RESULT_STORE, .node = node, .buffer = buffer, .locs = b->locs});
}

TypeId tg_type_with(Graph *graph, TypeId type, DType dtype) {
    Type changed = *tg_type_of(&graph->types, type);
    changed.dtype = dtype;
    return tg_type(&graph->types, &changed);
}
