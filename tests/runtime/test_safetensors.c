#include "runtime/safetensors.h"
#include "tests/runtime/scratch.h"

#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

static void check_why(const char *why, const char *part) {
    bool says = why != NULL && strstr(why, part) != NULL;
    if (!says)
        printf("\n'%s' lacks '%s'\n", why != NULL ? why : "(nothing)", part);
    CU_ASSERT(says);
}

static const float weights[6] = {1, 2, 3, 4, 5, 6};
static const uint8_t bits[3] = {7, 8, 9};

static TensorFile two_tensors(Arena *arena) {
    TensorFile file = {0};
    Tensor a = {
        .name = "net.weight", .dtype = DT_F32, .rank = 2, .dims = {2, 3}, .values = weights, .bytes = sizeof weights};
    Tensor b = {
        .name = "bits \"quoted\"", .dtype = DT_U8, .rank = 1, .dims = {3}, .values = bits, .bytes = sizeof bits};
    Tensor c = {.name = "empty", .dtype = DT_F32, .rank = 1, .dims = {0}, .values = bits};
    tg_push(arena, &file.tensors, a);
    tg_push(arena, &file.tensors, b);
    tg_push(arena, &file.tensors, c);
    tg_push(arena, &file.notes, (TensorNote){"step", "7"});
    return file;
}

static void round_trip(Scratch *scratch) {
    TensorFile file = two_tensors(scratch->arena), back;
    const char *why = NULL, *path = scratch_path(scratch, "a.safetensors");
    CU_ASSERT_EQUAL_FATAL(tg_tensors_write(scratch->arena, path, &file, &why), TG_OK);
    CU_ASSERT_EQUAL_FATAL(tg_tensors_read(scratch->arena, path, &back, &why), TG_OK);
    CU_ASSERT(back.tensors.count == 3 && back.notes.count == 1);
    const Tensor *a = tg_tensor_find(&back, "net.weight"), *b = tg_tensor_find(&back, "bits \"quoted\"");
    CU_ASSERT(a->rank == 2 && a->dims[1] == 3 && a->dtype == DT_F32 && memcmp(a->values, weights, sizeof weights) == 0);
    CU_ASSERT(b->bytes == 3 && memcmp(b->values, bits, 3) == 0);
    CU_ASSERT_STRING_EQUAL(back.notes.at[0].text, "7");
    CU_ASSERT_PTR_NULL(tg_tensor_find(&back, "net"));
    char bytes[1024];
    FILE *stream = fopen(path, "rb");
    size_t length = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    uint64_t header;
    memcpy(&header, bytes, 8);
    CU_ASSERT_EQUAL(header % 8, 0);
    for (size_t cut = 0; cut < length; cut++) {
        path = scratch_write(scratch, "cut.safetensors", bytes, cut);
        CU_ASSERT_EQUAL(tg_tensors_read(scratch->arena, path, &back, &why), TG_MODEL);
        check_why(why, "cut.safetensors");
    }
}

static const char *with_header(Scratch *scratch, const char *header, size_t data) {
    char bytes[1024] = {0};
    uint64_t length = strlen(header);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    return scratch_write(scratch, "bad.safetensors", bytes, 8 + length + data);
}

static void damaged(Scratch *scratch) {
    static const struct {
        const char *header;
        size_t data;
        const char *why;
    } cases[] = {
        {"[1]", 0, "not a JSON object"},
        {"{\"a\":", 0, "not a JSON object"},
        {"{\"a\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "there is no type 'F99'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":3,\"data_offsets\":[0,4]}}", 4, "its shape is not a list"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "do not fit its shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 4,
         "do not fit its shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8, "do not fit its shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 8, "do not fit its shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "not two numbers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3, "truncated: tensor 'a' ends at byte 4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5, "1 bytes follow the last tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "begins after a gap"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[4,8]}}",
         8, "overlaps"},
        {"{\"a\":{},\"a\":{}}", 0, "duplicate"},
        {"{\"__metadata__\":{\"x\":1}}", 0, "is not text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TensorFile back;
        const char *why = NULL;
        CU_ASSERT_EQUAL(
            tg_tensors_read(scratch->arena, with_header(scratch, cases[i].header, cases[i].data), &back, &why),
            TG_MODEL);
        check_why(why, cases[i].why);
    }
}

static void full_disk(Scratch *scratch) {
    const char *why = NULL, *path = scratch_path(scratch, "w.safetensors");
    TensorFile file = two_tensors(scratch->arena), back;
    CU_ASSERT_EQUAL_FATAL(tg_tensors_write(scratch->arena, path, &file, &why), TG_OK);
    FailingHost failing;
    int fails_at = 0;
    Status status;
    do {
        failing_host_init(&failing, ++fails_at, 0);
        Arena arena;
        tg_arena_init(&arena, &failing.host);
        if (setjmp(arena.guard)) {
            CU_FAIL_FATAL("no memory");
        }
        TensorFile other = two_tensors(&arena);
        other.tensors.count = 1;
        status = tg_tensors_write(&arena, path, &other, &why);
        if (status != TG_OK) {
            CU_ASSERT_EQUAL(status, TG_IO);
            check_why(why, "No space left on device");
            check_why(why, "w.safetensors");
        }
        tg_arena_deinit(&arena);
        CU_ASSERT_EQUAL_FATAL(tg_tensors_read(scratch->arena, path, &back, &why), TG_OK);
        CU_ASSERT_EQUAL(back.tensors.count, status == TG_OK ? 1 : 3);
    } while (status != TG_OK && fails_at < 100);
    CU_ASSERT(fails_at > 3 && fails_at < 100);
}

static void run_round_trip(void) { scratch_run(round_trip); }
static void run_damaged(void) { scratch_run(damaged); }
static void run_full_disk(void) { scratch_run(full_disk); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("safetensors", NULL, NULL);
    CU_add_test(suite, "round trip, and cut at every byte", run_round_trip);
    CU_add_test(suite, "damaged files", run_damaged);
    CU_add_test(suite, "a full disk leaves the old file", run_full_disk);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
