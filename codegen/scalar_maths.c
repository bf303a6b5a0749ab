/* Transcendental functions. Coefficients are made by tests/codegen/fit_maths.py; every FMA is explicit;
   tests/codegen/test_maths.c measures the errors over all f32. */
#include "codegen/scalar.h"

#include <math.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

static LoopId f32(LoopKernel *k, double value) { return tg_loop_number(k, DT_F32, value); }
static LoopId f64(LoopKernel *k, double value) { return tg_loop_number(k, DT_F64, value); }
static LoopId i32(LoopKernel *k, int64_t value) { return tg_loop_int(k, DT_I32, value); }
static LoopId i64(LoopKernel *k, int64_t value) { return tg_loop_int(k, DT_I64, value); }
static LoopId one(LoopKernel *k, LoopOp op, LoopId x) { return tg_loop_op(k, op, x, 0, 0); }
static LoopId two(LoopKernel *k, LoopOp op, LoopId x, LoopId y) { return tg_loop_op(k, op, x, y, 0); }
static LoopId fma_(LoopKernel *k, LoopId x, LoopId y, LoopId z) { return tg_loop_op(k, LOOP_fma, x, y, z); }
static LoopId choose(LoopKernel *k, LoopId condition, LoopId yes, LoopId no) {
    return tg_loop_op(k, LOOP_select, condition, yes, no);
}
static LoopId bits(LoopKernel *k, LoopId x, DType to) { return tg_loop_convert(k, LOOP_bits, x, to); }
static LoopId to(LoopKernel *k, LoopId x, DType type) { return tg_loop_convert(k, LOOP_convert, x, type); }

/* c[0] + x (c[1] + x (...)) */
static LoopId polynomial(LoopKernel *k, DType type, LoopId x, const double *c, int count) {
    LoopId sum = tg_loop_number(k, type, c[count - 1]);
    for (int i = count - 2; i >= 0; i--)
        sum = fma_(k, sum, x, tg_loop_number(k, type, c[i]));
    return sum;
}

/* |x| with the sign of `from`. f32. */
static LoopId with_sign(LoopKernel *k, LoopId x, LoopId from) {
    LoopId sign = two(k, LOOP_and, bits(k, from, DT_I32), i32(k, INT32_MIN));
    return bits(k, two(k, LOOP_or, bits(k, x, DT_I32), sign), DT_F32);
}

/* ---- exp and what is made of it ---- */

static const double EXP[] = {0.49999994, 0.166665211, 0.0416682623, 0.00836867467, 0.00138210552};
static const double LOG2_E = 1.44269504, LN2_HIGH = 0.693145752, LN2_LOW = 1.42860677e-06,
                    ROUNDER = 12582912; /* 1.5 * 2^23 */

/* e^x = 2^n e^r, |r| < 0.35, and e^r = 1 + r + r^2 q. n as i32 and as f32; x must lie where n is small. */
typedef struct Reduced {
    LoopId n, whole, r, square, q;
} Reduced;

static Reduced exp_reduced(LoopKernel *k, LoopId x) {
    LoopId shifted = fma_(k, x, f32(k, LOG2_E), f32(k, ROUNDER));
    LoopId whole = two(k, LOOP_fsub, shifted, f32(k, ROUNDER));
    Reduced reduced = {.n = two(k, LOOP_isub, bits(k, shifted, DT_I32), i32(k, 0x4B400000)), .whole = whole};
    reduced.r = fma_(k, whole, f32(k, -LN2_LOW), fma_(k, whole, f32(k, -LN2_HIGH), x));
    reduced.square = two(k, LOOP_fmul, reduced.r, reduced.r);
    reduced.q = polynomial(k, DT_F32, reduced.r, EXP, COUNT(EXP));
    return reduced;
}

/* 2^n, -127 < n < 128. */
static LoopId power_of_two(LoopKernel *k, LoopId n) {
    return bits(k, two(k, LOOP_shl, two(k, LOOP_iadd, n, i32(k, 127)), i32(k, 23)), DT_F32);
}

/* NaN stays; selects of this form are one machine instruction each, fmax is several. */
static LoopId at_least(LoopKernel *k, LoopId x, LoopId low) { return choose(k, two(k, LOOP_flt, x, low), low, x); }
static LoopId at_most(LoopKernel *k, LoopId x, LoopId high) { return choose(k, two(k, LOOP_fgt, x, high), high, x); }

static LoopId clamped(LoopKernel *k, LoopId x, double low, double high) {
    return at_most(k, at_least(k, x, f32(k, low)), f32(k, high));
}

/* What 1 + r rounds away goes into the small part. */
static LoopId exp_f32(LoopKernel *k, LoopId x) {
    Reduced e = exp_reduced(k, clamped(k, x, -104.5, 89.5));
    LoopId sum = two(k, LOOP_fadd, e.r, f32(k, 1)), lost = two(k, LOOP_fsub, e.r, two(k, LOOP_fsub, sum, f32(k, 1)));
    LoopId value = two(k, LOOP_fadd, sum, fma_(k, e.square, e.q, lost));
    return two(k, LOOP_fscale, value, e.whole);
}

LoopId scalar_exp(LoopKernel *k, DType type, LoopId x) {
    return type == DT_F64 ? tg_loop_libm(k, "exp", x, 0) : exp_f32(k, x);
}

/* 2^n (e^r - 1) + (2^n - 1), at half the size so that n = 128 fits. */
LoopId scalar_expm1(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "expm1", x, 0);
    Reduced e = exp_reduced(k, clamped(k, x, -30, 89));
    LoopId p = fma_(k, e.square, e.q, e.r);
    LoopId half = power_of_two(k, two(k, LOOP_isub, e.n, i32(k, 1)));
    LoopId sum = fma_(k, half, p, two(k, LOOP_fsub, half, f32(k, 0.5)));
    LoopId result = two(k, LOOP_fadd, sum, sum);
    LoopId tiny = two(k, LOOP_flt, one(k, LOOP_fabs, x), f32(k, 0x1p-25));
    return choose(k, tiny, x, result);
}

/* t / (1 + t) or 1 / (1 + t) with t = exp(-|x|). What 1 + t and the quotient round away is added back: remainder times
   about 1 / (1 + t). */
LoopId scalar_sigmoid(LoopKernel *k, DType type, LoopId x) {
    LoopId plus = tg_loop_number(k, type, 1);
    if (type == DT_F64)
        return two(k, LOOP_fdiv, plus, two(k, LOOP_fadd, plus, tg_loop_libm(k, "exp", one(k, LOOP_fneg, x), 0)));
    LoopId t = exp_f32(k, one(k, LOOP_fneg, one(k, LOOP_fabs, x)));
    LoopId top = choose(k, two(k, LOOP_flt, x, f32(k, 0)), t, plus), sum = two(k, LOOP_fadd, plus, t);
    LoopId lost = two(k, LOOP_fsub, t, two(k, LOOP_fsub, sum, plus));
    LoopId quotient = two(k, LOOP_fdiv, top, sum), minus = one(k, LOOP_fneg, quotient);
    LoopId rest = fma_(k, minus, lost, fma_(k, minus, sum, top));
    return fma_(k, rest, fma_(k, sum, f32(k, -0.5), f32(k, 1.5)), quotient);
}

static const double TANH[] = {-0.333332777, 0.133313239, -0.0537295304, 0.0206048712, -0.00566571392};

/* x + x^3 P(x^2) near 0, 1 - 2 / (e^2|x| + 1) beyond. */
LoopId scalar_tanh(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "tanh", x, 0);
    LoopId square = two(k, LOOP_fmul, x, x), size = one(k, LOOP_fabs, x);
    LoopId small = fma_(k, two(k, LOOP_fmul, square, polynomial(k, DT_F32, square, TANH, COUNT(TANH))), size, size);
    LoopId e = exp_f32(k, two(k, LOOP_fadd, size, size));
    LoopId quotient = two(k, LOOP_fdiv, f32(k, 2), two(k, LOOP_fadd, e, f32(k, 1)));
    LoopId large = two(k, LOOP_fsub, f32(k, 1), quotient);
    return with_sign(k, choose(k, two(k, LOOP_flt, size, f32(k, 0.625)), small, large), x);
}

static const double ERF_SMALL[] = {0.128379166,   -0.376126289,    0.112836257,   -0.0268557314,
                                   0.00519240508, -0.000804976968, 7.99664995e-05};
static const double ERF_LARGE[] = {-0.128555119,   -0.635609269,   -0.105294511,  0.0227084346,
                                   -0.00295180315, 5.75801896e-05, 4.3982418e-05, -4.80462859e-06};

/* x + x P(x^2) near 0, 1 - exp(-|x| + |x| P(|x|)) beyond; 1 from about 3.92 on. */
LoopId scalar_erf(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "erf", x, 0);
    LoopId square = two(k, LOOP_fmul, x, x), size = one(k, LOOP_fabs, x);
    LoopId small = fma_(k, polynomial(k, DT_F32, square, ERF_SMALL, COUNT(ERF_SMALL)), x, x);
    LoopId t = at_most(k, size, f32(k, 4.05));
    LoopId power = fma_(k, polynomial(k, DT_F32, t, ERF_LARGE, COUNT(ERF_LARGE)), t, one(k, LOOP_fneg, t));
    LoopId large = with_sign(k, two(k, LOOP_fsub, f32(k, 1), exp_f32(k, power)), x);
    return choose(k, two(k, LOOP_flt, size, f32(k, 0.925)), small, large);
}

/* ---- logarithms ---- */

static const double LOG[] = {0.333333135,  -0.250000089, 0.200020716,  -0.166679904, 0.142203629,
                             -0.124062076, 0.118834704,  -0.116701923, 0.0674955621};
enum { ROOT_HALF_BITS = 0x3F3504F3 }; /* sqrt(1/2) as f32 */

/* log(2^n (1 + f)) for 1 + f in [sqrt(1/2), sqrt(2)), n an integer as f32. n LN2_HIGH is exact. */
static LoopId log_of_parts(LoopKernel *k, LoopId n, LoopId f) {
    LoopId square = two(k, LOOP_fmul, f, f);
    LoopId tail = fma_(k, polynomial(k, DT_F32, f, LOG, COUNT(LOG)), f, f32(k, -0.5));
    LoopId high = two(k, LOOP_fmul, n, f32(k, LN2_HIGH));
    LoopId sum = two(k, LOOP_fadd, high, f), lost = two(k, LOOP_fsub, f, two(k, LOOP_fsub, sum, high));
    LoopId low = fma_(k, n, f32(k, LN2_LOW), lost);
    return two(k, LOOP_fadd, sum, fma_(k, square, tail, low));
}

/* x = 2^n m with m in [sqrt(1/2), sqrt(2)): n, and the bits of m. x is positive and normal. */
static LoopId exponent_of(LoopKernel *k, LoopId x, LoopId *m) {
    LoopId from_root = two(k, LOOP_isub, bits(k, x, DT_I32), i32(k, ROOT_HALF_BITS));
    LoopId fraction = two(k, LOOP_and, from_root, i32(k, 0x7FFFFF));
    *m = bits(k, two(k, LOOP_iadd, fraction, i32(k, ROOT_HALF_BITS)), DT_F32);
    return two(k, LOOP_ashr, from_root, i32(k, 23));
}

/* log at the ends of its domain: -inf at `pole`, NaN below, inf and NaN as they are. */
static LoopId log_ends(LoopKernel *k, LoopId x, double pole, LoopId result) {
    LoopId infinite = f32(k, (double)INFINITY), at = f32(k, pole);
    LoopId inside = two(k, LOOP_and, two(k, LOOP_fgt, x, at), two(k, LOOP_flt, x, infinite));
    LoopId end = choose(k, two(k, LOOP_flt, x, at), f32(k, (double)NAN), x); /* inf or NaN */
    end = choose(k, two(k, LOOP_feq, x, at), f32(k, -(double)INFINITY), end);
    return choose(k, inside, result, end);
}

LoopId scalar_log(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "log", x, 0);
    LoopId denormal = two(k, LOOP_flt, x, f32(k, 0x1p-126)), m;
    LoopId normal = choose(k, denormal, two(k, LOOP_fmul, x, f32(k, 0x1p23)), x);
    LoopId n = to(k, exponent_of(k, normal, &m), DT_F32);
    n = two(k, LOOP_fadd, n, choose(k, denormal, f32(k, -23), f32(k, 0)));
    return log_ends(k, x, 0, log_of_parts(k, n, two(k, LOOP_fsub, m, f32(k, 1))));
}

/* 1 + x = 2^n (1 + f): f is made from x itself, so that what 1 + x rounds away is not lost. */
LoopId scalar_log1p(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "log1p", x, 0);
    LoopId m, n = exponent_of(k, two(k, LOOP_fadd, x, f32(k, 1)), &m);
    LoopId scale = power_of_two(k, two(k, LOOP_isub, i32(k, 0), n));
    LoopId exact = fma_(k, x, scale, two(k, LOOP_fsub, scale, f32(k, 1)));
    LoopId huge = two(k, LOOP_igt, n, i32(k, 60));
    LoopId f = choose(k, huge, two(k, LOOP_fsub, m, f32(k, 1)), exact);
    LoopId result = log_of_parts(k, to(k, n, DT_F32), f);
    LoopId tiny = two(k, LOOP_flt, one(k, LOOP_fabs, x), f32(k, 0x1p-25));
    return choose(k, tiny, x, log_ends(k, x, -1, result));
}

LoopId scalar_rsqrt(LoopKernel *k, DType type, LoopId x) {
    return two(k, LOOP_fdiv, tg_loop_number(k, type, 1), one(k, LOOP_fsqrt, x));
}

/* ---- sin and cos, in f64 ---- */

static const double SIN[] = {-0.16666666640797262, 0.0083333293048564461, -0.00019839312271553741,
                             2.7181216313129821e-06};
static const double COS[] = {-0.49999999999545136, 0.041666666562084877, -0.0013888881079085367, 2.4799041109965147e-05,
                             -2.7180105464090128e-07};
static const double TWO_OVER_PI = 0.63661977236758134, HALF_PI_HIGH = 0x1.921FB54442D18p+0,
                    HALF_PI_LOW = 0x1.1A62633145C07p-54;
static const double ROUNDER_64 = 0x1.8p52;

/* 2 / pi after the binary point. */
static const uint32_t TWO_OVER_PI_WORDS[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
                                             0xDB629599, 0x3C439041, 0xFE5163AB};

/* Word `first + number` of 2 / pi; `number` 0 .. 3. */
static LoopId word_of(LoopKernel *k, LoopId number, int first) {
    LoopId word = i64(k, TWO_OVER_PI_WORDS[first + 3]);
    for (int i = 2; i >= 0; i--)
        word = choose(k, two(k, LOOP_ieq, number, i64(k, i)), i64(k, TWO_OVER_PI_WORDS[first + i]), word);
    return word;
}

/* For x = m 2^e, e in 17 .. 104: x * 2 / pi modulo 4 in units of 2^-62, by the 96 bits of 2 / pi that matter (Payne,
 * Hanek 1983). */
static LoopId large_turns(LoopKernel *k, LoopId raw) {
    LoopId m = two(k, LOOP_or, two(k, LOOP_and, raw, i64(k, 0x7FFFFF)), i64(k, 0x800000));
    LoopId exponent = two(k, LOOP_and, two(k, LOOP_lshr, raw, i64(k, 23)), i64(k, 0xFF));
    LoopId skip =
        two(k, LOOP_imax, two(k, LOOP_isub, exponent, i64(k, 152)), i64(k, 0)); /* e - 2 bits are multiples of 4 */
    skip = two(k, LOOP_imin, skip, i64(k, 127));
    LoopId number = two(k, LOOP_lshr, skip, i64(k, 5)), shift = two(k, LOOP_and, skip, i64(k, 31));
    LoopId w[4];
    for (int i = 0; i < 4; i++)
        w[i] = word_of(k, number, i);
    LoopId back = two(k, LOOP_isub, i64(k, 32), shift);
    LoopId high = two(k, LOOP_or, two(k, LOOP_shl, w[0], i64(k, 32)), w[1]);
    LoopId low = two(k, LOOP_or, two(k, LOOP_shl, w[2], i64(k, 32)), w[3]);
    LoopId top = two(k, LOOP_or, two(k, LOOP_shl, high, shift), two(k, LOOP_lshr, w[2], back));
    LoopId next = two(k, LOOP_lshr, two(k, LOOP_shl, low, shift), i64(k, 32));
    return two(k, LOOP_iadd, two(k, LOOP_imul, m, top), two(k, LOOP_lshr, two(k, LOOP_imul, m, next), i64(k, 32)));
}

/* |x| = quadrant * pi / 2 + r, |r| <= pi / 4: r in f64, the quadrant as i64 (its low two bits). */
static LoopId quarter_turns(LoopKernel *k, LoopId x, LoopId *quadrant) {
    LoopId size = one(k, LOOP_fabs, x), wide = to(k, size, DT_F64);
    LoopId shifted = fma_(k, wide, f64(k, TWO_OVER_PI), f64(k, ROUNDER_64));
    LoopId whole = two(k, LOOP_fsub, shifted, f64(k, ROUNDER_64));
    LoopId r = fma_(k, whole, f64(k, -HALF_PI_LOW), fma_(k, whole, f64(k, -HALF_PI_HIGH), wide));

    LoopId raw = tg_loop_convert(k, LOOP_zero, bits(k, size, DT_I32), DT_I64), turns = large_turns(k, raw);
    LoopId nearest = two(k, LOOP_lshr, two(k, LOOP_iadd, turns, i64(k, INT64_C(1) << 61)), i64(k, 62));
    LoopId rest = two(k, LOOP_isub, turns, two(k, LOOP_shl, nearest, i64(k, 62)));
    LoopId large_r = two(k, LOOP_fmul, to(k, rest, DT_F64), f64(k, HALF_PI_HIGH * 0x1p-62));

    LoopId large = two(k, LOOP_fgt, size, f32(k, 0x1p41));
    *quadrant = choose(k, large, nearest, bits(k, shifted, DT_I64));
    LoopId finite = two(k, LOOP_flt, size, f32(k, (double)INFINITY));
    return choose(k, finite, choose(k, large, large_r, r), f64(k, (double)NAN));
}

/* sin(r + quadrant pi / 2) */
static LoopId sine_of_quarter(LoopKernel *k, LoopId r, LoopId quadrant) {
    LoopId square = two(k, LOOP_fmul, r, r);
    LoopId sine = fma_(k, two(k, LOOP_fmul, square, polynomial(k, DT_F64, square, SIN, COUNT(SIN))), r, r);
    LoopId cosine = fma_(k, square, polynomial(k, DT_F64, square, COS, COUNT(COS)), f64(k, 1));
    LoopId odd = two(k, LOOP_ine, two(k, LOOP_and, quadrant, i64(k, 1)), i64(k, 0));
    LoopId minus = two(k, LOOP_ine, two(k, LOOP_and, quadrant, i64(k, 2)), i64(k, 0));
    LoopId value = choose(k, odd, cosine, sine);
    return to(k, choose(k, minus, one(k, LOOP_fneg, value), value), DT_F32);
}

LoopId scalar_sin(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "sin", x, 0);
    LoopId quadrant, r = quarter_turns(k, x, &quadrant);
    LoopId sign = two(k, LOOP_and, bits(k, x, DT_I32), i32(k, INT32_MIN));
    LoopId sine = sine_of_quarter(k, r, quadrant);
    return bits(k, two(k, LOOP_xor, bits(k, sine, DT_I32), sign), DT_F32);
}

LoopId scalar_cos(LoopKernel *k, DType type, LoopId x) {
    if (type == DT_F64)
        return tg_loop_libm(k, "cos", x, 0);
    LoopId quadrant, r = quarter_turns(k, x, &quadrant);
    return sine_of_quarter(k, r, two(k, LOOP_iadd, quadrant, i64(k, 1)));
}

/* ---- pow, in f64: 2^(y log2 |x|) ---- */

static const double LOG2[] = {0.96179669392482869, 0.57707801711005025, 0.41219841798824902,
                              0.32061548533523559, 0.26146875198111075, 0.24266049887459298};
static const double EXP2[] = {0.69314718055988511,    0.24022650695722814,    0.055504108668418595,
                              0.0096181291811649819,  0.0013333557625062713,  0.0001540344088381746,
                              1.5252990230321908e-05, 1.3258335525246258e-06, 1.0148302870683936e-07};
static const double TWO_OVER_LN2 = 2.8853900817779268;
static const int64_t ROOT_HALF_BITS_64 = 0x3FE6A09E667F3BCD;

/* Of a positive normal f64. */
static LoopId log2_f64(LoopKernel *k, LoopId x) {
    LoopId from_root = two(k, LOOP_isub, bits(k, x, DT_I64), i64(k, ROOT_HALF_BITS_64));
    LoopId n = to(k, two(k, LOOP_ashr, from_root, i64(k, 52)), DT_F64);
    LoopId fraction = two(k, LOOP_and, from_root, i64(k, 0xFFFFFFFFFFFFF));
    LoopId m = bits(k, two(k, LOOP_iadd, fraction, i64(k, ROOT_HALF_BITS_64)), DT_F64);
    LoopId s = two(k, LOOP_fdiv, two(k, LOOP_fsub, m, f64(k, 1)), two(k, LOOP_fadd, m, f64(k, 1)));
    LoopId square = two(k, LOOP_fmul, s, s);
    LoopId tail = fma_(k, square, polynomial(k, DT_F64, square, LOG2, COUNT(LOG2)), f64(k, TWO_OVER_LN2));
    return fma_(k, s, tail, n);
}

/* |t| < 1000. */
static LoopId exp2_f64(LoopKernel *k, LoopId t) {
    LoopId shifted = two(k, LOOP_fadd, t, f64(k, ROUNDER_64));
    LoopId r = two(k, LOOP_fsub, t, two(k, LOOP_fsub, shifted, f64(k, ROUNDER_64)));
    LoopId value = fma_(k, r, polynomial(k, DT_F64, r, EXP2, COUNT(EXP2)), f64(k, 1));
    LoopId scale = two(k, LOOP_shl, two(k, LOOP_iadd, bits(k, shifted, DT_I64), i64(k, 1023)), i64(k, 52));
    return two(k, LOOP_fmul, value, bits(k, scale, DT_F64));
}

static LoopId is_integer(LoopKernel *k, LoopId x) { return two(k, LOOP_feq, one(k, LOOP_ffloor, x), x); }

/* 0 or inf where the base is 0 or inf: which, the exponent's sign says. */
static LoopId pow_of_end(LoopKernel *k, LoopId at_zero, LoopId y) {
    LoopId zero = f32(k, 0), infinite = f32(k, (double)INFINITY);
    LoopId falls = two(k, LOOP_xor, at_zero, two(k, LOOP_flt, y, zero));
    return choose(k, falls, zero, infinite);
}

LoopId scalar_pow(LoopKernel *k, DType type, LoopId x, LoopId y) {
    if (type == DT_F64)
        return tg_loop_libm(k, "pow", x, y);
    LoopId zero = f32(k, 0), plus = f32(k, 1), infinite = f32(k, (double)INFINITY), size = one(k, LOOP_fabs, x);
    LoopId exponent = two(k, LOOP_fmul, log2_f64(k, to(k, size, DT_F64)), to(k, y, DT_F64));
    exponent = at_most(k, at_least(k, exponent, f64(k, -300)), f64(k, 300));
    LoopId value = to(k, exp2_f64(k, exponent), DT_F32);

    LoopId at_zero = two(k, LOOP_feq, size, zero);
    LoopId at_end = two(k, LOOP_or, at_zero, two(k, LOOP_feq, size, infinite));
    value = choose(k, at_end, pow_of_end(k, at_zero, y), value);
    value = choose(k, two(k, LOOP_feq, size, plus), plus, value);

    LoopId y_infinite = two(k, LOOP_feq, one(k, LOOP_fabs, y), infinite);
    LoopId whole = two(k, LOOP_or, is_integer(k, y), y_infinite);
    LoopId half = two(k, LOOP_fmul, y, f32(k, 0.5));
    LoopId even = two(k, LOOP_or, is_integer(k, half), y_infinite);
    LoopId sign = two(k, LOOP_and, bits(k, x, DT_I32), i32(k, INT32_MIN));
    LoopId negated = bits(k, two(k, LOOP_or, bits(k, value, DT_I32), sign), DT_F32);
    value = choose(k, even, value, choose(k, whole, negated, value));
    LoopId undefined = two(k, LOOP_and, two(k, LOOP_flt, x, zero), one(k, LOOP_not, two(k, LOOP_or, whole, at_end)));
    value = choose(k, undefined, f32(k, (double)NAN), value);

    LoopId not_number = two(k, LOOP_or, two(k, LOOP_fne, x, x), two(k, LOOP_fne, y, y));
    value = choose(k, not_number, two(k, LOOP_fadd, x, y), value);
    LoopId is_one = two(k, LOOP_or, two(k, LOOP_feq, x, plus), two(k, LOOP_feq, y, zero));
    return choose(k, is_one, plus, value);
}
