#include "tests/codegen/interpret.h"

#include "codegen/loop_info.h"

#include <math.h>
#include <string.h>

typedef union Value {
    float f;
    double d;
    int64_t i; /* integers sign- or zero-extended from their type */
} Value;

enum { MAX_LANES = 64 };

typedef struct Partial {
    bool any;
    Value value;
    int64_t index;
} Partial;

typedef struct Machine {
    const LoopKernel *k;
    void **buffers;
    const TgScalars *scalars;
    Value *values;
    LoopId *ends;       /* per loop: its end */
    Partial **partials; /* per reduction */
    int64_t tile_first, tile_last;
    int64_t vector; /* variable of the innermost vector loop */
    int vectors;    /* vector loops around */
    const char *why;
} Machine;

static bool narrow(DType type) { return tg_loop_compute_type(type) == DT_F32; } /* held in `f` */

static double to_double(DType type, Value v) { return narrow(type) ? (double)v.f : type == DT_F64 ? v.d : (double)v.i; }

static Value from_double(DType type, double x) {
    double rounded = tg_round_to(type, x);
    if (narrow(type))
        return (Value){.f = (float)rounded};
    if (type == DT_F64)
        return (Value){.d = rounded};
    if (type == DT_I64 && rounded >= 0x1p63)
        return (Value){.i = INT64_MAX};
    return (Value){.i = (int64_t)rounded};
}

static Value wrap(DType type, int64_t x) {
    switch (type) {
    case DT_BOOL:
        return (Value){.i = x & 1};
    case DT_U8:
        return (Value){.i = (uint8_t)x};
    case DT_I8:
        return (Value){.i = (int8_t)x};
    case DT_U16:
        return (Value){.i = (uint16_t)x};
    case DT_I16:
        return (Value){.i = (int16_t)x};
    case DT_I32:
        return (Value){.i = (int32_t)x};
    default:
        return (Value){.i = x};
    }
}

static uint64_t as_unsigned(DType type, int64_t x) {
    int bits = 8 * tg_dtype(type)->bytes;
    return bits == 64 ? (uint64_t)x : (uint64_t)x & ((UINT64_C(1) << bits) - 1);
}

static float bf16_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &wide, sizeof f);
    return f;
}

static Value load(DType type, const void *memory, int64_t index) {
    const char *p = (const char *)memory + index * tg_dtype(type)->bytes;
    Value v = {.i = 0};
    if (type == DT_F32) {
        memcpy(&v.f, p, 4);
    } else if (type == DT_BF16) {
        uint16_t bits;
        memcpy(&bits, p, 2);
        v.f = bf16_value(bits);
    } else if (type == DT_F16) {
        v.f = (float)tg_element_get(type, memory, index);
    } else {
        memcpy(&v.i, p, tg_dtype(type)->bytes);
        v = type == DT_F64 ? v : wrap(type, v.i);
    }
    return v;
}

static void store(DType type, void *memory, int64_t index, Value v) {
    char *p = (char *)memory + index * tg_dtype(type)->bytes;
    if (type == DT_BF16 || type == DT_F16)
        tg_element_set(type, memory, index, (double)v.f);
    else
        memcpy(p, type == DT_F32 ? (void *)&v.f : (void *)&v.i, tg_dtype(type)->bytes);
}

static double maximum(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) ? a : b;
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}

static double float_op(LoopOp op, double a, double b) {
    switch (op) {
    case LOOP_fadd:
        return a + b;
    case LOOP_fsub:
        return a - b;
    case LOOP_fmul:
        return a * b;
    case LOOP_fdiv:
        return a / b;
    case LOOP_fneg:
        return -a;
    case LOOP_fabs:
        return fabs(a);
    case LOOP_fsqrt:
        return sqrt(a);
    case LOOP_fmax:
        return maximum(a, b);
    case LOOP_fmin:
        return -maximum(-a, -b);
    case LOOP_ffloor:
        return floor(a);
    case LOOP_fceil:
        return ceil(a);
    case LOOP_fscale:
        return isnan(b) ? a : ldexp(a, (int)b);
    default:
        return nearbyint(a);
    }
}

/* One f32 operation: in f64 with a second rounding, which is innocuous for + - * / and the root, but not for an FMA. */
static Value float_value(LoopOp op, DType type, Value a, Value b, Value c) {
    if (op == LOOP_fma)
        return type == DT_F64 ? (Value){.d = fma(a.d, b.d, c.d)} : (Value){.f = fmaf(a.f, b.f, c.f)};
    double result = float_op(op, to_double(type, a), to_double(type, b));
    return type == DT_F64 ? (Value){.d = result} : (Value){.f = (float)result};
}

static bool float_compare(LoopOp op, double a, double b) {
    switch (op) {
    case LOOP_feq:
        return a == b;
    case LOOP_fne:
        return a != b;
    case LOOP_flt:
        return a < b;
    case LOOP_fle:
        return a <= b;
    case LOOP_fgt:
        return a > b;
    default:
        return a >= b;
    }
}

static bool int_compare(LoopOp op, int64_t a, int64_t b, uint64_t ua, uint64_t ub) {
    switch (op) {
    case LOOP_ieq:
        return a == b;
    case LOOP_ine:
        return a != b;
    case LOOP_ilt:
        return a < b;
    case LOOP_ile:
        return a <= b;
    case LOOP_igt:
        return a > b;
    case LOOP_ige:
        return a >= b;
    case LOOP_ult:
        return ua < ub;
    case LOOP_ule:
        return ua <= ub;
    case LOOP_ugt:
        return ua > ub;
    default:
        return ua >= ub;
    }
}

static int64_t divide(Machine *m, LoopOp op, int64_t a, int64_t b, uint64_t ua, uint64_t ub) {
    if (b == 0 || (a == INT64_MIN && b == -1 && (op == LOOP_idiv || op == LOOP_irem))) {
        m->why = "an integer division that no target defines";
        return 0;
    }
    switch (op) {
    case LOOP_idiv:
        return a / b;
    case LOOP_irem:
        return a % b;
    case LOOP_udiv:
        return (int64_t)(ua / ub);
    default:
        return (int64_t)(ua % ub);
    }
}

static int64_t int_op(Machine *m, LoopOp op, int64_t a, int64_t b, uint64_t ua, uint64_t ub, int bits) {
    switch (op) {
    case LOOP_iadd:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case LOOP_isub:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case LOOP_imul:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case LOOP_idiv:
    case LOOP_irem:
    case LOOP_udiv:
    case LOOP_urem:
        return divide(m, op, a, b, ua, ub);
    case LOOP_imax:
        return a > b ? a : b;
    case LOOP_imin:
        return a < b ? a : b;
    case LOOP_umax:
        return ua > ub ? a : b;
    case LOOP_umin:
        return ua < ub ? a : b;
    case LOOP_and:
        return a & b;
    case LOOP_or:
        return a | b;
    case LOOP_xor:
        return a ^ b;
    case LOOP_not:
        return ~a;
    default:
        break;
    }
    if (ub >= (uint64_t)bits) {
        m->why = "a shift by the width or more";
        return 0;
    }
    return op == LOOP_shl ? (int64_t)(ua << ub) : op == LOOP_lshr ? (int64_t)(ua >> ub) : a >> ub;
}

static Value converted(DType from, DType to, Value v) {
    if (!tg_is_float(from) && to == DT_BOOL)
        return (Value){.i = v.i != 0};
    if (!tg_is_float(from) && !tg_is_float(to)) {
        int bits = 8 * tg_dtype(to)->bytes;
        bool is_signed = tg_dtype(to)->kind == KIND_SIGNED;
        if (bits == 64)
            return v;
        int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0,
                high = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
        return (Value){.i = v.i < low ? low : v.i > high ? high : v.i};
    }
    if (from == DT_I64 && to == DT_F32)
        return (Value){.f = (float)v.i};
    if (to == DT_F32 && narrow(from))
        return v;
    return from_double(to, to_double(from, v));
}

static Value bits_of(DType from, DType to, Value v) {
    if (narrow(from) && from != DT_F32)
        return (Value){.i = 0};
    if (to == DT_F32 || to == DT_F64)
        return v;
    Value raw = {.i = 0};
    if (from == DT_F32) {
        int32_t word;
        memcpy(&word, &v.f, 4);
        raw.i = word;
    } else {
        raw.i = v.i;
    }
    return wrap(to, raw.i);
}

static const struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
} LIBM[] = {
    {"exp", exp, NULL}, {"expm1", expm1, NULL}, {"log", log, NULL}, {"log1p", log1p, NULL}, {"sin", sin, NULL},
    {"cos", cos, NULL}, {"tanh", tanh, NULL},   {"erf", erf, NULL}, {"pow", NULL, pow},     {"fmod", NULL, fmod},
};

static Value libm(Machine *m, const LoopInstr *instr) {
    for (size_t i = 0; i < sizeof LIBM / sizeof *LIBM; i++)
        if (strcmp(LIBM[i].name, instr->text) == 0)
            return (Value){.d = LIBM[i].one ? LIBM[i].one(m->values[instr->a].d)
                                            : LIBM[i].two(m->values[instr->a].d, m->values[instr->b].d)};
    m->why = "an unknown libm function";
    return (Value){.i = 0};
}

static int64_t limit(DType type, bool high) {
    int bits = 8 * tg_dtype(type)->bytes;
    if (type == DT_BOOL)
        return high;
    if (tg_dtype(type)->kind == KIND_UNSIGNED)
        return high ? (INT64_C(1) << bits) - 1 : 0;
    int64_t top = bits == 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
    return high ? top : -top - 1;
}

static Value neutral(LoopOp op, DType type) {
    double x = op == LOOP_reduce_sum ? 0 : op == LOOP_reduce_min ? (double)INFINITY : -(double)INFINITY;
    if (type == DT_F64)
        return (Value){.d = x};
    if (type == DT_F32)
        return (Value){.f = (float)x};
    return (Value){.i = op == LOOP_reduce_sum ? 0 : limit(type, op == LOOP_reduce_min)};
}

static Value reduced(Machine *m, LoopOp op, DType type, Value a, Value b) {
    if (tg_is_float(type))
        return float_value(op == LOOP_reduce_sum   ? LOOP_fadd
                           : op == LOOP_reduce_max ? LOOP_fmax
                                                   : LOOP_fmin,
                           type, a, b, a);
    LoopOp as = op == LOOP_reduce_sum ? LOOP_iadd : op == LOOP_reduce_max ? LOOP_imax : LOOP_imin;
    return wrap(type, int_op(m, as, a.i, b.i, (uint64_t)a.i, (uint64_t)b.i, 64));
}

/* Whether element (b, at j) takes the place of (a, at i) as the first of the greatest. */
static bool wins(DType type, Value a, int64_t i, Value b, int64_t j) {
    double x = to_double(type, a), y = to_double(type, b);
    bool equal = isnan(x) ? isnan(y) : x == y, greater = !isnan(x) && (isnan(y) || y > x);
    if (type == DT_I64)
        equal = a.i == b.i, greater = b.i > a.i;
    return greater || (equal && j < i);
}

static void fold(Machine *m, LoopOp op, DType type, Partial *to, Partial from) {
    if (!from.any && op == LOOP_reduce_argmax)
        return;
    if (op == LOOP_reduce_argmax) {
        if (!to->any || wins(type, to->value, to->index, from.value, from.index))
            *to = from;
    } else {
        to->value = reduced(m, op, type, to->value, from.value);
    }
    to->any = true;
}

static void reduce_step(Machine *m, LoopId id, const LoopInstr *loop, int64_t i) {
    const LoopInstr *instr = &m->k->instrs.at[id];
    DType type = (DType)m->k->instrs.at[instr->a].type;
    Partial element = {.any = true, .value = m->values[instr->a], .index = i};
    int64_t begin = m->values[loop->a].i;
    bool vector = loop->mode == MODE_VECTOR;
    Partial *to = &m->partials[id][vector ? (i - begin) % tg_reduce_lanes(loop->imm) : 0];
    if (!to->any && !vector)
        *to = element;
    else
        fold(m, (LoopOp)instr->op, type, to, element);
}

static void reduce_end(Machine *m, LoopId id, const LoopInstr *loop) {
    const LoopInstr *instr = &m->k->instrs.at[id];
    DType type = (DType)m->k->instrs.at[instr->a].type;
    Partial *lanes = m->partials[id];
    if (loop->mode == MODE_VECTOR)
        for (int64_t half = tg_reduce_lanes(loop->imm) / 2; half > 0; half /= 2)
            for (int64_t i = 0; i < half; i++)
                fold(m, (LoopOp)instr->op, type, &lanes[i], lanes[i + half]);
    m->values[id] = instr->op == LOOP_reduce_argmax ? (Value){.i = (int32_t)lanes[0].index} : lanes[0].value;
}

static void reduce_begin(Machine *m, LoopId id) {
    const LoopInstr *instr = &m->k->instrs.at[id];
    DType type = (DType)m->k->instrs.at[instr->a].type;
    for (int i = 0; i < MAX_LANES; i++)
        m->partials[id][i] = (Partial){.value = neutral((LoopOp)instr->op, type)};
}

static void run_block(Machine *m, LoopId from, LoopId to);

/* Calls `step` for the reductions that belong to the loop itself, not to one inside it. */
static void each_reduction(Machine *m, LoopId loop, int what) {
    for (LoopId id = loop + 1; id < m->ends[loop] && m->why == NULL; id++) {
        LoopOp op = (LoopOp)m->k->instrs.at[id].op;
        if (op == LOOP_for)
            id = m->ends[id];
        else if (tg_loop_is_reduction(op) && what == 0)
            reduce_begin(m, id);
        else if (tg_loop_is_reduction(op))
            reduce_end(m, id, &m->k->instrs.at[loop]);
    }
}

/* An iteration of a parallel loop finds nothing of another's in the scratch that it stores to. */
static void spoil_scratch(Machine *m, LoopId loop) {
    for (LoopId id = loop + 1; id < m->ends[loop]; id++) {
        const LoopBuffer *buffer = &m->k->buffers.at[m->k->instrs.at[id].buffer];
        if (m->k->instrs.at[id].op == LOOP_store && buffer->role == ROLE_SCRATCH)
            memset(m->buffers[m->k->instrs.at[id].buffer], 0xA5, (size_t)buffer->count * tg_dtype(buffer->dtype)->bytes);
    }
}

static void run_loop(Machine *m, LoopId id) {
    const LoopInstr *loop = &m->k->instrs.at[id];
    int64_t begin = m->values[loop->a].i, end = m->values[loop->b].i, outer = m->vector;
    if (loop->mode == MODE_TILE)
        begin = m->tile_first, end = m->tile_last;
    else if (end - begin > loop->imm)
        m->why = "a loop runs longer than its extent";
    each_reduction(m, id, 0);
    m->vectors += loop->mode == MODE_VECTOR;
    bool backward = loop->mode == MODE_PARALLEL; /* in any order: in this one */
    for (int64_t at = begin; at < end && m->why == NULL; at++) {
        int64_t i = backward ? begin + end - 1 - at : at;
        if (backward && m->vectors == 0)
            spoil_scratch(m, id);
        m->values[id].i = i;
        if (loop->mode == MODE_VECTOR)
            m->vector = i;
        run_block(m, id + 1, m->ends[id]);
        for (LoopId r = id + 1; r < m->ends[id] && m->why == NULL; r++) {
            if (m->k->instrs.at[r].op == LOOP_for)
                r = m->ends[r];
            else if (tg_loop_is_reduction((LoopOp)m->k->instrs.at[r].op))
                reduce_step(m, r, loop, i);
        }
    }
    each_reduction(m, id, 1);
    m->vectors -= loop->mode == MODE_VECTOR;
    m->vector = outer;
}

static void memory(Machine *m, LoopId id) {
    const LoopInstr *instr = &m->k->instrs.at[id];
    const LoopBuffer *buffer = &m->k->buffers.at[instr->buffer];
    int64_t index = m->values[instr->a].i + instr->imm * m->vector;
    if (index < 0 || index >= buffer->count)
        m->why = tg_arena_printf(m->k->arena, "instruction %%%u: element %lld of buffer %u, which has %lld", id,
                                 (long long)index, instr->buffer, (long long)buffer->count);
    else if (instr->op == LOOP_load)
        m->values[id] = load(buffer->dtype, m->buffers[instr->buffer], index);
    else
        store(buffer->dtype, m->buffers[instr->buffer], index, m->values[instr->b]);
}

static Value leaf(Machine *m, const LoopInstr *instr) {
    DType type = (DType)instr->type;
    switch ((LoopOp)instr->op) {
    case LOOP_const:
        return tg_is_float(type) ? from_double(type, instr->number) : (Value){.i = instr->imm};
    case LOOP_scalar:
        return (Value){.d = m->scalars->values[instr->imm]};
    case LOOP_rows:
        return (Value){.i = m->scalars->rows};
    case LOOP_first_row:
        return (Value){.i = m->scalars->first_row};
    case LOOP_iteration:
        return (Value){.i = (int64_t)m->scalars->iteration};
    default:
        return (Value){.i = (int64_t)m->scalars->seed};
    }
}

static Value arithmetic(Machine *m, const LoopInstr *instr) {
    LoopOp op = (LoopOp)instr->op;
    Value a = m->values[instr->a], b = m->values[instr->b], c = m->values[instr->c];
    DType type = (DType)m->k->instrs.at[instr->a].type;
    if (op >= LOOP_fadd && op <= LOOP_fscale)
        return float_value(op, type, a, b, c);
    if (op == LOOP_select)
        return a.i ? b : c;
    if (op >= LOOP_feq && op <= LOOP_fge)
        return (Value){.i = float_compare(op, to_double(type, a), to_double(type, b))};
    if (op == LOOP_libm)
        return libm(m, instr);
    if (op == LOOP_convert)
        return converted(type, (DType)instr->type, a);
    if (op == LOOP_bits)
        return bits_of(type, (DType)instr->type, a);
    if (op == LOOP_wrap || op == LOOP_zero)
        return wrap((DType)instr->type, op == LOOP_wrap ? a.i : (int64_t)as_unsigned(type, a.i));
    uint64_t ua = as_unsigned(type, a.i), ub = as_unsigned(type, b.i);
    if (tg_loop_is_comparison(op))
        return (Value){.i = int_compare(op, a.i, b.i, ua, ub)};
    return wrap(type, int_op(m, op, a.i, b.i, ua, ub, 8 * tg_dtype(type)->bytes));
}

static void run_block(Machine *m, LoopId from, LoopId to) {
    for (LoopId id = from; id < to && m->why == NULL; id++) {
        const LoopInstr *instr = &m->k->instrs.at[id];
        LoopOp op = (LoopOp)instr->op;
        if (op == LOOP_for) {
            run_loop(m, id);
            id = m->ends[id];
        } else if (op == LOOP_load || op == LOOP_store) {
            memory(m, id);
        } else if (op >= LOOP_const && op <= LOOP_seed) {
            m->values[id] = leaf(m, instr);
        } else if (!tg_loop_is_reduction(op)) {
            m->values[id] = arithmetic(m, instr);
        }
    }
}

static void prepare(Machine *m, Arena *arena, void *const *buffers) {
    const LoopKernel *k = m->k;
    uint32_t next = 0, open[64], depth = 0;
    for (uint32_t i = 0; i < k->buffers.count; i++) {
        const LoopBuffer *buffer = &k->buffers.at[i];
        if (buffer->role != ROLE_SCRATCH) {
            m->buffers[i] = buffers[next++];
            continue;
        }
        size_t bytes = (size_t)buffer->count * tg_dtype(buffer->dtype)->bytes;
        m->buffers[i] = memset(tg_arena_alloc(arena, bytes), 0xA5, bytes);
    }
    for (LoopId id = 1; id < k->instrs.count; id++) {
        LoopOp op = (LoopOp)k->instrs.at[id].op;
        if (op == LOOP_for)
            open[depth++] = id;
        else if (op == LOOP_end)
            m->ends[open[--depth]] = id;
        else if (tg_loop_is_reduction(op))
            m->partials[id] = TG_ALLOC(arena, Partial, MAX_LANES);
    }
}

const char *interpret(Arena *arena, const LoopKernel *k, void *const *buffers, const TgScalars *scalars, int64_t first,
                      int64_t last) {
    uint32_t count = k->instrs.count;
    Machine m = {.k = k, .scalars = scalars, .tile_first = first, .tile_last = last};
    m.buffers = TG_ALLOC(arena, void *, k->buffers.count);
    m.values = TG_ALLOC(arena, Value, count);
    m.ends = TG_ALLOC(arena, LoopId, count);
    m.partials = TG_ALLOC(arena, Partial *, count);
    prepare(&m, arena, buffers);
    run_block(&m, 1, count);
    return m.why;
}
