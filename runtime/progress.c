#include "runtime/progress.h"
#include "runtime/session.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static const double redraw_seconds = 0.05, line_seconds = 10, shortest_left = 0.1;
enum { PLAIN_LINES = 10 };

void tg_progress_init(Progress *progress, FILE *to, int64_t first, int64_t steps, int64_t epochs) {
    const char *no_color = getenv("NO_COLOR");
    *progress = (Progress){.to = to,
                           .terminal = isatty(fileno(to)),
                           .first = first,
                           .steps = steps,
                           .epochs = epochs,
                           .lines = steps > 0 ? first * PLAIN_LINES / steps : 0,
                           .started = tg_seconds()};
    progress->color = progress->terminal && (no_color == NULL || no_color[0] == '\0');
    progress->drawn = progress->started;
}

bool tg_progress_due(const Progress *progress, double now) {
    return now - progress->drawn >= (progress->terminal ? redraw_seconds : line_seconds);
}

typedef struct Line {
    char text[512];
    size_t length;
} Line;

static void add(Line *line, const char *format, ...) TG_PRINTF(2, 3);
static void add(Line *line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    size_t room = sizeof line->text - line->length;
    int length = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (length > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void add_time_left(Line *line, double seconds) {
    int64_t minutes = (int64_t)(seconds / 60);
    if (minutes >= 60)
        add(line, "  %lld h %lld min left", (long long)(minutes / 60), (long long)(minutes % 60));
    else if (minutes > 0)
        add(line, "  %lld min %lld s left", (long long)minutes, (long long)seconds % 60);
    else if (seconds >= shortest_left)
        add(line, "  %.1f s left", seconds);
}

void tg_progress_draw(Progress *progress, const ProgressState *state, double now) {
    Line line = {.length = 0};
    const char *strong = progress->color ? "\033[1m" : "", *plain = progress->color ? "\033[0m" : "";
    if (progress->terminal)
        add(&line, "\r\033[K");
    if (progress->epochs > 0)
        add(&line, "epoch %lld/%lld  ", (long long)state->epoch + 1, (long long)progress->epochs);
    add(&line, "step %lld/%lld  %s %s%.4g%s", (long long)state->step, (long long)progress->steps, state->loss_name,
        strong, state->loss, plain);
    if (state->validation[0] != '\0')
        add(&line, "  val %s", state->validation);
    if (state->step > progress->first && state->step < progress->steps)
        add_time_left(&line, (now - progress->started) / (double)(state->step - progress->first) *
                                 (double)(progress->steps - state->step));
    if (!progress->terminal)
        add(&line, "\n");
    fwrite(line.text, 1, line.length, progress->to);
    fflush(progress->to);
    progress->drawn = now;
}

void tg_progress_epoch(Progress *progress, const ProgressState *state, double now) {
    if (progress->terminal) {
        if (state->step == progress->steps || tg_progress_due(progress, now))
            tg_progress_draw(progress, state, now);
        return;
    }
    if (state->step * PLAIN_LINES < (progress->lines + 1) * progress->steps && now - progress->drawn < line_seconds)
        return;
    progress->lines = state->step * PLAIN_LINES / progress->steps;
    tg_progress_draw(progress, state, now);
}

void tg_progress_end(Progress *progress) {
    if (progress->terminal)
        fputc('\n', progress->to);
    fflush(progress->to);
}
