/* Texts as windows of tokens. */
#include "runtime/data.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <string.h>

enum { STEP = 4, LENGTH = STEP + 1 };

static const PlanSplit shares[] = {{"train", 0.75}, {"test", 0.25}};

/* 40 tokens: the first 30 for training, 10 for testing. Each token is its position. */
static TgPlan schema(Scratch *scratch, PlanField *field) {
    char text[40];
    for (int i = 0; i < 40; i++)
        text[i] = (char)i;
    scratch_write(scratch, "a.txt", text, sizeof text);
    *field = (PlanField){.name = "tokens",
                         .reader = "text",
                         .path = "a.txt",
                         .columns = "",
                         .dtype = DT_U16,
                         .rank = 1,
                         .dims = {LENGTH},
                         .line = {"m.tg", 4, 5}};
    return (TgPlan){.fields = field,
                    .field_count = 1,
                    .splits = (PlanSplit *)shares,
                    .split_count = 2,
                    .train = {.name = "D", .split = "train", .field_count = 1, .split_count = 2, .by_runs = true},
                    .source_directory = scratch->folder};
}

static Status open_set(Scratch *scratch, const TgPlan *plan, const char *split, RecordSet *set, const char **why) {
    DataFiles files;
    *why = "";
    tg_data_files_init(&files, scratch->arena, plan, tg_data_root(NULL, plan));
    return tg_data_open(&files, &plan->train, split, set, why);
}

static void windows(Scratch *scratch) {
    PlanField field;
    TgPlan plan = schema(scratch, &field);
    RecordSet train, test;
    const char *why;
    CU_ASSERT_EQUAL_FATAL(open_set(scratch, &plan, NULL, &train, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(open_set(scratch, &plan, "test", &test, &why), TG_OK);
    CU_ASSERT_EQUAL(train.count, 7); /* 0..4, 4..8, ..., 24..28; token 29 is in none */
    CU_ASSERT_EQUAL(test.count, 2);  /* 30..34, 34..38 */
    uint16_t taken[3 * LENGTH];
    Batch batch = {.set = &test, .records = test.records, .count = test.count};
    tg_batch_copy(&batch, 0, 0, 2, 3, (unsigned char *)taken);
    for (int i = 0; i < LENGTH; i++) {
        CU_ASSERT_EQUAL(taken[i], 30 + i);
        CU_ASSERT_EQUAL(taken[LENGTH + i], 30 + STEP + i);
        CU_ASSERT_EQUAL(taken[2 * LENGTH + i], 0);
    }
    static const struct {
        int64_t tokens, count;
    } lengths[] = {{0, 0}, {1, 0}, {4, 0}, {5, 1}, {8, 1}, {9, 2}, {12, 2}, {13, 3}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t count;
        (void)tg_data_windows(scratch->arena, 0, lengths[i].tokens, STEP, &count);
        CU_ASSERT_EQUAL(count, lengths[i].count);
    }
}

/* Every epoch has as many windows, all of them whole and inside the split, on a grid that moves. */
static void shifts(Scratch *scratch) {
    PlanField field;
    TgPlan plan = schema(scratch, &field);
    enum { EPOCHS = 40 };
    for (int64_t tokens = LENGTH; tokens < 30; tokens++) {
        RecordSet set;
        const char *why;
        CU_ASSERT_EQUAL_FATAL(open_set(scratch, &plan, NULL, &set, &why), TG_OK);
        set.tokens_last = tokens;
        tg_data_let_shift(&set);
        CU_ASSERT(set.count >= 1 && set.shifts >= 1 && set.shifts <= STEP);
        CU_ASSERT_EQUAL(set.shifts, tokens >= 2 * STEP ? STEP : tokens - STEP);
        bool seen[STEP] = {0};
        Feed *feed = NULL;
        FeedOptions options = {.host = tg_host(), .batch = 1, .seed = 5, .shuffle = true, .ahead_bytes = 1 << 20};
        CU_ASSERT_EQUAL_FATAL(tg_feed_open(scratch->arena, &options, &set, &feed), TG_OK);
        for (int64_t i = 0; i < EPOCHS * set.count; i++) {
            const Batch *batch = tg_feed_next(feed);
            int64_t start = batch->records[0];
            CU_ASSERT_EQUAL(batch->epoch, i / set.count);
            CU_ASSERT(start >= 0 && start + LENGTH <= tokens);
            CU_ASSERT_EQUAL(start % STEP, tg_data_shift(set.shifts, 5, batch->epoch));
            seen[start % STEP] = true;
        }
        for (int64_t i = 0; i < set.shifts; i++)
            CU_ASSERT(seen[i]);
    }
    /* As the Python of docs/training.md says. */
    static const int64_t documented[] = {35, 8, 58, 7, 53, 19, 5, 0};
    for (int64_t epoch = 0; epoch < 8; epoch++)
        CU_ASSERT_EQUAL(tg_data_shift(64, 1337, epoch), documented[epoch]);
}

static void ahead(Scratch *scratch) {
    PlanField field;
    TgPlan plan = schema(scratch, &field);
    RecordSet set;
    const char *why;
    CU_ASSERT_EQUAL_FATAL(open_set(scratch, &plan, NULL, &set, &why), TG_OK);
    tg_data_let_shift(&set);
    uint16_t taken[2][9][2 * LENGTH] = {0};
    for (int threaded = 0; threaded < 2; threaded++) {
        Feed *feed = NULL;
        FeedOptions options = {
            .host = tg_host(), .batch = 2, .seed = 9, .shuffle = true, .ahead_bytes = threaded ? 0 : 1 << 20};
        CU_ASSERT_EQUAL_FATAL(tg_feed_open(scratch->arena, &options, &set, &feed), TG_OK);
        for (int b = 0; b < 9; b++) {
            const Batch *batch = tg_feed_next(feed);
            tg_batch_copy(batch, 0, 0, batch->count, 2, (unsigned char *)taken[threaded][b]);
            CU_ASSERT_EQUAL(taken[threaded][b][STEP], taken[threaded][b][0] + STEP);
        }
        tg_feed_close(feed);
    }
    CU_ASSERT(memcmp(taken[0], taken[1], sizeof taken[0]) == 0);
}

static void refusals(Scratch *scratch) {
    PlanField fields[2];
    TgPlan plan = schema(scratch, fields);
    RecordSet set;
    const char *why;
    fields[1] = fields[0];
    fields[1].name = "more";
    fields[1].dims[0] = LENGTH + 1;
    plan.field_count = plan.train.field_count = 2;
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "m.tg:4: field 'more': the fields of a data block are windows of one length"));
    plan.field_count = plan.train.field_count = 1;
    fields[0].dims[0] = 1;
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "is declared u16[1], but text gives windows of at least 2 tokens"));
    fields[0].dims[0] = LENGTH;
    fields[0].bounded = true;
    fields[0].high = 39;
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "token 39 of a.txt is 39; allowed are 0 to 38"));
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(windows)
TEST(shifts)
TEST(ahead)
TEST(refusals)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("texts", NULL, NULL);
    CU_add_test(suite, "windows", run_windows);
    CU_add_test(suite, "shifts", run_shifts);
    CU_add_test(suite, "windows read ahead", run_ahead);
    CU_add_test(suite, "refusals", run_refusals);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
