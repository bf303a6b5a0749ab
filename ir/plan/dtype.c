#include "ir/plan/dtype.h"

#include <math.h>
#include <string.h>

const DTypeInfo *tg_dtype(DType dtype) {
    static const DTypeInfo infos[] = {
#define X(id, name, bytes, kind, st) {name, st, bytes, kind},
        TG_DTYPES(X)
#undef X
    };
    return &infos[dtype];
}

DType tg_dtype_named(const char *name) {
    for (int d = 0; d < DT_COUNT; d++)
        if (strcmp(tg_dtype((DType)d)->name, name) == 0)
            return (DType)d;
    return DT_COUNT;
}

/* To the nearest value with `digits` significant bits and least normal exponent `least`, ties to even; past `largest`:
 * inf. */
static double round_float(double value, int digits, int least, double largest) {
    if (value == 0 || !isfinite(value))
        return value;
    int exponent = ilogb(value);
    int unit = (exponent > least ? exponent : least) - (digits - 1);
    double rounded = ldexp(rint(ldexp(value, -unit)), unit);
    return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}

static double round_f16(double value) { return round_float(value, 11, -14, 65504.0); }

static double round_bf16(double value) {
    if (fabs(value) < 0x1p-126)
        return copysign(0.0, value);
    return round_float(value, 8, -126, 0x1.fep127);
}

static double round_integer(const DTypeInfo *info, double value) {
    if (isnan(value))
        return 0;
    int bits = 8 * info->bytes - (info->kind == KIND_SIGNED);
    double high = ldexp(1, bits), low = info->kind == KIND_SIGNED ? -high : 0;
    double whole = trunc(value);
    if (whole >= high)
        return bits > 53 ? high : high - 1;
    return whole <= low ? low : whole + 0.0;
}

double tg_round_to(DType dtype, double value) {
    switch (dtype) {
    case DT_F64:
        return value;
    case DT_F32:
        return (float)value;
    case DT_F16:
        return round_f16(value);
    case DT_BF16:
        return round_bf16(value);
    case DT_BOOL:
        return value != 0;
    default:
        return round_integer(tg_dtype(dtype), value);
    }
}

static double f16_value(uint16_t bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude;
    if (exponent == 31)
        magnitude = fraction ? NAN : INFINITY;
    else
        magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return bits >> 15 ? -magnitude : magnitude;
}

/* `value` is one that f16 has. */
static uint16_t f16_bits(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (isinf(value))
        return sign | 0x7c00;
    if (magnitude < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)ldexp(magnitude, 24));
    int exponent = ilogb(magnitude);
    return (uint16_t)(sign | (((exponent + 15) << 10) + ((int)ldexp(magnitude, 10 - exponent) - 1024)));
}

static double bf16_value(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* `value` is one that bf16 has. */
static uint16_t bf16_bits(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return (uint16_t)(bits >> 16 | (isnan(value) ? 0x40 : 0));
}

/* Element types that a cast to a C type stores. */
#define C_TYPES(X)                                                                                                     \
    X(DT_U8, uint8_t)                                                                                                  \
    X(DT_I8, int8_t) X(DT_U16, uint16_t) X(DT_I16, int16_t) X(DT_I32, int32_t) X(DT_F32, float) X(DT_F64, double)

double tg_element_get(DType dtype, const void *memory, int64_t index) {
    const char *at = (const char *)memory + index * tg_dtype(dtype)->bytes;
    uint16_t half;
    switch (dtype) {
#define X(id, ctype)                                                                                                   \
    case id: {                                                                                                         \
        ctype value;                                                                                                   \
        memcpy(&value, at, sizeof value);                                                                              \
        return (double)value;                                                                                          \
    }
        C_TYPES(X)
#undef X
    case DT_I64: {
        int64_t value;
        memcpy(&value, at, sizeof value);
        return (double)value;
    }
    case DT_BOOL:
        return *at != 0;
    case DT_F16:
        memcpy(&half, at, sizeof half);
        return f16_value(half);
    default:
        memcpy(&half, at, sizeof half);
        return bf16_value(half);
    }
}

static int64_t i64_of(double rounded) { return rounded >= 0x1p63 ? INT64_MAX : (int64_t)rounded; }

void tg_element_set(DType dtype, void *memory, int64_t index, double value) {
    char *at = (char *)memory + index * tg_dtype(dtype)->bytes;
    double rounded = tg_round_to(dtype, value);
    switch (dtype) {
#define X(id, ctype)                                                                                                   \
    case id: {                                                                                                         \
        ctype element = (ctype)rounded;                                                                                \
        memcpy(at, &element, sizeof element);                                                                          \
        return;                                                                                                        \
    }
        C_TYPES(X)
#undef X
    case DT_I64: {
        int64_t element = i64_of(rounded);
        memcpy(at, &element, sizeof element);
        return;
    }
    case DT_BOOL:
        *at = rounded != 0;
        return;
    case DT_F16:
    case DT_BF16: {
        uint16_t half = dtype == DT_F16 ? f16_bits(rounded) : bf16_bits(rounded);
        memcpy(at, &half, sizeof half);
        return;
    }
    default:
        return;
    }
}
