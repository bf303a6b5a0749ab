/* The parser: what trees it makes, where nodes stand, and that no input and no lack of memory breaks it. */
#include "tests/frontend/source.h"

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void expect_tree(const char *text, const char *tree) {
    TestSource *source = source_parse(tg_host(), text, strlen(text));
    const char *got = source->status == TG_OK ? source_tree(source) : source->messages.text;
    if (strcmp(got, tree) != 0)
        fprintf(stderr, "\nfrom %s\ngot  %s\nnot  %s\n", text, got, tree);
    CU_ASSERT_STRING_EQUAL(got, tree);
    source_free(source);
}

static void test_expressions(void) {
    expect_tree("x = -a ^ 2 + b * c @ d / e", "(bind (names x) (+ (- (^ a 2)) (/ (@ (* b c) d) e)) _)\n");
    expect_tree("x = 2 ^ -1 ^ n", "(bind (names x) (^ 2 (- (^ 1 n))) _)\n");
    expect_tree("x = a - b - c ++ d", "(bind (names x) (++ (- (- a b) c) d) _)\n");
    expect_tree("x = not a < b and c or d", "(bind (names x) (or (and (not (< a b)) c) d) _)\n");
    expect_tree("x = if a then b else if c then d else e", "(bind (names x) (cond a b (cond c d e)) _)\n");
    expect_tree("x = p -> p + 1", "(bind (names x) (-> p (+ p 1)) _)\n");
    expect_tree("x = a[..., 1:, ::2, -1]", "(bind (names x) (at a ... (slice 1 _ _) (slice _ _ 2) (- 1)) _)\n");
    expect_tree("x = f(a, [b, (c, d)] -> [...], k = {e, g: 1})",
                "(bind (names x) (call f a (pattern (list b (tuple c d)) (list ...)) (named k (record (named e e) "
                "(named g 1)))) _)\n");
    expect_tree("x = [a(i) shard(o) for i in 0..n if i > 1]",
                "(bind (names x) (list-for (mark shard (call a i) o) (names i) (.. 0 n) (> i 1)) _)\n");
    expect_tree("x = 1_000 + 2.5e-3 + 80% + true + \"a\\\"\\n\"",
                "(bind (names x) (+ (+ (+ (+ 1_000 2.5e-3) 80%) true) \"a\\\"\\n\") _)\n");
}

static void test_declarations(void) {
    expect_tree("const a = 1, b: f32 = 2", "(const a _ 1)\n(const b f32 2)\n");
    expect_tree("data D(p: string = \"t\") {\n  x: u8[T + 1] from idx(p)\n  split { a = 80%, b = 20% }\n}",
                "(data D (params (arg p string \"t\")) (field x u8[(+ T 1)] (call idx p)) (split (setting a 80%) "
                "(setting b 20%)))\n");
    expect_tree("module M {\n  param w: f32[n] = zeros if c\n  state s = 0\n  a, b = f(1)\n  fn (x: a.D, y: t[..., "
                "=k]) -> {l: f32} { return x }\n}",
                "(module M (params) (param w f32[n] zeros c) (state s _ 0 _) (bind (names a b) (call f 1) _) "
                "(fn (params (arg x a.D _) (arg y t[... =k] _)) (record-type (field l f32 _)) (do (return x))))\n");
    expect_tree("export fn f(x) {\n  for a, b in c { s := a }\n  if d { y: f32 = 1 }\n  else { y = 2 }\n  return y\n}",
                "(export fn f (params (arg x _ _)) _ (do (for (names a b) c (do (:= s a))) "
                "(if d (do (bind (names y) 1 _ f32)) (do (bind (names y) 2 _))) (return y)))\n");
    expect_tree("train {\n  data = in\n  steps = 3, seed = 1\n}",
                "(train (setting data in) (setting steps 3) (setting seed 1))\n");
}

static void expect_place(const Ast *ast, uint32_t line, uint32_t column, uint32_t end) {
    CU_ASSERT_EQUAL(ast->loc.line, line);
    CU_ASSERT_EQUAL(ast->loc.column, column);
    CU_ASSERT_EQUAL(ast->loc.end_column, end);
}

static void test_places(void) {
    const char *text = "// \xc3\xa9\nfn name(x: f32[B]) {\n    y = g(x,  \n      2) + 1   // c\n    return y\n}\n";
    TestSource *source = source_parse(tg_host(), text, strlen(text));
    CU_ASSERT_EQUAL_FATAL(source->status, TG_OK);
    const Ast *fn = source->unit->file->kid[0], *bind = fn->kid[2]->kid[0], *sum = bind->kid[1];
    expect_place(fn, 2, 1, 21);
    CU_ASSERT_EQUAL(fn->name_loc.column, 4);
    CU_ASSERT_EQUAL(fn->name_loc.end_column, 8);
    expect_place(fn->kid[0]->kid[0], 2, 9, 18);
    expect_place(bind, 3, 5, 13);
    expect_place(sum, 3, 9, 13);
    expect_place(sum->kid[0]->kid[2], 4, 7, 8);
    expect_place(sum->kid[1], 4, 12, 13);
    expect_place(fn->kid[2]->kid[1], 5, 5, 13);
    CU_ASSERT_PTR_EQUAL(bind->kid[0]->kid[0]->name, fn->kid[2]->kid[1]->kid[0]->name);
    source_free(source);
}

static void test_numbers(void) {
    const char *text = "x = [9223372036854775807, 12.5%, 1e3]";
    TestSource *source = source_parse(tg_host(), text, strlen(text));
    CU_ASSERT_EQUAL_FATAL(source->status, TG_OK);
    Ast **kid = source->unit->file->kid[0]->kid[1]->kid;
    CU_ASSERT_EQUAL(kid[0]->integer, INT64_MAX);
    CU_ASSERT_EQUAL(kid[1]->number, 0.125);
    CU_ASSERT_EQUAL(kid[2]->number, 1000);
    source_free(source);
    static const char *const bad[] = {"x = 9223372036854775808", "x = 1e999"};
    for (int i = 0; i < 2; i++) {
        source = source_parse(tg_host(), bad[i], strlen(bad[i]));
        CU_ASSERT_EQUAL(source->status, TG_MODEL);
        CU_ASSERT_EQUAL(source->diags.errors, 1);
        source_free(source);
    }
}

static char *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = file ? malloc(1 << 20) : NULL;
    *length = text ? fread(text, 1, 1 << 20, file) : 0;
    if (file)
        fclose(file);
    return text;
}

typedef void WithModel(const char *text, size_t length);

static void each_model(WithModel *with) {
    DIR *folder = opendir(TGC_SOURCE_DIR "/models");
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024];
        snprintf(path, sizeof path, TGC_SOURCE_DIR "/models/%s", entry->d_name);
        size_t length;
        char *text = strstr(entry->d_name, ".tg") ? read_all(path, &length) : NULL;
        if (text == NULL)
            continue;
        with(text, length);
        count++;
        free(text);
    }
    closedir(folder);
    CU_ASSERT(count >= 7);
}

static void parses(const char *text, size_t length) {
    TestSource *source = source_parse(tg_host(), text, length);
    CU_ASSERT_EQUAL(source->status, TG_OK);
    CU_ASSERT_STRING_EQUAL(source->messages.text, "");
    source_free(source);
}

/* Cut short anywhere, and with a byte changed: an error or none, but an answer. */
static void survives(const char *text, size_t length) {
    char *changed = malloc(length);
    for (size_t at = 0; at < length; at += 13) {
        source_free(source_parse(tg_host(), text, at));
        memcpy(changed, text, length);
        changed[at] = "(){}[]\"\n,=\x80@"[at % 12];
        TestSource *source = source_parse(tg_host(), changed, length);
        CU_ASSERT((source->status == TG_OK) == (source->diags.errors == 0));
        source_free(source);
    }
    free(changed);
}

static void test_models(void) { each_model(parses); }
static void test_damage(void) { each_model(survives); }

typedef struct Failing {
    TgHost host;
    long left;
} Failing;

static void *failing_resize(const TgHost *host, void *old, size_t bytes) {
    Failing *failing = host->context;
    if (bytes && failing->left-- <= 0)
        return NULL;
    return tg_host()->resize(tg_host(), old, bytes);
}

static void runs_out(const char *text, size_t length) {
    for (long n = 0; n < 64; n++) {
        Failing failing = {.host = *tg_host(), .left = n};
        failing.host.resize = failing_resize;
        failing.host.context = &failing;
        TestSource *source = source_parse(&failing.host, text, length);
        CU_ASSERT(source->status == TG_OK || source->status == TG_MEMORY);
        source_free(source);
    }
}

static void test_memory(void) { each_model(runs_out); }

/* Time grows with the length of the text, whatever it holds. */
static void test_long(void) {
    static const char *const parts[] = {"\n", "x = 1\n",         "(",   "// c\n", "}", "x, ",
                                        "\"", "x = y.a[1](2)\n", "if ", ";"};
    enum { BYTES = 400000 };
    char *text = malloc(BYTES);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t part = strlen(parts[i]);
        for (size_t at = 0; at < BYTES; at++)
            text[at] = parts[i][at % part];
        clock_t start = clock();
        source_free(source_parse(tg_host(), text, BYTES));
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (seconds > 5)
            fprintf(stderr, "\n%.1f s for many of %s\n", seconds, parts[i]);
        CU_ASSERT(seconds <= 5);
    }
    free(text);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("parse", NULL, NULL);
    CU_add_test(suite, "expressions", test_expressions);
    CU_add_test(suite, "declarations", test_declarations);
    CU_add_test(suite, "places", test_places);
    CU_add_test(suite, "numbers", test_numbers);
    CU_add_test(suite, "models", test_models);
    CU_add_test(suite, "damage", test_damage);
    CU_add_test(suite, "memory", test_memory);
    CU_add_test(suite, "long", test_long);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
