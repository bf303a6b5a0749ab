/* What the kernels below call. NVRTC and nvcc: --fmad=false; denormals, division and roots as they are by default. A host
   compiler takes the text too, after definitions of what is CUDA's: __global__, __device__, __shared__, __launch_bounds__,
   __syncthreads, __syncwarp, __shfl_xor_sync, threadIdx, blockIdx, gridDim. */
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef float f32;
typedef double f64;

#ifdef __cplusplus
#define TG_KERNEL extern "C" __global__ void
#else
#define TG_KERNEL __global__ void
#endif
#define TG_INLINE static __device__ inline

/* Run-time values: ir/plan/abi.h. */
typedef struct TgScalars {
    i64 rows, first_row;
    u64 iteration, seed;
    const f64 *values;
} TgScalars;

/* ---- bits ---- */

typedef union TgWord {
    f32 real;
    i32 integer;
} TgWord;
typedef union TgLong {
    f64 real;
    i64 integer;
} TgLong;
TG_INLINE f32 tg_f32_of(i32 bits) { TgWord w; w.integer = bits; return w.real; }
TG_INLINE i32 tg_i32_of(f32 x) { TgWord w; w.real = x; return w.integer; }
TG_INLINE f64 tg_f64_of(i64 bits) { TgLong w; w.integer = bits; return w.real; }
TG_INLINE i64 tg_i64_of(f64 x) { TgLong w; w.real = x; return w.integer; }

/* ---- groups of neighbours: one access where all are there ---- */

#define TG_GROUP(type, count)                                                                      \
    typedef struct __align__(sizeof(type) * count) type##x##count {                                \
        type at[count];                                                                            \
    } type##x##count;                                                                              \
    TG_INLINE type##x##count tg_some_##type##x##count(const type *from, i32 n) {                   \
        if (n >= count)                                                                            \
            return *(const type##x##count *)from;                                                  \
        type##x##count group = {{0}};                                                              \
        for (int i = 0; i < count; i++)                                                            \
            if (i < n)                                                                             \
                group.at[i] = from[i];                                                             \
        return group;                                                                              \
    }                                                                                              \
    TG_INLINE void tg_put_##type##x##count(type *to, type##x##count group, i32 n) {                \
        if (n >= count)                                                                            \
            *(type##x##count *)to = group;                                                         \
        else                                                                                       \
            for (int i = 0; i < count; i++)                                                        \
                if (i < n)                                                                         \
                    to[i] = group.at[i];                                                           \
    }
#define TG_GROUPS_2(type) TG_GROUP(type, 2)
#define TG_GROUPS_4(type) TG_GROUPS_2(type) TG_GROUP(type, 4)
#define TG_GROUPS_8(type) TG_GROUPS_4(type) TG_GROUP(type, 8)
#define TG_GROUPS_16(type) TG_GROUPS_8(type) TG_GROUP(type, 16)
TG_GROUPS_16(u8)
TG_GROUPS_16(i8)
TG_GROUPS_8(u16)
TG_GROUPS_8(i16)
TG_GROUPS_4(i32)
TG_GROUPS_2(i64)
TG_GROUPS_4(f32)
TG_GROUPS_2(f64)

/* ---- the larger and the smaller, sums, the first of the greatest: what reductions fold with ---- */

#define TG_REALS(type, word)                                                                       \
    /* NaN wins, -0 is below +0 */                                                                 \
    TG_INLINE type tg_max_##type(type a, type b) {                                                 \
        if (a == b)                                                                                \
            return tg_##type##_of(tg_##word##_of(a) & tg_##word##_of(b));                          \
        return a > b || a != a ? a : b;                                                            \
    }                                                                                              \
    TG_INLINE type tg_min_##type(type a, type b) {                                                 \
        if (a == b)                                                                                \
            return tg_##type##_of(tg_##word##_of(a) | tg_##word##_of(b));                          \
        return a < b || a != a ? a : b;                                                            \
    }                                                                                              \
    TG_INLINE type tg_add_##type(type a, type b) { return a + b; }                                 \
    TG_INLINE void tg_argmax_##type(type *best, i32 *index, type x, i32 i) {                       \
        bool tie = x == *best || (x != x && *best != *best);                                       \
        if (x > *best || (x != x && *best == *best) || (tie && i < *index)) {                      \
            *best = x;                                                                             \
            *index = i;                                                                            \
        }                                                                                          \
    }
#define TG_INTEGERS(type, wide)                                                                    \
    TG_INLINE type tg_max_##type(type a, type b) { return a > b ? a : b; }                         \
    TG_INLINE type tg_min_##type(type a, type b) { return a < b ? a : b; }                         \
    TG_INLINE type tg_add_##type(type a, type b) { return (type)((wide)a + (wide)b); }             \
    TG_INLINE void tg_argmax_##type(type *best, i32 *index, type x, i32 i) {                       \
        if (x > *best || (x == *best && i < *index)) {                                             \
            *best = x;                                                                             \
            *index = i;                                                                            \
        }                                                                                          \
    }
TG_REALS(f32, i32)
TG_REALS(f64, i64)
TG_INTEGERS(u8, u32)
TG_INTEGERS(i8, u32)
TG_INTEGERS(u16, u32)
TG_INTEGERS(i16, u32)
TG_INTEGERS(i32, u32)
TG_INTEGERS(i64, u64)

#define tg_least_u8 ((u8)0)
#define tg_most_u8 ((u8)255)
#define tg_least_i8 ((i8)-128)
#define tg_most_i8 ((i8)127)
#define tg_least_u16 ((u16)0)
#define tg_most_u16 ((u16)65535)
#define tg_least_i16 ((i16)-32768)
#define tg_most_i16 ((i16)32767)
#define tg_least_i32 (-2147483647 - 1)
#define tg_most_i32 2147483647
#define tg_least_i64 (-9223372036854775807ll - 1)
#define tg_most_i64 9223372036854775807ll
#define tg_least_f32 tg_f32_of((i32)0xff800000u)
#define tg_most_f32 tg_f32_of(0x7f800000)
#define tg_least_f64 tg_f64_of((i64)0xfff0000000000000ull)
#define tg_most_f64 tg_f64_of(0x7ff0000000000000ll)

/* a * 2^b, in two steps of which only the second rounds. Adding 1.5 * 2^23 puts a whole number into the low bits. */
TG_INLINE f32 tg_scale_f32(f32 a, f32 b) {
    i32 n = (i32)((u32)tg_i32_of(b + 12582912.0f) - 0x4b400000u), half = n >> 1, rest = (i32)((u32)n - (u32)half);
    f32 once = a * tg_f32_of((i32)(((u32)half + 127) << 23));
    return once * tg_f32_of((i32)(((u32)rest + 127) << 23));
}

/* ---- teams: `threads` neighbours of a warp ---- */

TG_INLINE u32 tg_team_mask(i32 threads) {
    return threads == 32 ? 0xffffffffu : ((1u << threads) - 1) << (threadIdx.x % 32 / threads * threads);
}

/* The value of the thread whose number differs in bit `h`. */
#define TG_SWAP(type, as)                                                                          \
    TG_INLINE type tg_swap_##type(u32 mask, type x, i32 h) { return (type)__shfl_xor_sync(mask, (as)x, h); }
TG_SWAP(u8, i32)
TG_SWAP(i8, i32)
TG_SWAP(u16, i32)
TG_SWAP(i16, i32)
TG_SWAP(i32, i32)
TG_SWAP(i64, i64)
TG_SWAP(f32, f32)
TG_SWAP(f64, f64)

/* ---- division: by 0 the quotient is 0 and the remainder the dividend, by -1 the negation and 0 ---- */

#define TG_DIVIDE(type, wide)                                                                      \
    TG_INLINE type tg_div_##type(type a, type b) { return b == 0 ? 0 : b == -1 ? (type)(0 - (wide)a) : a / b; } \
    TG_INLINE type tg_rem_##type(type a, type b) { return b == 0 ? a : b == -1 ? 0 : a % b; }      \
    TG_INLINE wide tg_div_##wide(wide a, wide b) { return b == 0 ? 0 : a / b; }                    \
    TG_INLINE wide tg_rem_##wide(wide a, wide b) { return b == 0 ? a : a % b; }
TG_DIVIDE(i32, u32)
TG_DIVIDE(i64, u64)

/* ---- conversions: rounded once, integers saturate, NaN gives 0 ---- */

#define TG_TO_INTEGER(type, real, low, high)                                                       \
    TG_INLINE type tg_##type##_of_##real(real x) {                                                 \
        if (x != x)                                                                                \
            return 0;                                                                              \
        return x <= (real)(low) ? tg_least_##type : x >= (real)(high) ? tg_most_##type : (type)x;  \
    }
#define TG_NARROW(type)                                                                            \
    TG_INLINE type tg_##type##_of_i64(i64 x) {                                                     \
        return x < tg_least_##type ? tg_least_##type : x > tg_most_##type ? tg_most_##type : (type)x; \
    }
#define TG_TO(type, low, high) TG_TO_INTEGER(type, f32, low, high) TG_TO_INTEGER(type, f64, low, high)
TG_TO(u8, 0, 256) TG_NARROW(u8)
TG_TO(i8, -128, 128) TG_NARROW(i8)
TG_TO(u16, 0, 65536) TG_NARROW(u16)
TG_TO(i16, -32768, 32768) TG_NARROW(i16)
TG_TO(i32, -2147483648.0, 2147483648.0) TG_NARROW(i32)
TG_TO(i64, -9223372036854775808.0, 9223372036854775808.0)

TG_INLINE f32 tg_f32_of_bf16(u16 bits) { return tg_f32_of((i32)((u32)bits << 16)); }

/* Ties to even; denormals become a zero of their sign, NaN a quiet one. */
TG_INLINE u16 tg_bf16_of_f32(f32 x) {
    u32 bits = (u32)tg_i32_of(x), high = bits >> 16;
    if (x != x)
        return (u16)(high | 0x40);
    if ((bits & 0x7f800000u) == 0)
        return (u16)(high & 0x8000);
    return (u16)((bits + 0x7fff + (high & 1)) >> 16);
}

TG_INLINE f32 tg_f32_of_f16(u16 bits) {
    u32 sign = (u32)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    if (rest >= 0x7c00)
        return tg_f32_of((i32)(sign | 0x7f800000u | (rest & 0x3ff) << 13 | (rest > 0x7c00 ? 0x400000u : 0)));
    if (rest < 0x400) { /* a denormal: a whole number of 2^-24 */
        f32 size = (f32)rest * 5.9604644775390625e-08f;
        return sign ? -size : size;
    }
    return tg_f32_of((i32)(sign | ((rest << 13) + 0x38000000u)));
}

TG_INLINE u16 tg_f16_of_f32(f32 x) {
    u32 bits = (u32)tg_i32_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000u)
        return (u16)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000u) /* rounds beyond 65504 */
        return (u16)(sign | 0x7c00);
    if (size < 0x38800000u) /* a denormal: the sum rounds to a whole number of 2^-24 */
        return (u16)(sign | (u32)(tg_i32_of(tg_f32_of((i32)size) + 0.5f) - 0x3f000000));
    return (u16)(sign | (size - 0x38000000u + 0xfff + (size >> 13 & 1)) >> 13);
}

/* f64 to f32 so that a later rounding to a shorter type rounds once: an inexact result gets an odd last bit. */
TG_INLINE f32 tg_odd_f32(f64 x) {
    f32 near = (f32)x;
    f64 size = fabs(x), back = fabs((f64)near);
    i32 bits = tg_i32_of(near);
    if ((bits & 1) == 0 && size > back)
        return tg_f32_of(bits + 1);
    if ((bits & 1) == 0 && size < back)
        return tg_f32_of(bits - 1);
    return near;
}
