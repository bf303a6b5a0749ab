#include "ir/plan/plan.h"

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

void tg_plan_memory(const TgPlan *plan, int64_t bytes[PLAN_CLASS_COUNT]) {
    int64_t fixed = 0, end = 0;
    for (int i = 0; i < PLAN_CLASS_COUNT; i++)
        bytes[i] = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        int64_t size = buffer->lane_bytes > 0 ? buffer->lanes * buffer->lane_bytes : round_up(buffer->bytes);
        if (buffer->class == PLAN_TEMP)
            end = buffer->offset + size > end ? buffer->offset + size : end;
        else if (buffer->class != PLAN_SCRATCH)
            bytes[buffer->class] += size, fixed += size;
    }
    bytes[PLAN_TEMP] = end > fixed ? end - fixed : 0;
    bytes[PLAN_SCRATCH] = plan->arena_bytes - fixed - bytes[PLAN_TEMP];
}

const char *tg_plan_memory_name(PlanBufferClass class) {
    static const char *const names[PLAN_CLASS_COUNT] = {
        [PLAN_PARAM] = "parameters", [PLAN_STATE] = "states",     [PLAN_OPTIMIZER] = "optimizer",
        [PLAN_COPY] = "low copies",
        [PLAN_SUM] = "gradients",    [PLAN_INPUT] = "inputs",     [PLAN_OUTPUT] = "results",
        [PLAN_CONST] = "constants",  [PLAN_TEMP] = "activations", [PLAN_SCRATCH] = "workspace",
    };
    return names[class];
}
