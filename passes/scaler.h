/* Loss scaling of f16: the loss's cotangent is a scale instead of 1, gradients are divided by it when all of them are there. A scale
   is a setting (loss_scale = 1024; 1 is none), or a state that follows overflows: it is halved by each, down to 1, and doubled after
   TG_GOOD_STEPS steps without one, as torch.amp.GradScaler does. Where a value is multiplied by it, its type says `scaled`. */
#ifndef TG_SCALER_H
#define TG_SCALER_H

#include "ir/build.h"

enum { TG_GOOD_STEPS = 2000, TG_FIRST_SCALE = 1 << 16 };
/* A model whose gradients are all 0 never overflows; its scale must stay finite: 2^40. */
#define TG_MOST_SCALE 1099511627776.0
/* The states: the scale, the steps since it has changed, the steps left out. */
#define TG_SCALE_STATE "optimizer.loss_scale"
#define TG_GOOD_STATE "optimizer.good_steps"
#define TG_SKIPPED_STATE "optimizer.skipped_steps"
/* Results of the tail: the step was not finite, but the next has a smaller scale; the scale of this step; all steps left out. */
#define TG_OVERFLOWED "overflowed"
#define TG_LOSS_SCALE "loss_scale"
#define TG_SKIPPED "skipped_steps"

/* Adds the states, if the graph's training has a scale that is no setting. */
void tg_scaler_add(Graph *graph);
/* The loss's cotangent, a scalar f32: 1, or the scale. */
NodeId tg_scaler_seed(Builder *b);
/* `gradient`, in f32, without the scale. */
NodeId tg_scaler_remove(Builder *b, NodeId gradient);
/* In `init`: the first states. */
void tg_scaler_init(Builder *b);
/* In the update: the next states, whether the step was finite or not, and the results above. */
void tg_scaler_update(Builder *b, NodeId finite);

#endif
