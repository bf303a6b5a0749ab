/* Runs that end before their time and go on: after a signal, a kill at any moment, a kill at any system call of a save.
 */
#include "tests/program/shell.h"

#include <CUnit/Basic.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNALLED = 128, KILLED = 137, NOTHING_LEFT = 2, NO_CHECKPOINT = 4 };

static bool same_file(Scratch *scratch, const char *a, const char *b) {
    size_t a_bytes, b_bytes;
    const char *x = shell_file(scratch, a, &a_bytes), *y = shell_file(scratch, b, &b_bytes);
    return a_bytes == b_bytes && memcmp(x, y, a_bytes) == 0;
}

/* A model with all that a run keeps: dropout, a state, an average, a best value; epochs of twelve batches of four
   uneven micro-batches. */
static const char model[] =
    "data D {\n"
    "    image: u8[8, 8] from idx(\"digits-images.idx.gz\")\n"
    "    label: i32 from idx(\"digits-labels.idx.gz\")\n"
    "    split { train = 20%, test = 20%, rest = 60% }\n"
    "}\n"
    "module Net() {\n"
    "    state scale: f32 = 1\n"
    "    fc1 = Linear(64, 16)\n"
    "    fc2 = Linear(16, 10)\n"
    "    fn (x: f32[B, 64]) {\n"
    "        if training {\n"
    "            scale := mix(scale, mean(x), 0.1)\n"
    "        }\n"
    "        return fc2(dropout(relu(fc1(x / scale)), 0.2))\n"
    "    }\n"
    "}\n"
    "net = Net()\n"
    "fn objective(b: D) {\n"
    "    y = net(reshape(f32(b.image), [B, 64]))\n"
    "    return { loss: cross_entropy(y, b.label), accuracy: mean(f32(argmax(y) == b.label)) }\n"
    "}\n"
    "train {\n"
    "    data      = D.train\n"
    "    validate  = D.test\n"
    "    objective = objective\n"
    "    batch     = 32\n"
    "    micro     = 9\n"
    "    lanes     = 2\n"
    "    epochs    = 4\n"
    "    optimizer = Adam(lr = warmup_cosine(1e-2, warmup = 5))\n"
    "    average   = ema(0.9)\n"
    "    stop      = since_best(val.loss) >= 30\n"
    "    keep_best = max(val.accuracy)\n"
    "    validate_every = 5\n"
    "}\n";

static void compile(Scratch *scratch) {
    scratch_text(scratch, "model.tg", model);
    shell_expect(scratch, 0, "", "$tgc compile model.tg");
    shell_expect(scratch, 0, "",
                 "ln -s $source/models/data/digits-images.idx.gz $source/models/data/digits-labels.idx.gz .");
}

/* The losses of `rest` are the last ones of `whole`. */
static bool same_curve(const json_t *whole, const json_t *rest, size_t from) {
    const json_t *a = json_object_get(json_object_get(whole, "trace"), "loss");
    const json_t *b = json_object_get(json_object_get(rest, "trace"), "loss");
    bool same = json_array_size(b) == json_array_size(a) - from;
    for (size_t i = 0; same && i < json_array_size(b); i++)
        same = json_equal(json_array_get(a, from + i), json_array_get(b, i));
    return same && json_equal(json_object_get(whole, "train"), json_object_get(rest, "train")) &&
           json_equal(json_object_get(whole, "val"), json_object_get(rest, "val")) &&
           json_equal(json_object_get(json_object_get(whole, "best"), "step"),
                      json_object_get(json_object_get(rest, "best"), "step"));
}

/* C37: from every step of an epoch and a half, with any number of threads, the curve and the weights are the same. */
static void every_step(Scratch *scratch) {
    compile(scratch);
    json_t *whole = shell_json(scratch, "./model train --save-every 1 --keep 1000 --out whole --json --trace");
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(whole, "steps")), 48);
    for (int step = 1; step < 20; step++) {
        shell_expect(scratch, 0, "", "rm -rf rest");
        json_t *rest =
            shell_json(scratch, tg_arena_printf(scratch->arena,
                                                "./model train --resume whole/checkpoints/step-%06d.safetensors "
                                                "--out rest --threads %d --json --trace",
                                                step, 1 + step % 3));
        bool same = same_curve(whole, rest, (size_t)step) &&
                    same_file(scratch, "whole/weights.safetensors", "rest/weights.safetensors");
        if (!same)
            printf("\nresumed at step %d: another curve\n", step);
        CU_ASSERT(same);
        json_decref(rest);
    }
    json_decref(whole);
}

static void refusals(Scratch *scratch) {
    compile(scratch);
    shell_expect(scratch, 0, "", "./model train --epochs 2 --save-every 7 --keep 2 --out run");
    shell_expect(scratch, 0, "",
                 "ls run/checkpoints >list; printf 'latest.json\\nstep-000021.safetensors\\n"
                 "step-000024.safetensors\\n' | diff - list");
    shell_expect(scratch, 2, "is at step 24 of 24, so nothing is left", "./model train --epochs 2 --resume run");
    shell_expect(scratch, 2, "'optimizer.lr.peak' is 0.01 there and 0.5 here",
                 "./model train --resume run --set optimizer.lr.peak=0.5");
    shell_expect(scratch, 2, "'seed' is 0 there and 7 here", "./model train --resume run --seed 7");
    shell_expect(scratch, 4, "cannot open nowhere", "./model train --resume nowhere");
    shell_expect(scratch, 4, "has no checkpoint", "mkdir -p empty; ./model train --resume empty");
    shell_expect(scratch, 3, "is no checkpoint", "./model train --resume run/weights.safetensors");
    shell_expect(scratch, 2, "both say what to begin with",
                 "./model train --resume run --init run/weights.safetensors");
    shell_expect(scratch, 3, "truncated",
                 "head -c 3000 run/checkpoints/step-000024.safetensors >cut; ./model train --resume cut");
    shell_expect(scratch, 3, "was saved by another program",
                 "sed 's/relu(/tanh(/' model.tg >model2.tg; mkdir two; mv model2.tg two/model.tg; cp -P *.gz two; "
                 "$tgc train two/model.tg --resume run");
    shell_expect(scratch, 0, "", "./model train --epochs 3 --resume run");
    shell_expect(scratch, 0, "",
                 "./model predict --weights run/checkpoints/step-000024.safetensors 2>/dev/null || "
                 "./model eval --weights run/checkpoints/step-000024.safetensors");
}

/* ---- ends ---- */

static pid_t start(Scratch *scratch, const char *const *arguments) {
    pid_t child = fork();
    if (child != 0)
        return child;
    if (chdir(scratch->folder) != 0 || freopen("child.err", "w", stderr) == NULL ||
        freopen("child.out", "w", stdout) == NULL)
        _exit(1);
    signal(SIGINT, SIG_DFL);
    execv(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(1);
}

static int code_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

enum { LONG_STEPS = 3000 };
static const char *const long_run[] = {
    "./model", "train", "--steps",  "3000", "--set", "validate_every=3000", "--save-every", "20",
    "--out",   "run",   "--resume", "run",  NULL};

/* The run with its first checkpoint there, so that every start resumes. */
static void begin_long_run(Scratch *scratch) {
    shell_expect(scratch, 0, "", "rm -rf run; mkdir -p run; cp -r whole/checkpoints run/checkpoints");
}

static void prepare_long_run(Scratch *scratch) {
    compile(scratch);
    shell_expect(scratch, 0, "",
                 "./model train --steps 3000 --set validate_every=3000 --save-every 20 --keep 1000 --out whole");
    shell_expect(scratch, 0, "",
                 "cd whole/checkpoints; ls | grep -v step-000020 | xargs rm; "
                 "echo '{\"checkpoints\": [\"step-000020.safetensors\"]}' >latest.json");
}

static void finish_long_run(Scratch *scratch) {
    Outcome rest =
        shell(scratch, "./model train --steps %d --set validate_every=3000 --out run --resume run", LONG_STEPS);
    CU_ASSERT(rest.code == 0 || strstr(rest.err, "nothing is left") != NULL);
    if (rest.code == 0)
        CU_ASSERT(same_file(scratch, "whole/weights.safetensors", "run/weights.safetensors"));
}

static void signals(Scratch *scratch) {
    static const int numbers[] = {SIGTERM, SIGINT};
    prepare_long_run(scratch);
    for (int i = 0; i < 2; i++) {
        int code = 0;
        for (int wait = 200; wait > 0 && code == 0; wait /= 2) { /* a fast machine may be through by then */
            begin_long_run(scratch);
            pid_t child = start(scratch, long_run);
            usleep((useconds_t)wait * 1000);
            kill(child, numbers[i]);
            code = code_of(child);
        }
        CU_ASSERT_EQUAL(code, SIGNALLED + numbers[i]);
        size_t bytes;
        CU_ASSERT_PTR_NOT_NULL(strstr(shell_file(scratch, "child.err", &bytes), "model train --resume run' goes on"));
        finish_long_run(scratch);
    }
}

/* Whenever it is killed, the folder holds a run that goes on to the same end. */
static void kills(Scratch *scratch) {
    int wanted = getenv("TG_LONG") != NULL ? 100 : 12, killed = 0;
    prepare_long_run(scratch);
    begin_long_run(scratch);
    srand(1);
    for (int tries = 0; killed < wanted && tries < 10 * wanted; tries++) {
        pid_t child = start(scratch, long_run);
        usleep((useconds_t)(rand() % 60) * 1000);
        kill(child, SIGKILL);
        int code = code_of(child);
        killed += code == KILLED;
        CU_ASSERT_FATAL(code == KILLED || code == 0 || code == NOTHING_LEFT);
        if (code == KILLED)
            continue;
        if (code == 0)
            CU_ASSERT(same_file(scratch, "whole/weights.safetensors", "run/weights.safetensors"));
        begin_long_run(scratch);
    }
    CU_ASSERT_EQUAL(killed, wanted);
    finish_long_run(scratch);
}

/* C39: at whatever call of a save it ends, a checkpoint loads and goes on to the same end. */
static void every_call(Scratch *scratch) {
    compile(scratch);
    shell_expect(scratch, 0, "", "./model train --epochs 1 --save-every 3 --keep 100 --out whole");
    shell_expect(scratch, 0, "",
                 "mkdir -p base/checkpoints; cp whole/checkpoints/step-000003.safetensors base/checkpoints; "
                 "echo '{\"checkpoints\": [\"step-000003.safetensors\"]}' >base/checkpoints/latest.json");
    int cut = 0, code = KILLED;
    while (code == KILLED && cut < 1000) {
        Outcome outcome = shell(scratch,
                                "rm -rf run; cp -r base run; ASAN_OPTIONS=verify_asan_link_order=0 TG_CUT=%d "
                                "LD_PRELOAD=" TGC_BINARY_DIR
                                "/lib/libcut.so ./model train --epochs 1 --save-every 3 --keep 1 --resume run",
                                ++cut);
        code = outcome.code;
        Outcome rest = shell(scratch, "./model train --epochs 1 --resume run");
        bool over = rest.code == NOTHING_LEFT && strstr(rest.err, "nothing is left") != NULL;
        bool same = over ? same_file(scratch, "whole/checkpoints/step-000012.safetensors",
                                     "run/checkpoints/step-000012.safetensors")
                         : rest.code == 0 && same_file(scratch, "whole/weights.safetensors", "run/weights.safetensors");
        if (!same)
            printf("\ncut at call %d: exit %d, %s\n", cut, rest.code, rest.err);
        CU_ASSERT(same);
    }
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT(cut > 50);
}

#define TEST(name)                                                                                                     \
    static void run_##name(void) { scratch_run(name); }
TEST(every_step)
TEST(refusals)
TEST(signals)
TEST(kills)
TEST(every_call)

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("resume", NULL, NULL);
    CU_add_test(suite, "from every step", run_every_step);
    CU_add_test(suite, "refusals", run_refusals);
    CU_add_test(suite, "signals", run_signals);
    CU_add_test(suite, "kills at random moments", run_kills);
    CU_add_test(suite, "kills at every call of a save", run_every_call);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
