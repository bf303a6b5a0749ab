/* tgc fit: the largest value of a constant or setting with which the plan's memory fits. The model is compiled to its plan again and
   again, nothing runs. Memory is taken to grow with the value; values that the model refuses are stepped over. */
#include "driver/pipeline.h"
#include "driver/units.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* STEPS: how far from a value that the model takes the next one is looked for. ALIKE: doublings that change nothing. */
enum { STEPS = 64, NEIGHBOURS = 16, ALIKE = 3 };
static const int64_t most_value = INT32_MAX;

typedef struct Point {
    int64_t value;
    bool accepted; /* by the model */
    int64_t bytes, parts[PLAN_CLASS_COUNT];
} Point;

typedef struct Fit {
    Pipeline *p;
    const char *name;
    double memory;
    int64_t step; /* between values that the model takes */
    Vec(Point) points;
    Point fits, next; /* the largest that fits, the smallest known not to; value 0: none */
} Fit;

/* ---- compiling ---- */

static Status plan_memory(Arena *arena, const Fit *fit, Point *point) {
    Sources sources = {0};
    Diags quiet;
    tg_diags_init(&quiet, arena, &sources, NULL);
    Cli cli = *fit->p->cli;
    cli.sets = (Texts){0};
    for (uint32_t i = 0; i < fit->p->cli->sets.count; i++)
        tg_push(arena, &cli.sets, fit->p->cli->sets.at[i]);
    tg_push(arena, &cli.sets, tg_arena_printf(arena, "%s=%lld", fit->name, (long long)point->value));
    cli.value[CLI_VERIFY_EACH] = "off";
    Pipeline p = {.arena = arena, .diags = &quiet, .sources = &sources, .cli = &cli};
    TG_TRY(pipeline_run(&p, STAGE_PLAN));
    point->bytes = p.lowered.plan->arena_bytes;
    tg_plan_memory(p.lowered.plan, point->parts);
    return TG_OK;
}

/* In memory of its own, which is free again afterwards. */
static Status compile(const Fit *fit, Point *point) {
    Arena arena;
    tg_arena_init(&arena, fit->p->arena->host);
    Status status = setjmp(arena.guard) ? TG_MEMORY : plan_memory(&arena, fit, point);
    tg_arena_deinit(&arena);
    return status;
}

/* ---- what is known ---- */

static bool is_small(const Fit *fit, const Point *point) { return (double)point->bytes <= fit->memory; }

static void show_progress(const Fit *fit, const Point *point) {
    bool terminal = isatty(STDERR_FILENO);
    const char *what = point->accepted ? tg_bytes_text(fit->p->arena, (double)point->bytes) : "not a value that the model takes";
    fprintf(stderr, "%s%s = %lld: %s%s", terminal ? "\r" : "", fit->name, (long long)point->value, what, terminal ? "\033[K" : "\n");
}

static void end_progress(void) {
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static Status look(Fit *fit, int64_t value, Point *point) {
    for (uint32_t i = 0; i < fit->points.count; i++)
        if (fit->points.at[i].value == value) {
            *point = fit->points.at[i];
            return TG_OK;
        }
    *point = (Point){.value = value};
    Status status = compile(fit, point);
    point->accepted = status == TG_OK;
    if (status != TG_OK && status != TG_MODEL && status != TG_USAGE) {
        end_progress();
        tg_error(fit->p->diags, (Loc){0}, "compiling with %s=%lld fails: 'tgc compile %s --set %s=%lld' shows how", fit->name,
                 (long long)value, fit->p->cli->arguments.at[0], fit->name, (long long)value);
        return status;
    }
    tg_push(fit->p->arena, &fit->points, *point);
    show_progress(fit, point);
    if (!point->accepted)
        return TG_OK;
    bool small = is_small(fit, point);
    if (small && value > fit->fits.value)
        fit->fits = *point;
    if (!small && (fit->next.value == 0 || value < fit->next.value))
        fit->next = *point;
    return TG_OK;
}

/* The nearest value that the model takes, `after` < it < `before`; none: `accepted` is false. */
static Status look_near(Fit *fit, int64_t value, int64_t after, int64_t before, Point *point) {
    for (int64_t i = 0; i < 2 * NEIGHBOURS; i++) {
        int64_t near = value + (i % 2 ? -1 : 1) * ((i + 1) / 2) * fit->step;
        if (near <= after || near >= before)
            continue;
        TG_TRY(look(fit, near, point));
        if (point->accepted)
            return TG_OK;
    }
    *point = (Point){.value = value};
    return TG_OK;
}

/* ---- the search ---- */

static Status find_step(Fit *fit, int64_t from) {
    Point point;
    fit->step = 1;
    for (int64_t d = 1; d <= STEPS; d++) {
        TG_TRY(look(fit, from + d, &point));
        if (point.accepted) {
            fit->step = d;
            return TG_OK;
        }
    }
    return TG_OK;
}

static Status no_influence(const Fit *fit, const TgPlan *plan) {
    end_progress();
    bool pieces = strcmp(fit->name, "batch") == 0 && plan->micro < plan->batch;
    tg_error(fit->p->diags, (Loc){0}, "memory does not depend on '%s'%s", fit->name,
             pieces ? ": a batch is computed in pieces of 'micro' records; --vary=micro finds the largest of them" : "");
    return TG_MODEL;
}

/* Where the line through two points reaches the memory that there is, at a value between two others. */
static int64_t on_line(const Fit *fit, const Point *a, const Point *b, int64_t least, int64_t most) {
    double slope = (double)(b->bytes - a->bytes) / (double)(b->value - a->value);
    double steps = slope > 0 ? (fit->memory - (double)a->bytes) / slope / (double)fit->step : (double)most_value;
    if (steps * (double)fit->step >= (double)(most - a->value))
        return most;
    int64_t value = a->value + (int64_t)steps * fit->step;
    return value < least ? least : value;
}

/* On until memory or the model ends it: to where the line through the last two points leads, or to twice the value if there is no
   such line, or the model takes nothing there. */
static Status grow(Fit *fit, const TgPlan *plan) {
    Point base = {.value = 0}, point;
    for (int i = 1; fit->next.value == 0; i++) {
        int64_t last = fit->fits.value, value = 2 * last;
        if (base.value && fit->fits.bytes > base.bytes)
            value = on_line(fit, &base, &fit->fits, last, most_value - fit->step) + fit->step;
        if (value > most_value || last == most_value)
            return TG_OK;
        base = fit->fits;
        TG_TRY(look_near(fit, value, last, most_value + 1, &point));
        if (!point.accepted && value != 2 * last && 2 * last <= most_value)
            TG_TRY(look_near(fit, 2 * last, last, most_value + 1, &point));
        if (!point.accepted)
            return TG_OK;
        if (i >= ALIKE && point.bytes <= plan->arena_bytes)
            return no_influence(fit, plan);
    }
    return TG_OK;
}

/* Halves until it fits. */
static Status shrink(Fit *fit, int64_t value) {
    Point point = {.value = value};
    while (fit->fits.value == 0) {
        int64_t half = point.value - (point.value - point.value / 2) / fit->step * fit->step, above = point.value;
        if (half >= above || half < 1)
            break;
        TG_TRY(look_near(fit, half, 0, above, &point));
        if (!point.accepted)
            break;
    }
    if (fit->fits.value)
        return TG_OK;
    end_progress();
    tg_error(fit->p->diags, (Loc){0}, "nothing fits into %s: with %s = %lld, the least that was tried, the plan takes %s (--memory=%lld)",
             tg_bytes_text(fit->p->arena, fit->memory), fit->name, (long long)fit->next.value,
             tg_bytes_text(fit->p->arena, (double)fit->next.bytes), (long long)fit->next.bytes);
    return TG_MEMORY;
}

/* Between the two: where the line through them leads; in the middle if that did not halve the distance. */
static Status close_in(Fit *fit) {
    for (int64_t before = INT64_MAX; fit->next.value && fit->next.value - fit->fits.value > fit->step;) {
        int64_t low = fit->fits.value, high = fit->next.value, middle = low + (high - low) / (2 * fit->step) * fit->step;
        if (high - low <= before / 2)
            middle = on_line(fit, &fit->fits, &fit->next, low + fit->step, high - fit->step);
        before = high - low;
        Point point;
        TG_TRY(look_near(fit, middle, low, high, &point));
        if (!point.accepted)
            break;
    }
    return TG_OK;
}

static Status search(Fit *fit, const TgPlan *plan, int64_t value) {
    Point base;
    TG_TRY(look(fit, value, &base));
    TG_TRY(find_step(fit, value));
    TG_TRY(is_small(fit, &base) ? grow(fit, plan) : shrink(fit, value));
    TG_TRY(close_in(fit));
    end_progress();
    return TG_OK;
}

/* ---- the result ---- */

static bool is_varied(const Fit *fit, const char *set) {
    size_t length = strlen(fit->name);
    return strncmp(set, fit->name, length) == 0 && set[length] == '=';
}

static const char *command_text(const Fit *fit) {
    Str text = tg_str(fit->p->arena);
    tg_str_printf(&text, "tgc train %s", fit->p->cli->arguments.at[0]);
    for (uint32_t i = 0; i < fit->p->cli->sets.count; i++)
        if (!is_varied(fit, fit->p->cli->sets.at[i]))
            tg_str_printf(&text, " --set %s", fit->p->cli->sets.at[i]);
    tg_str_printf(&text, " --set %s=%lld", fit->name, (long long)fit->fits.value);
    const char *recompute = fit->p->cli->value[CLI_RECOMPUTE];
    if (recompute)
        tg_str_printf(&text, " --recompute=%s", recompute);
    if (recompute && strcmp(recompute, "auto") == 0)
        tg_str_printf(&text, " --memory=%.0f", fit->memory);
    return text.text;
}

static void print_result(const Fit *fit) {
    Arena *arena = fit->p->arena;
    printf("%s: %s = %lld is the largest that fits into %s%s\n\n", fit->p->cli->arguments.at[0], fit->name, (long long)fit->fits.value,
           tg_bytes_text(arena, fit->memory), fit->next.value ? "" : "; no larger one was found that the model takes");
    for (int i = 0; i < PLAN_CLASS_COUNT; i++)
        if (fit->fits.parts[i])
            printf("  %-14s %10s\n", tg_plan_memory_name((PlanBufferClass)i), tg_bytes_text(arena, (double)fit->fits.parts[i]));
    printf("  %-14s %10s, %s to spare\n", "in all", tg_bytes_text(arena, (double)fit->fits.bytes),
           tg_bytes_text(arena, fit->memory - (double)fit->fits.bytes));
    if (fit->next.value)
        printf("\n%s = %lld would take %s more than there is\n", fit->name, (long long)fit->next.value,
               tg_bytes_text(arena, (double)fit->next.bytes - fit->memory));
    printf("\n  %s\n", command_text(fit));
}

static json_t *point_json(const Point *point) {
    return point->value ? json_pack("{s:I, s:I}", "value", (json_int_t)point->value, "bytes", (json_int_t)point->bytes) : json_null();
}

static void print_json(const Fit *fit) {
    json_t *parts = json_object();
    for (int i = 0; i < PLAN_CLASS_COUNT; i++)
        json_object_set_new(parts, tg_plan_memory_name((PlanBufferClass)i), json_integer(fit->fits.parts[i]));
    json_t *document = json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:s}", "name", fit->name, "value", (json_int_t)fit->fits.value,
                                 "memory", (json_int_t)fit->memory, "bytes", (json_int_t)fit->fits.bytes, "parts", parts, "next",
                                 point_json(&fit->next), "command", command_text(fit));
    json_dumpf(document, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    printf("\n");
    json_decref(document);
}

/* ---- the command ---- */

static Status read_memory(Fit *fit) {
    const char *text = fit->p->cli->value[CLI_MEMORY];
    if (text == NULL) {
        tg_error(fit->p->diags, (Loc){0}, "how much memory is there? --memory=24GiB");
        return TG_USAGE;
    }
    return units_memory(fit->p->diags, text, &fit->memory);
}

static Status unknown(const Fit *fit, const TgPlan *plan) {
    const char **names = TG_ALLOC(fit->p->arena, const char *, plan->setting_count + 1);
    for (uint32_t i = 0; i < plan->setting_count; i++)
        names[i] = plan->settings[i].name;
    const char *closest = tg_closest(fit->name, names, plan->setting_count);
    tg_error(fit->p->diags, (Loc){0}, "--vary: %s has no constant or setting '%s'%s%s%s", fit->p->cli->arguments.at[0], fit->name,
             closest ? "; did you mean '" : "", closest ? closest : "", closest ? "'?" : "");
    return TG_USAGE;
}

/* The value that the name has now: a whole number that the compiler reads. */
static Status read_value(const Fit *fit, const TgPlan *plan, int64_t *value) {
    const PlanSetting *found = NULL;
    for (uint32_t i = 0; i < plan->setting_count; i++)
        if (strcmp(plan->settings[i].name, fit->name) == 0)
            found = &plan->settings[i];
    if (found == NULL)
        return unknown(fit, plan);
    char *end;
    errno = 0;
    *value = strtoll(found->value, &end, 10);
    if (!found->runtime && end != found->value && *end == '\0' && errno == 0 && *value >= 1)
        return TG_OK;
    tg_error(fit->p->diags, (Loc){0}, "--vary: '%s' is %s, no whole number that sizes depend on", fit->name, found->value);
    return TG_USAGE;
}

Status command_fit(Pipeline *p) {
    const char *name = p->cli->value[CLI_VARY];
    Fit fit = {.p = p, .name = name ? name : "batch"};
    int64_t value;
    TG_TRY(read_memory(&fit));
    TG_TRY(pipeline_run(p, STAGE_PLAN));
    TG_TRY(read_value(&fit, p->lowered.plan, &value));
    TG_TRY(search(&fit, p->lowered.plan, value));
    if (p->cli->value[CLI_JSON])
        print_json(&fit);
    else
        print_result(&fit);
    return TG_OK;
}
