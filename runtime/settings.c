#include "runtime/settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef Status Assign(Settings *settings, const char *name, const char *value, const char **why);

static Status not_a(Settings *settings, const char *name, const char *value, const char *kind, const char **why) {
    *why = tg_arena_printf(settings->arena, "%s: '%s' is not %s", name, value, kind);
    return TG_USAGE;
}

static bool parse_count(const char *value, uint64_t *count) {
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(value, &end, 10);
    *count = parsed;
    return value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0;
}

static Status limit(Settings *settings, const char *name, const char *value, int64_t *count, const char **why) {
    uint64_t parsed;
    if (!parse_count(value, &parsed) || parsed < 1 || parsed > INT64_MAX)
        return not_a(settings, name, value, "a whole number of 1 or more", why);
    *count = (int64_t)parsed;
    return TG_OK;
}

static PlanSetting *find(Settings *settings, const char *name) {
    for (uint32_t i = 0; i < settings->all.count; i++)
        if (strcmp(settings->all.at[i].name, name) == 0)
            return &settings->all.at[i];
    return NULL;
}

/* Asking for one limit takes the other one's place, unless that was asked for too. */
static void yield_to(Settings *settings, const char *other, int64_t *count, const char *name) {
    PlanSetting *setting = find(settings, other);
    if (strncmp(setting->origin, "--", 2) == 0)
        return;
    *count = 0;
    setting->value = "0";
    setting->origin = tg_arena_printf(settings->arena, "'%s' is given", name);
}

static Status assign_epochs(Settings *settings, const char *name, const char *value, const char **why) {
    TG_TRY(limit(settings, name, value, &settings->epochs, why));
    yield_to(settings, "steps", &settings->steps, name);
    return TG_OK;
}

static Status assign_steps(Settings *settings, const char *name, const char *value, const char **why) {
    TG_TRY(limit(settings, name, value, &settings->steps, why));
    yield_to(settings, "epochs", &settings->epochs, name);
    return TG_OK;
}

static Status assign_validate_every(Settings *settings, const char *name, const char *value, const char **why) {
    return limit(settings, name, value, &settings->validate_every, why);
}

static Status assign_seed(Settings *settings, const char *name, const char *value, const char **why) {
    if (!parse_count(value, &settings->seed))
        return not_a(settings, name, value, "a whole number from 0 to 2^64 - 1", why);
    return TG_OK;
}

static Status assign_shuffle(Settings *settings, const char *name, const char *value, const char **why) {
    settings->shuffle = strcmp(value, "true") == 0;
    return settings->shuffle || strcmp(value, "false") == 0 ? TG_OK
                                                            : not_a(settings, name, value, "true or false", why);
}

typedef struct Special {
    const char *name;
    Assign *assign;
} Special;

/* Settings that the runtime itself reads; any program can set them. */
static const Special specials[] = {
    {"epochs", assign_epochs}, {"steps", assign_steps},     {"validate_every", assign_validate_every},
    {"seed", assign_seed},     {"shuffle", assign_shuffle},
};
enum { SPECIAL_COUNT = sizeof specials / sizeof *specials };

static void add_if_new(Settings *settings, const char *name, const char *value) {
    PlanSetting *setting = find(settings, name);
    if (setting != NULL)
        setting->runtime = true;
    else
        tg_push(settings->arena, &settings->all, (PlanSetting){name, value, "default", true});
}

void tg_settings_init(Settings *settings, Arena *arena, const TgPlan *plan) {
    *settings = (Settings){.arena = arena,
                           .plan = plan,
                           .scalars = TG_ALLOC(arena, double, plan->scalar_count + 1),
                           .epochs = plan->epochs,
                           .steps = plan->steps_wanted,
                           .validate_every = plan->validate_every,
                           .seed = plan->seed,
                           .shuffle = plan->shuffle};
    if (settings->epochs < 1 && settings->steps < 1)
        settings->epochs = 1;
    for (uint32_t i = 0; i < plan->setting_count; i++) {
        const PlanSetting *from = &plan->settings[i];
        tg_push(arena, &settings->all, (PlanSetting){from->name, from->value, from->origin, from->runtime});
    }
    char text[TG_NUMBER_TEXT];
    for (uint32_t i = 0; i < plan->scalar_count; i++) {
        settings->scalars[i] = plan->scalars[i].value;
        if (plan->scalars[i].class == PLAN_SCALAR_SETTING)
            add_if_new(settings, plan->scalars[i].name,
                       tg_arena_printf(arena, "%s", tg_number_text(plan->scalars[i].value, text)));
    }
    add_if_new(settings, "epochs", tg_arena_printf(arena, "%lld", (long long)settings->epochs));
    add_if_new(settings, "steps", tg_arena_printf(arena, "%lld", (long long)settings->steps));
    add_if_new(settings, "validate_every", tg_arena_printf(arena, "%lld", (long long)settings->validate_every));
    add_if_new(settings, "seed", tg_arena_printf(arena, "%llu", (unsigned long long)settings->seed));
    add_if_new(settings, "shuffle", settings->shuffle ? "true" : "false");
}

static Status assign_scalar(Settings *settings, const char *name, const char *value, const char **why) {
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0')
        return not_a(settings, name, value, "a number", why);
    if (!isfinite(number))
        return not_a(settings, name, value, "a finite number", why);
    for (uint32_t i = 0; i < settings->plan->scalar_count; i++)
        if (settings->plan->scalars[i].class == PLAN_SCALAR_SETTING &&
            strcmp(settings->plan->scalars[i].name, name) == 0)
            settings->scalars[i] = number;
    return TG_OK;
}

static Status refuse(Settings *settings, const char *name, const char *value, const PlanSetting *setting,
                     const char **why) {
    const char **names = TG_ALLOC(settings->arena, const char *, settings->all.count);
    uint32_t count = 0;
    Str list = tg_str(settings->arena);
    for (uint32_t i = 0; i < settings->all.count; i++) {
        if (!settings->all.at[i].runtime)
            continue;
        tg_str_printf(&list, "%s%s", count > 0 ? ", " : "", settings->all.at[i].name);
        names[count++] = settings->all.at[i].name;
    }
    if (setting != NULL) {
        *why =
            tg_arena_printf(settings->arena, "'%s' needs recompiling: tgc compile --set %s=%s %s; a program can set %s",
                            name, name, value, settings->plan->source_path, list.text);
        return TG_USAGE;
    }
    const char *close = tg_closest(name, names, count);
    if (close != NULL)
        *why = tg_arena_printf(settings->arena, "there is no setting '%s'; did you mean '%s'? This program can set %s",
                               name, close, list.text);
    else
        *why = tg_arena_printf(settings->arena, "there is no setting '%s'; this program can set %s", name, list.text);
    return TG_USAGE;
}

Status tg_settings_set(Settings *settings, const char *name, const char *value, const char *origin, const char **why) {
    PlanSetting *setting = find(settings, name);
    if (setting == NULL || !setting->runtime)
        return refuse(settings, name, value, setting, why);
    Assign *assign = assign_scalar;
    for (int i = 0; i < SPECIAL_COUNT; i++)
        if (strcmp(specials[i].name, name) == 0)
            assign = specials[i].assign;
    TG_TRY(assign(settings, name, value, why));
    setting->value = tg_arena_str(settings->arena, value, strlen(value));
    setting->origin = origin;
    return TG_OK;
}

Status tg_settings_parse(Settings *settings, const char *text, const char **why) {
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        *why = tg_arena_printf(settings->arena, "--set wants NAME=VALUE, not '%s'", text);
        return TG_USAGE;
    }
    const char *name = tg_arena_str(settings->arena, text, (size_t)(equals - text));
    return tg_settings_set(settings, name, equals + 1, "--set", why);
}
