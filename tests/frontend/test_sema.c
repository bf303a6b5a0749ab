/* Names: what is accepted without a word, and what each mistake is told. */
#include "tests/frontend/source.h"

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void expect_silence(const char *text) {
    TestSource *source = source_check(text);
    if (source->status != TG_OK || source->messages.length)
        fprintf(stderr, "\n%s\n%s\n", text, source->messages.text);
    CU_ASSERT_EQUAL(source->status, TG_OK);
    CU_ASSERT_EQUAL(source->messages.length, 0);
    source_free(source);
}

/* One message, an error or a warning, that holds `message`. */
static void expect_one(const char *text, const char *message) {
    TestSource *source = source_check(text);
    bool told = strstr(source->messages.text, message) != NULL;
    if (!told || source->diags.errors + source->diags.warnings != 1)
        fprintf(stderr, "\n%s\ngot  %s\nnot  %s\n", text, source->messages.text, message);
    CU_ASSERT(told);
    CU_ASSERT_EQUAL(source->diags.errors + source->diags.warnings, 1);
    source_free(source);
}

static void test_scopes(void) {
    expect_silence("fn f(x) { return g(x) }\nfn g(x) { return x }");
    expect_silence("const n = 1\nfn f(x: f32[B, n, m * 2, m]) -> f32[B, _, m] { return reshape(x, [B, n, m]) }");
    expect_silence("module M(n: int) {\n  k = n * 2\n  fn (x: f32[B, n], y: t[..., k]) -> t[..., k] {\n    return y * "
                   "h(x)\n  }\n  fn h(x) { return x }\n}");
    expect_silence("module M(k: int) {\n  k = 2 if k > 1\n  l = 3 if defined(k)\n  fn () { return k + l }\n}");
    expect_silence("fn f(xs) {\n  for x in xs { y = x }\n  return [z + y for z in xs if z > 1]\n}");
    expect_silence("x = rearrange(1, [B, (H, D)] -> [B, H, D])\ny = p -> rank(p)");
    expect_silence("optimizer O(lr: f32) {\n  state m: f32[shape(p)[0]] = 0 if rank(p) > 1\n  fn update(p, g) {\n    p "
                   ":= p - lr * g\n    m := g\n  }\n}");
    expect_silence("fn f(x) {\n  a, b = split(x, 2)\n  _ = x\n  return a\n}");
}

static void test_unknown(void) {
    expect_one("fn f(data) { return daat }", "unknown name 'daat', did you mean 'data'?");
    expect_one("fn f(xs) {\n  for item in xs { y = item }\n  return y + item\n}", "unknown name 'item'");
    expect_one("fn f(x) {\n  if false { return qq + qq }\n  return qq\n}", "unknown name 'qq'");
    expect_one("x = rearrange(1, [B, (H, D)] -> [B, H, Z])", "unknown name 'Z'");
    expect_one("export fn f(x: f32[B, N]) { return x }", "unknown name 'N'");
    expect_one("fn f(x: f32[B, 2 * N]) { return x }", "unknown name 'N'");
    expect_one("fn f(x: f32[_]) { return x }", "'_' stands for a dimension in results only");
    expect_one("const a: flot = 1", "'flot' is no type, did you mean 'float'?");
    expect_one("const a: f32 = _", "'_' is no name");
    expect_one("x = 1\ny = x shrad(n)", "unknown mark 'shrad', did you mean 'shard'?");
}

static void test_duplicates(void) {
    expect_one("x = 1\nfn x() { return 1 }", "'x' is declared twice");
    expect_one("a, a = 1", "'a' is declared twice");
    expect_one("module M() {\n  a = 1\n  fn a() { return 1 }\n}", "'a' is declared twice");
    expect_one("fn f(x, x) { return x }", "argument 'x' is given twice");
    expect_one("x = { a: 1, a: 2 }", "field 'a' is given twice");
    expect_one("fn f(x) { return f(x = 1, x = 2) }", "argument 'x' is given twice");
    expect_one("fn f(x, y) { return f(x = 1, 2) }", "an argument without a name cannot follow 'x = ...'");
}

static void test_statements(void) {
    expect_one("fn f(x) {\n  x := 1\n  return x\n}", "'x' is an argument: write =");
    expect_one("const c = 1\nfn f(x) {\n  c := 1\n  return x\n}", "'c' is bound at file level");
    expect_one("fn f(x) { }", "'f' does not return a value");
    expect_one("fn f(x) {\n  return x\n  y = x\n  return y\n}", "this is never reached");
    expect_one("fn f(x) {\n  y = x\n  return x\n}", "'y' is never read [-Wunused]");
    expect_one("module M() {\n  state s = 0\n  fn (x) {\n    s = x\n    return s\n  }\n}", ":= updates it [-Wshadow]");
    expect_one("optimizer O() {\n  state m = 0\n}", "an optimizer needs 'fn update(p, g)'");
    expect_one("x = 1 if true", "only members of a module can have a condition");
}

static void test_library(void) {
    TestSource *source = source_check("");
    CU_ASSERT_EQUAL_FATAL(source->status, TG_OK);
    CU_ASSERT_EQUAL(tg_sema(&source->arena, &source->diags, source->std, source->std), TG_OK);
    if (source->messages.length)
        fprintf(stderr, "\n%s", source->messages.text);
    CU_ASSERT_EQUAL(source->messages.length, 0);
    source_free(source);
}

static void test_large(void) {
    enum { LINES = 100000 };
    char *text = malloc(LINES * 40), *to = text;
    to += sprintf(to, "x0 = 1\n");
    for (int i = 1; i < LINES; i++)
        to += sprintf(to, "x%d = x%d + y%d\n", i, i - 1, i);
    clock_t start = clock();
    TestSource *source = source_check(text);
    CU_ASSERT((double)(clock() - start) / CLOCKS_PER_SEC < 10);
    CU_ASSERT_EQUAL(source->diags.errors, LINES - 1);
    source_free(source);
    free(text);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("sema", NULL, NULL);
    CU_add_test(suite, "scopes", test_scopes);
    CU_add_test(suite, "unknown", test_unknown);
    CU_add_test(suite, "duplicates", test_duplicates);
    CU_add_test(suite, "statements", test_statements);
    CU_add_test(suite, "library", test_library);
    CU_add_test(suite, "large", test_large);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
