#include "ir/base/map.h"
#include "ir/plan/plan_codec.h"

#include <string.h>

typedef struct Reader {
    Arena *arena;
    const unsigned char *data;
    size_t bytes, at;
    const char *why; /* the first failure; NULL: none so far */
} Reader;

static void fail(Reader *r, const char *what) {
    if (r->why == NULL)
        r->why = tg_arena_printf(r->arena, "damaged plan: %s at byte %zu", what, r->at);
}

static uint64_t number(Reader *r, uint32_t bytes) {
    if (r->bytes - r->at < bytes) {
        fail(r, "it ends too early");
        r->at = r->bytes;
        return 0;
    }
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value |= (uint64_t)r->data[r->at + i] << (8 * i);
    r->at += bytes;
    return value;
}

static const char *text(Reader *r) {
    uint64_t length = number(r, 4);
    if (length > r->bytes - r->at) {
        fail(r, "a text is longer than the rest");
        return "";
    }
    if (memchr(r->data + r->at, '\0', length)) {
        fail(r, "a text contains a zero byte");
        return "";
    }
    const char *copy = tg_arena_str(r->arena, (const char *)r->data + r->at, length);
    r->at += length;
    return copy;
}

static void read_member(Reader *r, const CodecField *field, char *to) {
    uint32_t bytes = tg_codec_bytes(field->kind);
    uint64_t value = number(r, bytes);
    if (field->kind == CODEC_BOOL && value > 1)
        fail(r, "a truth value is neither 0 nor 1");
    if (field->kind == CODEC_ENUM) {
        if (value >= field->limit)
            fail(r, "a kind is unknown");
        int tag = r->why ? 0 : (int)value;
        memcpy(to, &tag, sizeof tag);
        return;
    }
    if (r->why == NULL)
        memcpy(to, &value, bytes);
}

static void read_record(Reader *r, const CodecRecord *record, char *to) {
    for (uint32_t f = 0; f < record->field_count && r->why == NULL; f++) {
        const CodecField *field = &record->fields[f];
        if (field->kind == CODEC_TEXT) {
            const char *value = text(r);
            memcpy(to + field->offset, &value, sizeof value);
            continue;
        }
        for (uint32_t i = 0; i < field->count; i++)
            read_member(r, field, to + field->offset + i * tg_codec_bytes(field->kind));
    }
}

static void read_array(Reader *r, const CodecArray *array, TgPlan *plan) {
    uint64_t count = number(r, 4);
    if (count > (r->bytes - r->at) / array->record->least) {
        fail(r, tg_arena_printf(r->arena, "there are fewer %ss than it says", array->record->name));
        return;
    }
    char *records = tg_arena_alloc(r->arena, count * array->record->bytes);
    for (uint64_t i = 0; i < count && r->why == NULL; i++)
        read_record(r, array->record, records + i * array->record->bytes);
    uint32_t stored = (uint32_t)count;
    memcpy((char *)plan + array->at, &records, sizeof records);
    memcpy((char *)plan + array->count, &stored, sizeof stored);
}

static void read_head(Reader *r) {
    if (r->bytes < PLAN_HEAD || memcmp(r->data, PLAN_MAGIC, PLAN_HEAD_VERSION) != 0) {
        fail(r, "it does not begin as a plan");
        return;
    }
    r->at = PLAN_HEAD_VERSION;
    uint64_t version = number(r, 4);
    if (version != TG_PLAN_VERSION) {
        r->why = tg_arena_printf(r->arena, "the plan has version %u, this runtime reads version %d", (unsigned)version,
                                 TG_PLAN_VERSION);
        return;
    }
    r->at = PLAN_HEAD_BYTES;
    uint64_t bytes = number(r, 8), hash = number(r, 8);
    if (bytes != r->bytes - PLAN_HEAD)
        fail(r, "its length is not the one that it says");
    else if (tg_hash(r->data + PLAN_HEAD, bytes, 0) != hash)
        fail(r, "its contents have changed");
}

static void read_body(Reader *r, TgPlan *plan) {
    read_record(r, tg_plan_record(), (char *)plan);
    uint32_t array_count;
    const CodecArray *arrays = tg_plan_arrays(&array_count);
    for (uint32_t a = 0; a < array_count && r->why == NULL; a++)
        read_array(r, &arrays[a], plan);
    if (r->why)
        return;
    plan->data_bytes = number(r, 8);
    if (plan->data_bytes != r->bytes - r->at)
        fail(r, "the constants have another length");
    else
        plan->data = tg_arena_copy(r->arena, r->data + r->at, plan->data_bytes);
}

Status tg_plan_read(Arena *arena, const void *data, size_t bytes, TgPlan **plan, const char **why) {
    Reader r = {.arena = arena, .data = data, .bytes = bytes};
    *plan = TG_ALLOC(arena, TgPlan, 1);
    read_head(&r);
    if (r.why == NULL)
        read_body(&r, *plan);
    *why = r.why;
    if (r.why)
        return TG_INTERNAL;
    return tg_plan_check(arena, *plan, why);
}
