/* Philox 4x32-10 (Salmon et al., SC 2011): the only source of randomness. */
#ifndef TG_PHILOX_H
#define TG_PHILOX_H

#include <stdint.h>

typedef struct Philox {
    uint32_t word[4];
} Philox;

static inline Philox tg_philox(uint64_t key, Philox counter) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * counter.word[0], b = (uint64_t)0xCD9E8D57u * counter.word[2];
        counter = (Philox){{(uint32_t)(b >> 32) ^ counter.word[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ counter.word[3] ^ k1, (uint32_t)a}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

#endif
