/* tgc ranges: its table, its JSON document, and the rules that it proposes. */
#include "driver/ranges.h"

#include "ir/base/file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[RANGE_KINDS] = {"value", "cotangent", "parameter", "gradient"};

static const char *place_text(const Ranges *ranges, Loc loc) {
    if (loc.line == 0)
        return "";
    return tg_arena_printf(ranges->p->arena, "%s:%u", ranges->p->sources->files.at[loc.file].path, loc.line);
}

static const char *line_text(const Ranges *ranges, Loc loc, int *length) {
    const char *at = loc.line ? ranges->p->sources->files.at[loc.file].text : "";
    for (uint32_t i = 1; i < loc.line; i++)
        at = strchr(at, '\n') + 1;
    at += strspn(at, " \t");
    *length = (int)strcspn(at, "\r\n");
    return at;
}

/* ---- rules ---- */

static bool is_inside(const char *path, const char *outer) {
    size_t length = strlen(outer);
    return strncmp(path, outer, length) == 0 && path[length] == '.';
}

static bool is_inside_any(const char *path, const RangeRules *rules) {
    bool any = false;
    for (uint32_t i = 0; i < rules->count && !any; i++)
        any = is_inside(path, rules->at[i].path);
    return any;
}

static int find_rule(const RangeRules *rules, const char *path) {
    for (uint32_t i = 0; i < rules->count; i++)
        if (strcmp(rules->at[i].path, path) == 0)
            return (int)i;
    return -1;
}

static const char *why_text(const Ranges *ranges, const Range *range) {
    SpreadLoss loss = range_loss(range, SPREAD_F16, ranges->shift);
    bool over = loss.infinite > 0;
    return tg_arena_printf(ranges->p->arena, "%.3g %% of a %s (%s, %s) %s", 100 * (over ? loss.infinite : loss.zero), kinds[range->kind],
                           range->name, place_text(ranges, range->user), over ? "overflows" : "becomes 0");
}

/* An instance that computes in the low type as before, though what it is in does not. */
static void undo_inside(const Ranges *ranges, const RangeRules *kept, RangeRules *rules) {
    for (uint32_t i = 0; i < ranges->all.count; i++) {
        const Range *range = ranges->all.at[i];
        for (uint32_t k = 0; k < range->instances.count && range->is_low; k++) {
            const char *path = range->instances.at[k];
            if (find_rule(rules, path) < 0 && is_inside_any(path, kept))
                tg_push(ranges->p->arena, rules, ((RangeRule){path, NULL}));
        }
    }
}

static int by_path(const void *a, const void *b) { return strcmp(((const RangeRule *)a)->path, ((const RangeRule *)b)->path); }

RangeRules ranges_rules(const Ranges *ranges) {
    RangeRules kept = {0}, rules = {0};
    for (uint32_t i = 0; i < ranges->all.count; i++) {
        const Range *range = ranges->all.at[i];
        for (uint32_t k = 0; k < range->instances.count && range_is_bad(ranges, range); k++)
            if (find_rule(&kept, range->instances.at[k]) < 0)
                tg_push(ranges->p->arena, &kept, ((RangeRule){range->instances.at[k], why_text(ranges, range)}));
    }
    for (uint32_t i = 0; i < kept.count; i++)
        tg_push(ranges->p->arena, &rules, kept.at[i]);
    undo_inside(ranges, &kept, &rules);
    if (rules.count)
        qsort(rules.at, rules.count, sizeof *rules.at, by_path);
    return rules;
}

static void print_rules(const RangeRules *rules, const char *indent, Str *to) {
    size_t width = 0;
    for (uint32_t i = 0; i < rules->count; i++)
        width = strlen(rules->at[i].path) > width ? strlen(rules->at[i].path) : width;
    for (uint32_t i = 0; i < rules->count; i++) {
        const RangeRule *rule = &rules->at[i];
        tg_str_printf(to, "%s%s:%*s %s\n", indent, rule->path, (int)(width - strlen(rule->path)), "",
                      rule->why ? tg_arena_printf(to->arena, "f32 # %s", rule->why) : "low");
    }
}

Status ranges_file(const Ranges *ranges, const RangeRules *rules, Str *to) {
    const char *given = ranges->p->cli->value[CLI_AUTOCAST], *why;
    char *text = "";
    size_t length = 0;
    if (given) {
        Status status = tg_file_read(ranges->p->arena, given, &text, &length, &why);
        if (status != TG_OK) {
            tg_error(ranges->p->diags, (Loc){0}, "--autocast: %s", why);
            return status;
        }
    }
    tg_str_printf(to, "%.*s%s", (int)length, text, length && text[length - 1] != '\n' ? "\n" : "");
    tg_str_printf(to, "# tgc ranges %s: %s\n", ranges->p->cli->arguments.at[0],
                  rules->count ? "what does not fit into f16 is computed in f32" : "all fits into f16");
    print_rules(rules, "", to);
    return TG_OK;
}

/* ---- the table ---- */

static const char *percent(Arena *arena, double share) {
    if (share == 0)
        return "-";
    if (share < 0.0005)
        return "<0.1";
    return tg_arena_printf(arena, share > 0.9995 ? "%.0f" : "%.1f", 100 * share);
}

static void print_row(const Ranges *ranges, const Range *range) {
    Arena *arena = ranges->p->arena;
    const char *name = range_is_scaled(range) ? tg_arena_printf(arena, "%s of %s", kinds[range->kind], range->name) : range->name;
    if (range->kind == RANGE_COTANGENT)
        name = tg_arena_printf(arena, "cotangent: %s", range->name);
    printf("%-26s %-18s %9.2g %9.2g ", name, range->shape, range->spread.least, range->spread.largest);
    for (int t = 0; t < SPREAD_TYPES; t++) {
        SpreadLoss loss = range_loss(range, (SpreadTypeId)t, ranges->first_shift);
        printf(" %6s %6s", percent(arena, loss.zero), percent(arena, loss.infinite));
        if (t == SPREAD_F16)
            printf(" %6s", percent(arena, loss.denormal));
    }
    int length;
    const char *line = line_text(ranges, range->user, &length), *user = place_text(ranges, range->user), *place = place_text(ranges, range->place);
    printf("\n    %s%s%s%s%s: %.*s\n", user, range->instances.count ? ", " : "", range->instances.count ? range->instances.at[0] : "",
           strcmp(user, place) ? ", " : "", strcmp(user, place) ? place : "", length, line);
}

static uint32_t count_low(const Ranges *ranges) {
    uint32_t count = 0;
    while (count < ranges->all.count && ranges->all.at[count]->is_low)
        count++;
    return count;
}

static void print_table(const Ranges *ranges, uint32_t rows) {
    if (rows == 0)
        return;
    printf("\n%-26s %-18s %9s %9s  %20s  %12s  %12s  %12s\n", "% of elements that are not 0", "", "", "", "f16", "bf16", "e4m3", "e5m2");
    printf("%-26s %-18s %9s %9s ", "value", "shape", "least", "largest");
    for (int t = 0; t < SPREAD_TYPES; t++)
        printf(" %6s %6s%s", "to 0", "to inf", t == SPREAD_F16 ? "  denor" : "");
    printf("\n");
    for (uint32_t i = 0; i < rows; i++)
        print_row(ranges, ranges->all.at[i]);
}

/* Of all cotangents that are stored in f16 together. */
static double lost_cotangents(const Ranges *ranges, int shift) {
    double lost = 0, all = 0;
    for (uint32_t i = 0; i < ranges->all.count; i++) {
        const Range *range = ranges->all.at[i];
        if (range->kind != RANGE_COTANGENT || !range->is_low)
            continue;
        lost += range_loss(range, SPREAD_F16, shift).zero * (double)range->spread.nonzero;
        all += (double)range->spread.nonzero;
    }
    return all > 0 ? lost / all : 0;
}

static void print_scale(const Ranges *ranges) {
    double first = ldexp(1, ranges->first_shift);
    printf("\nloss scale: cotangents are shown with %.15g, %s (not in bf16); ", first, ranges->fixed ? "the model's" : "the first of -p f16");
    if (ranges->room < 0)
        printf("they overflow with 1 as well\n");
    else
        printf("the largest that none of them overflows with is %.15g%s\n", ldexp(1, ranges->room), ranges->room == RANGES_MOST_SHIFT ? " or more" : "");
    printf("without a scale %.3g %% of their elements become 0 in f16, with %.15g %.3g %%\n", 100 * lost_cotangents(ranges, 0),
           ldexp(1, ranges->shift), 100 * lost_cotangents(ranges, ranges->shift));
}

static void print_proposal(const Ranges *ranges, const RangeRules *rules) {
    Str text = tg_str(ranges->p->arena);
    print_rules(rules, "  ", &text);
    if (rules->count)
        printf("\n--autocast rules that keep in f32 what overflows, or becomes 0 in a tenth or more, with the scale %.15g:\n%s",
               ldexp(1, ranges->shift), text.text);
    uint32_t lonely = 0;
    for (uint32_t i = 0; i < ranges->all.count; i++) {
        const Range *range = ranges->all.at[i];
        if (!range_is_bad(ranges, range) || range->instances.count)
            continue;
        if (lonely++ == 0)
            printf("\nno rule reaches these, which no instance computes or reads in a dot; write f32(...) around them:\n");
        printf("  %s: %s\n", place_text(ranges, range->user), why_text(ranges, range));
    }
    if (rules->count == 0 && lonely == 0)
        printf("\n%s fits into f16: no rule is needed\n", count_low(ranges) ? "all that is stored in it" : "nothing is stored in f16, so all");
}

void ranges_print(const Ranges *ranges, const RangeRules *rules, int64_t top) {
    uint32_t low = count_low(ranges), rows = top == 0 ? ranges->all.count : (uint32_t)(top < low ? top : low);
    printf("%s: %lld step%s, %lld records, computed in f32; %u tensors, %u of them in f16 with -p f16%s\n", ranges->p->cli->arguments.at[0],
           (long long)ranges->steps, ranges->steps == 1 ? "" : "s", (long long)ranges->records, ranges->all.count, low,
           top == 0 ? ", which stand first" : rows < low ? tg_arena_printf(ranges->p->arena, ", of which these are the worst %u", rows) : "");
    print_table(ranges, rows);
    print_scale(ranges);
    print_proposal(ranges, rules);
}

/* ---- JSON ---- */

static json_t *loss_json(const Range *range, SpreadTypeId type, int shift) {
    SpreadLoss loss = range_loss(range, type, shift);
    return json_pack("{s:f, s:f, s:f}", "zero", loss.zero, "denormal", loss.denormal, "infinite", loss.infinite);
}

static json_t *range_json(const Ranges *ranges, const Range *range) {
    json_t *types = json_object(), *instances = json_array();
    for (int t = 0; t < SPREAD_TYPES; t++)
        json_object_set_new(types, spread_type((SpreadTypeId)t)->name, loss_json(range, (SpreadTypeId)t, ranges->first_shift));
    for (uint32_t i = 0; i < range->instances.count; i++)
        json_array_append_new(instances, json_string(range->instances.at[i]));
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:b, s:f, s:f, s:I, s:I, s:I, s:o}", "kind", kinds[range->kind], "name", range->name,
                            "shape", range->shape, "line", place_text(ranges, range->user), "place", place_text(ranges, range->place), "instances",
                            instances, "low", range->is_low, "least", range->spread.least, "largest", range->spread.largest, "zeros",
                            (json_int_t)range->spread.zeros, "nonzero", (json_int_t)range->spread.nonzero, "not_finite",
                            (json_int_t)range->spread.infinite, "types", types);
    if (range_is_scaled(range))
        json_object_set_new(row, "f16_unscaled", loss_json(range, SPREAD_F16, 0));
    return row;
}

static json_int_t scale_of(int shift) { return (json_int_t)1 << shift; }

void ranges_print_json(const Ranges *ranges, const RangeRules *rules) {
    json_t *values = json_array(), *lines = json_array();
    for (uint32_t i = 0; i < ranges->all.count; i++)
        json_array_append_new(values, range_json(ranges, ranges->all.at[i]));
    for (uint32_t i = 0; i < rules->count; i++)
        json_array_append_new(lines, json_pack("{s:s, s:s, s:s?}", "instance", rules->at[i].path, "precision",
                                               rules->at[i].why ? "f32" : "low", "why", rules->at[i].why));
    json_t *scale = json_pack("{s:I, s:b, s:I, s:I}", "shown", scale_of(ranges->first_shift), "fixed", ranges->fixed, "largest",
                              ranges->room < 0 ? (json_int_t)0 : scale_of(ranges->room), "judged", scale_of(ranges->shift));
    json_t *document = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "file", ranges->p->cli->arguments.at[0], "steps",
                                 (json_int_t)ranges->steps, "records", (json_int_t)ranges->records, "loss_scale", scale, "autocast", lines,
                                 "tensors", values);
    json_dumpf(document, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(document);
}
