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
void tg_data_let_shift(DataSet *set) {
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
