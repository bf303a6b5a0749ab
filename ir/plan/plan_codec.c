#include "ir/plan/plan_codec.h"

#define F(type, member, kind)                                                                                          \
    { offsetof(type, member), CODEC_##kind, 1, 0 }
#define E(type, member, limit)                                                                                         \
    { offsetof(type, member), CODEC_ENUM, 1, limit }
#define A(type, member, kind, count)                                                                                   \
    { offsetof(type, member), CODEC_##kind, count, 0 }

static const CodecField buffer_fields[] = {
    F(PlanBuffer, name, TEXT),
    E(PlanBuffer, class, PLAN_CLASS_COUNT),
    E(PlanBuffer, dtype, DT_COUNT),
    F(PlanBuffer, rank, U8),
    A(PlanBuffer, dims, I64, TG_PLAN_RANK),
    F(PlanBuffer, batch_axis, I32),
    F(PlanBuffer, row_size, I64),
    F(PlanBuffer, offset, I64),
    F(PlanBuffer, bytes, I64),
    F(PlanBuffer, lanes, I64),
    F(PlanBuffer, lane_bytes, I64),
    F(PlanBuffer, data_offset, I64),
    F(PlanBuffer, frozen, BOOL),
};

#define LINE(type, member) F(type, member.file, TEXT), F(type, member.line, U32), F(type, member.column, U32)

static const CodecField step_fields[] = {
    E(PlanStep, kind, STEP_COPY + 1), E(PlanStep, work, PLAN_WORK_COUNT), F(PlanStep, label, TEXT),       F(PlanStep, index, U32),
    F(PlanStep, tiles, I64),          F(PlanStep, buffer_first, U32), F(PlanStep, buffer_count, U32),
    F(PlanStep, line_count, U32),     LINE(PlanStep, lines[0]),       LINE(PlanStep, lines[1]),
    LINE(PlanStep, lines[2]),         LINE(PlanStep, lines[3]),       LINE(PlanStep, lines[4]),
    LINE(PlanStep, lines[5]),         LINE(PlanStep, lines[6]),       LINE(PlanStep, lines[7]),
    F(PlanStep, bytes, F64),          F(PlanStep, flops, F64),
};
_Static_assert(TG_PLAN_LINES == 8, "step_fields names every line");

static const CodecField operand_fields[] = {
    F(PlanOperand, buffer, U32),
    F(PlanOperand, lane, I32),
    F(PlanOperand, byte_offset, I64),
};

static const CodecField dot_fields[] = {
    E(PlanDot, dtype, DT_COUNT), E(PlanDot, out_dtype, DT_COUNT),
    F(PlanDot, groups, I64),     F(PlanDot, m, I64),
    F(PlanDot, n, I64),          F(PlanDot, k, I64),
    F(PlanDot, a_group, I64),    F(PlanDot, a_m, I64),
    F(PlanDot, a_k, I64),        F(PlanDot, b_group, I64),
    F(PlanDot, b_k, I64),        F(PlanDot, b_n, I64),
    F(PlanDot, out_group, I64),  F(PlanDot, out_m, I64),
    F(PlanDot, inner, I64),      F(PlanDot, a_inner, I64),
    F(PlanDot, b_inner, I64),    F(PlanDot, out_inner, I64),
    F(PlanDot, bias, BOOL),      F(PlanDot, rows_m, BOOL),
    F(PlanDot, rows_k, BOOL),    F(PlanDot, adds, BOOL),
    F(PlanDot, continues, BOOL), F(PlanDot, open, BOOL),
    F(PlanDot, pieces, I64),
    F(PlanDot, tile_m, I64),     F(PlanDot, tile_n, I64),
    F(PlanDot, variant, U32),
};

static const CodecField attention_fields[] = {
    E(PlanAttention, dtype, DT_COUNT),  E(PlanAttention, out_dtype, DT_COUNT),
    F(PlanAttention, keys, I64),        F(PlanAttention, heads, I64),       F(PlanAttention, queries, I64),
    F(PlanAttention, positions, I64),   F(PlanAttention, depth, I64),       F(PlanAttention, value_depth, I64),
    F(PlanAttention, causal, BOOL),     F(PlanAttention, backward, BOOL),   F(PlanAttention, dq, BOOL),
    F(PlanAttention, dk, BOOL),         F(PlanAttention, dv, BOOL),         F(PlanAttention, weights, U32),
    F(PlanAttention, score_gradient, U32),
};

static const CodecField chain_fields[] = {F(PlanChain, step_first, U32), F(PlanChain, step_count, U32), F(PlanChain, parts, I64)};

static const CodecField func_fields[] = {
    E(PlanFunc, kind, PLAN_EXPORT + 1), F(PlanFunc, name, TEXT),        F(PlanFunc, capacity, I64),
    F(PlanFunc, step_first, U32),       F(PlanFunc, step_count, U32),   F(PlanFunc, input_first, U32),
    F(PlanFunc, input_count, U32),      F(PlanFunc, result_first, U32), F(PlanFunc, result_count, U32),
};

static const CodecField input_fields[] = {{0, CODEC_U32, 1, 0}};

static const CodecField result_fields[] = {F(PlanResult, name, TEXT), F(PlanResult, buffer, U32)};

static const CodecField scalar_fields[] = {
    F(PlanScalar, name, TEXT),
    E(PlanScalar, class, PLAN_SCALAR_COMPUTED + 1),
    F(PlanScalar, value, F64),
};

static const CodecField field_fields[] = {
    F(PlanField, name, TEXT),
    F(PlanField, reader, TEXT),
    F(PlanField, path, TEXT),
    F(PlanField, columns, TEXT),
    F(PlanField, options, TEXT),
    E(PlanField, dtype, DT_COUNT),
    F(PlanField, rank, U8),
    A(PlanField, dims, I64, TG_PLAN_RANK),
    F(PlanField, bounded, BOOL),
    F(PlanField, has_also, BOOL),
    F(PlanField, low, I64),
    F(PlanField, high, I64),
    F(PlanField, also, I64),
    LINE(PlanField, line),
};

static const CodecField split_fields[] = {F(PlanSplit, name, TEXT), F(PlanSplit, share, F64)};

static const CodecField setting_fields[] = {
    F(PlanSetting, name, TEXT),
    F(PlanSetting, value, TEXT),
    F(PlanSetting, origin, TEXT),
    F(PlanSetting, runtime, BOOL),
};

#define DATA_SET(type, set)                                                                                            \
    F(type, set name, TEXT), F(type, set as, TEXT), F(type, set split, TEXT), F(type, set field_first, U32),           \
        F(type, set field_count, U32), F(type, set split_first, U32), F(type, set split_count, U32),                   \
        F(type, set by_runs, BOOL), F(type, set by, U32), F(type, set stratify, U32)

static const CodecField set_fields[] = {DATA_SET(PlanDataSet, )};

static const CodecField plan_fields[] = {
    F(TgPlan, arena_bytes, I64),
    F(TgPlan, persistent_bytes, I64),
    DATA_SET(TgPlan, train.),
    F(TgPlan, kernel_count, U32),
    F(TgPlan, batch, I64),
    F(TgPlan, micro, I64),
    F(TgPlan, lanes, I64),
    F(TgPlan, steps_wanted, I64),
    F(TgPlan, epochs, I64),
    F(TgPlan, validate_every, I64),
    F(TgPlan, shuffle, BOOL),
    F(TgPlan, seed, U64),
    F(TgPlan, source_path, TEXT),
    F(TgPlan, source_directory, TEXT),
    F(TgPlan, model_text, TEXT),
    F(TgPlan, loss, TEXT),
    F(TgPlan, clip_setting, TEXT),
    F(TgPlan, tgc, TEXT),
    F(TgPlan, library_directory, TEXT),
    F(TgPlan, cpu, TEXT),
};

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof *(array))
/* `least`: every field takes at least a byte. */
#define RECORD(name, type, fields)                                                                                     \
    { name, fields, COUNT(fields), sizeof(type), COUNT(fields) }

static const CodecRecord plan_record = RECORD("plan", TgPlan, plan_fields);
static const CodecRecord buffer_record = RECORD("buffer", PlanBuffer, buffer_fields);
static const CodecRecord step_record = RECORD("step", PlanStep, step_fields);
static const CodecRecord operand_record = RECORD("operand", PlanOperand, operand_fields);
static const CodecRecord dot_record = RECORD("dot", PlanDot, dot_fields);
static const CodecRecord attention_record = RECORD("attention", PlanAttention, attention_fields);
static const CodecRecord chain_record = RECORD("chain", PlanChain, chain_fields);
static const CodecRecord func_record = RECORD("function", PlanFunc, func_fields);
static const CodecRecord input_record = RECORD("input", uint32_t, input_fields);
static const CodecRecord result_record = RECORD("result", PlanResult, result_fields);
static const CodecRecord scalar_record = RECORD("scalar", PlanScalar, scalar_fields);
static const CodecRecord field_record = RECORD("field", PlanField, field_fields);
static const CodecRecord set_record = RECORD("data set", PlanDataSet, set_fields);
static const CodecRecord split_record = RECORD("split", PlanSplit, split_fields);
static const CodecRecord setting_record = RECORD("setting", PlanSetting, setting_fields);

const CodecRecord *tg_plan_record(void) { return &plan_record; }

#define ARRAY(record, at, count)                                                                                       \
    { &record, offsetof(TgPlan, at), offsetof(TgPlan, count) }

const CodecArray *tg_plan_arrays(uint32_t *count) {
    static const CodecArray arrays[] = {
        ARRAY(buffer_record, buffers, buffer_count),
        ARRAY(step_record, steps, step_count),
        ARRAY(operand_record, step_buffers, step_buffer_count),
        ARRAY(dot_record, dots, dot_count),
        ARRAY(attention_record, attentions, attention_count),
        ARRAY(chain_record, chains, chain_count),
        ARRAY(func_record, funcs, func_count),
        ARRAY(input_record, inputs, input_count),
        ARRAY(result_record, results, result_count),
        ARRAY(scalar_record, scalars, scalar_count),
        ARRAY(field_record, fields, field_count),
        ARRAY(split_record, splits, split_count),
        ARRAY(setting_record, settings, setting_count),
        ARRAY(set_record, validate, validate_count),
    };
    *count = COUNT(arrays);
    return arrays;
}

uint32_t tg_codec_bytes(CodecKind kind) {
    static const uint8_t bytes[] = {
        [CODEC_U8] = 1,  [CODEC_BOOL] = 1, [CODEC_ENUM] = 1, [CODEC_U32] = 4,  [CODEC_I32] = 4,
        [CODEC_I64] = 8, [CODEC_U64] = 8,  [CODEC_F64] = 8,  [CODEC_TEXT] = 4,
    };
    return bytes[kind];
}
