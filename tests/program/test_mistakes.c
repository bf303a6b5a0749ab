/* What people get wrong, of every kind: one message that says what to do, the right exit code, and nothing lost. */
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>

typedef struct Mistake {
    int code;
    const char *said, *command;
} Mistake;

/* In every command: `digits A B` writes a.tg, models/digits.tg with A replaced by B; `line` and `gpt` do so with
 * smaller models. */
static const char helpers[] =
    "edit() { sed \"s#$2#$3#\" $1 >a.tg; cmp -s $1 a.tg && echo 'nothing is replaced' >&2; }\n"
    "digits() { edit digits.tg \"$@\"; }\n"
    "line() { edit line.tg \"$@\"; }\n"
    "gpt() { edit gpt.tg \"$@\"; }\n"
    "csv() { printf \"$1\" >flowers.csv; ./flowers train; }\n";

static const char preparation[] =
    "cp $source/models/digits.tg $source/tests/driver/Inputs/line.* $source/tests/driver/Inputs/flowers.tg .\n"
    "mkdir data; cp $source/models/data/digits-* data; seq 1 400 >data/tinyshakespeare.txt; seq 1 9 >short.txt\n"
    "sed 's/L = 4, H = 4, C = 128/L = 1, H = 2, C = 8/; s/T = 64/T = 16/' $source/models/gpt.tg >gpt.tg\n"
    "set -e\n"
    "for model in digits flowers line gpt; do $tgc compile $model.tg; done\n"
    "./digits train --steps 20 --save-every 10\n"
    "./gpt train --steps 1\n"
    "cp -r digits.run kept\n";

static const Mistake in_names[] = {
    {3, "a.tg:16:20: error: unknown name 'rleu', did you mean 'relu'?", "digits relu rleu; $tgc check a.tg"},
    {3, "error: unknown name 'AdmaW', did you mean 'AdamW'?", "digits AdamW AdmaW; $tgc check a.tg"},
    {3, "error: the record has no field 'lable'; did you mean 'label'?", "digits b.label b.lable; $tgc check a.tg"},
    {3, "error: data Digits has no split 'trian'", "digits Digits.train Digits.trian; $tgc check a.tg"},
    {3, "error: 'Linear' has no argument 'bais'; did you mean 'bias'?",
     "digits '(in, hidden)$' '(in, hidden, bais = false)'; $tgc check a.tg"},
    {3, "error: 'Linear' takes 3 arguments, this is one more",
     "digits '(in, hidden)$' '(in, hidden, true, 1)'; $tgc check a.tg"},
    {3, "error: unknown reader 'parquet'", "line 'csv(.*\"y\")' 'parquet(\"line.csv\")'; $tgc check a.tg"},
    {3, "error: 'csv' has no argument 'column'; it has: path, columns, missing, categories, separator",
     "line 'columns = \"y\"' 'column = \"y\"'; $tgc check a.tg"},
    {3, "error: 'csv' needs 'columns': a name or a list of names", "line ', columns = \"y\"' ''; $tgc check a.tg"},
    {3, "a.tg:19:23: error: unknown name 'q'", "line 'p := p' 'q := p'; $tgc check a.tg"},
    {4, "error: cannot open /nowhere/b.tg: No such file or directory",
     "echo 'import \"/nowhere/b.tg\"' >a.tg; $tgc check a.tg"},
};

static const Mistake in_programs[] = {
    {3, "error: argument 'image' of 'logits' is a record, not u8[B, 8, 8]",
     "digits 'objective = objective' 'objective = logits'; $tgc check a.tg"},
    {3, "error: argument 'x' of 'net' is f32[B, 64], not f32[B, in]: dimension 1 is 64, not 63",
     "digits 'Mlp(64' 'Mlp(63'; $tgc check a.tg"},
    {3, "error: argument 'x' of 'net' is u8[B, 64], not f32[B, in]: two element types need a cast, 'f32(...)'",
     "digits 'f32(image) / 16' image; $tgc check a.tg"},
    {3, "error: the end of a range is an integer known when compiling, not i32[B]",
     "digits 'y        =' 'for i in 0..b.label { _ = i }\\n    y =' ; $tgc check a.tg"},
    {3, "error: the shares of the split are 110% together, more than 100%",
     "digits 'test = 20%' 'test = 30%'; $tgc check a.tg"},
    {3, "error: the share 'train' is a percentage above 0% and up to 100%",
     "digits 'train = 80%' 'train = 0%'; $tgc check a.tg"},
    {3, "error: 'batch' is an integer from 1, not the number 32.5", "digits '= 32' '= 32.5'; $tgc check a.tg"},
    {3, "error: 'epochs' is an integer from 1, not a string", "digits '= 30' '= \"many\"'; $tgc check a.tg"},
    {3, "error: 'seed' is an integer from 0, not the integer -1",
     "digits 'seed      = 1' 'seed = -1'; $tgc check a.tg"},
    {3, "error: 'batch' is an integer from 1 to 2147483647, not the integer 3000000000",
     "$tgc check digits.tg --set batch=3000000000"},
    {3, "error: the parameter 'w' is bf16; parameters are f32, a cast computes in another type",
     "line 'w: f32' 'w: bf16'; $tgc check a.tg"},
    {3, "error: index 1 is outside of dimension 1 of f32[B, 1]", "line ':, 0' ':, 1'; $tgc check a.tg"},
    {3, "error: the batch dimension cannot be indexed or sliced", "line ':, 0' 0; $tgc check a.tg"},
    {3, "error: 'dropout' takes a rate from 0 to below 1", "$tgc check gpt.tg --set drop=1.5"},
    {3, "error: the pattern does not fit f32[B, 16, 8]: 8 is not a multiple of 3", "$tgc check gpt.tg --set H=3"},
    {3, "error: argument 'T' of 'Gpt' is the number 16.5, not an integer known when compiling",
     "$tgc check gpt.tg --set T=16.5"},
    {3, "a.tg:1:8: error: a zero byte (offset 7): this is no text file", "cp digits a.tg; $tgc check a.tg"},
    {3, "a.tg:1:2: error: byte 0x8b (offset 1) is not UTF-8", "gzip <digits.tg >a.tg; $tgc check a.tg"},
};

static const Mistake in_data[] = {
    {3, "flowers.csv:1: there is no column 'petal'; there are 'a', 'b', 'c'", "csv 'a,b,c\\n1,2,rose\\n'"},
    {3,
     "flowers.csv:1: there is no column 'petal'; the cells seem to be separated by semicolons, say separator = \";\"",
     "csv 'petal;sepal;kind\\n1;2;rose\\n'"},
    {3, "flowers.csv:2: column 'sepal': 1e999 is not a value of f32", "csv 'petal,sepal,kind\\n1,1e999,rose\\n'"},
    {3, "flowers.csv:2: column 'kind': 1.5 is not a value of i32", "csv 'petal,sepal,kind\\n1,2,1.5\\n1,2,2\\n'"},
    {3, "flowers.csv:1: there are two columns 'sepal'", "csv 'petal,sepal,sepal,kind\\n1,2,3,rose\\n'"},
    {3, "field 'kind': record 2 of flowers.csv is 7; allowed are 0 to 2",
     "csv 'petal,sepal,kind\\n1,2,1\\n1,2,1\\n1,2,7\\n1,2,1\\n'"},
    {3, "flowers.csv:1: a zero byte: this is no text in UTF-8",
     "cp data/digits-images.idx.gz flowers.csv; ./flowers train"},
    {4, "cannot read ",
     "rm -f flowers.csv; mkdir flowers.csv; ./flowers train; code=$?; rmdir flowers.csv; exit $code"},
    {4, "field 'tokens': the command 'nosuchcommand' failed with exit code 127",
     "gpt 'data/tinyshakespeare.txt' '| nosuchcommand'; $tgc train a.tg"},
    {3, "byte 0: not a .npy file", "line 'csv(\"line.csv\", columns = \"y\")' 'npy(\"line.csv\")'; $tgc train a.tg"},
    {3, "a batch has 12 records, but the training set Corpus has only 0",
     "gpt 'data/tinyshakespeare' short; $tgc train a.tg"},
    {3, "field 'tokens': token 0 of data/tinyshakespeare.txt is 49; allowed are 0 to 9",
     "$tgc train gpt.tg --set V=10"},
    {4, "there is no file /nowhere/data/digits-images.idx.gz ('data/digits-images.idx.gz' in /nowhere, from $TG_DATA)",
     "TG_DATA=/nowhere ./digits train"},
};

static const Mistake in_options[] = {
    {2, "unknown option '--epoch'; did you mean '--epochs'?", "./digits train --epoch 3"},
    {2, "optimizer.lr.peak: 'nan' is not a finite number", "./digits train --set optimizer.lr.peak=nan"},
    {2, "--set wants NAME=VALUE, not '=3'", "./digits train --set =3"},
    {2, "'hidden' needs recompiling: tgc compile --set hidden=64 digits.tg", "./digits train --set hidden=64"},
    {2, "epochs: '99999999999999999999' is not a whole number of 1 or more",
     "./digits train --epochs 99999999999999999999"},
    {2, "--trace puts the fields of every step into the JSON document: give --json too", "./digits train --trace"},
    {2, "--threads: 2000 are too many, 1024 are the most", "./digits train --threads 2000"},
    {2, "TG_THREADS=zero is not a number of threads (1 to 1024)", "TG_THREADS=zero ./digits train"},
    {2, "--out wants a value: --out PATH", "./digits train --out ''"},
    {2, "--o wants a value: --o=FILE", "$tgc compile digits.tg -o ''"},
    {2, "--cpu: 'pentium9' is not a known CPU", "$tgc compile digits.tg --cpu=pentium9"},
    {2, "'train' takes no argument 'extra'", "./digits train extra"},
    {2, "--prompt is empty: the model goes on from at least one character", "./gpt sample --prompt ''"},
    {2, "--temperature: 'nan' is not a number of 0 or more", "./gpt sample --temperature nan"},
    {2, "'sample' takes one export, then --prompt TEXT; 'words' is one more", "./gpt sample next words"},
    {2, "there is no export fn 'nosuch': classify", "./digits predict nosuch"},
    {2, "classify takes 1 arguments (image: u8[8, 8] per record), 2 are given", "./digits predict classify a b"},
};

static const Mistake in_files[] = {
    {3, "w: not a safetensors file: 0 bytes are too few", ": >w; ./digits eval --weights w"},
    {3, "w: truncated: the header ends at byte ", "head -c 100 kept/weights.safetensors >w; ./digits eval --weights w"},
    {3, "digits.tg: not a safetensors file: its header would have ", "./digits eval --weights digits.tg"},
    {4, "cannot read digits.run: Is a directory", "./digits train --init digits.run"},
    {3, "the model has no parameter 'net.token'", "./digits eval --weights gpt.run/weights.safetensors"},
    {4,
     "other.run/weights.safetensors: No such file or directory; 'other train' makes it, --weights FILE names another",
     "cp digits other; ./other eval"},
    {3, "argument 'image' is u8[8, 8] per record, but data/digits-labels.idx.gz holds u8[1797]",
     "./digits predict classify data/digits-labels.idx.gz"},
    {4, "cannot write nowhere/x.digit.npy: No such file or directory",
     "./digits predict --records 1 --out nowhere/x.npy"},
    {4, "cannot write digits.tg/weights.safetensors: Not a directory", "./digits train --steps 1 --out digits.tg"},
    {3, "digits.tg is no program of tgc", "$tgc replay digits.tg digits.run/weights.safetensors"},
    {4, "cannot make a temporary folder /nowhere/",
     "TMPDIR=/nowhere XDG_CACHE_HOME=$PWD/empty $tgc compile digits.tg -o x"},
    {4, "cannot link the program: 'false' ended with status 1",
     "CC=false XDG_CACHE_HOME=$PWD/empty $tgc compile digits.tg -o x"},
    {4, "cannot open the code generator: /nowhere/libtgc_llvm.so",
     "TGC_LIB=/nowhere XDG_CACHE_HOME=$PWD/empty $tgc compile digits.tg -o x"},
    {4, "Exec format error; if you remove it, it is made again",
     "export XDG_CACHE_HOME=$PWD/damaged; $tgc train line.tg --out w.run && : >$(echo damaged/tgc/*) && $tgc train "
     "line.tg"},
    {5, "no memory left: the buffers take ",
     "ASAN_OPTIONS=$ASAN_OPTIONS:allocator_may_return_null=1 $tgc train gpt.tg --set V=2000000000 --set C=100000"},
};

static const Mistake in_resuming[] = {
    {2, "'seed' is 1 there and 3 here; a resumed run may change only epochs, steps and validate_every",
     "./digits train --resume digits.run --seed 3"},
    {2, "digits.run is at step 20 of 10, so nothing is left; give more with --epochs or --steps",
     "./digits train --resume digits.run --steps 10"},
    {2, "--init and --resume both say what to begin with: give one",
     "./digits train --resume digits.run --init kept/weights.safetensors"},
    {3, "digits.run/weights.safetensors is no checkpoint; --init takes the weights of a file",
     "./digits train --resume digits.run/weights.safetensors"},
    {3, "was saved by a program of digits.tg, this is one of line.tg", "./line train --resume digits.run"},
    {4, "gpt.run has no checkpoint; 'gpt train --save-every N' makes them", "./gpt train --resume gpt.run"},
    {3, "cut/checkpoints/latest.json names no checkpoint",
     "cp -r kept cut; echo '{' >cut/checkpoints/latest.json; ./digits train --resume cut"},
    {3, "cut/checkpoints/step-000020.safetensors: truncated: the header ends at byte ",
     "cp -r kept cut; head -c 1000 kept/checkpoints/step-000020.safetensors >cut/checkpoints/step-000020.safetensors; "
     "./digits train --resume cut --steps 30"},
};

static int errors_in(const char *text) {
    int count = 0;
    for (; (text = strstr(text, "error: ")) != NULL; text++)
        count++;
    return count;
}

static void refused(Scratch *scratch, const Mistake *mistake) {
    Outcome outcome = shell(scratch, "%srm -rf cut; %s", helpers, mistake->command);
    bool right = outcome.code == mistake->code && strstr(outcome.err, mistake->said) != NULL &&
                 errors_in(outcome.err) == 1 && strstr(outcome.err, "internal") == NULL;
    if (!right)
        printf("\n%s\nexit %d, not %d, or this is not one error that says '%s':\n%s", mistake->command, outcome.code,
               mistake->code, mistake->said, outcome.err);
    CU_ASSERT(right);
}

static void all_refused(Scratch *scratch) {
    static const struct {
        const Mistake *rows;
        size_t count;
    } tables[] = {
#define TABLE(rows) {rows, sizeof rows / sizeof *rows}
        TABLE(in_names), TABLE(in_programs), TABLE(in_data), TABLE(in_options), TABLE(in_files), TABLE(in_resuming),
#undef TABLE
    };
    shell_expect(scratch, 0, "", preparation);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        for (size_t k = 0; k < tables[i].count; k++)
            refused(scratch, &tables[i].rows[k]);
    CU_ASSERT_EQUAL(shell(scratch, "diff -r digits.run kept").code, 0);
}

static void run_all(void) { scratch_run(all_refused); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("mistakes", NULL, NULL);
    CU_add_test(suite, "each is refused, and nothing is lost", run_all);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
