#include "runtime/data.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Two images of 2 x 3 as idx. */
static const unsigned char images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                       0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static Status read_with(Scratch *scratch, DataReader *reader, const char *path, const char *columns, DType dtype,
                        DataArray *array, const char **why) {
    *why = NULL;
    return reader(scratch->arena, &(DataRequest){.path = path, .columns = columns, .dtype = dtype}, array, why);
}

static void check_why(const char *why, const char *part) {
    bool says = why != NULL && strstr(why, part) != NULL;
    if (!says)
        printf("\n'%s' lacks '%s'\n", why != NULL ? why : "(nothing)", part);
    CU_ASSERT(says);
}

static void idx(Scratch *scratch) {
    DataArray array;
    const char *why, *path = scratch_write(scratch, "a.idx", images, sizeof images);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_OK);
    CU_ASSERT(array.dtype == DT_U8 && array.rank == 3 && array.dims[0] == 2 && array.dims[1] == 2 &&
              array.dims[2] == 3);
    CU_ASSERT_EQUAL(array.values[11], 12);
    static const unsigned char wide[] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe};
    path = scratch_write(scratch, "b.idx", wide, sizeof wide);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_I32, &array, &why), TG_OK);
    CU_ASSERT_EQUAL(((int32_t *)array.values)[0], 258);
    CU_ASSERT_EQUAL(((int32_t *)array.values)[1], -2);
    for (size_t bytes = 0; bytes < sizeof images; bytes++) {
        path = scratch_write(scratch, "cut.idx", images, bytes);
        CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_MODEL);
        check_why(why, "truncated");
        check_why(why, "cut.idx");
    }
    unsigned char bad[sizeof images + 1];
    memcpy(bad, images, sizeof images);
    bad[sizeof images] = 0;
    path = scratch_write(scratch, "long.idx", bad, sizeof bad);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_MODEL);
    check_why(why, "byte 28: 1 bytes follow");
    bad[0] = 'P';
    path = scratch_write(scratch, "magic.idx", bad, sizeof images);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_MODEL);
    check_why(why, "not an idx file");
    bad[0] = 0;
    bad[2] = 7;
    path = scratch_write(scratch, "type.idx", bad, sizeof images);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_MODEL);
    check_why(why, "byte 2: 0x07 is no idx type");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, scratch_path(scratch, "none"), "", DT_U8, &array, &why), TG_IO);
    check_why(why, "none: No such file");
}

static void idx_gz(Scratch *scratch) {
    DataArray array;
    const char *why, *path = scratch_path(scratch, "a.idx.gz");
    gzFile file = gzopen(path, "wb");
    CU_ASSERT_EQUAL(gzwrite(file, images, sizeof images), (int)sizeof images);
    CU_ASSERT_EQUAL(gzclose(file), Z_OK);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_OK);
    CU_ASSERT(array.dims[0] == 2 && memcmp(array.values, images + 16, 12) == 0);
    char packed[256];
    FILE *raw = fopen(path, "rb");
    size_t bytes = fread(packed, 1, sizeof packed, raw);
    fclose(raw);
    for (size_t cut = 2; cut < bytes; cut++) {
        path = scratch_write(scratch, "cut.gz", packed, cut);
        CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_MODEL);
        check_why(why, "truncated");
    }
    packed[15] ^= 0x55;
    path = scratch_write(scratch, "bad.gz", packed, bytes);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_idx, path, "", DT_U8, &array, &why), TG_MODEL);
}

static void csv(Scratch *scratch) {
    DataArray array;
    const char *why;
    const char *path = scratch_text(scratch, "a.csv", "a,\"b \"\"x\"\"\",c\r\n1,2.5,x\r\n\r\n-3,\"4\",\"y, z\n\"\n");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "b \"x\"\na", DT_F32, &array, &why), TG_OK);
    CU_ASSERT(array.rank == 2 && array.dims[0] == 2 && array.dims[1] == 2);
    const float *values = (const float *)array.values;
    CU_ASSERT(values[0] == 2.5f && values[1] == 1 && values[2] == 4 && values[3] == -3);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "a", DT_I32, &array, &why), TG_OK);
    CU_ASSERT(array.rank == 1 && ((int32_t *)array.values)[1] == -3);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "c", DT_F32, &array, &why), TG_MODEL);
    check_why(why, "a.csv:2: column 'c': 'x' is not a number");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "b \"x\"", DT_U8, &array, &why), TG_MODEL);
    check_why(why, "2.5 is not a value of u8");
    path = scratch_text(scratch, "names.csv", "age,height\n1,2\n");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "heigt", DT_F32, &array, &why), TG_MODEL);
    check_why(why, "did you mean 'height'?");
    path = scratch_text(scratch, "ragged.csv", "a,b\n1,2\n3\n");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "a", DT_F32, &array, &why), TG_MODEL);
    check_why(why, "ragged.csv:3: 1 cells where the header has 2");
    path = scratch_text(scratch, "open.csv", "a,b\n1,\"2\n");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "a", DT_F32, &array, &why), TG_MODEL);
    check_why(why, "open.csv:2: a quote is not closed");
    path = scratch_text(scratch, "empty.csv", "");
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_csv, path, "a", DT_F32, &array, &why), TG_MODEL);
    check_why(why, "empty");
}

static void npy(Scratch *scratch) {
    float values[6] = {1, -2, 3, 4, 5, 6.5f};
    DataArray array = {.dtype = DT_F32, .rank = 2, .dims = {2, 3}, .values = (unsigned char *)values}, back;
    const char *why, *path = scratch_path(scratch, "a.npy");
    char message[256];
    CU_ASSERT_EQUAL(tg_npy_write(tg_host(), path, &array, message, sizeof message), TG_OK);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_npy, path, "", DT_F32, &back, &why), TG_OK);
    CU_ASSERT(back.dtype == DT_F32 && back.rank == 2 && back.dims[1] == 3 &&
              memcmp(back.values, values, sizeof values) == 0);
    char bytes[256];
    FILE *file = fopen(path, "rb");
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut < length; cut++) {
        path = scratch_write(scratch, "cut.npy", bytes, cut);
        CU_ASSERT_EQUAL(read_with(scratch, tg_read_npy, path, "", DT_F32, &back, &why), TG_MODEL);
    }
    memcpy(strstr(bytes + 10, "False"), "True,", 5);
    path = scratch_write(scratch, "order.npy", bytes, length);
    CU_ASSERT_EQUAL(read_with(scratch, tg_read_npy, path, "", DT_F32, &back, &why), TG_MODEL);
    check_why(why, "ascontiguousarray");
}

static void widening(Scratch *scratch) {
    unsigned char small[] = {1, 200};
    DataArray array = {.dtype = DT_U8, .rank = 1, .dims = {2}, .values = small};
    const char *why = NULL;
    CU_ASSERT_EQUAL(tg_data_widen(scratch->arena, &array, DT_I32, "f", &why), TG_OK);
    CU_ASSERT(((int32_t *)array.values)[1] == 200);
    array = (DataArray){.dtype = DT_I8, .rank = 1, .dims = {2}, .values = small};
    CU_ASSERT_EQUAL(tg_data_widen(scratch->arena, &array, DT_I64, "f", &why), TG_OK);
    CU_ASSERT(((int64_t *)array.values)[1] == -56);
    static const DType refused[][2] = {
        {DT_U8, DT_I8}, {DT_I8, DT_U16}, {DT_I32, DT_I16}, {DT_U8, DT_F32}, {DT_F32, DT_F64}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        array = (DataArray){.dtype = refused[i][0], .rank = 1, .dims = {1}, .values = small};
        CU_ASSERT_EQUAL(tg_data_widen(scratch->arena, &array, refused[i][1], "f", &why), TG_MODEL);
    }
}

static void splits(Scratch *scratch) {
    static const PlanSplit shares[] = {{"train", 0.8}, {"test", 0.2}};
    int64_t train = 0, test = 0;
    int64_t *a = tg_data_split(scratch->arena, 1797, shares, 2, 0, false, &train);
    int64_t *b = tg_data_split(scratch->arena, 1797, shares, 2, 1, false, &test);
    CU_ASSERT_EQUAL(train, 1438);
    CU_ASSERT_EQUAL(test, 359);
    int seen[1797] = {0}, runs = 0;
    for (int64_t i = 0; i < train; i++) {
        seen[a[i]]++;
        runs += i > 0 && a[i] != a[i - 1] + 1;
    }
    for (int64_t i = 0; i < test; i++)
        seen[b[i]]++;
    for (int i = 0; i < 1797; i++)
        CU_ASSERT_EQUAL(seen[i], 1);
    CU_ASSERT(runs > 200);
    int64_t *c = tg_data_split(scratch->arena, 10, shares, 2, 1, true, &test);
    CU_ASSERT(test == 2 && c[0] == 8 && c[1] == 9);
    for (int64_t count = 0; count < 40; count++) {
        static const PlanSplit thirds[] = {{"a", 1 / 3.0}, {"b", 1 / 3.0}, {"c", 1 / 3.0}};
        int64_t sum = 0, part = 0;
        for (uint32_t i = 0; i < 3; i++) {
            (void)tg_data_split(scratch->arena, count, thirds, 3, i, false, &part);
            sum += part;
        }
        CU_ASSERT_EQUAL(sum, count);
    }
}

static void orders(Scratch *scratch) {
    enum { COUNT = 100 };
    int64_t order[4][COUNT];
    static const struct {
        uint64_t seed;
        int64_t epoch;
    } keys[4] = {{1, 0}, {1, 1}, {2, 0}, {1, 0}};
    for (int k = 0; k < 4; k++) {
        int seen[COUNT] = {0};
        for (int i = 0; i < COUNT; i++)
            order[k][i] = i;
        tg_data_shuffle(order[k], COUNT, keys[k].seed, keys[k].epoch);
        for (int i = 0; i < COUNT; i++)
            seen[order[k][i]]++;
        for (int i = 0; i < COUNT; i++)
            CU_ASSERT_EQUAL(seen[i], 1);
    }
    CU_ASSERT(memcmp(order[0], order[1], sizeof order[0]) != 0);
    CU_ASSERT(memcmp(order[0], order[2], sizeof order[0]) != 0);
    CU_ASSERT(memcmp(order[0], order[3], sizeof order[0]) == 0);
    /* As the Python of docs/training.md says. */
    static const int64_t documented[] = {80, 84, 97, 30, 27, 67, 52, 36, 2, 78, 86, 41, 13, 83, 94, 93};
    CU_ASSERT(memcmp(order[0], documented, sizeof documented) == 0);
    (void)scratch;
}

/* Seven records of one u16, whose value is ten times the position. */
static RecordSet seven(Arena *arena, uint16_t values[7]) {
    static const PlanField field = {.name = "x", .dtype = DT_U16};
    RecordSet set = {.fields = &field,
                   .field_count = 1,
                   .file_records = 7,
                   .count = 7,
                   .values = TG_ALLOC(arena, const unsigned char *, 1),
                   .record_bytes = TG_ALLOC(arena, size_t, 1),
                   .records = TG_ALLOC(arena, int64_t, 7)};
    for (uint16_t i = 0; i < 7; i++) {
        values[i] = (uint16_t)(10 * i);
        set.records[i] = i;
    }
    set.values[0] = (const unsigned char *)values;
    set.record_bytes[0] = 2;
    return set;
}

static void feeds(Scratch *scratch) {
    uint16_t values[7], taken[2][6][4] = {0};
    RecordSet set = seven(scratch->arena, values);
    for (int ahead = 0; ahead < 2; ahead++) {
        Feed *feed = NULL;
        FeedOptions options = {
            .host = tg_host(), .batch = 3, .seed = 5, .shuffle = true, .ahead_bytes = ahead ? 0 : 1 << 20};
        CU_ASSERT_EQUAL_FATAL(tg_feed_open(scratch->arena, &options, &set, &feed), TG_OK);
        int seen[2][7] = {0};
        for (int b = 0; b < 6; b++) {
            const Batch *batch = tg_feed_next(feed);
            CU_ASSERT_EQUAL(batch->count, b % 3 == 2 ? 1 : 3);
            CU_ASSERT_EQUAL(batch->epoch, b / 3);
            CU_ASSERT_EQUAL(batch->ends_epoch, b % 3 == 2);
            memset(taken[ahead][b], 0xff, sizeof taken[ahead][b]);
            tg_batch_copy(batch, 0, 0, batch->count, 4, (unsigned char *)taken[ahead][b]);
            for (int64_t i = 0; i < batch->count; i++)
                seen[b / 3][taken[ahead][b][i] / 10]++;
            CU_ASSERT_EQUAL(taken[ahead][b][3], 0);
        }
        for (int i = 0; i < 7; i++)
            CU_ASSERT(seen[0][i] == 1 && seen[1][i] == 1);
        tg_feed_close(feed);
    }
    CU_ASSERT(memcmp(taken[0], taken[1], sizeof taken[0]) == 0);
    CU_ASSERT(memcmp(taken[0][0], taken[0][3], 6) != 0);
    for (int drawn = 0; drawn < 6; drawn++) { /* a run that is resumed goes on with the next batch */
        Feed *rest = NULL;
        FeedOptions options = {.host = tg_host(),
                               .batch = 3,
                               .seed = 5,
                               .shuffle = true,
                               .ahead_bytes = drawn % 2 ? 0 : 1 << 20,
                               .drawn = drawn};
        CU_ASSERT_EQUAL_FATAL(tg_feed_open(scratch->arena, &options, &set, &rest), TG_OK);
        const Batch *batch = tg_feed_next(rest);
        uint16_t next[4];
        tg_batch_copy(batch, 0, 0, batch->count, 4, (unsigned char *)next);
        CU_ASSERT(batch->epoch == drawn / 3 && batch->ends_epoch == (drawn % 3 == 2));
        CU_ASSERT(memcmp(next, taken[0][drawn], sizeof next) == 0);
        tg_feed_close(rest);
    }
    Feed *plain = NULL;
    FeedOptions options = {.host = tg_host(), .batch = 7, .ahead_bytes = 1 << 20};
    CU_ASSERT_EQUAL_FATAL(tg_feed_open(scratch->arena, &options, &set, &plain), TG_OK);
    for (int64_t i = 0; i < 7; i++)
        CU_ASSERT_EQUAL(tg_feed_next(plain)->records[i], i);
}

/* A plan of two fields over files in the scratch folder. */
static TgPlan schema(Scratch *scratch, PlanField fields[2]) {
    fields[0] = (PlanField){.name = "image",
                            .reader = "idx",
                            .path = "images.idx",
                            .columns = "",
                            .dtype = DT_U8,
                            .rank = 2,
                            .dims = {2, 3},
                            .line = {"m.tg", 4, 5}};
    fields[1] = (PlanField){.name = "label",
                            .reader = "idx",
                            .path = "labels.idx",
                            .columns = "",
                            .dtype = DT_I32,
                            .bounded = true,
                            .low = 0,
                            .high = 10,
                            .line = {"m.tg", 5, 5}};
    return (TgPlan){.fields = fields,
                    .field_count = 2,
                    .train = {.name = "D", .split = "", .field_count = 2},
                    .source_directory = scratch->folder};
}

static Status open_set(Scratch *scratch, const TgPlan *plan, const char *split, RecordSet *set, const char **why) {
    DataFiles files;
    *why = NULL;
    tg_data_files_init(&files, scratch->arena, plan, tg_data_root(NULL, plan));
    return tg_data_open(&files, &plan->train, split, set, why);
}

static void schemas(Scratch *scratch) {
    PlanField fields[2];
    TgPlan plan = schema(scratch, fields);
    RecordSet set;
    const char *why;
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_IO);
    check_why(why, "m.tg:4: field 'image': there is no file");
    check_why(why, "from the folder of the .tg file");
    scratch_write(scratch, "images.idx", images, sizeof images);
    static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 3}, three[] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 3, 1},
                               high[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 10};
    scratch_write(scratch, "labels.idx", labels, sizeof labels);
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_OK);
    CU_ASSERT(set.count == 2 && set.record_bytes[0] == 6 && set.record_bytes[1] == 4 &&
              ((const int32_t *)set.values[1])[0] == 9);
    CU_ASSERT_EQUAL(open_set(scratch, &plan, "test", &set, &why), TG_USAGE);
    scratch_write(scratch, "labels.idx", images, sizeof images);
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    check_why(why, "declared i32, but a record of labels.idx is u8[2, 3]");
    scratch_write(scratch, "labels.idx", three, sizeof three);
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    check_why(why, "field 'label' has 3 records, but field 'image' has 2");
    scratch_write(scratch, "labels.idx", high, sizeof high);
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    check_why(why, "record 1 of labels.idx is 10; allowed are 0 to 9");
    fields[1].has_also = true;
    fields[1].also = 10;
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_OK);
    fields[0].dims[1] = 4;
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    check_why(why, "declared u8[2, 4], but a record of images.idx is u8[2, 3]");
    fields[0].reader = "parquet";
    CU_ASSERT_EQUAL(open_set(scratch, &plan, NULL, &set, &why), TG_MODEL);
    check_why(why, "reader 'parquet' is not built yet");
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(idx)
TEST(idx_gz)
TEST(csv)
TEST(npy)
TEST(widening)
TEST(splits)
TEST(orders)
TEST(feeds)
TEST(schemas)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("data", NULL, NULL);
    CU_add_test(suite, "idx files", run_idx);
    CU_add_test(suite, "compressed idx files", run_idx_gz);
    CU_add_test(suite, "csv files", run_csv);
    CU_add_test(suite, "npy files", run_npy);
    CU_add_test(suite, "integers widen", run_widening);
    CU_add_test(suite, "splits", run_splits);
    CU_add_test(suite, "orders", run_orders);
    CU_add_test(suite, "batches", run_feeds);
    CU_add_test(suite, "schemas", run_schemas);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
