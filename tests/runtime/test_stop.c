/* The first signal asks, the second one ends the process. */
#include "runtime/stop.h"

#include <CUnit/Basic.h>
#include <sys/wait.h>
#include <unistd.h>

static bool comes(StopWatch *watch, int number) {
    for (int i = 0; i < 2000 && tg_stop_asked(watch) != number; i++)
        usleep(1000);
    return tg_stop_asked(watch) == number;
}

static void asked(void) {
    StopWatch watch = {0};
    tg_stop_watch(&watch);
    tg_stop_after_step(&watch);
    CU_ASSERT_FATAL(watch.watching);
    CU_ASSERT_EQUAL(tg_stop_asked(&watch), 0);
    kill(getpid(), SIGTERM);
    CU_ASSERT(comes(&watch, SIGTERM));
    tg_stop_unwatch(&watch);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    CU_ASSERT_EQUAL(sigismember(&now, SIGTERM), 0);
}

static int code_of_child(void (*body)(void)) {
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void two_signals(void) {
    StopWatch watch = {0};
    tg_stop_watch(&watch);
    tg_stop_after_step(&watch);
    kill(getpid(), SIGTERM);
    if (!comes(&watch, SIGTERM))
        _exit(1);
    kill(getpid(), SIGINT);
    sleep(10);
}

static void ignored_signal(void) {
    signal(SIGINT, SIG_IGN);
    StopWatch watch = {0};
    tg_stop_watch(&watch);
    tg_stop_after_step(&watch);
    kill(getpid(), SIGINT);
    kill(getpid(), SIGTERM);
    _exit(comes(&watch, SIGTERM) ? 0 : 1);
}

static void too_early(void) {
    StopWatch watch = {0};
    tg_stop_watch(&watch);
    kill(getpid(), SIGTERM);
    sleep(10);
}

static void early(void) { CU_ASSERT_EQUAL(code_of_child(too_early), TG_SIGNALLED + SIGTERM); }
static void second(void) { CU_ASSERT_EQUAL(code_of_child(two_signals), TG_SIGNALLED + SIGINT); }
static void ignored(void) { CU_ASSERT_EQUAL(code_of_child(ignored_signal), 0); }

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("stop", NULL, NULL);
    CU_add_test(suite, "before the first step one ends it", early);
    CU_add_test(suite, "a second signal ends it", second);
    CU_add_test(suite, "what is ignored stays so", ignored);
    CU_add_test(suite, "the first signal asks", asked);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
