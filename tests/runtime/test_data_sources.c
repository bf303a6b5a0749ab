/* Columns of words, missing values, several files, commands, records, characters, and the words of weights. */
#include "runtime/data.h"
#include "runtime/safetensors.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <string.h>

static const char *why;
static DataArray array;

static void says(const char *part) {
    bool found = why != NULL && strstr(why, part) != NULL;
    if (!found)
        printf("\n'%s' lacks '%s'\n", why != NULL ? why : "(nothing)", part);
    CU_ASSERT(found);
}

static Status read_csv(Scratch *scratch, const char *path, const char *columns, const char *options, DType dtype,
                       DataVocabulary *vocabulary) {
    why = NULL;
    DataRequest request = {.path = path,
                           .columns = columns,
                           .options = options,
                           .field = "kind",
                           .dtype = dtype,
                           .vocabulary = vocabulary};
    return tg_read_csv(scratch->arena, &request, &array, &why);
}

static void missing(Scratch *scratch) {
    const char *path = scratch_text(scratch, "a.csv",
                                    "\xef\xbb\xbf"
                                    "a,b\n1,10\n,20\n NA ,30\n5,nan\n");
    const float *values;
    CU_ASSERT_EQUAL(read_csv(scratch, path, "a", "", DT_F32, NULL), TG_MODEL);
    says("a.csv:3: column 'a': the cell is empty; csv(..., missing = 0");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "a\nb", "missing=-1.5", DT_F32, NULL), TG_OK);
    values = (const float *)array.values;
    CU_ASSERT(array.dims[0] == 4 && array.dims[1] == 2);
    CU_ASSERT(values[0] == 1 && values[2] == -1.5f && values[4] == -1.5f && values[5] == 30 && values[7] == -1.5f);
    CU_ASSERT_EQUAL(read_csv(scratch, path, "a\nb", "missing=mean", DT_F32, NULL), TG_OK);
    values = (const float *)array.values;
    CU_ASSERT(values[2] == 3 && values[4] == 3 && values[6] == 5 && values[7] == 20);
    CU_ASSERT_EQUAL(read_csv(scratch, path, "b", "", DT_F32, NULL), TG_MODEL);
    says("a.csv:5: column 'b': 'nan' is no value");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "a", "missing=7", DT_I32, NULL), TG_OK);
    CU_ASSERT_EQUAL(((const int32_t *)array.values)[1], 7);
    path = scratch_text(scratch, "none.csv", "a\nNA\nNA\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "a", "missing=mean", DT_F32, NULL), TG_MODEL);
    says("has no number at all");
}

static void words(Scratch *scratch) {
    DataVocabulary vocabulary = {0};
    const char *path = scratch_text(scratch, "w.csv", "x,n\nred,1\n\"a,b\",2\nblue,3\nred,4\n");
    CU_ASSERT_EQUAL_FATAL(read_csv(scratch, path, "x", "", DT_I32, &vocabulary), TG_OK);
    static const int32_t wanted[] = {2, 0, 1, 2};
    CU_ASSERT(array.dims[0] == 4 && memcmp(array.values, wanted, sizeof wanted) == 0);
    const DataWords *known = tg_data_words(&vocabulary, "kind");
    CU_ASSERT_FATAL(known != NULL && known->count == 3);
    CU_ASSERT_STRING_EQUAL(known->at[0], "a,b");
    const char *fewer = scratch_text(scratch, "fewer.csv", "x\nblue\n");
    CU_ASSERT_EQUAL(read_csv(scratch, fewer, "x", "", DT_I32, &vocabulary), TG_OK);
    CU_ASSERT_EQUAL(((const int32_t *)array.values)[0], 1);
    const char *other = scratch_text(scratch, "other.csv", "x\nblue\nrad\n");
    CU_ASSERT_EQUAL(read_csv(scratch, other, "x", "", DT_I32, &vocabulary), TG_MODEL);
    says("other.csv:3: column 'x': the category 'rad' is not among the 3 of ");
    says("w.csv; did you mean 'red'?");
    DataVocabulary none = {0};
    path = scratch_text(scratch, "mixed.csv", "x\n1\nB\n1\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_I32, &none), TG_MODEL);
    says("mixed.csv:3: column 'x': 'B' is not a number, but line 2 has 1");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "categories=true", DT_U8, &none), TG_OK);
    CU_ASSERT(array.values[0] == 0 && array.values[1] == 1 && array.values[2] == 0);
    path = scratch_text(scratch, "gap.csv", "x,y\na,1\n,1\nNA,1\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_U8, &(DataVocabulary){0}), TG_MODEL);
    says("gap.csv:3: column 'x': the cell is empty; csv(..., missing = \"unknown\")");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "missing_name=?", DT_U8, &(DataVocabulary){0}), TG_OK);
    CU_ASSERT(array.values[0] == 1 && array.values[1] == 0 && array.values[2] == 0);
    DataVocabulary two = {0};
    path = scratch_text(scratch, "two.csv", "x,y\nb,q\na,p\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x\ny", "", DT_I32, &two), TG_OK);
    CU_ASSERT(tg_data_words(&two, "kind.x") != NULL && tg_data_words(&two, "kind.y") != NULL);
}

/* A column of numbers in the training data is one in the validation data too. */
static void numbers_stay_numbers(Scratch *scratch) {
    DataVocabulary vocabulary = {0};
    const char *path = scratch_text(scratch, "n.csv", "x\n1\n2\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_I32, &vocabulary), TG_OK);
    path = scratch_text(scratch, "t.csv", "x\none\ntwo\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_I32, &vocabulary), TG_MODEL);
    says("t.csv:2: column 'x': 'one' is not a number");
}

static void files(Scratch *scratch) {
    scratch_text(scratch, "part-b.csv", "y,x\n0,3\n");
    scratch_text(scratch, "part-a.csv", "x;y\n1;0\n2;0\n");
    const char *path = scratch_path(scratch, "part-*.csv");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_F32, NULL), TG_MODEL);
    says("part-a.csv:1: there is no column 'x'");
    says("separated by semicolons, say separator = \";\"");
    scratch_text(scratch, "part-a.csv", "x,y\n1,0\n2,0\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_F32, NULL), TG_OK);
    const float *values = (const float *)array.values;
    CU_ASSERT(array.dims[0] == 3 && values[0] == 1 && values[1] == 2 && values[2] == 3);
    CU_ASSERT_EQUAL(read_csv(scratch, scratch_path(scratch, "none-*.csv"), "x", "", DT_F32, NULL), TG_IO);
    says("no file matches");
    path = scratch_text(scratch, "semi.csv", "x;y\n1;\"2\"\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x\ny", "separator=;", DT_F32, NULL), TG_OK);
    CU_ASSERT_EQUAL(((const float *)array.values)[1], 2);
    path = scratch_write(scratch, "wide.csv", "x\0\n\0", 4);
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_F32, NULL), TG_MODEL);
    says("a zero byte");
    path = scratch_text(scratch, "twice.csv", "x,x\n1,2\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_F32, NULL), TG_MODEL);
    says("two columns 'x'");
    path = scratch_text(scratch, "big.csv", "x\n1e39\n");
    CU_ASSERT_EQUAL(read_csv(scratch, path, "x", "", DT_F32, NULL), TG_MODEL);
    says("big.csv:2: column 'x': 1e39 is not a value of f32");
    int64_t one = 1;
    DataRequest request = {
        .path = scratch_text(scratch, "one.csv", "x\n4\n"), .columns = "x", .dtype = DT_F32, .rank = 1, .dims = &one};
    CU_ASSERT_EQUAL(tg_read_csv(scratch->arena, &request, &array, &why), TG_OK);
    CU_ASSERT(array.rank == 2 && array.dims[0] == 1 && array.dims[1] == 1);
}

static void commands(Scratch *scratch) {
    unsigned char *data;
    size_t bytes;
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, " printf abc; echo no >&2", "", &data, &bytes, &why), TG_OK);
    CU_ASSERT(bytes == 3 && strcmp((char *)data, "abc") == 0);
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, "true", "", &data, &bytes, &why), TG_OK);
    CU_ASSERT_EQUAL(bytes, 0);
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, "head -c 3000000 /dev/zero", "", &data, &bytes, &why), TG_OK);
    CU_ASSERT_EQUAL(bytes, 3000000);
    scratch_text(scratch, "here", "x");
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, "cat here", scratch->folder, &data, &bytes, &why), TG_OK);
    CU_ASSERT_EQUAL(bytes, 1);
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, "echo first >&2; echo the reason >&2; exit 3", "", &data, &bytes, &why),
                    TG_IO);
    says("failed with exit code 3: the reason");
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, "kill -9 $$", "", &data, &bytes, &why), TG_IO);
    says("was ended by signal 9");
    CU_ASSERT_EQUAL(tg_data_run(scratch->arena, "head -c 100000 /dev/zero >&2; exit 1", "", &data, &bytes, &why),
                    TG_IO);
}

/* Two fields of one command, which runs once for both and for both sets. */
static void records(Scratch *scratch) {
    PlanField fields[4] = {
        {.name = "x",
         .reader = "records",
         .columns = "",
         .dtype = DT_F32,
         .rank = 1,
         .dims = {2},
         .line = {"m.tg", 2, 5}},
        {.name = "y", .reader = "records", .columns = "", .dtype = DT_U8, .line = {"m.tg", 3, 5}},
    };
    const char *path = "| echo run >> runs; printf '\\0\\0\\200\\077\\0\\0\\0\\100\\7\\0\\0\\0\\0\\0\\0\\200\\077\\10'";
    fields[0].path = fields[1].path = path;
    fields[2] = fields[0];
    fields[3] = fields[1];
    PlanDataSet second = {.name = "D", .split = "", .field_first = 2, .field_count = 2};
    TgPlan plan = {.fields = fields,
                   .field_count = 4,
                   .train = {.name = "D", .split = "", .field_count = 2},
                   .validate = &second,
                   .validate_count = 1,
                   .source_directory = scratch->folder};
    DataFiles opened;
    RecordSet train, validate;
    tg_data_files_init(&opened, scratch->arena, &plan, tg_data_root(NULL, &plan));
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&opened, &plan.train, NULL, &train, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&opened, &plan.validate[0], NULL, &validate, &why), TG_OK);
    const float *x = (const float *)(uintptr_t)train.values[0];
    CU_ASSERT(train.count == 2 && validate.count == 2);
    CU_ASSERT(x[0] == 1 && x[1] == 2 && x[2] == 0 && x[3] == 1);
    CU_ASSERT(train.values[1][0] == 7 && train.values[1][1] == 8);
    FILE *runs = fopen(scratch_path(scratch, "runs"), "r");
    char text[16] = "";
    CU_ASSERT_EQUAL(fread(text, 1, sizeof text - 1, runs), 4);
    fclose(runs);
    fields[0].path = fields[1].path = "| printf 1234567890";
    tg_data_files_init(&opened, scratch->arena, &plan, tg_data_root(NULL, &plan));
    CU_ASSERT_EQUAL(tg_data_open(&opened, &plan.train, NULL, &train, &why), TG_MODEL);
    says("10 bytes are not a whole number of records of 9 bytes: 1 follow byte 9");
    fields[0].path = fields[1].path = "| exit 5";
    CU_ASSERT_EQUAL(tg_data_open(&opened, &plan.train, NULL, &train, &why), TG_IO);
    says("m.tg:2: field 'x': the command 'exit 5' failed with exit code 5");
}

static void characters(Scratch *scratch) {
    DataVocabulary vocabulary = {0};
    DataRequest request = {.path = scratch_text(scratch, "t.txt",
                                                "b\xc3\xa9 a\xe2\x82\xac\xf0\x9f\x98\x80"
                                                "a"),
                           .options = "tokenizer=characters",
                           .field = "tokens",
                           .dtype = DT_U16,
                           .vocabulary = &vocabulary};
    CU_ASSERT_EQUAL_FATAL(tg_read_text(scratch->arena, &request, &array, &why), TG_OK);
    static const unsigned char wanted[] = {2, 3, 0, 1, 4, 5, 1};
    CU_ASSERT(array.dims[0] == 7 && array.dtype == DT_U8 && memcmp(array.values, wanted, sizeof wanted) == 0);
    const DataWords *known = tg_data_words(&vocabulary, "tokens");
    CU_ASSERT_FATAL(known != NULL && known->count == 6);
    CU_ASSERT_STRING_EQUAL(known->at[5], "\xf0\x9f\x98\x80");
    request.path = scratch_text(scratch, "u.txt", "ab\nz");
    CU_ASSERT_EQUAL(tg_read_text(scratch->arena, &request, &array, &why), TG_MODEL);
    says("u.txt: byte 2: the character '\n' is not among the 6 of ");
    static const char *const broken[] = {"a\xff", "a\xc0\x80", "a\xed\xa0\x80", "a\xe2\x82", "a\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        request.path = scratch_text(scratch, "v.txt", broken[i]);
        CU_ASSERT_EQUAL(tg_read_text(scratch->arena, &request, &array, &why), TG_MODEL);
        says("v.txt: byte 1: 0x");
    }
}

static void notes(Scratch *scratch) {
    static const char *const sorted[] = {"", "a\"b", "\xc3\xa9"};
    DataVocabulary saved = {0}, loaded = {0};
    TensorFile file = {.path = "w.safetensors"};
    (void)tg_data_words_add(scratch->arena, &saved, "kind", "a.csv", (const char **)(uintptr_t)sorted, 3);
    (void)tg_data_words_add(scratch->arena, &saved, "number", "a.csv", NULL, 0);
    tg_data_words_note(scratch->arena, &saved, &file);
    CU_ASSERT_EQUAL(file.notes.count, 1);
    CU_ASSERT_EQUAL_FATAL(tg_data_words_take(scratch->arena, &loaded, &file, &why), TG_OK);
    const DataWords *known = tg_data_words(&loaded, "kind");
    CU_ASSERT_FATAL(known != NULL && known->count == 3);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_STRING_EQUAL(known->at[i], sorted[i]);
    CU_ASSERT_EQUAL(tg_data_words_take(scratch->arena, &saved, &file, &why), TG_OK);
    DataVocabulary other = {0};
    (void)tg_data_words_add(scratch->arena, &other, "kind", "b.csv", (const char **)(uintptr_t)sorted, 2);
    CU_ASSERT_EQUAL(tg_data_words_take(scratch->arena, &other, &file, &why), TG_MODEL);
    says("w.safetensors: it was trained with other words for 'kind' than those of b.csv: '\xc3\xa9' is not in both");
    static const char *const bad[] = {"", "{}", "[]", "[1]", "[\"b\",\"a\"]", "[\"a\",\"a\"]", "[\"a\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        file.notes.at[0].text = bad[i];
        CU_ASSERT_EQUAL(tg_data_words_take(scratch->arena, &(DataVocabulary){0}, &file, &why), TG_MODEL);
        says("metadata 'words.kind' is no list of sorted words");
    }
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(missing)
TEST(words)
TEST(numbers_stay_numbers)
TEST(files)
TEST(commands)
TEST(records)
TEST(characters)
TEST(notes)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("sources of data", NULL, NULL);
    CU_add_test(suite, "missing values", run_missing);
    CU_add_test(suite, "columns of words", run_words);
    CU_add_test(suite, "numbers stay numbers", run_numbers_stay_numbers);
    CU_add_test(suite, "csv files", run_files);
    CU_add_test(suite, "commands", run_commands);
    CU_add_test(suite, "records", run_records);
    CU_add_test(suite, "characters", run_characters);
    CU_add_test(suite, "words of weights", run_notes);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
