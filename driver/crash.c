/* A signal handler may call little: everything here is write(2) and friends on memory that is there already. The reproducer is what tgc
   has read, under names of its own, and the command line with those names. */
#include "driver/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a handler can reach. */
static struct Crash {
    const Pipeline *p;
    int argc;
    char **argv;
    char name[32];          /* tgc-crash-PID */
    char folder[PATH_MAX];  /* the current one */
    const char *stack, *stack_end; /* where it may grow to, and an address in main */
    volatile sig_atomic_t reporting;
} crash;

/* Text that is cut where the room ends. */
typedef struct Line {
    size_t length;
    char text[8 * 1024];
} Line;

static void add(Line *line, const char *text) {
    for (; *text && line->length + 1 < sizeof line->text; text++)
        line->text[line->length++] = *text;
    line->text[line->length] = '\0';
}

static void add_number(Line *line, long number) {
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    add(line, at);
}

/* As a shell reads it back. */
static void add_word(Line *line, const char *text) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
    if (*text && text[strspn(text, plain)] == '\0') {
        add(line, text);
        return;
    }
    add(line, "'");
    for (; *text; text++)
        add(line, *text == '\'' ? "'\\''" : (char[]){*text, '\0'});
    add(line, "'");
}

static void put(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t wrote = write(fd, text, length);
        if (wrote <= 0 && errno != EINTR)
            return;
        text += wrote > 0 ? wrote : 0;
        length -= wrote > 0 ? (size_t)wrote : 0;
    }
}

static void say(const char *severity, const Line *line) {
    static Line out;
    out.length = 0;
    if (!crash.p->diags->json) {
        add(&out, "tgc: ");
        add(&out, severity);
        add(&out, ": ");
        add(&out, line->text);
    } else {
        add(&out, "{\"severity\": \"");
        add(&out, severity);
        add(&out, "\", \"message\": \"");
        for (const char *c = line->text; *c; c++) {
            add(&out, *c == '"' || *c == '\\' ? "\\" : "");
            add(&out, (unsigned char)*c < ' ' ? " " : (char[]){*c, '\0'});
        }
        add(&out, "\"}");
    }
    add(&out, "\n");
    put(STDERR_FILENO, out.text, out.length);
}

/* ---- the reproducer ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* The argument that is this source, or 0. */
static int argument_of(const Source *source) {
    for (int i = 2; i < crash.argc; i++)
        if (strcmp(crash.argv[i], source->path) == 0 ||
            (strcmp(crash.argv[i], "-") == 0 && strcmp(source->path, "<stdin>") == 0))
            return i;
    return 0;
}

/* A file of the command line, or one that a model imports; not what a graph's places refer to. */
static bool is_input(const Source *source) {
    bool imported = source->path[0] != '<' && ends_with(source->path, ".tg") && !crash.p->reads_graph;
    return source->text && (argument_of(source) || imported);
}

static uint32_t count_inputs(void) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < crash.p->sources->files.count; i++)
        count += is_input(&crash.p->sources->files.at[i]);
    return count;
}

/* tgc-crash-PID.tg; several files keep their places to each other below a folder, so that imports find them. */
static void add_name(Line *line, const Source *source, bool alone) {
    const char *path = source->path, *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    add(line, crash.name);
    if (alone) {
        add(line, dot ? dot : ".tgir");
        return;
    }
    if (path[0] != '/') {
        add(line, crash.folder);
        add(line, "/");
    }
    add(line, path[0] == '<' ? "stdin.tgir" : path);
}

static bool write_input(const Source *source, bool alone) {
    static Line name;
    name.length = 0;
    add_name(&name, source, alone);
    for (char *slash = name.text; !alone && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(name.text, 0777);
        *slash = '/';
    }
    int fd = open(name.text, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return false;
    put(fd, source->text, source->length);
    return close(fd) == 0;
}

static const Source *source_of(int argument) {
    const Sources *all = crash.p->sources;
    for (uint32_t i = 0; i < all->files.count; i++)
        if (is_input(&all->files.at[i]) && argument_of(&all->files.at[i]) == argument)
            return &all->files.at[i];
    return NULL;
}

static void add_command(Line *line, bool written, bool alone) {
    add(line, "tgc");
    for (int i = 1; i < crash.argc; i++) {
        const Source *source = written && i > 1 ? source_of(i) : NULL;
        add(line, " ");
        if (source)
            add_name(line, source, alone);
        else
            add_word(line, crash.argv[i]);
    }
}

void crash_reproduce(void) {
    static Line line;
    bool alone = count_inputs() == 1, written = count_inputs() > 0;
    for (uint32_t i = 0; i < crash.p->sources->files.count; i++)
        if (is_input(&crash.p->sources->files.at[i]))
            written = write_input(&crash.p->sources->files.at[i], alone) && written;
    if (!written && count_inputs()) {
        line.length = 0;
        add(&line, "no reproducer: cannot write ");
        add(&line, crash.name);
        say("note", &line);
    }
    line.length = 0;
    add(&line, "it is a bug of tgc; replay it with: ");
    add_command(&line, written, alone);
    say("note", &line);
}

/* ---- signals ---- */

static const char *name_of(int signal, const void *address) {
    if (signal == SIGSEGV && (const char *)address >= crash.stack && (const char *)address < crash.stack_end)
        return "the stack is full";
    switch (signal) {
    case SIGSEGV:
    case SIGBUS: return "access to a bad address";
    case SIGFPE: return "a bad arithmetic operation";
    case SIGILL: return "a bad instruction";
    default: return "abort";
    }
}

static void on_signal(int signal, siginfo_t *info, void *context) {
    (void)context;
    if (crash.reporting++)
        _exit(TG_INTERNAL);
    static Line line;
    add(&line, "internal error");
    const PassContext *passes = crash.p->passes;
    if (passes && passes->pass) {
        add(&line, " in pass ");
        add(&line, passes->pass->name);
    } else if (crash.p->doing) {
        add(&line, " while ");
        add(&line, crash.p->doing);
    }
    add(&line, ": ");
    add(&line, name_of(signal, info->si_addr));
    say("error", &line);
    crash_reproduce();
    _exit(TG_INTERNAL);
}

/* A sanitizer's own handler says more than this one. */
static void handle(int signal) {
    struct sigaction before, action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    if (sigaction(signal, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(signal, &action, NULL);
}

void crash_begin(const Pipeline *p, int argc, char **argv) {
    enum { STACK = 64 * 1024 };
    static char stack[STACK];
    crash = (struct Crash){.p = p, .argc = argc, .argv = argv};
    Line name = {.length = 0};
    add(&name, "tgc-crash-");
    add_number(&name, getpid());
    strcpy(crash.name, name.text);
    if (getcwd(crash.folder, sizeof crash.folder) == NULL)
        crash.folder[0] = '\0';
    struct rlimit limit;
    size_t most = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : 1u << 30;
    enum { BELOW = 1 << 20 }; /* a frame that is larger than the guard page */
    crash.stack_end = (const char *)&limit;
    crash.stack = crash.stack_end - most - BELOW;
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    if (sigaltstack(&own, NULL) != 0)
        return;
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        handle(signals[i]);
}
