/* Progress of training on a stream: one redrawn line on a terminal, a plain line now and then elsewhere. */
#ifndef TG_PROGRESS_H
#define TG_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Progress {
    FILE *to;
    bool terminal, color;
    int64_t steps, epochs; /* in all; epochs 0: not counted in epochs */
    int64_t first;         /* steps done before it began */
    double started, drawn; /* seconds; when training began, when the last line was written */
    int64_t lines;         /* written so far, elsewhere than on a terminal */
} Progress;

/* What a line says. `validation`: "" until there is one. */
typedef struct ProgressState {
    int64_t step, epoch; /* steps done; epoch from 0 */
    double loss;
    const char *loss_name, *validation;
} ProgressState;

void tg_progress_init(Progress *progress, FILE *to, int64_t first, int64_t steps, int64_t epochs);
/* Cheap; call it with the time every step. true: a line is due. */
bool tg_progress_due(const Progress *progress, double now);
void tg_progress_draw(Progress *progress, const ProgressState *state, double now);
/* At the end of an epoch: on a terminal as draw; elsewhere a line for about every tenth of the way. */
void tg_progress_epoch(Progress *progress, const ProgressState *state, double now);
void tg_progress_end(Progress *progress); /* leaves the terminal's line */

#endif
