#include "ir/base/map.h"
#include "runtime/data.h"
#include "runtime/philox.h"

#include <math.h>

/* Word 3 of the counter: keeps what is drawn for different ends apart. */
enum { PURPOSE_SHUFFLE = 1, PURPOSE_SPLIT = 2, PURPOSE_SHIFT = 3 };

static int64_t draw_below(int64_t bound, Philox random) {
    uint64_t bits = (uint64_t)random.word[1] << 32 | random.word[0];
    return (int64_t)((unsigned __int128)bits * (uint64_t)bound >> 64);
}

/* Fisher-Yates from the end: place i swaps with a place of 0..i, chosen by the first two words for the counter
   (i, i >> 32, epoch, purpose). */
static void permute(int64_t *records, int64_t count, uint64_t key, int64_t epoch, uint32_t purpose) {
    for (int64_t i = count - 1; i > 0; i--) {
        Philox random = tg_philox(key, (Philox){{(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)epoch, purpose}});
        int64_t j = draw_below(i + 1, random);
        int64_t kept = records[i];
        records[i] = records[j];
        records[j] = kept;
    }
}

void tg_data_shuffle(int64_t *records, int64_t count, uint64_t seed, int64_t epoch) {
    permute(records, count, seed, epoch, PURPOSE_SHUFFLE);
}

/* Records before the end of split `index`: cumulative shares, so that the parts add up. */
static int64_t cut(int64_t count, const PlanSplit *splits, uint32_t index) {
    double share = 0;
    for (uint32_t i = 0; i < index; i++)
        share += splits[i].share;
    int64_t records = (int64_t)floor((double)count * share + 0.5);
    return records < count ? records : count;
}

void tg_data_cut(int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index, int64_t *first,
                 int64_t *last) {
    *first = split_count == 0 ? 0 : cut(count, splits, index);
    *last = split_count == 0 ? count : cut(count, splits, index + 1);
}

int64_t *tg_data_windows(Arena *arena, int64_t first, int64_t last, int64_t step, int64_t *count) {
    *count = last - first > step ? (last - first - 1) / step : 0;
    int64_t *starts = TG_ALLOC(arena, int64_t, *count);
    for (int64_t i = 0; i < *count; i++)
        starts[i] = first + i * step;
    return starts;
}

/* A shift of `step - 1` tokens must leave the last window whole; a set of one window moves by what is left over. */
void tg_data_let_shift(RecordSet *set) {
    if (set->window_step == 0 || set->count == 0)
        return;
    int64_t tokens = set->tokens_last - set->records[0], most = (tokens - set->window_step) / set->window_step;
    set->count = most > 1 ? most : 1;
    int64_t left = tokens - set->count * set->window_step;
    set->shifts = left < set->window_step ? left : set->window_step;
}

int64_t tg_data_shift(int64_t shifts, uint64_t seed, int64_t epoch) {
    return shifts <= 1 ? 0 : draw_below(shifts, tg_philox(seed, (Philox){{0, 0, (uint32_t)epoch, PURPOSE_SHIFT}}));
}

int64_t *tg_data_split(Arena *arena, int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index,
                       bool by_runs, int64_t *split_records) {
    int64_t first, last;
    tg_data_cut(count, splits, split_count, index, &first, &last);
    int64_t *records = TG_ALLOC(arena, int64_t, last - first);
    *split_records = last - first;
    if (split_count == 0 || by_runs) {
        for (int64_t i = first; i < last; i++)
            records[i - first] = i;
        return records;
    }
    int64_t *order = TG_ALLOC(arena, int64_t, count);
    bool *chosen = TG_ALLOC(arena, bool, count);
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    permute(order, count, 0, 0, PURPOSE_SPLIT);
    for (int64_t i = first; i < last; i++)
        chosen[order[i]] = true;
    int64_t next = 0;
    for (int64_t i = 0; i < count; i++)
        if (chosen[i])
            records[next++] = i;
    return records;
}

/* ---- by the values of fields ---- */

/* Equal values get equal numbers, from 0 in the order in which they come; without a key each record, or (`one`) all,
 * get one. */
static int64_t number_values(Arena *arena, SplitKey key, int64_t count, bool one, int64_t *numbers) {
    Map seen = tg_map(arena);
    int64_t next = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!key.values) {
            numbers[i] = one ? 0 : i;
            continue;
        }
        bool is_new;
        uint64_t *number = tg_map_put(&seen, key.values + (size_t)i * key.bytes, key.bytes, &is_new);
        if (is_new)
            *number = (uint64_t)next++;
        numbers[i] = (int64_t)*number;
    }
    return key.values ? next : one ? 1 : count;
}

/* Groups are dealt out in random order, class after class. */
static int64_t *order_of_groups(Arena *arena, int64_t groups, const int64_t *class, int64_t classes) {
    int64_t *shuffled = TG_ALLOC(arena, int64_t, groups), *order = TG_ALLOC(arena, int64_t, groups);
    int64_t *next = TG_ALLOC(arena, int64_t, classes + 1);
    for (int64_t i = 0; i < groups; i++) {
        shuffled[i] = i;
        next[class[i] + 1]++;
    }
    permute(shuffled, groups, 0, 0, PURPOSE_SPLIT);
    for (int64_t i = 0; i < classes; i++)
        next[i + 1] += next[i];
    for (int64_t i = 0; i < groups; i++)
        order[next[class[shuffled[i]]]++] = shuffled[i];
    return order;
}

/* The split that lacks the most of `after` records; what the shares leave over counts as one more. */
static uint32_t most_lacking(const PlanSplit *splits, uint32_t split_count, const int64_t *has, int64_t after) {
    uint32_t most = 0;
    double lack = -HUGE_VAL, rest = 1;
    for (uint32_t i = 0; i <= split_count; i++) {
        double share = i < split_count ? splits[i].share : rest;
        rest -= share;
        double lacks = share * (double)after - (double)has[i];
        if (lacks > lack + 1e-6 && (i < split_count || share > 1e-9)) {
            lack = lacks;
            most = i;
        }
    }
    return most;
}

int64_t *tg_data_split_by(Arena *arena, int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index,
                          SplitKey by, SplitKey stratify, int64_t *split_records) {
    int64_t *group = TG_ALLOC(arena, int64_t, count), *record_class = TG_ALLOC(arena, int64_t, count);
    int64_t groups = number_values(arena, by, count, false, group);
    int64_t classes = number_values(arena, stratify, count, true, record_class);
    int64_t *size = TG_ALLOC(arena, int64_t, groups), *class = TG_ALLOC(arena, int64_t, groups);
    for (int64_t i = 0; i < count; i++) {
        if (size[group[i]]++ == 0)
            class[group[i]] = record_class[i];
    }
    const int64_t *order = order_of_groups(arena, groups, class, classes);
    int64_t *has = TG_ALLOC(arena, int64_t, split_count + 1);
    bool *chosen = TG_ALLOC(arena, bool, groups);
    int64_t dealt = 0;
    for (int64_t i = 0; i < groups; i++) {
        dealt += size[order[i]];
        uint32_t split = most_lacking(splits, split_count, has, dealt);
        has[split] += size[order[i]];
        chosen[order[i]] = split == index;
    }
    int64_t *records = TG_ALLOC(arena, int64_t, has[index]);
    *split_records = 0;
    for (int64_t i = 0; i < count; i++)
        if (chosen[group[i]])
            records[(*split_records)++] = i;
    return records;
}
