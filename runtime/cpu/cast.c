/* Lines of bf16 and f16 to f32 and back, to the bits of ir/plan/dtype.h. On x86 with AVX2 and F16C eight at a time. */
#include "runtime/cpu/cpu.h"

#include <string.h>

static void widen_each(DType from, const void *line, float *to, int64_t first, int64_t count) {
    for (int64_t i = first; i < count; i++)
        to[i] = (float)tg_element_get(from, line, i);
}

static void narrow_each(DType to, const float *line, void *out, int64_t first, int64_t count) {
    for (int64_t i = first; i < count; i++)
        tg_element_set(to, out, i, (double)line[i]);
}

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 8 };

#define WITH_VECTORS __attribute__((target("avx2,f16c")))

static bool has_vectors(void) { return __builtin_cpu_supports("avx2"); }

/* As many as fill whole vectors. */
WITH_VECTORS static int64_t widen_f16(const uint16_t *line, float *to, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(line + i))));
    return i;
}

WITH_VECTORS static int64_t narrow_f16(const float *line, uint16_t *to, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(line + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

WITH_VECTORS static int64_t widen_bf16(const uint16_t *line, float *to, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(line + i)));
        _mm256_storeu_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
    }
    return i;
}

/* Ties to even; denormals become a zero of their sign, NaN a quiet one. */
WITH_VECTORS static int64_t narrow_bf16(const float *line, uint16_t *to, int64_t count) {
    const __m256i one = _mm256_set1_epi32(1), half = _mm256_set1_epi32(0x7fff), quiet = _mm256_set1_epi32(0x40),
                  sign = _mm256_set1_epi32(0x8000), exponent = _mm256_set1_epi32(0x7f800000);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        __m256 value = _mm256_loadu_ps(line + i);
        __m256i bits = _mm256_castps_si256(value), high = _mm256_srli_epi32(bits, 16);
        __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, half), _mm256_and_si256(high, one));
        __m256i tiny = _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), _mm256_setzero_si256());
        __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
        __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), _mm256_and_si256(high, sign), tiny);
        rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(high, quiet), nan);
        __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
        _mm_storeu_si128((__m128i *)(void *)(to + i), _mm256_castsi256_si128(packed));
    }
    return i;
}

static int64_t widen_vectors(DType from, const void *line, float *to, int64_t count) {
    if (!has_vectors())
        return 0;
    return from == DT_F16 ? widen_f16(line, to, count) : from == DT_BF16 ? widen_bf16(line, to, count) : 0;
}

static int64_t narrow_vectors(DType to, const float *line, void *out, int64_t count) {
    if (!has_vectors())
        return 0;
    return to == DT_F16 ? narrow_f16(line, out, count) : to == DT_BF16 ? narrow_bf16(line, out, count) : 0;
}
#else
static int64_t widen_vectors(DType from, const void *line, float *to, int64_t count) {
    (void)from, (void)line, (void)to, (void)count;
    return 0;
}

static int64_t narrow_vectors(DType to, const float *line, void *out, int64_t count) {
    (void)to, (void)line, (void)out, (void)count;
    return 0;
}
#endif

void tg_cpu_widen(DType from, const void *line, float *to, int64_t count) {
    if (from == DT_F32)
        memcpy(to, line, (size_t)count * sizeof *to);
    else
        widen_each(from, line, to, widen_vectors(from, line, to, count), count);
}

void tg_cpu_narrow(DType to, const float *line, void *out, int64_t count) {
    if (to == DT_F32)
        memcpy(out, line, (size_t)count * sizeof *line);
    else
        narrow_each(to, line, out, narrow_vectors(to, line, out, count), count);
}
