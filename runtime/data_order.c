#include "runtime/data.h"
#include "runtime/philox.h"

#include <math.h>

/* Word 3 of the counter: keeps the orders of splits and of epochs apart. */
enum { PURPOSE_SHUFFLE = 1, PURPOSE_SPLIT = 2 };

/* Fisher-Yates from the end: place i swaps with a place of 0..i, chosen by the first two words for the counter
   (i, i >> 32, epoch, purpose). */
static void permute(int64_t *records, int64_t count, uint64_t key, int64_t epoch, uint32_t purpose) {
    for (int64_t i = count - 1; i > 0; i--) {
        Philox random = tg_philox(key, (Philox){{(uint32_t)i, (uint32_t)(i >> 32), (uint32_t)epoch, purpose}});
        uint64_t bits = (uint64_t)random.word[1] << 32 | random.word[0];
        int64_t j = (int64_t)((unsigned __int128)bits * (uint64_t)(i + 1) >> 64);
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

int64_t *tg_data_split(Arena *arena, int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index,
                       bool by_runs, int64_t *split_records) {
    int64_t first = split_count == 0 ? 0 : cut(count, splits, index);
    int64_t last = split_count == 0 ? count : cut(count, splits, index + 1);
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
