/* Types, and shape rules: right uses give the right type, wrong ones a message with both shapes. */
#include "tests/ir/support.h"

#include <string.h>

static void test_types(void) {
    World w;
    world_init(&w, LEVEL_MODEL);
    const char *texts[] = {"f32[B, 64]", "f32[B*128]", "scaled f32[3]", "f64", "u8[0, 2]"};
    for (int i = 0; i < 5; i++) {
        Str text = tg_str(&w.arena);
        TypeId id = type_named(&w, texts[i]);
        tg_type_print(&text, tg_type_of(&w.graph->types, id));
        CU_ASSERT_STRING_EQUAL(text.text, texts[i]);
        CU_ASSERT_EQUAL(id, type_named(&w, texts[i]));
    }
    const Type *type = tg_type_of(&w.graph->types, type_named(&w, "f32[3, B*4]"));
    CU_ASSERT_EQUAL(tg_type_count(type, 5), 60);
    CU_ASSERT_EQUAL(tg_type_count(type, 0), 0);
    CU_ASSERT_EQUAL(tg_type_batch_axis(type), 1);
    Type huge = {.dtype = DT_F32, .rank = 3, .dims = {{1ll << 31, false}, {1ll << 31, false}, {2, false}}};
    CU_ASSERT_EQUAL(tg_type_count(&huge, 1), -1);
    huge.dims[0].size = 0;
    CU_ASSERT_EQUAL(tg_type_count(&huge, 1), 0);
    world_deinit(&w);
}

/* A function of arguments of the given types, then one operation in text. */
static Graph *one_op(World *w, const char *args, const char *op) {
    Str text = tg_str(&w->arena);
    tg_str_printf(&text, "graph @step {\n buffer @w : f32[4, 3] param\n func @micro micro() {\n");
    int count = 0;
    for (const char *at = args; *at != '\0';) {
        size_t length = strcspn(at, ";");
        tg_str_printf(&text, "%%%d : %.*s = const value=2\n", ++count, (int)length, at);
        at += length + (at[length] == ';');
    }
    tg_str_printf(&text, "%%r : %s\n }\n}\n", op);
    return parsed(w, text.text);
}

static const struct {
    const char *args, *op;
} good[] = {
    {"f32[B, 4];f32[B, 4]", "f32[B, 4] = add %1, %2"},
    {"f32[B, 4];f32[B, 4]", "bool[B, 4] = lt %1, %2"},
    {"f32", "f32 = exp %1"},
    {"bool[2];i32[2];i32[2]", "i32[2] = select %1, %2, %3"},
    {"u8[B, 8, 8]", "u8[B*64] = reshape %1"},
    {"u8[B*64]", "u8[B, 8, 8] = reshape %1"},
    {"f32[4, B, 8]", "f32[2, 2, B*8] = reshape %1"},
    {"f32[1]", "f32 = reshape %1"},
    {"f32[0, 3]", "f32[7, 0] = reshape %1"},
    {"f32[B, 2, 3]", "f32[3, B, 2] = transpose %1 perm=[2, 0, 1]"},
    {"f32[1, 3]", "f32[5, B, 3] = broadcast %1 dims=[1, 2]"},
    {"f32[10]", "f32[4] = slice %1 start=1 limit=9 stride=2"},
    {"f32[3]", "f32[8] = pad %1 low=1 high=2 interior=1 value=0"},
    {"f32[2, 3];f32[2, 4]", "f32[2, 7] = concat %1, %2 axis=1"},
    {"f32[B, 3, 4]", "f32[3] = reduce_sum %1 axes=[0, 2]"},
    {"f32[B, 3]", "f32[3] = reduce_sum %1 axes=0 split=4"},
    {"f32[B, 3]", "i32[B] = argmax %1 axis=1"},
    {"f32[B, 3]", "f32[B, 3] = cumsum %1 axis=1 reverse=1"},
    {"f32[B, 64];f32[10, 64];f32[10]", "f32[B, 10] = dot %1, %2, %3 contract_a=1 contract_b=1"},
    {"f32[B, 64];f32[B, 10]", "f32[64, 10] = dot %1, %2 contract_a=0 contract_b=0 split=2"},
    {"f32[B, 2, 3];f32[B, 3, 5]", "f32[B, 2, 5] = dot %1, %2 batch_a=0 batch_b=0 contract_a=2 contract_b=1"},
    {"bf16[2, 3];bf16[3, 5]", "f32[2, 5] = dot %1, %2 contract_a=1 contract_b=0"},
    {"f32[50, 8];i32[B, 4]", "f32[B, 4, 8] = take %1, %2 axis=0"},
    {"i32[B, 4];f32[B, 4, 8]", "f32[50, 8] = scatter_add %1, %2 axis=0"},
    {"i32[B, 4];bf16[B, 4, 8];f32[50, 8]", "f32[50, 8] = scatter_add %1, %2, %3 axis=0"},
    {"i32[B, 4];f32[B, 4, 8];f32[50, 8]", "f32[50, 8] = scatter_add %1, %2, %3 axis=0"},
    {"f32[B, 4, 7, 8];f32[B, 2, 9, 8];f32[B, 2, 9, 8]", "f32[B, 4, 7, 8] = attention %1, %2, %3 causal=1 scale=0.5"},
    {"scaled f32[2];f32[2]", "scaled f32[2] = mul %1, %2"},
    {"scaled f32[2];scaled f32[2]", "scaled f32[2] = add %1, %2"},
    {"scaled f32[2]", "bool[2] = is_finite %1"},
    {"scaled f32[2]", "f32[2] = convert %1"},
    {"i32[B]", "i32[B] = bounded %1 low=0 high=10 also=-100"},
};

static void test_good(void) {
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        World w;
        world_init(&w, LEVEL_STEP);
        bool parses = one_op(&w, good[i].args, good[i].op) != NULL;
        CU_ASSERT(parses);
        if (!parses)
            printf("%s: %s\n", good[i].op, w.messages.text);
        world_deinit(&w);
    }
}

static const struct {
    const char *args, *op, *message;
} wrong[] = {
    {"f32[B, 4];f32[B, 5]", "f32[B, 4] = add %1, %2", "add: f32[B, 4] and f32[B, 5] differ in dimension 1 (4 and 5)"},
    {"f32[B];f32[4]", "f32[B] = add %1, %2", "(B and 4)"},
    {"f32[4];f64[4]", "f32[4] = mul %1, %2", "different element types"},
    {"i32[4]", "i32[4] = exp %1", "exp: i32[4] is not of a floating-point type"},
    {"bool[4];bool[4]", "bool[4] = add %1, %2", "is not of numbers"},
    {"f32[4];f32[4]", "f32[4] = select %1, %1, %2", "condition"},
    {"f32[6]", "f32[2, 2] = reshape %1", "f32[6] and f32[2, 2] have different numbers of elements"},
    {"f32[4, B]", "f32[B*4] = reshape %1", "cross the batch"},
    {"f32[B, 6]", "f32[6] = reshape %1", "different numbers"},
    {"f32[2, 3]", "f32[3, 3] = transpose %1 perm=[1, 1]", "twice"},
    {"f32[2]", "f32[4] = broadcast %1 dims=0", "dimension 0 of f32[2] (2) cannot become 4 in f32[4]"},
    {"f32[1]", "f32[4] = broadcast %1 dims=1", "there is no dimension 1 in f32[4]"},
    {"f32[4]", "f32[4] = slice %1 start=0 limit=5 stride=1", "no range of dimension 0 of f32[4]"},
    {"f32[B*4]", "f32[B*2] = slice %1 start=0 limit=2 stride=1", "is the batch"},
    {"f32[B];f32[B]", "f32[B*2] = concat %1, %2 axis=0", "is the batch"},
    {"f32[2, 3];f32[3, 3]", "f32[2, 6] = concat %1, %2 axis=1", "differ in more than dimension 1"},
    {"f32[4]", "f32 = reduce_sum %1 axes=1", "there is no dimension 1"},
    {"f32[4]", "f32 = reduce_sum %1 axes=0 split=2", "only a sum over the batch is split"},
    {"f32[B]", "i32 = argmax %1 axis=0", "is the batch"},
    {"f32[B, 64];f32[10, 63]", "f32[B, 10] = dot %1, %2 contract_a=1 contract_b=1",
     "f32[B, 64] and f32[10, 63] differ where they are contracted: dimension 1 is 64, dimension 1 is 63"},
    {"f32[2, 3];f32[3, 3]", "f32[2] = dot %1, %2 contract_a=[1, 1] contract_b=[0, 1]", "dimension 1 of f32[2, 3] is named twice"},
    {"f32[B, 2];f32[B, 2]", "f32[B, 2] = dot %1, %2 contract_a=1 contract_b=1", "f32[B, B] has the batch in two dimensions"},
    {"f32[B, 2];f32[B, 2]", "f32[B, B] = dot %1, %2 contract_a=1 contract_b=1", "the batch in one dimension"},
    {"f32[2, 3];f32[3, 5];f32[4]", "f32[2, 5] = dot %1, %2, %3 contract_a=1 contract_b=0",
     "bias is f32[4], it needs f32[5]"},
    {"f32[50, 8];f32[4]", "f32[4, 8] = take %1, %2 axis=0", "not of an integer type"},
    {"f32[B, 4, 7, 8];f32[B, 3, 9, 8];f32[B, 3, 9, 8]", "f32[B, 4, 7, 8] = attention %1, %2, %3 causal=0 scale=1",
     "3 key heads do not divide 4 query heads"},
    {"i32[B, 4];f16[B, 4, 8]", "bf16[50, 8] = scatter_add %1, %2 axis=0",
     "rows of bf16[50, 8] at i32[B, 4] are bf16[B, 4, 8], not f16[B, 4, 8]"},
    {"bf16[B, 1, 7, 8];bf16[B, 1, 9, 8];bf16[B, 1, 9, 8];f32[B, 1, 7, 8]",
     "bf16[B, 1, 7, 8] = attention_dq %1, %2, %3, %4 causal=0 scale=1",
     "the cotangent is f32[B, 1, 7, 8], not of the type of bf16[B, 1, 7, 8]"},
    {"scaled f32[2]", "f32[2] = exp %1", "not linear"},
    {"scaled f32[2];f32[2]", "scaled f32[2] = sub %2, %2", "sub gives f32[2]"},
    {"scaled f32[2];scaled f32[2]", "scaled f32[2] = mul %1, %2", "not linear"},
    {"f32[4]", "f32[4] = iota", "it needs an axis"},
    {"f32[4]", "f32[3] = load @w", "its type is f32[4, 3], not f32[3]"},
    {"f32[4]", "f32[4] = add %1", "does not take 1 operands"},
    {"f32[4]", "f32[2147483648, 4294967296, 2] = broadcast %1 dims=0", "more than 2^63"},
    {"f32[4]", "i32[4] = bounded %1", "it needs `low` and `high`"},
};

static void test_wrong(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        World w;
        world_init(&w, LEVEL_STEP);
        CU_ASSERT(one_op(&w, wrong[i].args, wrong[i].op) == NULL);
        bool said = strstr(w.messages.text, wrong[i].message) != NULL;
        CU_ASSERT(said);
        if (!said)
            printf("%s: %s\n", wrong[i].op, w.messages.text);
        world_deinit(&w);
    }
}

int main(void) {
    static const TestCase cases[] = {{"types", test_types}, {"right", test_good}, {"wrong", test_wrong}};
    return run_tests("shape", cases, sizeof cases / sizeof *cases);
}
