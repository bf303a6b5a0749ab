/* The greatest common divisor: sizes that two loops, or two ways to cut rows, can share. */
#ifndef TG_DIVISOR_H
#define TG_DIVISOR_H

#include <stdint.h>

static inline int64_t tg_common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
