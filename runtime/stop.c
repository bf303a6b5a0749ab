#include "runtime/stop.h"

#include <unistd.h>

extern char **environ;

static void *wait_for_signals(void *argument) {
    StopWatch *watch = argument;
    for (;;) {
        int number;
        if (sigwait(&watch->signals, &number) != 0)
            return NULL;
        if (atomic_exchange(&watch->asked, number) != 0 || !atomic_load(&watch->stepping))
            _exit(TG_SIGNALLED + number);
    }
}

void tg_stop_watch(StopWatch *watch) {
    static const int numbers[] = {SIGINT, SIGTERM};
    atomic_init(&watch->stepping, false);
    atomic_init(&watch->asked, 0);
    sigemptyset(&watch->signals);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&watch->signals, numbers[i]);
    }
    if (pthread_sigmask(SIG_BLOCK, &watch->signals, &watch->before) != 0)
        return;
    watch->watching = pthread_create(&watch->thread, NULL, wait_for_signals, watch) == 0;
    if (!watch->watching)
        pthread_sigmask(SIG_SETMASK, &watch->before, NULL);
}

void tg_stop_after_step(StopWatch *watch) { atomic_store(&watch->stepping, true); }

void tg_stop_unwatch(StopWatch *watch) {
    if (!watch->watching)
        return;
    pthread_cancel(watch->thread);
    pthread_join(watch->thread, NULL);
    pthread_sigmask(SIG_SETMASK, &watch->before, NULL);
    watch->watching = false;
}

int tg_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, char *const *arguments) {
    posix_spawnattr_t attributes;
    int result = posix_spawnattr_init(&attributes);
    if (result != 0)
        return result;
    sigset_t none;
    sigemptyset(&none);
    result = posix_spawnattr_setsigmask(&attributes, &none);
    if (result == 0)
        result = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (result == 0)
        result = posix_spawn(child, path, actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return result;
}
