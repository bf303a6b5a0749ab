/* fuse: every function becomes a list of library calls and calls of kernels; every group of nodes (group.c) the body of a kernel.
   Bodies that are equal are one kernel. */
#include "passes/copy.h"
#include "passes/group.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct Fuser {
    PassContext *context;
    const Graph *in;
    Graph *out;
    const Func *from;
    const Grouping *grouping;
    Builder b;        /* the function at kernel level */
    NodeId *value;    /* per node of `from`: its value at kernel level, once it is in memory */
    NodeId *inside;   /* its value in the body being built, valid while owner[n] is that group + 1 */
    uint32_t *owner;
    Map *kernels;     /* body -> index of the kernel's function */
    Map shared;       /* the room of one body's builder serves the next one's */
    Str scratch, key;
} Fuser;

typedef struct Body {
    Builder b;
    uint32_t group;
    Vec(NodeId) inputs; /* at kernel level */
} Body;

/* The value of `id` in memory, at kernel level. */
static NodeId in_memory(Fuser *f, NodeId id) {
    if (f->value[id])
        return f->value[id];
    const Node *node = tg_node(f->from, id);
    f->b.locs = node->locs;
    if (f->grouping->place[id] == PLACE_ALIAS) {
        NodeId operand = in_memory(f, tg_operand(f->from, node, 0));
        f->b.locs = node->locs;
        f->value[id] = tg_build_like(&f->b, f->in, f->from, id, &operand);
    } else if (f->grouping->place[id] == PLACE_MEMORY) {
        f->value[id] = tg_build_like(&f->b, f->in, f->from, id, NULL);
    }
    return f->value[id];
}

static NodeId body_value(Fuser *f, Body *body, NodeId id);

static NodeId body_copy(Fuser *f, Body *body, NodeId id) {
    const Node *node = tg_node(f->from, id);
    NodeId few[4], *operands = node->operand_count <= 4 ? few : TG_ALLOC(f->context->arena, NodeId, node->operand_count);
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = body_value(f, body, tg_operand(f->from, node, i));
    body->b.locs = node->locs;
    return tg_build_like(&body->b, f->in, f->from, id, operands);
}

static NodeId body_input(Fuser *f, Body *body, NodeId id) {
    NodeId outside = in_memory(f, id);
    char name[16];
    snprintf(name, sizeof name, "i%u", body->inputs.count);
    const char *kept = tg_intern(f->out, name);
    TypeId type = tg_node(f->from, id)->type;
    tg_push(f->out->arena, &body->b.func->args, (FuncArg){.name = kept, .type = type});
    body->b.locs = 0;
    NodeId arg = tg_arg(&body->b, body->inputs.count, kept, type);
    tg_push(f->context->arena, &body->inputs, outside);
    return arg;
}

/* A number is written where it is used, though a library may want it in memory as well: what it is compared with may need to see that
   it is 0 (a scaled value is compared with nothing else). */
static bool is_number(const Node *node) { return node->op == OP_const && node->attr->dense == NULL; }

/* The value of `id` inside the body: a member, something computed again, or an input. */
static NodeId body_value(Fuser *f, Body *body, NodeId id) {
    if (f->owner[id] == body->group + 1)
        return f->inside[id];
    Place place = f->grouping->place[id];
    bool member = place == PLACE_GROUP &&
                  (f->grouping->group[id] == body->group || f->grouping->again[id] || is_number(tg_node(f->from, id)));
    NodeId value = member || place == PLACE_INLINE ? body_copy(f, body, id) : body_input(f, body, id);
    f->owner[id] = body->group + 1;
    f->inside[id] = value;
    return value;
}

static void key_attr(Str *key, const Attr *attr) {
    for (int i = 0; i < TG_ATTR_LISTS; i++) {
        tg_str_add(key, (const char *)&attr->list[i].count, sizeof attr->list[i].count);
        tg_str_add(key, (const char *)attr->list[i].at, attr->list[i].count * sizeof *attr->list[i].at);
    }
    tg_str_add(key, (const char *)&attr->number, sizeof attr->number);
    tg_str_add(key, (const char *)&attr->dense, sizeof attr->dense); /* by place: attributes are never shared by chance */
    tg_str_add(key, (const char *)&attr->key, sizeof attr->key);
    tg_str_add(key, (const char *)&attr->ref, sizeof attr->ref);
}

/* Everything about a body but its source places. */
static void body_key(Str *key, const Func *body) {
    key->length = 0;
    for (NodeId id = 1; id < body->nodes.count; id++) {
        const Node *node = tg_node(body, id);
        uint32_t fixed[] = {node->op, node->type, node->operand_count, node->attr != NULL};
        tg_str_add(key, (const char *)fixed, sizeof fixed);
        tg_str_add(key, (const char *)&body->operands.at[node->operands], node->operand_count * sizeof(NodeId));
        if (node->attr)
            key_attr(key, node->attr);
    }
    for (uint32_t i = 0; i < body->results.count; i++)
        tg_str_add(key, (const char *)&body->results.at[i].node, sizeof(NodeId));
}

/* The kernel with this body: the one that there is, or the newest function. */
static uint32_t share_kernel(Fuser *f, Func *body) {
    body_key(&f->key, body);
    bool is_new;
    uint64_t *known = tg_map_put(f->kernels, f->key.text, f->key.length, &is_new);
    tg_counted(f->context, is_new ? "kernel" : "shared_kernel", 1);
    if (is_new)
        *known = f->out->funcs.count - 1;
    else
        f->out->funcs.count--;
    return (uint32_t)*known;
}

static void call_kernel(Fuser *f, const Body *body, const Group *group, uint32_t kernel) {
    Attr attr = {.ref = kernel};
    f->b.locs = 0;
    for (uint32_t i = 0; i < group->members.count; i++)
        f->b.locs = tg_locs_union(f->out, f->b.locs, tg_node(f->from, group->members.at[i])->locs);
    NodeId call = tg_build(&f->b, OP_call, &attr, body->inputs.at, body->inputs.count, 0);
    int64_t index = 0;
    for (uint32_t i = 0; i < group->members.count; i++) {
        NodeId member = group->members.at[i];
        if (!f->grouping->output[member])
            continue;
        Attr which = {.list = {{&index, 1}}};
        f->b.locs = tg_node(f->from, member)->locs;
        f->value[member] = tg_build(&f->b, OP_result, &which, &call, 1, tg_node(f->from, member)->type);
        index++;
    }
}

enum { NAMED_OPS = 8 };

/* "kernel.3 holds 5 operations over f32[B, 10]: sub, exp, ..." at the first of them. */
static void remark_kernel(Fuser *f, const Group *group, const Func *body, uint32_t kernel) {
    Str text = tg_str(f->context->arena), names = tg_str(f->context->arena);
    uint32_t count = 0;
    for (NodeId id = 1; id < body->nodes.count; id++) {
        const OpInfo *op = tg_op((Op)tg_node(body, id)->op);
        if (op->fuse == FUSE_leaf)
            continue;
        if (count++ < NAMED_OPS)
            tg_str_printf(&names, "%s%s", count > 1 ? ", " : "", op->name);
    }
    if (count < 2)
        return;
    tg_str_printf(&text, "%s holds %u operations over ", f->out->funcs.at[kernel]->name, count);
    tg_type_print(&text, &group->domain);
    tg_str_printf(&text, ": %s%s", names.text, count > NAMED_OPS ? ", ..." : "");
    tg_pass_remark(f->context, tg_node(f->from, group->members.at[0])->locs, text.text);
}

static Status build_group(Fuser *f, uint32_t index) {
    const Group *group = &f->grouping->groups.at[index];
    const char *name = tg_arena_printf(f->out->arena, "kernel.%u", f->out->funcs.count);
    Body body = {.b = tg_pass_builder(f->context, f->out, tg_func_new(f->out, FUNC_KERNEL, name)), .group = index};
    tg_map_clear(&f->shared);
    body.b.shared = f->shared;
    body.b.scratch = f->scratch;
    for (uint32_t i = 0, outputs = 0; i < group->members.count; i++) {
        NodeId member = group->members.at[i];
        if (!f->grouping->output[member])
            continue;
        NodeId value = body_value(f, &body, member);
        body.b.locs = tg_node(f->from, member)->locs;
        tg_result_value(&body.b, tg_intern(f->out, tg_arena_printf(f->context->arena, "o%u", outputs++)), value);
    }
    f->shared = body.b.shared;
    f->scratch = body.b.scratch;
    TG_TRY(tg_builder_status(&body.b, f->context->diags));
    uint32_t kernel = share_kernel(f, body.b.func);
    if (tg_says_remarks(f->context))
        remark_kernel(f, group, body.b.func, kernel);
    call_kernel(f, &body, group, kernel);
    return TG_OK;
}

static void build_library(Fuser *f, NodeId id) {
    const Node *node = tg_node(f->from, id);
    NodeId operands[8];
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = in_memory(f, tg_operand(f->from, node, i));
    f->b.locs = node->locs;
    f->value[id] = tg_build_like(&f->b, f->in, f->from, id, operands);
}

/* What runs at each step of the function: a group (index) or a library call (node). */
static Status build_steps(Fuser *f) {
    const Grouping *grouping = f->grouping;
    NodeId *library = TG_ALLOC(f->context->arena, NodeId, grouping->steps + 1);
    uint32_t *group = TG_ALLOC(f->context->arena, uint32_t, grouping->steps + 1);
    for (NodeId id = 1; id < f->from->nodes.count; id++)
        if (grouping->place[id] == PLACE_LIBRARY)
            library[grouping->step[id]] = id;
    for (uint32_t i = 0; i < grouping->groups.count; i++)
        group[grouping->step[grouping->groups.at[i].members.at[0]]] = i;
    for (uint32_t step = 1; step <= grouping->steps; step++) {
        if (library[step])
            build_library(f, library[step]);
        else
            TG_TRY(build_group(f, group[step]));
    }
    return TG_OK;
}

static Status fuse_func(PassContext *context, const Graph *in, Graph *out, const Func *from, Map *kernels) {
    Grouping grouping = tg_group(context, in, from);
    uint32_t count = from->nodes.count;
    Fuser f = {
        .context = context, .in = in, .out = out, .from = from, .grouping = &grouping, .kernels = kernels,
        .value = TG_ALLOC(context->arena, NodeId, count),
        .inside = TG_ALLOC(context->arena, NodeId, count),
        .owner = TG_ALLOC(context->arena, uint32_t, count),
        .shared = tg_map(context->arena), .scratch = tg_str(context->arena), .key = tg_str(context->arena),
    };
    Func *func = tg_func_new(out, from->kind, from->name);
    func->args = from->args;
    f.b = tg_pass_builder(context, out, func);
    TG_TRY(build_steps(&f));
    for (uint32_t i = 0; i < from->results.count; i++) {
        const Result *result = &from->results.at[i];
        NodeId value = in_memory(&f, result->node);
        f.b.locs = result->locs;
        if (result->kind == RESULT_STORE)
            tg_result_store(&f.b, result->buffer, value);
        else
            tg_result_value(&f.b, result->name, value);
    }
    tg_pass_map(context, from, func, f.value);
    return tg_builder_status(&f.b, context->diags);
}

Status run_fuse(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, LEVEL_KERNEL);
    Map kernels = tg_map(context->arena);
    for (uint32_t i = 0; i < in->funcs.count; i++)
        TG_TRY(fuse_func(context, in, *out, in->funcs.at[i], &kernels));
    return TG_OK;
}
