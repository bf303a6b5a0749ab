/* autocast: mixed precision. The functions that compute the objective and the exports, written in f32, take the low type of
   `-p bf16` or `-p f16` where their ops' classes (column `cast` of ir/ops.def) say so. docs/precision.md tells users.

   A value of the new function has up to two forms: f32 (`wide`) and low (`narrow`). What is stored is decided per value of the old one:

   - dots and attention take narrow operands and give a narrow result, with a bias in f32; `take` from a parameter takes its low copy;
   - ops of class f32 read and give wide values;
   - element-wise ops compute in f32, whatever they read. They form chains, which round once, where they end: a value of a chain is its
     end if a dot reads it, or something that lies behind a dot that it does not lie behind itself, so that it has to wait in memory.
     All readers then see the rounded value. In between nothing rounds, and a chain that ends in a sum never does;
   - the kind of a chain is that of its operands of full size: low only if one is low and none is wide. Broadcast operands, constants
     and parameters are neutral;
   - what only moves elements moves them in the form in which they are there.

   Ops with a mark of the user's follow the mark. Marks are gone afterwards. A product with a vector stays in f32: -Rpass-missed says so. */
#include "passes/passes.h"
#include "passes/rewrite.h"

#include "ir/dot.h"

typedef enum Kind { NEUTRAL, WIDE, LOW } Kind;

/* What becomes of a value of the old function. */
typedef struct Fate {
    Kind kind;
    bool is_low_op; /* a dot, attention or take that computes in the low type */
    bool ends;      /* the end of a chain: it rounds */
    uint32_t depth; /* the most dots on a path to it */
} Fate;

typedef struct Autocast {
    PassContext *context;
    const Graph *in;
    const Func *from;
    Builder b;
    DType low;
    Fate *fate;
    NodeId *wide, *narrow; /* forms, as far as they are made */
    bool *is_narrow;       /* the narrow form is what is stored */
} Autocast;

static const Node *old(const Autocast *a, NodeId id) { return tg_node(a->from, id); }
static NodeId reads(const Autocast *a, NodeId id, uint32_t i) { return tg_operand(a->from, old(a, id), i); }
static const Type *type_of(const Autocast *a, NodeId id) { return tg_node_type(a->in, a->from, id); }
static bool is_f32(const Autocast *a, NodeId id) { return type_of(a, id)->dtype == DT_F32; }

/* ---- what becomes of each value ---- */

static CastClass class_of(const Node *node) {
    CastClass class = tg_op((Op)node->op)->cast;
    return node->precision == PRECISION_F32 ? CAST_f32 : class;
}

static bool moves(Op op) {
    return tg_op(op)->fuse == FUSE_view || op == OP_reverse || op == OP_pad || op == OP_concat;
}

static bool is_library(Op op) { return tg_op(op)->fuse == FUSE_library; }

static bool repeats(const Autocast *a, NodeId id) {
    return old(a, id)->op == OP_broadcast && tg_type_count(type_of(a, id), 1) != tg_type_count(type_of(a, reads(a, id, 0)), 1);
}

/* A parameter as it is stored, or what only moves its elements. */
static bool is_stored(const Autocast *a, NodeId id) {
    const Node *node = old(a, id);
    while (moves((Op)node->op) && node->operand_count == 1)
        node = old(a, tg_operand(a->from, node, 0));
    return node->op == OP_load;
}

/* Low if an operand is and none is wide. Bools and integers do not count. */
static Kind kind_of_operands(const Autocast *a, NodeId id) {
    Kind kind = NEUTRAL;
    for (uint32_t i = 0; i < old(a, id)->operand_count; i++) {
        NodeId x = reads(a, id, i);
        if (!is_f32(a, x) || a->fate[x].kind == NEUTRAL)
            continue;
        if (a->fate[x].kind == WIDE)
            return WIDE;
        kind = LOW;
    }
    return kind;
}

static Kind kind_of_convert(const Autocast *a, NodeId id) {
    DType from = type_of(a, reads(a, id, 0))->dtype;
    return from == a->low ? LOW : tg_is_float(from) ? WIDE : NEUTRAL;
}

static Kind kind_of(const Autocast *a, NodeId id) {
    const Node *node = old(a, id);
    const OpInfo *info = tg_op((Op)node->op);
    if (node->op == OP_convert)
        return class_of(node) == CAST_f32 ? WIDE : kind_of_convert(a, id);
    if (node->op == OP_arg)
        return WIDE;
    if (info->fuse == FUSE_leaf && node->op != OP_random)
        return NEUTRAL;
    if (class_of(node) == CAST_f32 || info->fuse == FUSE_reduce)
        return WIDE;
    return repeats(a, id) ? NEUTRAL : kind_of_operands(a, id);
}

/* A product with a vector on one side. Libraries have no good call of a low type for it: f32 is faster. */
static bool is_of_vector(const Autocast *a, NodeId id) {
    const Node *node = old(a, id);
    for (uint32_t side = 0; node->op == OP_dot && side < 2; side++) {
        const Type *type = type_of(a, reads(a, id, side));
        int64_t axes[TG_MAX_RANK], size = 1;
        uint32_t count = tg_free_axes(type, node->attr->list[side], node->attr->list[2 + side], axes);
        for (uint32_t i = 0; i < count; i++)
            size *= type->dims[axes[i]].batch ? 2 : type->dims[axes[i]].size;
        if (size == 1)
            return true;
    }
    return false;
}

static bool gains(const Autocast *a, NodeId id) {
    if (!is_of_vector(a, id))
        return true;
    if (tg_says_missed(a->context))
        tg_pass_missed(a->context, old(a, id)->locs, "a product with a vector stays in f32, which is faster");
    return false;
}

/* A dot that adds to a sum so far, which has its result's type: that is f32. No source says it. */
static bool adds_to_sum(const Autocast *a, NodeId id) { return old(a, id)->op == OP_dot && tg_dot_adds(a->in, a->from, old(a, id)); }

static bool computes_low(const Autocast *a, NodeId id) {
    const Node *node = old(a, id);
    CastClass class = class_of(node);
    bool fits = class == CAST_low || (class == CAST_take && is_stored(a, reads(a, id, 0)));
    return fits && is_f32(a, id) && is_f32(a, reads(a, id, 0)) && !adds_to_sum(a, id) && gains(a, id) && tg_rewrite(a->context, tg_op((Op)node->op)->name, node->locs);
}

static void find_kinds(Autocast *a) {
    for (NodeId id = 1; id < a->from->nodes.count; id++) {
        Fate *fate = &a->fate[id];
        for (uint32_t i = 0; i < old(a, id)->operand_count; i++) {
            uint32_t depth = a->fate[reads(a, id, i)].depth;
            fate->depth = depth > fate->depth ? depth : fate->depth;
        }
        fate->depth += is_library((Op)old(a, id)->op);
        fate->is_low_op = computes_low(a, id);
        if (is_f32(a, id))
            fate->kind = fate->is_low_op ? LOW : kind_of(a, id);
    }
}

/* Does operand `i` of `id` have to be narrow? A bias is not. */
static bool takes_narrow(const Autocast *a, NodeId id, uint32_t i) {
    if (!a->fate[id].is_low_op || !is_f32(a, reads(a, id, i)))
        return false;
    return old(a, id)->op != OP_dot || i < 2;
}

/* Backwards, since a value that is moved rounds before, for all its readers. */
static void find_ends(Autocast *a) {
    for (NodeId id = a->from->nodes.count - 1; id > 0; id--)
        for (uint32_t i = 0; i < old(a, id)->operand_count; i++) {
            NodeId x = reads(a, id, i);
            Fate *fate = &a->fate[x];
            bool waits = a->fate[id].depth > fate->depth && !is_library((Op)old(a, id)->op);
            bool moved = moves((Op)old(a, id)->op) && a->fate[id].ends;
            if (fate->kind == LOW && is_f32(a, x))
                fate->ends |= takes_narrow(a, id, i) || waits || moved;
        }
}

/* ---- the forms of a value ---- */

/* A cast that is written in the source is the user's. */
static void say_cast(const Autocast *a, DType to, NodeId value, NodeId reader, const char *rule) {
    if (old(a, reader)->op == OP_convert)
        return;
    PassCast cast = {a->from, old(a, reader)->locs, old(a, value)->type, to == DT_F32 ? a->low : DT_F32, to, rule};
    tg_push(a->context->arena, &a->context->casts, cast);
    if (!tg_says_remarks(a->context))
        return;
    Str text = tg_str(a->context->arena);
    tg_type_print(&text, type_of(a, value));
    tg_str_printf(&text, " cast to %s: %s", tg_dtype(to)->name, rule);
    tg_pass_remark(a->context, cast.locs, text.text);
}

static const char *why_wide(const Autocast *a, NodeId reader) {
    const Node *node = old(a, reader);
    if (node->precision == PRECISION_F32) {
        const char *said = a->in->instances.at[tg_locs_first(a->in, node->locs).instance].said;
        return tg_arena_printf(a->context->arena, "%s keeps its reader in f32", said ? said : "f32(x)");
    }
    return tg_op((Op)node->op)->cast == CAST_f32 ? "its reader computes in f32" : "element-wise ops compute in f32";
}

/* The same movement of elements as node `id`, over other operands. */
static NodeId moved(Autocast *a, NodeId id, const NodeId *operands) {
    const Node *node = old(a, id);
    a->b.locs = node->locs;
    TypeId type = tg_type_with(a->b.graph, node->type, tg_node_type(a->b.graph, a->b.func, operands[0])->dtype);
    return tg_build(&a->b, (Op)node->op, node->attr, operands, node->operand_count, type);
}

static NodeId rounded(Autocast *a, NodeId x, NodeId reader) {
    const Node *node = old(a, x);
    bool is_weight = is_stored(a, x);
    say_cast(a, a->low, x, reader, is_weight ? "the low copy of a parameter" : a->fate[x].ends ? "the end of a chain" : "an operand of a dot");
    a->b.locs = node->locs;
    return tg_convert(&a->b, a->wide[x], a->low);
}

static NodeId narrow_of(Autocast *a, NodeId x, NodeId reader) {
    if (a->narrow[x])
        return a->narrow[x];
    const Node *node = old(a, x);
    if (node->operand_count == 1 && is_stored(a, x)) {
        NodeId below = narrow_of(a, reads(a, x, 0), reader);
        a->narrow[x] = moved(a, x, &below);
    } else {
        a->narrow[x] = rounded(a, x, reader);
    }
    return a->narrow[x];
}

static NodeId wide_of(Autocast *a, NodeId x, NodeId reader) {
    if (a->wide[x] == 0) {
        say_cast(a, DT_F32, x, reader, why_wide(a, reader));
        a->b.locs = old(a, x)->locs;
        a->wide[x] = tg_convert(&a->b, a->narrow[x], DT_F32);
    }
    return a->wide[x];
}

/* ---- the new function ---- */

static NodeId low_op(Autocast *a, NodeId id, NodeId *operands) {
    const Node *node = old(a, id);
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = takes_narrow(a, id, i) ? narrow_of(a, reads(a, id, i), id) : wide_of(a, reads(a, id, i), id);
    a->b.locs = node->locs;
    return tg_build(&a->b, (Op)node->op, node->attr, operands, node->operand_count, tg_type_with(a->b.graph, node->type, a->low));
}

/* All that it moves is stored narrow, or neutral beside something that is. */
static bool moves_narrow(const Autocast *a, NodeId id) {
    bool any = false;
    for (uint32_t i = 0; i < old(a, id)->operand_count; i++) {
        NodeId x = reads(a, id, i);
        any |= a->is_narrow[x];
        if (!a->is_narrow[x] && a->fate[x].kind != NEUTRAL)
            return false;
    }
    return any && moves((Op)old(a, id)->op) && class_of(old(a, id)) != CAST_f32;
}

static NodeId in_f32(Autocast *a, NodeId id, NodeId *operands) {
    const Node *node = old(a, id);
    for (uint32_t i = 0; i < node->operand_count; i++)
        operands[i] = wide_of(a, reads(a, id, i), id);
    a->b.locs = node->locs;
    return tg_build(&a->b, (Op)node->op, node->attr, operands, node->operand_count, node->type);
}

static void copy_value(Autocast *a, NodeId id, NodeId *operands) {
    const Node *node = old(a, id);
    bool casts = node->op == OP_convert, from_low = casts && type_of(a, reads(a, id, 0))->dtype == a->low;
    if (a->fate[id].is_low_op) {
        a->narrow[id] = low_op(a, id, operands);
        a->is_narrow[id] = true;
    } else if (casts && is_f32(a, reads(a, id, 0)) && type_of(a, id)->dtype == a->low) {
        a->wide[id] = narrow_of(a, reads(a, id, 0), id);
    } else if (from_low && is_f32(a, id)) {
        a->narrow[id] = a->wide[reads(a, id, 0)];
        a->is_narrow[id] = true;
    } else if (moves_narrow(a, id)) {
        for (uint32_t i = 0; i < node->operand_count; i++)
            operands[i] = narrow_of(a, reads(a, id, i), id);
        a->narrow[id] = moved(a, id, operands);
        a->is_narrow[id] = true;
    } else {
        a->wide[id] = in_f32(a, id, operands);
        if (a->fate[id].ends && tg_rewrite(a->context, "chain", node->locs)) {
            a->narrow[id] = rounded(a, id, id);
            a->is_narrow[id] = true;
            a->wide[id] = 0; /* its readers see the rounded one */
        }
    }
}

static Autocast autocast_of(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Arena *arena = context->arena;
    uint32_t count = from->nodes.count;
    Autocast a = {.context = context, .in = in, .from = from, .low = in->training.precision};
    a.b = tg_pass_builder(context, out, tg_func_new(out, from->kind, from->name));
    a.b.func->args = from->args;
    a.fate = TG_ALLOC(arena, Fate, count);
    a.wide = TG_ALLOC(arena, NodeId, count);
    a.narrow = TG_ALLOC(arena, NodeId, count);
    a.is_narrow = TG_ALLOC(arena, bool, count);
    return a;
}

static Status cast_func(PassContext *context, const Graph *in, const Func *from, Graph *out) {
    Autocast a = autocast_of(context, in, from, out);
    find_kinds(&a);
    find_ends(&a);
    NodeId *operands = TG_ALLOC(context->arena, NodeId, from->operands.count + 1);
    for (NodeId id = 1; id < from->nodes.count; id++)
        copy_value(&a, id, operands);
    for (uint32_t i = 0; i < from->results.count; i++) {
        const Result *result = &from->results.at[i];
        NodeId value = wide_of(&a, result->node, result->node);
        a.b.locs = result->locs;
        if (result->kind == RESULT_STORE)
            tg_result_store(&a.b, result->buffer, value);
        else
            tg_result_value(&a.b, result->name, value);
    }
    tg_pass_map(context, from, a.b.func, a.wide);
    return tg_builder_status(&a.b, context->diags);
}

static NodeId unmarked(void *context, const Copy *copy, NodeId id, const NodeId *operands) {
    (void)context;
    const Node *node = tg_node(copy->from, id);
    return tg_build(copy->b, (Op)node->op, node->attr, operands, node->operand_count, node->type);
}

static bool is_cast(const Graph *in, const Func *func) {
    return tg_is_mixed(&in->training) &&
           (func->kind == FUNC_OBJECTIVE || func->kind == FUNC_OBJECTIVE_EVAL || func->kind == FUNC_EXPORT);
}

Status run_autocast(PassContext *context, const Graph *in, Graph **out) {
    *out = tg_graph_like(context->arena, in, LEVEL_MODEL);
    for (uint32_t f = 0; f < in->funcs.count; f++) {
        const Func *func = in->funcs.at[f];
        if (is_cast(in, func))
            TG_TRY(cast_func(context, in, func, *out));
        else
            TG_TRY(tg_copy_replacing(context, in, func, *out, unmarked, NULL));
    }
    return TG_OK;
}
