/* The builder: what it shares and folds, and what it must not. */
#include "ir/fold.h"
#include "tests/ir/support.h"

#include <math.h>
#include <string.h>

typedef struct Fixture {
    World w;
    Builder b;
    NodeId x, y; /* f32[4] */
} Fixture;

static void begin(Fixture *f, bool fold) {
    world_init(&f->w, LEVEL_STEP);
    f->b = tg_builder(f->w.graph, tg_func_new(f->w.graph, FUNC_MICRO, "micro"), fold);
    TypeId type = type_named(&f->w, "f32[4]");
    f->x = tg_arg(&f->b, 0, "x", type);
    f->y = tg_arg(&f->b, 1, "y", type);
}

static void end(Fixture *f) {
    CU_ASSERT_EQUAL(tg_builder_status(&f->b, &f->w.diags), TG_OK);
    world_deinit(&f->w);
}

static NodeId number(Fixture *f, const char *type, double value) {
    return tg_const(&f->b, type_named(&f->w, type), value);
}

static bool is_const(Fixture *f, NodeId id, double value) {
    const Node *node = tg_node(f->b.func, id);
    return node->op == OP_const && node->attr->dense == NULL &&
           (isnan(value) ? isnan(node->attr->number) : memcmp(&node->attr->number, &value, sizeof value) == 0);
}

static void test_sharing(void) {
    Fixture f;
    begin(&f, true);
    f.b.locs = tg_locs_one(f.w.graph, (Loc){.column = 1, .end_column = 2, .line = 1});
    NodeId sum = tg_binary(&f.b, OP_add, f.x, f.y);
    f.b.locs = tg_locs_one(f.w.graph, (Loc){.column = 3, .end_column = 4, .line = 2});
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_add, f.x, f.y), sum);
    CU_ASSERT_NOT_EQUAL(tg_binary(&f.b, OP_add, f.y, f.x), sum);
    CU_ASSERT_NOT_EQUAL(tg_binary(&f.b, OP_sub, f.x, f.y), sum);
    Loc places[8];
    CU_ASSERT_EQUAL(tg_locs_list(f.w.graph, tg_node(f.b.func, sum)->locs, places, 8), 2);
    CU_ASSERT_EQUAL(places[1].line, 2);
    TypeId type = type_named(&f.w, "f32[4]");
    NodeId a = tg_build(&f.b, OP_random, &(Attr){.key = 1}, NULL, 0, type);
    CU_ASSERT_EQUAL(tg_build(&f.b, OP_random, &(Attr){.key = 1}, NULL, 0, type), a);
    CU_ASSERT_NOT_EQUAL(tg_build(&f.b, OP_random, &(Attr){.key = 2}, NULL, 0, type), a);
    CU_ASSERT_NOT_EQUAL(number(&f, "f32", 0.0), number(&f, "f32", -0.0));
    double values[] = {1, 2, 3, 4}, others[] = {1, 2, 3, -4};
    NodeId dense = tg_build(&f.b, OP_const, &(Attr){.dense = values}, NULL, 0, type);
    CU_ASSERT_EQUAL(tg_build(&f.b, OP_const, &(Attr){.dense = values}, NULL, 0, type), dense);
    CU_ASSERT_NOT_EQUAL(tg_build(&f.b, OP_const, &(Attr){.dense = others}, NULL, 0, type), dense);
    end(&f);
}

static void test_no_fold(void) {
    Fixture f;
    begin(&f, false);
    CU_ASSERT_NOT_EQUAL(tg_binary(&f.b, OP_add, f.x, f.y), tg_binary(&f.b, OP_add, f.x, f.y));
    NodeId one = number(&f, "f32[4]", 1);
    CU_ASSERT_NOT_EQUAL(tg_binary(&f.b, OP_mul, f.x, one), f.x);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_binary(&f.b, OP_add, one, one))->op, OP_add);
    end(&f);
}

static void test_identities(void) {
    Fixture f;
    begin(&f, true);
    NodeId zero = number(&f, "f32[4]", 0), negative = number(&f, "f32[4]", -0.0), one = number(&f, "f32[4]", 1);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_mul, f.x, one), f.x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_mul, one, f.x), f.x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_div, f.x, one), f.x);
    CU_ASSERT_NOT_EQUAL(tg_binary(&f.b, OP_div, one, f.x), f.x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_sub, f.x, zero), f.x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_add, f.x, negative), f.x);
    /* -0 + 0 is 0, -0 - -0 is 0, NaN * 0 is NaN, inf - inf is NaN */
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_binary(&f.b, OP_add, f.x, zero))->op, OP_add);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_binary(&f.b, OP_sub, f.x, negative))->op, OP_sub);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_binary(&f.b, OP_mul, f.x, zero))->op, OP_mul);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_binary(&f.b, OP_sub, f.x, f.x))->op, OP_sub);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_binary(&f.b, OP_eq, f.x, f.x))->op, OP_eq);
    CU_ASSERT_EQUAL(tg_unary(&f.b, OP_neg, tg_unary(&f.b, OP_neg, f.x)), f.x);
    CU_ASSERT_EQUAL(tg_convert(&f.b, f.x, DT_F32), f.x);
    NodeId low = tg_convert(&f.b, f.x, DT_BF16);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_convert(&f.b, low, DT_F32))->op, OP_convert);
    CU_ASSERT_EQUAL(tg_select(&f.b, number(&f, "bool[4]", 1), f.x, f.y), f.x);
    CU_ASSERT_EQUAL(tg_select(&f.b, number(&f, "bool[4]", 0), f.x, f.y), f.y);
    end(&f);
}

static void test_truths(void) {
    Fixture f;
    begin(&f, true);
    NodeId x = tg_arg(&f.b, 2, "z", type_named(&f.w, "bool[4]")), yes = number(&f, "bool[4]", 1), no = number(&f, "bool[4]", 0);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_and, x, yes), x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_and, yes, x), x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_and, x, no), no);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_and, no, x), no);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_or, x, no), x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_or, no, x), x);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_or, x, yes), yes);
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_or, yes, x), yes);
    end(&f);
}

static void test_integer_identities(void) {
    Fixture f;
    begin(&f, true);
    NodeId i = tg_arg(&f.b, 2, "i", type_named(&f.w, "i32[4]"));
    CU_ASSERT_EQUAL(tg_binary(&f.b, OP_add, i, number(&f, "i32[4]", 0)), i);
    CU_ASSERT_NOT_EQUAL(tg_unary(&f.b, OP_neg, tg_unary(&f.b, OP_neg, i)), i);
    end(&f);
}

static void test_views(void) {
    Fixture f;
    begin(&f, true);
    NodeId x = tg_arg(&f.b, 2, "z", type_named(&f.w, "f32[B, 2, 3]"));
    NodeId flat = tg_reshape(&f.b, x, type_named(&f.w, "f32[B*6]"));
    CU_ASSERT_EQUAL(tg_reshape(&f.b, flat, type_named(&f.w, "f32[B, 2, 3]")), x);
    NodeId other = tg_reshape(&f.b, flat, type_named(&f.w, "f32[B, 6]"));
    CU_ASSERT_EQUAL(tg_operand(f.b.func, tg_node(f.b.func, other), 0), x);
    const int64_t turn[] = {1, 2, 0}, again[] = {2, 0, 1}, same[] = {0, 1, 2};
    CU_ASSERT_EQUAL(tg_transpose(&f.b, tg_transpose(&f.b, x, turn, 3), again, 3), x);
    CU_ASSERT_EQUAL(tg_transpose(&f.b, x, same, 3), x);
    NodeId wide = tg_broadcast_like(&f.b, f.x, type_named(&f.w, "f32[3, 4]"));
    NodeId wider = tg_broadcast_like(&f.b, wide, type_named(&f.w, "f32[2, 3, 4]"));
    CU_ASSERT_EQUAL(tg_operand(f.b.func, tg_node(f.b.func, wider), 0), f.x);
    CU_ASSERT_EQUAL(tg_node(f.b.func, wider)->attr->list[0].at[0], 2);
    CU_ASSERT_EQUAL(tg_broadcast_like(&f.b, f.x, type_named(&f.w, "f32[4]")), f.x);
    int64_t axis = 2;
    CU_ASSERT_EQUAL(tg_build(&f.b, OP_reverse, &(Attr){0}, &x, 1, 0), x);
    CU_ASSERT_NOT_EQUAL(tg_build(&f.b, OP_reverse, &(Attr){.list = {{&axis, 1}}}, &x, 1, 0), x);
    end(&f);
}

static void test_constants(void) {
    Fixture f;
    begin(&f, true);
    NodeId two = number(&f, "f32", 2), zero = number(&f, "f32", 0), tenth = number(&f, "f32", 0.1);
    CU_ASSERT(is_const(&f, tenth, (double)0.1f));
    CU_ASSERT(is_const(&f, tg_binary(&f.b, OP_add, tenth, two), (double)(0.1f + 2.0f)));
    CU_ASSERT(is_const(&f, tg_binary(&f.b, OP_div, zero, zero), NAN));
    CU_ASSERT(is_const(&f, tg_binary(&f.b, OP_div, two, zero), INFINITY));
    CU_ASSERT(is_const(&f, tg_unary(&f.b, OP_neg, zero), -0.0));
    CU_ASSERT(is_const(&f, tg_binary(&f.b, OP_add, number(&f, "f32", -0.0), zero), 0.0));
    CU_ASSERT(is_const(&f, tg_convert(&f.b, number(&f, "f32", 1e5), DT_F16), INFINITY));
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_unary(&f.b, OP_exp, two))->op, OP_exp);
    CU_ASSERT_EQUAL(tg_node(f.b.func, tg_unary(&f.b, OP_rsqrt, two))->op, OP_rsqrt);
    CU_ASSERT(is_const(&f, tg_unary(&f.b, OP_sqrt, two), (double)sqrtf(2.0f)));
    end(&f);
}

static void test_large_constants(void) {
    Fixture f;
    begin(&f, true);
    NodeId big = number(&f, "f32[B, 100000]", 3);
    NodeId sum = tg_binary(&f.b, OP_add, big, big);
    CU_ASSERT(is_const(&f, sum, 6));
    CU_ASSERT_EQUAL(tg_node(f.b.func, sum)->type, tg_node(f.b.func, big)->type);
    double zeros[] = {0, -0.0}, alike[] = {NAN, NAN};
    CU_ASSERT_PTR_NOT_NULL(tg_node(f.b.func, tg_const_values(&f.b, type_named(&f.w, "f32[2]"), zeros, 2))->attr->dense);
    CU_ASSERT(is_const(&f, tg_const_values(&f.b, type_named(&f.w, "f32[2]"), alike, 2), NAN));
    double values[3] = {1, -0.0, NAN};
    NodeId dense = tg_build(&f.b, OP_const, &(Attr){.dense = values}, NULL, 0, type_named(&f.w, "f32[3]"));
    const Node *twice = tg_node(f.b.func, tg_binary(&f.b, OP_add, dense, dense));
    CU_ASSERT_FATAL(twice->op == OP_const && twice->attr->dense != NULL);
    CU_ASSERT(twice->attr->dense[0] == 2 && signbit(twice->attr->dense[1]) && isnan(twice->attr->dense[2]));
    NodeId wide = tg_broadcast_like(&f.b, dense, type_named(&f.w, "f32[5000, 3]"));
    CU_ASSERT_EQUAL(tg_node(f.b.func, wide)->op, OP_broadcast);
    NodeId few = tg_broadcast_like(&f.b, dense, type_named(&f.w, "f32[2, 3]"));
    CU_ASSERT_EQUAL(tg_node(f.b.func, few)->op, OP_const);
    const int64_t axis = 0;
    NodeId reduced = tg_reduce(&f.b, OP_reduce_sum, dense, &axis, 1, 1);
    CU_ASSERT_EQUAL(tg_node(f.b.func, reduced)->op, OP_reduce_sum);
    end(&f);
}

static void test_errors(void) {
    Fixture f;
    begin(&f, true);
    NodeId wrong = tg_binary(&f.b, OP_add, f.x, number(&f, "f32[3]", 1));
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(tg_unary(&f.b, OP_neg, wrong), 0);
    CU_ASSERT_EQUAL(tg_builder_status(&f.b, &f.w.diags), TG_INTERNAL);
    CU_ASSERT(strstr(f.w.messages.text, "f32[4] and f32[3]") != NULL);
    world_deinit(&f.w);
}

static void test_copies(void) {
    Fixture f;
    begin(&f, true);
    const int64_t axis = 0;
    NodeId sum = tg_reduce(&f.b, OP_reduce_sum, f.x, &axis, 1, 1);
    tg_result_value(&f.b, "sum", sum);
    Graph *like = tg_graph_like(&f.w.arena, f.w.graph, LEVEL_STEP);
    Builder b = tg_builder(like, tg_func_new(like, FUNC_MICRO, "micro"), true);
    NodeId map[8] = {0};
    for (NodeId id = 1; id <= sum; id++) {
        NodeId operands[1] = {0};
        for (uint32_t i = 0; i < tg_node(f.b.func, id)->operand_count; i++)
            operands[i] = map[tg_operand(f.b.func, tg_node(f.b.func, id), i)];
        map[id] = tg_build_like(&b, f.w.graph, f.b.func, id, operands);
    }
    tg_result_value(&b, "sum", map[sum]);
    CU_ASSERT_STRING_EQUAL(printed(&f.w, like), printed(&f.w, f.w.graph));
    TypeId known = type_named(&f.w, "f32[4]");
    CU_ASSERT_EQUAL(tg_type(&like->types, tg_type_of(&f.w.graph->types, known)), known);
    CU_ASSERT_PTR_EQUAL(tg_intern(like, "sum"), tg_intern(f.w.graph, "sum"));
    Uses uses = tg_uses(&f.w.arena, b.func);
    CU_ASSERT_EQUAL(uses.first[map[f.x] + 1] - uses.first[map[f.x]], 1);
    CU_ASSERT_EQUAL(uses.at[uses.first[map[f.x]]], map[sum]);
    CU_ASSERT_EQUAL(uses.result_uses[map[sum]], 1);
    end(&f);
}

int main(void) {
    static const TestCase cases[] = {
        {"sharing", test_sharing},
        {"no fold", test_no_fold},
        {"identities", test_identities},
        {"truths", test_truths},
        {"integers", test_integer_identities},
        {"views", test_views},
        {"constants", test_constants},
        {"large constants", test_large_constants},
        {"errors", test_errors},
        {"copies", test_copies},
    };
    return run_tests("build", cases, sizeof cases / sizeof *cases);
}
