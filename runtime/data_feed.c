#include "runtime/data.h"

#include <pthread.h>
#include <string.h>

void tg_batch_copy(const Batch *batch, uint32_t field, int64_t first, int64_t rows, int64_t capacity,
                   unsigned char *to) {
    size_t bytes = batch->set->record_bytes[field];
    if (batch->gathered != NULL) {
        memcpy(to, batch->gathered[field] + (size_t)first * bytes, (size_t)rows * bytes);
    } else {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + (size_t)i * bytes, tg_data_record(batch->set, field, batch->records[first + i]), bytes);
    }
    if (rows < capacity)
        memset(to + (size_t)rows * bytes, 0, (size_t)(capacity - rows) * bytes);
}

/* Where the next batch comes from. One thread owns it. */
typedef struct Cursor {
    int64_t *order; /* the set's records in the order of `epoch` */
    int64_t epoch, next;
} Cursor;

typedef struct Slot {
    Batch batch;
    unsigned char **gathered;
    bool full;
} Slot;

enum { SLOTS = 2 };

struct Feed {
    FeedOptions options;
    const RecordSet *set;
    Cursor cursor;
    Batch direct; /* without a thread: the batch in place */
    bool threaded;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    Slot slots[SLOTS];
    uint32_t reading; /* slot that the caller holds or waits for */
    bool holding;
};

static void begin_epoch(Feed *feed, int64_t epoch) {
    Cursor *cursor = &feed->cursor;
    int64_t shift = tg_data_shift(feed->set->shifts, feed->options.seed, epoch);
    for (int64_t i = 0; i < feed->set->count; i++)
        cursor->order[i] = feed->set->records[i] + shift;
    if (feed->options.shuffle)
        tg_data_shuffle(cursor->order, feed->set->count, feed->options.seed, epoch);
    cursor->epoch = epoch;
    cursor->next = 0;
}

/* Where the batch after `drawn` others begins. */
static void place_cursor(Feed *feed) {
    int64_t batch = feed->options.batch, per_epoch = (feed->set->count + batch - 1) / batch;
    begin_epoch(feed, feed->options.drawn / per_epoch);
    feed->cursor.next = feed->options.drawn % per_epoch * batch;
}

/* A view of the next batch; starts the next epoch when the last one is through. */
static Batch advance(Feed *feed) {
    Cursor *cursor = &feed->cursor;
    int64_t count = feed->set->count;
    if (cursor->next == count)
        begin_epoch(feed, cursor->epoch + 1);
    int64_t left = count - cursor->next;
    int64_t records = left < feed->options.batch ? left : feed->options.batch;
    Batch batch = {.set = feed->set,
                   .records = cursor->order + cursor->next,
                   .count = records,
                   .epoch = cursor->epoch,
                   .ends_epoch = records == left};
    cursor->next += records;
    return batch;
}

static void *read_ahead(void *argument) {
    Feed *feed = argument;
    for (uint32_t at = 0;; at = (at + 1) % SLOTS) {
        Slot *slot = &feed->slots[at];
        pthread_mutex_lock(&feed->mutex);
        while (slot->full && !feed->stop)
            pthread_cond_wait(&feed->changed, &feed->mutex);
        bool stop = feed->stop;
        pthread_mutex_unlock(&feed->mutex);
        if (stop)
            return NULL;
        Batch batch = advance(feed);
        for (uint32_t i = 0; i < feed->set->field_count; i++)
            tg_batch_copy(&batch, i, 0, batch.count, batch.count, slot->gathered[i]);
        batch.records = NULL;
        batch.gathered = slot->gathered;
        slot->batch = batch;
        pthread_mutex_lock(&feed->mutex);
        slot->full = true;
        pthread_cond_broadcast(&feed->changed);
        pthread_mutex_unlock(&feed->mutex);
    }
}

static bool start_thread(Feed *feed) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    if (feed->options.cpus != NULL)
        (void)pthread_attr_setaffinity_np(&attributes, sizeof *feed->options.cpus, feed->options.cpus);
    pthread_mutex_init(&feed->mutex, NULL);
    pthread_cond_init(&feed->changed, NULL);
    bool started = pthread_create(&feed->thread, &attributes, read_ahead, feed) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

Status tg_feed_open(Arena *arena, const FeedOptions *options, const RecordSet *set, Feed **made) {
    Feed *feed = TG_ALLOC(arena, Feed, 1);
    *feed = (Feed){.options = *options, .set = set, .cursor = {.order = TG_ALLOC(arena, int64_t, set->count)}};
    *made = feed;
    if (set->count == 0 || options->batch < 1)
        return TG_MODEL;
    place_cursor(feed);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < set->field_count; i++)
        bytes += (int64_t)set->record_bytes[i] * options->batch;
    if (bytes < options->ahead_bytes)
        return TG_OK;
    for (int s = 0; s < SLOTS; s++) {
        feed->slots[s].gathered = TG_ALLOC(arena, unsigned char *, set->field_count);
        for (uint32_t i = 0; i < set->field_count; i++)
            feed->slots[s].gathered[i] = tg_arena_alloc(arena, set->record_bytes[i] * (size_t)options->batch);
    }
    feed->threaded = start_thread(feed); /* without a thread the caller gathers */
    return TG_OK;
}

const Batch *tg_feed_next(Feed *feed) {
    if (!feed->threaded) {
        feed->direct = advance(feed);
        return &feed->direct;
    }
    pthread_mutex_lock(&feed->mutex);
    if (feed->holding) {
        feed->slots[feed->reading].full = false;
        feed->reading = (feed->reading + 1) % SLOTS;
        pthread_cond_broadcast(&feed->changed);
    }
    feed->holding = true;
    while (!feed->slots[feed->reading].full)
        pthread_cond_wait(&feed->changed, &feed->mutex);
    pthread_mutex_unlock(&feed->mutex);
    return &feed->slots[feed->reading].batch;
}

void tg_feed_close(Feed *feed) {
    if (feed == NULL || !feed->threaded)
        return;
    pthread_mutex_lock(&feed->mutex);
    feed->stop = true;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->mutex);
    pthread_join(feed->thread, NULL);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->mutex);
    feed->threaded = false;
}
