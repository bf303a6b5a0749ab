/* Data, outputs and tools that are not as they should be: one message, the right exit code, and nothing half done. */
#include "runtime/safetensors.h"
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

typedef struct Refusal {
    int code;
    const char *said, *command;
} Refusal;

/* Before each: data/ holds the digits as they are; `images` and `labels` print them without compression. */
static const Refusal of_data[] = {
    {4, "digits.tg:6: field 'image': there is no file ./data/digits-images.idx.gz",
     "rm $images; ./digits train --data-root ."},
    {3, "digits-images.idx.gz: truncated: the values end at byte 115024, the file at byte 1000",
     "zcat $images | head -c 1000 >cut; mv cut $images; ./digits train --data-root ."},
    {3, "digits-images.idx.gz: truncated: the compressed data ends at byte 1000",
     "head -c 1000 $images >cut; mv cut $images; ./digits train --data-root ."},
    {3, "truncated: the four bytes of an idx file's type end at byte 4, the file at byte 0",
     ": >$labels; ./digits train --data-root ."},
    {3, "digits.tg:6: field 'image' is declared u8[8, 8], but a record of data/digits-images.idx.gz is u8",
     "cp $labels $images; ./digits train --data-root ."},
    {3, "digits-labels.idx.gz holds f32 values, but the program wants i32",
     "printf '\\0\\0\\15\\1\\0\\0\\0\\1\\0\\0\\0\\0' >$labels; ./digits train --data-root ."},
    {3, "digits-labels.idx.gz: byte 2: 0x07 is no idx type",
     "printf '\\0\\0\\7\\1\\0\\0\\0\\1\\0\\0\\0\\0' >$labels; ./digits train --data-root ."},
    {3, "digits-labels.idx.gz: byte 0: not an idx file (it begins with 78 2c, not 00 00)",
     "echo x,y >$labels; ./digits train --data-root ."},
    {3, "field 'label' has 2 records, but field 'image' has 1797",
     "printf '\\0\\0\\10\\1\\0\\0\\0\\2\\1\\2' >$labels; ./digits train --data-root ."},
    {3, "digits.tg:7: field 'label': record 12 of data/digits-labels.idx.gz is 12; allowed are 0 to 9",
     "zcat $labels >cut; printf '\\14' | dd of=cut bs=1 seek=20 conv=notrunc status=none; mv cut $labels; "
     "./digits train --data-root ."},
    {3, "a batch has 2000 records, but the training set Digits has only 1438",
     "$tgc train $source/models/digits.tg --set batch=2000"},
    {3, "'net.fc1.weight' is f64[128, 64], but the model has f32[128, 64]",
     "./digits train --init $source/tests/golden/digits.after.safetensors"},
};

static const Refusal of_output[] = {
    {4, "cannot make directory /dev/null/x: Not a directory", "./digits train --steps 1 --out /dev/null/x"},
    {4, "weights.safetensors: Is a directory",
     "mkdir -p folder/weights.safetensors; ./digits train --steps 1 --out folder"},
    {4, "cannot write full/weights.safetensors: File too large",
     "trap '' XFSZ; ulimit -f 8; ./digits train --steps 1 --out full"},
    {4, "cannot write the result: No space left on device", "./digits train --steps 1 --json >/dev/full"},
    {4, "cannot write the result: No space left on device", "./digits info >/dev/full"},
    {4, "error: cannot link the program: there is no C compiler 'cc'",
     "PATH=/nowhere XDG_CACHE_HOME=$PWD/empty $tgc compile $source/models/digits.tg -o other"},
};

static const char *prepared(Scratch *scratch, const char *command) {
    return tg_arena_printf(scratch->arena,
                           "mkdir -p data; cp $source/models/data/digits-*.gz data; images=data/digits-images.idx.gz; "
                           "labels=data/digits-labels.idx.gz; %s",
                           command);
}

static void refused(Scratch *scratch, const Refusal *rows, size_t count) {
    shell_expect(scratch, 0, "", "$tgc compile $source/models/digits.tg -o digits");
    for (size_t i = 0; i < count; i++)
        shell_expect(scratch, rows[i].code, rows[i].said, prepared(scratch, rows[i].command));
}

static void data(Scratch *scratch) {
    refused(scratch, of_data, sizeof of_data / sizeof *of_data);
    CU_ASSERT_NOT_EQUAL(shell(scratch, "test -e digits.run").code, 0);
}

/* What was there before a write that failed is still there, and whole. */
static void output(Scratch *scratch) {
    shell_expect(scratch, 0, "",
                 "$tgc train $source/models/digits.tg --steps 1 --out full; cp full/weights.safetensors kept");
    refused(scratch, of_output, sizeof of_output / sizeof *of_output);
    CU_ASSERT_EQUAL(shell(scratch, "cmp full/weights.safetensors kept").code, 0);
    CU_ASSERT_NOT_EQUAL(
        shell(scratch, "ls -A full folder | grep -v -e weights.safetensors -e manifest.json -e :$ -e '^$'").code, 0);
}

/* A loss that is not finite stops the program with its line, and the step before it stays. */
static void not_finite(Scratch *scratch) {
    shell_expect(scratch, 0, "", "$tgc compile $source/tests/program/Inputs/root.tg -o root");
    shell_expect(scratch, 0, "", "./root train --steps 1 --out one");
    shell_expect(scratch, 7, "root: loss is not finite at step 2 (epoch 1); the step changed nothing",
                 "./root train --out run");
    CU_ASSERT_NOT_EQUAL(shell(scratch, "test -e run/weights.safetensors").code, 0);
    static const char place[] =
        "tests/program/Inputs/root.tg:12:16: log gives a value that is not finite here, from finite ones";
    shell_expect(scratch, 7, place, "$tgc train $source/tests/program/Inputs/root.tg --out run --threads 2");
    Outcome replay = shell(scratch, "$tgc replay root run/nonfinite.safetensors");
    CU_ASSERT_EQUAL(replay.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(replay.out, place));
}

static const Tensor *tensor(Scratch *scratch, const char *path, const char *name) {
    TensorFile *file = TG_ALLOC(scratch->arena, TensorFile, 1);
    const char *why = NULL;
    CU_ASSERT_EQUAL_FATAL(tg_tensors_read(scratch->arena, scratch_path(scratch, path), file, &why), TG_OK);
    const Tensor *found = tg_tensor_find(file, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return found;
}

/* The parameter and the state are those of the step before. */
static void nothing_changed(Scratch *scratch) {
    not_finite(scratch);
    static const char *const names[] = {"net.w", "net.seen"};
    for (int i = 0; i < 2; i++) {
        const Tensor *before = tensor(scratch, "one/weights.safetensors", names[i]);
        const Tensor *after = tensor(scratch, "run/nonfinite.safetensors", names[i]);
        CU_ASSERT(before->bytes == 4 && after->bytes == 4 && memcmp(before->values, after->values, 4) == 0);
    }
}

static void run_data(void) { scratch_run(data); }
static void run_output(void) { scratch_run(output); }
static void run_not_finite(void) { scratch_run(nothing_changed); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("refusals", NULL, NULL);
    CU_add_test(suite, "data", run_data);
    CU_add_test(suite, "outputs and tools", run_output);
    CU_add_test(suite, "a loss that is not finite", run_not_finite);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
