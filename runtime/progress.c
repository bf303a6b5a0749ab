#include "runtime/progress.h"
#include "runtime/session.h"

#include <stdlib.h>
#include <unistd.h>

static const double redraw_seconds = 0.05, line_seconds = 10;
enum { PLAIN_LINES = 10 };

void tg_progress_init(Progress *progress, FILE *to, int64_t steps, int64_t epochs) {
    const char *no_color = getenv("NO_COLOR");
    *progress = (Progress){.to = to, .terminal = isatty(fileno(to)), .steps = steps, .epochs = epochs, .started = tg_seconds()};
    progress->color = progress->terminal && (no_color == NULL || no_color[0] == '\0');
    progress->drawn = progress->started;
}

bool tg_progress_due(const Progress *progress, double now) {
    return now - progress->drawn >= (progress->terminal ? redraw_seconds : line_seconds);
}

static void print_time_left(FILE *to, double seconds) {
    if (seconds >= 3600)
        fprintf(to, "%.0f h %.0f min left", (double)(int64_t)(seconds / 3600), (double)((int64_t)(seconds / 60) % 60));
    else if (seconds >= 60)
        fprintf(to, "%.0f min %.0f s left", (double)(int64_t)(seconds / 60), (double)((int64_t)seconds % 60));
    else
        fprintf(to, "%.1f s left", seconds);
}

void tg_progress_draw(Progress *progress, const ProgressState *state, double now) {
    FILE *to = progress->to;
    const char *strong = progress->color ? "\033[1m" : "", *plain = progress->color ? "\033[0m" : "";
    if (progress->terminal)
        fputs("\r\033[K", to);
    if (progress->epochs > 0)
        fprintf(to, "epoch %lld/%lld  ", (long long)state->epoch + 1, (long long)progress->epochs);
    fprintf(to, "step %lld/%lld  %s %s%.4g%s", (long long)state->step, (long long)progress->steps, state->loss_name, strong, state->loss,
            plain);
    if (state->validation[0] != '\0')
        fprintf(to, "  val %s", state->validation);
    if (state->step > 0 && state->step < progress->steps) {
        fputs("  ", to);
        print_time_left(to, (now - progress->started) / (double)state->step * (double)(progress->steps - state->step));
    }
    if (!progress->terminal)
        fputc('\n', to);
    fflush(to);
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
