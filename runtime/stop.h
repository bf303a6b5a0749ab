/* SIGINT and SIGTERM ask a run to stop after its step; a second one ends the process at once, and so does the first
   before there are steps. */
#ifndef TG_STOP_H
#define TG_STOP_H

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The exit code of a run that a signal ended is this and the signal's number, as shells have it. */
enum { TG_SIGNALLED = 128 };

typedef struct StopWatch {
    sigset_t signals, before;
    pthread_t thread;
    bool watching;
    atomic_bool stepping;
    atomic_int asked; /* the signal; 0: none came */
} StopWatch;

/* Open it before other threads start: they inherit the mask that keeps the signals from them. A signal that the process
   ignores stays ignored. Without a thread to wait for them, signals end the process as they always do. */
void tg_stop_watch(StopWatch *watch);
/* From now on there is something to save. */
void tg_stop_after_step(StopWatch *watch);
void tg_stop_unwatch(StopWatch *watch);
/* posix_spawn with this process's environment, and no signal kept from the child. */
int tg_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions, char *const *arguments);

static inline int tg_stop_asked(StopWatch *watch) { return atomic_load_explicit(&watch->asked, memory_order_relaxed); }

#endif
