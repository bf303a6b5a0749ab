/* What happens when a step's value is not finite: the state before it is written to a file and replayed to find the
 * line. */
#ifndef TG_NONFINITE_H
#define TG_NONFINITE_H

#include "runtime/session.h"

/* Writes FOLDER/nonfinite.safetensors: parameters, states and optimizer states as they were before the step, the
   batch's fields as `batch.FIELD`, and in the metadata `step`, `iteration`, `epoch`, `records`, `seed`, `plan` and each
   scalar as `scalar.NAME`. Then `tgc replay PROGRAM FILE` says which line it was. Returns TG_NUMERIC, or TG_IO if it
   cannot be written. */
TG_CHECKED Status tg_nonfinite_stop(Session *session, const Batch *batch, const LoopPlace *place, const char *folder);

/* Says where a step of f16 overflowed first, with the loss scale that it had; the state is left as it is. */
TG_CHECKED Status tg_nonfinite_name(Session *session, const Batch *batch, const LoopPlace *place, const char *folder, float scale);

#endif
