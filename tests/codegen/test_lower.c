/* Kernel bodies of every kind that fusion makes: values, padding, and equal bits with and without fusion. */
#include "tests/codegen/lowered.h"

#include <CUnit/Basic.h>

#include <stdio.h>

#define F32          2e-5
#define COUNT(table) (sizeof(table) / sizeof *(table))

static const LoweredCase POINTWISE[] = {
    {"add", "%a: f32[B, 5], %b: f32[B, 5]",
     "%1 : f32[B, 5] = arg index=0 \"a\" %2 : f32[B, 5] = arg index=1 \"b\" %3 : f32[B, 5] = add %1, %2 return y %3", 7,
     4, 0},
    {"bias and relu", "%a: f32[B, 6], %b: f32[6]",
     "%1 : f32[B, 6] = arg index=0 \"a\" %2 : f32[6] = arg index=1 \"b\" %3 : f32[B, 6] = broadcast %2 dims=1 "
     "%4 : f32[B, 6] = add %1, %3 %5 : f32 = const value=0 %6 : f32[B, 6] = broadcast %5 dims=[] "
     "%7 : f32[B, 6] = maximum %4, %6 return y %7 return z %4",
     5, 3, 0},
    {"transpose and reshape", "%a: f32[B, 3, 4]",
     "%1 : f32[B, 3, 4] = arg index=0 \"a\" %2 : f32[B, 4, 3] = transpose %1 perm=[0, 2, 1] "
     "%3 : f32[B, 12] = reshape %2 %4 : f32[B, 12] = neg %3 return y %4",
     4, 2, 0},
    {"B in the middle", "%a: f32[B, 3, 4]",
     "%1 : f32[B, 3, 4] = arg index=0 \"a\" %2 : f32[3, B, 4] = transpose %1 perm=[1, 0, 2] "
     "%3 : f32[3, B, 4] = exp %2 return y %3",
     4, 2, F32},
    {"B major", "%a: f32[B*3, 4]",
     "%1 : f32[B*3, 4] = arg index=0 \"a\" %2 : f32[B, 3, 4] = reshape %1 "
     "%3 : f32[B, 3, 4] = exp %2 %4 : f32[B*12] = reshape %3 return y %4",
     4, 3, F32},
    {"slice", "%a: f32[B, 9]",
     "%1 : f32[B, 9] = arg index=0 \"a\" %2 : f32[B, 4] = slice %1 start=[0, 1] limit=[1, 8] stride=[1, 2] "
     "%3 : f32[B, 4] = abs %2 return y %3",
     3, 2, 0},
    {"two shapes", "%a: f32[B, 4], %b: f32[7]",
     "%1 : f32[B, 4] = arg index=0 \"a\" %2 : f32[7] = arg index=1 \"b\" %3 : f32[B, 4] = neg %1 %4 : f32[7] = abs %2 "
     "return y %3 return z %4",
     3, 1, 0},
    {"large", "%a: f32[B, 700]", "%1 : f32[B, 700] = arg index=0 \"a\" %2 : f32[B, 700] = mul %1, %1 return y %2", 64,
     50, 0},
    {"large rows", "%a: f32[B, 700], %b: f32[700]",
     "%1 : f32[B, 700] = arg index=0 \"a\" %2 : f32[700] = arg index=1 \"b\" %3 : f32[B, 700] = broadcast %2 dims=1 "
     "%4 : f32[B, 700] = mul %1, %3 return y %4",
     64, 50, 0},
    {"settings", "%a: f32[5]",
     "%1 : f32[5] = arg index=0 \"a\" %2 : f64 = scalar $lr %3 : f32 = convert %2 %4 : f32[5] = broadcast %3 dims=[] "
     "%5 : f32[5] = mul %1, %4 return y %5",
     1, 1, 0},
    {"iota and random", "",
     "%1 : i32[B, 5] = iota axis=1 %2 : f32[B, 5] = convert %1 %3 : f32[B, 5] = random key=0x123456789abcdef0 "
     "%4 : f32[B, 5] = add %2, %3 return y %4 return z %3",
     6, 4, 0},
    {"random of B in the middle", "", "%1 : f32[3, B, 2] = random key=0x17 return y %1", 4, 3, 0},
    {"dense constant", "%a: f32[B, 3]",
     "%1 : f32[B, 3] = arg index=0 \"a\" %2 : f32[3] = const values=[1, 2.5, -3] %3 : f32[B, 3] = broadcast %2 dims=1 "
     "%4 : f32[B, 3] = add %1, %3 return y %4",
     4, 2, 0},
    {"bf16 rounds at every node", "%a: bf16[B, 7], %b: bf16[B, 7]",
     "%1 : bf16[B, 7] = arg index=0 \"a\" %2 : bf16[B, 7] = arg index=1 \"b\" %3 : bf16[B, 7] = mul %1, %2 "
     "%4 : bf16[B, 7] = add %3, %1 %5 : f32[B, 7] = convert %4 return y %4 return z %5",
     3, 2, 0},
    {"f16", "%a: f16[9]", "%1 : f16[9] = arg index=0 \"a\" %2 : f16[9] = exp %1 return y %2", 1, 1, 1e-3},
    {"a cast rounds where it stands", "%a: f32[9]",
     "%1 : f32[9] = arg index=0 \"a\" %2 : bf16[9] = convert %1 %3 : f32[9] = convert %2 return y %3", 1, 1, 0},
    {"integers", "%a: i32[20], %b: i32[20]",
     "%1 : i32[20] = arg index=0 \"a\" %2 : i32[20] = arg index=1 \"b\" %3 : i32[20] = div %1, %2 %4 : i32[20] = mod "
     "%1, %2 "
     "%5 : u8[20] = convert %1 %6 : u8[20] = sub %5, %5 %7 : bool[20] = lt %1, %2 %8 : i32[20] = select %7, %1, %2 "
     "%9 : f32[20] = convert %1 return a %3 return b %4 return c %5 return d %6 return e %7 return f %8 return g %9",
     1, 1, 0},
    {"of a number below 0 and of one too great an unsigned type has its ends", "%a: i8[3]",
     "%1 : i32[3] = const values=[-5, 300, 70000] %2 : u8[3] = convert %1 %3 : u16[3] = convert %1 %4 : i8[3] = arg index=0 \"a\" "
     "%5 : i8[3] = neg %4 %6 : u8[3] = convert %5 %7 : u16[3] = convert %5 return a %2 return b %3 return c %6 return d %7",
     1, 1, 0},
    {"integers divided by 0, and the least by -1", "",
     "%1 : i32[5] = const values=[7, -7, 0, -2147483648, 9] %2 : i32[5] = const values=[0, 0, 0, -1, -1] %3 : i32[5] = div %1, %2 "
     "%4 : i32[5] = mod %1, %2 %5 : u8[2] = const values=[200, 0] %6 : u8[2] = const value=0 %7 : u8[2] = mod %5, %6 "
     "return y %3 return z %4 return u %7",
     1, 1, 0},
    {"an integer that f32 does not hold is rounded once", "",
     "%1 : i32[2] = const values=[1077936129, 1077936128] %2 : bf16[2] = convert %1 return y %2", 1, 1, 0},
    {"sign and is_finite of what is not finite", "",
     "%1 : f32[5] = const values=[nan, -inf, inf, -0, 3] %2 : f32[5] = sign %1 %3 : bool[5] = is_finite %1 return y %2 return z %3", 1, 1,
     0},
    {"float mod", "%a: f32[20], %b: f32[20]",
     "%1 : f32[20] = arg index=0 \"a\" %2 : f32[20] = arg index=1 \"b\" %3 : f32[20] = mod %1, %2 return y %3", 1, 1,
     0},
    {"float mod of multiples: a zero has the dividend's sign", "",
     "%1 : f32[6] = const values=[-4, 4, -6, 6, 0, -0] %2 : f32[6] = const values=[2, -2, -3, 3, 2, 2] %3 : f32[6] = mod %1, %2 "
     "%4 : f32[6] = const value=1 %5 : f32[6] = div %4, %3 return y %5",
     1, 1, 0},
    {"empty", "%a: f32[B, 0]", "%1 : f32[B, 0] = arg index=0 \"a\" %2 : f32[B, 0] = neg %1 return y %2", 3, 2, 0},
    {"empty rows", "%a: f32[5, 0]",
     "%1 : f32[5, 0] = arg index=0 \"a\" %2 : f32[5] = reduce_sum %1 axes=1 %3 : f32[5, 0] = broadcast %2 dims=0 "
     "%4 : f16[5, 0] = convert %3 return y %2 return z %4",
     1, 1, 0},
    {"one", "%a: f32", "%1 : f32 = arg index=0 \"a\" %2 : f32 = neg %1 return y %2", 1, 1, 0},
    {"no rows", "%a: f32[B, 3]", "%1 : f32[B, 3] = arg index=0 \"a\" %2 : f32[B, 3] = exp %1 return y %2", 4, 0, 0},
};

#define SOFTMAX                                                                                                        \
    "%1 : f32[B, 11] = arg index=0 \"x\" %2 : f32[B] = reduce_max %1 axes=1 %3 : f32[B, 11] = broadcast %2 dims=0 "    \
    "%4 : f32[B, 11] = sub %1, %3 %5 : f32[B, 11] = exp %4 %6 : f32[B] = reduce_sum %5 axes=1 "                        \
    "%7 : f32[B, 11] = broadcast %6 dims=0 "

static const LoweredCase ROWS[] = {
    {"softmax", "%x: f32[B, 11]", SOFTMAX "%8 : f32[B, 11] = div %5, %7 return y %8 return m %2", 6, 4, F32},
    {"log of a sum", "%x: f32[B, 11]", SOFTMAX "%8 : f32[B] = log %6 return y %8", 6, 6, F32},
    {"softmax of three dimensions", "%x: f32[B, 3, 20]",
     "%1 : f32[B, 3, 20] = arg index=0 \"x\" %2 : f32[B, 3] = reduce_max %1 axes=2 "
     "%3 : f32[B, 3, 20] = broadcast %2 dims=[0, 1] %4 : f32[B, 3, 20] = sub %1, %3 %5 : f32[B, 3, 20] = exp %4 "
     "%6 : f32[B, 3] = reduce_sum %5 axes=2 %7 : f32[B, 3, 20] = broadcast %6 dims=[0, 1] "
     "%8 : f32[B, 3, 20] = div %5, %7 return y %8",
     5, 2, F32},
    {"layer norm", "%x: f32[B, 40], %g: f32[40]",
     "%1 : f32[B, 40] = arg index=0 \"x\" %2 : f32[40] = arg index=1 \"g\" %3 : f32[B] = reduce_sum %1 axes=1 "
     "%4 : f32 = const value=0.025 %5 : f32[B] = broadcast %4 dims=[] %6 : f32[B] = mul %3, %5 "
     "%7 : f32[B, 40] = broadcast %6 dims=0 %8 : f32[B, 40] = sub %1, %7 %9 : f32[B, 40] = mul %8, %8 "
     "%10 : f32[B] = reduce_sum %9 axes=1 %11 : f32[B] = mul %10, %5 %12 : f32[B] = rsqrt %11 "
     "%13 : f32[B, 40] = broadcast %12 dims=0 %14 : f32[B, 40] = mul %8, %13 %15 : f32[B, 40] = broadcast %2 dims=1 "
     "%16 : f32[B, 40] = mul %14, %15 return y %16 return mean %6 return r %12",
     4, 3, F32},
    {"cross entropy", "%x: f32[B, 10], %t: i32[B]",
     "%1 : f32[B, 10] = arg index=0 \"x\" %2 : i32[B] = arg index=1 \"t\" %3 : f32[B] = reduce_max %1 axes=1 "
     "%4 : f32[B, 10] = broadcast %3 dims=0 %5 : f32[B, 10] = sub %1, %4 %6 : f32[B, 10] = exp %5 "
     "%7 : f32[B] = reduce_sum %6 axes=1 %8 : f32[B] = log %7 %9 : i32[B, 10] = iota axis=1 "
     "%10 : i32[B, 10] = broadcast %2 dims=0 %11 : bool[B, 10] = eq %9, %10 %12 : f32[B, 10] = convert %11 "
     "%13 : f32[B, 10] = mul %5, %12 %14 : f32[B] = reduce_sum %13 axes=1 %15 : f32[B] = sub %8, %14 "
     "%16 : f32[B, 10] = broadcast %7 dims=0 %17 : f32[B, 10] = div %6, %16 %18 : f32[B, 10] = sub %17, %12 "
     "%19 : i32[B] = argmax %1 axis=1 return loss %15 return dx %18 return best %19",
     8, 5, F32},
    {"a sum of one element a row, and of none where the number is no column's", "%t: i32[B], %x: f32[B, 300]",
     "%1 : i32[B] = arg index=0 \"t\" %2 : f32[B, 300] = arg index=1 \"x\" %3 : i32[B, 300] = broadcast %1 dims=0 "
     "%4 : i32[B, 300] = iota axis=1 %5 : bool[B, 300] = eq %3, %4 %6 : f32[B, 300] = const value=0 "
     "%7 : f32[B, 300] = select %5, %2, %6 %8 : f32[B] = reduce_sum %7 axes=1 %9 : f32[B, 300] = neg %7 "
     "%10 : f32[B] = reduce_sum %9 axes=1 return y %8 return z %10",
     64, 60, 0},
    {"cross entropy and its gradient", "%t: i32[B], %x: f32[B, 20]",
     "%1 : i32[B] = arg index=0 \"t\" %2 : f32[B, 20] = arg index=1 \"x\" %3 : i32[B, 20] = broadcast %1 dims=0 "
     "%4 : i32[20] = iota axis=0 %5 : i32[B, 20] = broadcast %4 dims=1 %6 : bool[B, 20] = eq %5, %3 "
     "%7 : f32[B] = reduce_max %2 axes=1 %8 : f32[B, 20] = broadcast %7 dims=0 %9 : f32[B, 20] = sub %2, %8 "
     "%10 : f32[B, 20] = exp %9 %11 : f32[B] = reduce_sum %10 axes=1 %12 : f32[B] = log %11 "
     "%13 : f32[B, 20] = broadcast %12 dims=0 %14 : f32[B, 20] = sub %9, %13 %15 : f32[B, 20] = const value=0 "
     "%16 : f32[B, 20] = select %6, %14, %15 %17 : f32[B] = reduce_sum %16 axes=1 %18 : f32[B] = neg %17 "
     "%19 : f32[B, 20] = broadcast %18 dims=0 %20 : f32[B, 20] = mul %19, %10 return loss %18 return dx %20",
     64, 50, F32},
    {"rows of bf16", "%x: bf16[B, 33]",
     "%1 : bf16[B, 33] = arg index=0 \"x\" %2 : f32[B, 33] = convert %1 %3 : f32[B] = reduce_sum %2 axes=1 "
     "%4 : f32[B, 33] = broadcast %3 dims=0 %5 : f32[B, 33] = sub %2, %4 %6 : bf16[B, 33] = convert %5 return y %6",
     3, 2, 1e-2},
    {"long rows", "%x: f32[B, 5000]",
     "%1 : f32[B, 5000] = arg index=0 \"x\" %2 : f32[B, 5000] = exp %1 %3 : f32[B] = reduce_sum %2 axes=1 "
     "%4 : f32[B, 5000] = broadcast %3 dims=0 %5 : f32[B, 5000] = div %2, %4 return y %5",
     5, 4, F32},
    {"rows of one", "%x: f32[B, 1]",
     "%1 : f32[B, 1] = arg index=0 \"x\" %2 : f32[B] = reduce_sum %1 axes=1 return y %2", 4, 2, 0},
    {"empty rows", "%x: f32[B, 0]",
     "%1 : f32[B, 0] = arg index=0 \"x\" %2 : f32[B] = reduce_sum %1 axes=1 %3 : f32[B] = reduce_max %1 axes=1 "
     "return y %2 return z %3",
     4, 2, 0},
    {"integers", "%x: i32[B, 19]",
     "%1 : i32[B, 19] = arg index=0 \"x\" %2 : i32[B] = reduce_sum %1 axes=1 %3 : i32[B] = reduce_min %1 axes=1 "
     "%4 : i32[B] = argmax %1 axis=1 return y %2 return z %3 return a %4",
     4, 3, 0},
    {"a vector of B", "%x: f32[B]",
     "%1 : f32[B] = arg index=0 \"x\" %2 : f32 = reduce_sum %1 axes=0 %3 : f32 = reduce_max %1 axes=0 %4 : f32 = exp "
     "%3 "
     "return y %2 return z %4",
     100, 41, F32},
    {"a long vector of B, split", "%x: f32[B*4]",
     "%1 : f32[B*4] = arg index=0 \"x\" %2 : f32 = reduce_sum %1 axes=0 split=4 return y %2", 256, 130, 1e-4},
    {"a vector", "%x: f32[1000]",
     "%1 : f32[1000] = arg index=0 \"x\" %2 : f32[1000] = mul %1, %1 "
     "%3 : f32 = reduce_sum %2 axes=0 return y %3",
     1, 1, F32},
    {"B in the middle of rows", "%x: f32[B, 3, 9]",
     "%1 : f32[B, 3, 9] = arg index=0 \"x\" %2 : f32[3, B, 9] = transpose %1 perm=[1, 0, 2] "
     "%3 : f32[3, B] = reduce_sum %2 axes=2 %4 : f32[3, B] = exp %3 return y %4",
     4, 3, F32},
    {"rows without elements that read a row's sum", "%x: f32[7, 2, 0]",
     "%1 : f32[7, 2, 0] = arg index=0 \"x\" %2 : f32[7, 2] = reduce_sum %1 axes=2 %3 : f32[7, 2] = exp %2 "
     "%4 : f32[7, 2, 0] = broadcast %3 dims=[0, 1] %5 : f32[7, 2, 0] = mul %1, %4 %6 : f32[7, 2] = reduce_sum %5 axes=2 "
     "return y %5 return s %6",
     1, 1, F32},
};

static const LoweredCase COLUMNS[] = {
    {"sums of columns larger than a cache; beside a maximum they are folded another way, to the same bits", "%x: f32[B, 150, 1000]",
     "%1 : f32[B, 150, 1000] = arg index=0 \"x\" %2 : f32[B, 1000] = reduce_sum %1 axes=1 "
     "%3 : f32[B, 1000] = reduce_max %1 axes=1 return y %2 return z %3",
     2, 1, 1e-4},
    {"two sums of columns larger than a cache", "%x: f32[140, 1024], %y: f32[140, 1024]",
     "%1 : f32[140, 1024] = arg index=0 \"x\" %2 : f32[140, 1024] = arg index=1 \"y\" %3 : f32[140, 1024] = mul %1, %2 "
     "%4 : f32[1024] = reduce_sum %3 axes=0 %5 : f32[1024] = reduce_sum %2 axes=0 return y %4 return z %5",
     1, 1, 1e-4},
    {"columns of B larger than a cache", "%x: f32[B, 1024]",
     "%1 : f32[B, 1024] = arg index=0 \"x\" %2 : f32[1024] = reduce_sum %1 axes=0 %3 : f32[1024] = reduce_min %1 axes=0 "
     "return y %2 return z %3",
     140, 70, 1e-4},
    {"batch sum", "%x: f32[B, 10]",
     "%1 : f32[B, 10] = arg index=0 \"x\" %2 : f32[10] = reduce_sum %1 axes=0 return y %2", 20, 13, F32},
    {"batch sum of four chunks", "%x: f32[B, 10]",
     "%1 : f32[B, 10] = arg index=0 \"x\" %2 : f32[10] = reduce_sum %1 axes=0 return y %2", 100, 57, F32},
    {"batch sum of many chunks", "%x: f32[B, 10], %old: f32[10]",
     "%1 : f32[B, 10] = arg index=0 \"x\" %2 : f32[10] = arg index=1 \"old\" %3 : f32[B, 10] = mul %1, %1 "
     "%4 : f32[10] = reduce_sum %3 axes=0 %5 : f32[10] = add %4, %2 return y %5",
     300, 211, F32},
    {"split batch sum", "%x: f32[B, 10]",
     "%1 : f32[B, 10] = arg index=0 \"x\" %2 : f32[10] = reduce_sum %1 axes=0 split=4 return y %2", 400, 333, F32},
    {"two sums and a maximum", "%x: f32[B, 70], %y: f32[B, 70]",
     "%1 : f32[B, 70] = arg index=0 \"x\" %2 : f32[B, 70] = arg index=1 \"y\" %3 : f32[B, 70] = mul %1, %2 "
     "%4 : f32[70] = reduce_sum %3 axes=0 %5 : f32[70] = reduce_sum %1 axes=0 %6 : f32[70] = reduce_max %2 axes=0 "
     "return a %4 return b %5 return c %6",
     200, 170, F32},
    {"middle axis", "%x: f32[B, 40, 6]",
     "%1 : f32[B, 40, 6] = arg index=0 \"x\" %2 : f32[B, 6] = reduce_sum %1 axes=1 %3 : f32[B, 6] = exp %2 return y %3",
     5, 3, 1e-4},
    {"middle argmax", "%x: f32[B, 40, 6]",
     "%1 : f32[B, 40, 6] = arg index=0 \"x\" %2 : i32[B, 6] = argmax %1 axis=1 return y %2", 5, 3, 0},
    {"B inside", "%x: f32[40, B]", "%1 : f32[40, B] = arg index=0 \"x\" %2 : f32[B] = reduce_sum %1 axes=0 return y %2",
     7, 5, F32},
    {"wide", "%x: f32[B, 3000]",
     "%1 : f32[B, 3000] = arg index=0 \"x\" %2 : f32[3000] = reduce_sum %1 axes=0 return y %2", 9, 5, F32},
    {"bf16", "%x: bf16[B, 5]",
     "%1 : bf16[B, 5] = arg index=0 \"x\" %2 : f32[B, 5] = convert %1 "
     "%3 : f32[5] = reduce_sum %2 axes=0 %4 : bf16[5] = convert %3 return y %4",
     50, 40, 1e-2},
    {"the greatest of unsigned numbers, in chunks", "",
     "%1 : i32[B, 3] = iota axis=0 %2 : i32[B, 3] = iota axis=1 %3 : i32[B, 3] = add %1, %2 %4 : u8[B, 3] = convert %3 "
     "%5 : u8[3] = reduce_max %4 axes=0 %6 : u8[3] = reduce_min %4 axes=0 return y %5 return z %6",
     240, 211, 0},
    {"empty", "%x: f32[0, 5]", "%1 : f32[0, 5] = arg index=0 \"x\" %2 : f32[5] = reduce_sum %1 axes=0 return y %2", 1,
     1, 0},
    {"no rows", "%x: f32[B, 5]", "%1 : f32[B, 5] = arg index=0 \"x\" %2 : f32[5] = reduce_sum %1 axes=0 return y %2",
     40, 0, F32},
};

static const LoweredCase ALONE[] = {
    {"reverse", "%x: f32[B, 5, 3]",
     "%1 : f32[B, 5, 3] = arg index=0 \"x\" %2 : f32[B, 5, 3] = reverse %1 axes=[1, 2] "
     "return y %2",
     4, 3, 0},
    {"pad", "%x: f32[B, 5, 3]",
     "%1 : f32[B, 5, 3] = arg index=0 \"x\" %2 : f32[B, 12, 4] = pad %1 low=[0, 2, 1] high=[0, 1, 0] interior=[0, 1, "
     "0] "
     "value=7 return y %2",
     4, 3, 0},
    {"concat", "%x: f32[B, 3, 2], %y: f32[B, 4, 2]",
     "%1 : f32[B, 3, 2] = arg index=0 \"x\" %2 : f32[B, 4, 2] = arg index=1 \"y\" %3 : f32[B, 7, 2] = concat %1, %2 "
     "axis=1 "
     "return y %3",
     4, 3, 0},
    {"cumsum of columns", "%x: f32[B, 6, 3]",
     "%1 : f32[B, 6, 3] = arg index=0 \"x\" %2 : f32[B, 6, 3] = cumsum %1 axis=1 return y %2", 4, 3, F32},
    {"cumsum of rows, reversed", "%x: f32[B, 6]",
     "%1 : f32[B, 6] = arg index=0 \"x\" %2 : f32[B, 6] = cumsum %1 axis=1 reverse=1 return y %2", 4, 3, F32},
    {"take", "%t: f32[6, 5], %i: i64[B, 3]",
     "%1 : f32[6, 5] = arg index=0 \"t\" %2 : i64[B, 3] = arg index=1 \"i\" %3 : f32[B, 3, 5] = take %1, %2 axis=0 "
     "return y %3",
     4, 3, 0},
    {"take of columns", "%t: f32[6, 5], %i: i32[B]",
     "%1 : f32[6, 5] = arg index=0 \"t\" %2 : i32[B] = arg index=1 \"i\" %3 : f32[6, B] = take %1, %2 axis=1 return y "
     "%3",
     4, 3, 0},
    {"take by unsigned numbers past 127", "%t: f32[250, 2]",
     "%1 : f32[250, 2] = arg index=0 \"t\" %2 : u8[3] = const values=[3, 128, 249] %3 : f32[3, 2] = take %1, %2 axis=0 return y %3", 1, 1,
     0},
    {"scatter", "%i: i64[B, 3], %u: f32[B, 3, 5]",
     "%1 : i64[B, 3] = arg index=0 \"i\" %2 : f32[B, 3, 5] = arg index=1 \"u\" %3 : f32[6, 5] = scatter_add %1, %2 "
     "axis=0 "
     "return y %3",
     4, 3, F32},
    {"scatter of columns", "%i: u8[4], %u: f32[3, 4, 5]",
     "%1 : u8[4] = arg index=0 \"i\" %2 : f32[3, 4, 5] = arg index=1 \"u\" %3 : f32[3, 6, 5] = scatter_add %1, %2 "
     "axis=1 "
     "return y %3",
     1, 1, F32},
    {"copy", "%x: f32[B, 3]", "%1 : f32[B, 3] = arg index=0 \"x\" return y %1", 4, 3, 0},
};

static void check_all(const LoweredCase *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        LoweredCase c = cases[i];
        check_lowered(&c);
        c.rows = c.capacity;
        check_lowered(&c);
    }
}

static void test_pointwise(void) { check_all(POINTWISE, COUNT(POINTWISE)); }
static void test_rows(void) { check_all(ROWS, COUNT(ROWS)); }
static void test_columns(void) { check_all(COLUMNS, COUNT(COLUMNS)); }
static void test_alone(void) { check_all(ALONE, COUNT(ALONE)); }

static int count_of(const LoopKernel *k, LoopOp op, int mode) {
    int count = 0;
    for (LoopId i = 1; i < k->instrs.count; i++)
        count += k->instrs.at[i].op == op && (op != LOOP_for || k->instrs.at[i].mode == mode);
    return count;
}

/* What rows share is computed once: three passes, one exp, and a maximum that nothing reads from memory. */
static void test_softmax_reads_once(void) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard))
        return;
    const LoweredCase softmax = {"softmax", "%x: f32[128, 11]", "", 1, 1, 0};
    LoweredCase c = softmax;
    c.body = "%1 : f32[128, 11] = arg index=0 \"x\" %2 : f32[128] = reduce_max %1 axes=1 "
             "%3 : f32[128, 11] = broadcast %2 dims=0 %4 : f32[128, 11] = sub %1, %3 %5 : f32[128, 11] = exp %4 "
             "%6 : f32[128] = reduce_sum %5 axes=1 %7 : f32[128, 11] = broadcast %6 dims=0 "
             "%8 : f32[128, 11] = div %5, %7 return y %8";
    LoopKernel *k = lower_text(&arena, &c);
    CU_ASSERT_EQUAL(count_of(k, LOOP_for, MODE_VECTOR), 3);
    CU_ASSERT_EQUAL(count_of(k, LOOP_ffloor, 0) + count_of(k, LOOP_fdiv, 0), 1);
    CU_ASSERT_EQUAL(k->buffers.count, 3);
    tg_arena_deinit(&arena);
}

/* Case C20: offsets past 2^31. */
static void test_wide_offsets(void) {
    Arena arena;
    tg_arena_init(&arena, tg_host());
    if (setjmp(arena.guard))
        return;
    LoweredCase c = {"a great table",
                     "%t: f32[239674, 8960], %i: i64[1]",
                     "%1 : f32[239674, 8960] = arg index=0 \"t\" %2 : i64[1] = arg index=1 \"i\" "
                     "%3 : f32[1, 8960] = take %1, %2 axis=0 return y %3",
                     1,
                     1,
                     0};
    LoopKernel *k = lower_text(&arena, &c);
    CU_ASSERT_EQUAL(k->buffers.at[0].count, INT64_C(239674) * 8960);
    for (LoopId i = 1; i < k->instrs.count; i++)
        if (k->instrs.at[i].op == LOOP_imul)
            CU_ASSERT_EQUAL(k->instrs.at[i].type, DT_I64);
    tg_arena_deinit(&arena);
}

int main(void) {
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("lower", NULL, NULL);
    CU_add_test(suite, "pointwise kernels", test_pointwise);
    CU_add_test(suite, "rows kernels", test_rows);
    CU_add_test(suite, "column reductions", test_columns);
    CU_add_test(suite, "ops that stand alone", test_alone);
    CU_add_test(suite, "softmax computes its exp once", test_softmax_reads_once);
    CU_add_test(suite, "offsets are 64 bits wide", test_wide_offsets);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
