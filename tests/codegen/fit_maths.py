"""Coefficients of the polynomials in codegen/scalar_maths.c: minimax by weighted least squares (Lawson's iteration) in mpmath-free
long doubles, rounded to f32 (or kept in f64) one after the other, the rest fitted again after each rounding.

Needs numpy only. Prints each table as it stands in scalar_maths.c and the largest weighted error in units of 2^-24."""
import math

import numpy as np

L = np.longdouble


def solve(x, columns, target, weight):
    scale = np.ones(len(x), L)
    best, best_worst = None, np.inf
    for _ in range(60):
        w = weight * np.sqrt(scale)
        a = np.array([c * w for c in columns], dtype=np.float64).T
        b = np.asarray(target * w, dtype=np.float64)
        c, *_ = np.linalg.lstsq(a, b, rcond=None)
        # one step of refinement in long doubles
        r = target - sum(L(ci) * col for ci, col in zip(c, columns))
        d, *_ = np.linalg.lstsq(a, np.asarray(r * w, dtype=np.float64), rcond=None)
        c = [L(ci) + L(di) for ci, di in zip(c, d)]
        error = np.abs((target - sum(ci * col for ci, col in zip(c, columns))) * weight)
        worst = error.max()
        if worst < best_worst:
            best, best_worst = c, worst
        scale = scale * (error / worst + L(1e-6))
        scale = scale / scale.mean()
    return best, best_worst


def fit(name, low, high, target, degree, argument, factor, weight, single=True):
    """target(x) ~ factor(x) * sum c_i argument(x)^i; error times weight(x)."""
    n = 4000
    t = np.cos(np.pi * (2 * np.arange(n, dtype=L) + 1) / (2 * n))
    x = (L(low) + L(high)) / 2 + (L(high) - L(low)) / 2 * t
    y, w, f, z = target(x), weight(x), factor(x), argument(x)
    columns = [f * z**i for i in range(degree + 1)]
    fixed, rest = [], y.copy()
    for i in range(degree + 1):
        c, worst = solve(x, columns[i:], rest, w)
        first = np.float32(c[0]) if single else np.float64(c[0])
        fixed.append(first)
        rest = rest - L(first) * columns[i]
    error = np.abs(rest * w).max()
    suffix = "" if single else ""
    print(f"{name}: error {float(error) * 2**24:.5f} of 2^-24")
    print("    {" + ", ".join(f"{float(c):.9g}{suffix}" if single else f"{float(c):.17g}" for c in fixed) + "},")


def erf_long(x):
    """Maclaurin's series; erfc by its continued fraction where the series cancels."""
    total, term = np.zeros_like(x), x.copy()
    for n in range(120):
        total = total + term / (2 * n + 1)
        term = -term * x * x / (n + 1)
    return total * 2 / np.sqrt(L("3.14159265358979323846264338327950288"))


def erfc_log(x):
    """log(erfc(x)) for x >= 0.9, by Lentz-free backward evaluation of the continued fraction."""
    f = np.zeros_like(x)
    for n in range(400, 0, -1):
        f = (L(n) / 2) / (x + f)
    return -x * x - np.log((x + f) * np.sqrt(L("3.14159265358979323846264338327950288")))


ln2 = np.log(L(2))
one = lambda x: np.ones_like(x)

fit("EXP", -0.3467, 0.3467, lambda r: np.expm1(r) - r, 4, lambda r: r, lambda r: r * r, lambda r: 1 / np.exp(r))
fit("LOG", math.sqrt(0.5) - 1, math.sqrt(2) - 1, lambda f: np.log1p(f) - f + f * f / 2, 8, lambda f: f, lambda f: f**3,
    lambda f: 1 / np.where(np.abs(f) < 1e-9, L(1), np.abs(np.log1p(f))))
fit("TANH", 1e-4, 0.63, lambda x: np.tanh(x) - x, 4, lambda x: x * x, lambda x: x**3, lambda x: 1 / np.tanh(x))
fit("ERF_SMALL", 1e-4, 0.93, lambda x: erf_long(x) - x, 6, lambda x: x * x, lambda x: x, lambda x: 1 / erf_long(x))
# erf(x) = 1 - exp(-x + x P(x)); 1 - erf needs an absolute error, so log(erfc) one of exp(-...).
fit("ERF_LARGE", 0.92, 4.05, lambda x: erfc_log(x) + x, 7, lambda x: x, lambda x: x,
    lambda x: np.exp(erfc_log(x)))
fit("SIN", 1e-4, math.pi / 4 + 1e-6, lambda x: np.sin(x) - x, 3, lambda x: x * x, lambda x: x**3, lambda x: 1 / np.sin(x), False)
fit("COS", 0, math.pi / 4 + 1e-6, lambda x: np.cos(x) - 1, 4, lambda x: x * x, lambda x: x * x, one, False)
fit("LOG2", 1e-5, 0.17158, lambda s: (np.log1p(s) - np.log1p(-s)) / ln2 - 2 / ln2 * s, 5, lambda s: s * s, lambda s: s**3,
    lambda s: 1 / s, False)
fit("EXP2", -0.5, 0.5, lambda r: np.expm1(r * ln2), 8, lambda r: r, lambda r: r, lambda r: 1 / np.exp2(r), False)
