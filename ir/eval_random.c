/* Counter-based random numbers: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). */
#include "ir/eval_rules.h"

void tg_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c[0], p1 = UINT64_C(0xCD9E8D57) * c[2];
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

float tg_random(uint64_t seed, uint64_t key, uint64_t iteration, uint64_t row, uint64_t index) {
    uint64_t mixed = key ^ seed;
    uint32_t counter[4] = {(uint32_t)iteration, (uint32_t)row, (uint32_t)index, (uint32_t)(index >> 32)}, out[4];
    tg_philox(counter, (uint32_t[2]){(uint32_t)mixed, (uint32_t)(mixed >> 32)}, out);
    return (float)(out[0] >> 8) * 0x1p-24f;
}

Status eval_random(EvalCall *call) {
    const EvalState *state = call->state;
    const Type *type = eval_type(call, call->node->type);
    int batch = tg_type_batch_axis(type);
    Tensor *result = call->result;
    if (batch < 0) {
        for (int64_t i = 0; i < result->count; i++)
            result->at[i] = tg_random(state->seed, call->node->attr->key, state->iteration, 0, (uint64_t)i);
        return TG_OK;
    }
    /* [outer, rows, inner]: rows is B, inner holds what B is multiplied with. */
    Extents extents = eval_extents(call, call->node->type);
    Around around = eval_around(&extents, batch);
    int64_t inner = around.inner * type->dims[batch].size;
    for (int64_t i = 0; i < result->count; i++) {
        int64_t row = i / inner % state->rows;
        int64_t index = i / inner / state->rows * inner + i % inner;
        result->at[i] = tg_random(state->seed, call->node->attr->key, state->iteration,
                                  (uint64_t)(state->first_row + row), (uint64_t)index);
    }
    return TG_OK;
}
