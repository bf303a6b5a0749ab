#include "ir/base/map.h"
#include "ir/plan/plan_codec.h"

#include <string.h>

static void add_number(Str *to, uint64_t value, uint32_t bytes) {
    char raw[8];
    for (uint32_t i = 0; i < bytes; i++)
        raw[i] = (char)(value >> (8 * i));
    tg_str_add(to, raw, bytes);
}

static uint64_t member_value(const char *at, CodecKind kind) {
    uint64_t value = 0;
    if (kind == CODEC_ENUM) {
        int tag;
        memcpy(&tag, at, sizeof tag);
        return (uint64_t)tag;
    }
    memcpy(&value, at, tg_codec_bytes(kind));
    return value;
}

static void add_record(Str *to, const CodecRecord *record, const char *from) {
    for (uint32_t f = 0; f < record->field_count; f++) {
        const CodecField *field = &record->fields[f];
        const char *at = from + field->offset;
        if (field->kind == CODEC_TEXT) {
            const char *text = *(const char *const *)(const void *)at;
            size_t length = text ? strlen(text) : 0;
            add_number(to, length, 4);
            tg_str_add(to, text ? text : "", length);
            continue;
        }
        uint32_t bytes = tg_codec_bytes(field->kind);
        for (uint32_t i = 0; i < field->count; i++)
            add_number(to, member_value(at + i * bytes, field->kind), bytes);
    }
}

Status tg_plan_write(Str *to, const TgPlan *plan) {
    const char *why;
    TG_TRY(tg_plan_check(to->arena, plan, &why));
    Str body = tg_str(to->arena);
    add_record(&body, tg_plan_record(), (const char *)plan);
    uint32_t array_count;
    const CodecArray *arrays = tg_plan_arrays(&array_count);
    for (uint32_t a = 0; a < array_count; a++) {
        const char *at = *(const char *const *)(const void *)((const char *)plan + arrays[a].at);
        uint32_t count = *(const uint32_t *)(const void *)((const char *)plan + arrays[a].count);
        add_number(&body, count, 4);
        for (uint32_t i = 0; i < count; i++)
            add_record(&body, arrays[a].record, at + (size_t)i * arrays[a].record->bytes);
    }
    add_number(&body, plan->data_bytes, 8);
    if (plan->data_bytes)
        tg_str_add(&body, (const char *)plan->data, plan->data_bytes);

    tg_str_add(to, PLAN_MAGIC, PLAN_HEAD_VERSION);
    add_number(to, TG_PLAN_VERSION, 4);
    add_number(to, 0, 4);
    add_number(to, body.length, 8);
    add_number(to, tg_hash(body.text, body.length, 0), 8);
    tg_str_add(to, body.text, body.length);
    return TG_OK;
}
