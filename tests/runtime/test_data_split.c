/* Splits by the values of fields: groups stay together, classes keep their shares. */
#include "runtime/data.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <string.h>

enum { COUNT = 1000 };
static const PlanSplit shares[] = {{"train", 0.7}, {"test", 0.2}}; /* 10 % are in none */

typedef struct Parts {
    int part[COUNT]; /* of each record; -1: none */
    int64_t count[2];
} Parts;

static Parts split(Scratch *scratch, const int32_t *by, const int32_t *stratify) {
    Parts parts;
    memset(parts.part, -1, sizeof parts.part);
    SplitKey keys[2] = {{(const unsigned char *)by, 4}, {(const unsigned char *)stratify, 4}};
    for (int p = 0; p < 2; p++) {
        int64_t *records =
            tg_data_split_by(scratch->arena, COUNT, shares, 2, (uint32_t)p, keys[0], keys[1], &parts.count[p]);
        for (int64_t i = 0; i < parts.count[p]; i++) {
            CU_ASSERT_EQUAL(parts.part[records[i]], -1);
            CU_ASSERT(i == 0 || records[i] > records[i - 1]);
            parts.part[records[i]] = p;
        }
    }
    return parts;
}

/* Patients of 1 to 9 records, which do not lie side by side. */
static int32_t patient(int i) { return i * 7919 % 997 % 200 * 1000 - 5; }

static void groups(Scratch *scratch) {
    int32_t by[COUNT];
    for (int i = 0; i < COUNT; i++)
        by[i] = patient(i);
    Parts parts = split(scratch, by, NULL);
    int apart = 0;
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < i; k++)
            apart += by[i] == by[k] && parts.part[i] != parts.part[k];
    CU_ASSERT_EQUAL(apart, 0);
    CU_ASSERT(parts.count[0] >= 690 && parts.count[0] <= 710);
    CU_ASSERT(parts.count[1] >= 190 && parts.count[1] <= 210);
}

static void classes(Scratch *scratch) {
    int32_t label[COUNT];
    for (int i = 0; i < COUNT; i++)
        label[i] = i % 10 == 0 ? 2 : i % 100 == 7 ? 1 : 0; /* 890, 10 and 100 records */
    Parts parts = split(scratch, NULL, label);
    int of[2][3] = {{0}}, in_a_row = 0;
    for (int i = 0; i < COUNT; i++) {
        if (parts.part[i] >= 0)
            of[parts.part[i]][label[i]]++;
        in_a_row += i > 0 && label[i] == 0 && label[i - 1] == 0 && parts.part[i] == 1 && parts.part[i - 1] == 1;
    }
    static const int right[2][3] = {{623, 7, 70}, {178, 2, 20}};
    for (int p = 0; p < 2; p++)
        for (int c = 0; c < 3; c++)
            CU_ASSERT(of[p][c] >= right[p][c] - 1 && of[p][c] <= right[p][c] + 1);
    CU_ASSERT_EQUAL(parts.count[0], 700);
    CU_ASSERT_EQUAL(parts.count[1], 200);
    CU_ASSERT(in_a_row > 5); /* at random, not every fifth */
}

static void both(Scratch *scratch) {
    int32_t by[COUNT], label[COUNT];
    for (int i = 0; i < COUNT; i++) {
        by[i] = patient(i);
        label[i] = by[i] % 3 == 0;
    }
    Parts parts = split(scratch, by, label);
    int of[2][2] = {{0}}, all[2] = {0}, apart = 0;
    for (int i = 0; i < COUNT; i++) {
        all[label[i]]++;
        if (parts.part[i] >= 0)
            of[parts.part[i]][label[i]]++;
        for (int k = 0; k < i; k++)
            apart += by[i] == by[k] && parts.part[i] != parts.part[k];
    }
    CU_ASSERT_EQUAL(apart, 0);
    for (int p = 0; p < 2; p++)
        for (int c = 0; c < 2; c++) {
            double right = shares[p].share * all[c];
            CU_ASSERT(of[p][c] > right - 10 && of[p][c] < right + 10);
        }
}

/* Through a data set: the key is the field that the plan names. */
static void of_a_field(Scratch *scratch) {
    scratch_text(scratch, "a.csv", "x,who\n1,7\n2,7\n3,8\n4,7\n5,8\n6,9\n7,9\n8,9\n");
    PlanField fields[2] = {{.name = "x", .reader = "csv", .path = "a.csv", .columns = "x", .dtype = DT_I32},
                           {.name = "who", .reader = "csv", .path = "a.csv", .columns = "who", .dtype = DT_I32}};
    static const PlanSplit halves[] = {{"a", 0.6}, {"b", 0.4}};
    TgPlan plan = {.fields = fields,
                   .field_count = 2,
                   .splits = (PlanSplit *)halves,
                   .split_count = 2,
                   .train = {.name = "D", .split = "a", .field_count = 2, .split_count = 2, .by = 2},
                   .source_directory = scratch->folder};
    for (uint32_t i = 0; i < 2; i++)
        fields[i].options = "";
    DataFiles files;
    RecordSet a, b;
    const char *why = "";
    tg_data_files_init(&files, scratch->arena, &plan, tg_data_root(NULL, &plan));
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&files, &plan.train, NULL, &a, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_data_open(&files, &plan.train, "b", &b, &why), TG_OK);
    CU_ASSERT_EQUAL(a.count + b.count, 8);
    CU_ASSERT(a.count == 5 || a.count == 6); /* two of the three */
    for (int64_t i = 0; i < a.count; i++)
        for (int64_t k = 0; k < b.count; k++)
            CU_ASSERT(memcmp(tg_data_record(&a, 1, a.records[i]), tg_data_record(&b, 1, b.records[k]), 4) != 0);
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(groups)
TEST(classes)
TEST(both)
TEST(of_a_field)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("splits", NULL, NULL);
    CU_add_test(suite, "groups", run_groups);
    CU_add_test(suite, "classes", run_classes);
    CU_add_test(suite, "both", run_both);
    CU_add_test(suite, "of a field", run_of_a_field);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
