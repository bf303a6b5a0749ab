/* The binary form of a plan, in tables that the writer and the reader share.

   32 bytes of head: "TGPLAN\r\n", u32 version, u32 zero, u64 bytes that follow, u64 tg_hash of them. Then the plan's
   own fields, then each of its arrays: u32 count, records one after the other; last the constants: u64 bytes, bytes.
   Numbers are little endian and unaligned, a text is u32 length and its bytes. */
#ifndef TG_PLAN_CODEC_H
#define TG_PLAN_CODEC_H

#include "ir/plan/plan.h"

enum { PLAN_HEAD = 32, PLAN_HEAD_VERSION = 8, PLAN_HEAD_BYTES = 16, PLAN_HEAD_HASH = 24 };
#define PLAN_MAGIC "TGPLAN\r\n"

typedef enum CodecKind {
    CODEC_U8,
    CODEC_BOOL,
    CODEC_ENUM,
    CODEC_U32,
    CODEC_I32,
    CODEC_I64,
    CODEC_U64,
    CODEC_F64,
    CODEC_TEXT
} CodecKind;

/* One member of a struct, or `count` equal ones that follow each other. */
typedef struct CodecField {
    uint16_t offset;
    uint8_t kind;
    uint8_t count;
    uint8_t limit; /* ENUM: values are below it */
} CodecField;

typedef struct CodecRecord {
    const char *name; /* in messages: "buffer" */
    const CodecField *fields;
    uint32_t field_count, bytes; /* bytes: of the struct */
    uint32_t least;              /* bytes of the shortest record in a file */
} CodecRecord;

/* An array of the plan: where in TgPlan its pointer and its count stand. */
typedef struct CodecArray {
    const CodecRecord *record;
    uint16_t at, count;
} CodecArray;

const CodecRecord *tg_plan_record(void); /* TgPlan itself, without its arrays */
const CodecArray *tg_plan_arrays(uint32_t *count);
uint32_t tg_codec_bytes(CodecKind kind); /* in a file; TEXT: of its length */

#endif
