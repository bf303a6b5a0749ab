/* Run-time settings: the plan's values, overridden from the command line, each with where it came from. */
#ifndef TG_SETTINGS_H
#define TG_SETTINGS_H

#include "ir/base/vec.h"
#include "ir/plan/plan.h"

typedef struct Settings {
    Arena *arena;
    const TgPlan *plan;
    Vec(PlanSetting) all; /* origin: as the plan says, or the option that set it */
    double *scalars;       /* one per TgPlan.scalars: what those of class SETTING are */
    int64_t epochs, steps; /* 0: no limit; at least one of them is not 0 */
    int64_t validate_every; /* steps; 0: as the length of training says */
    uint64_t seed;
    bool shuffle;
} Settings;

void tg_settings_init(Settings *settings, Arena *arena, const TgPlan *plan);
/* TG_USAGE with the names that can be set if there is no such setting, or it needs a recompilation. */
TG_CHECKED Status tg_settings_set(Settings *settings, const char *name, const char *value, const char *origin,
                                  const char **why);
/* "NAME=VALUE" of --set. */
TG_CHECKED Status tg_settings_parse(Settings *settings, const char *text, const char **why);

#endif
