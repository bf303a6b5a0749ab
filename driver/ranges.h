/* tgc ranges: what of a training step does not fit into types of fewer bits (ranges.c measures, ranges_report.c says it). */
#ifndef TG_RANGES_H
#define TG_RANGES_H

#include "driver/pipeline.h"
#include "driver/spread.h"

typedef enum RangeKind { RANGE_VALUE, RANGE_COTANGENT, RANGE_PARAM, RANGE_GRADIENT, RANGE_KINDS } RangeKind;

enum { RANGES_MOST_SHIFT = 40 }; /* of the loss scale */

/* A tensor of the step, over all steps and micro-batches. */
typedef struct Range {
    RangeKind kind;
    const char *name;  /* the op, or the parameter's path */
    const char *shape; /* "[B, 64]" */
    Loc user, place;   /* the line of the user's; where it stands, often in the library */
    Texts instances;   /* paths: whose it is, and whose dots read it */
    bool is_low;       /* with -p f16 it is stored in f16 */
    Spread spread;
} Range;

typedef struct Ranges {
    Pipeline *p;
    int64_t steps, records;
    int first_shift, shift, room; /* of the loss scale, as powers of 2: at first; where it ends up; what the cotangents leave */
    bool fixed;                   /* the model says it */
    Vec(Range *) all;             /* the worst first, once measured */
} Ranges;

typedef struct RangeRule {
    const char *path, *why; /* why NULL: only f32 around it is undone */
} RangeRule;
typedef Vec(RangeRule) RangeRules;

static inline bool range_is_scaled(const Range *range) { return range->kind == RANGE_COTANGENT || range->kind == RANGE_GRADIENT; }
/* Elements of the range in the type, with the loss scale 2^shift if it is scaled there. */
SpreadLoss range_loss(const Range *range, SpreadTypeId type, int shift);
/* It is stored in f16, where some of it overflows or at least a tenth of its elements becomes 0. */
bool range_is_bad(const Ranges *ranges, const Range *range);

/* Rules that keep in f32 what is bad, parents before children. */
RangeRules ranges_rules(const Ranges *ranges);
/* As a file for --autocast, behind the rules of the one that was given. */
TG_CHECKED Status ranges_file(const Ranges *ranges, const RangeRules *rules, Str *to);
void ranges_print(const Ranges *ranges, const RangeRules *rules, int64_t top);
void ranges_print_json(const Ranges *ranges, const RangeRules *rules);

#endif
