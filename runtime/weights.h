/* A plan's parameters and states in safetensors files. */
#ifndef TG_WEIGHTS_H
#define TG_WEIGHTS_H

#include "runtime/data.h"
#include "runtime/exec.h"
#include "runtime/safetensors.h"

/* Writes the low copies of all parameters, where something else than a step has written those. */
void tg_weights_copy(TgExec *exec, const TgPlan *plan);
/* Appends the buffers of the classes whose bit (1 << PLAN_PARAM, ...) is in `classes`; the values stay in the exec's
 * arena. */
void tg_weights_gather(TgExec *exec, const TgPlan *plan, Arena *arena, unsigned classes, TensorFile *file);
/* `words` go along as metadata, so that the weights mean the same numbers wherever they are used. */
TG_CHECKED Status tg_weights_save(TgExec *exec, const TgPlan *plan, Arena *arena, const DataVocabulary *words,
                                  const char *path, const char **why);
/* Every buffer of these classes from `file`, each with its type and shape. Nothing is changed on failure. */
TG_CHECKED Status tg_weights_restore(TgExec *exec, const TgPlan *plan, Arena *arena, const TensorFile *file,
                                     unsigned classes, const char **why);
/* Every parameter must be there with its type and shape; states are taken where they are there (other tools' files have
   none), optimizer states are passed over, any other tensor is an error. Nothing is changed on failure. The file's words
   become `words`; where those are known already, by data that is open, they must be the same. */
TG_CHECKED Status tg_weights_load(TgExec *exec, const TgPlan *plan, Arena *arena, DataVocabulary *words,
                                  const char *path, const char **why);

#endif
