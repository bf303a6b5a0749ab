/* --report: what a program is made of. */
#include "driver/pipeline.h"

#include <inttypes.h>

static int64_t parameter_count(const TgPlan *plan) {
    int64_t count = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if (buffer->class != PLAN_PARAM)
            continue;
        int64_t elements = 1;
        for (int d = 0; d < buffer->rank; d++)
            elements *= buffer->dims[d];
        count += elements;
    }
    return count;
}

static void print_step(Str *to, const PlanStep *step) {
    tg_str_printf(to, "    %-9s %12.0f bytes %14.0f flops  %-28s", tg_plan_step_kind(step->kind), step->bytes,
                  step->flops, step->label);
    for (uint32_t i = 0; i < step->line_count; i++)
        tg_str_printf(to, "%s%s:%" PRIu32, i ? ", " : " ", step->lines[i].file, step->lines[i].line);
    tg_str_printf(to, "\n");
}

void report_print(Str *to, const TgPlan *plan) {
    tg_str_printf(to, "parameters    %" PRId64 "\n", parameter_count(plan));
    tg_str_printf(to, "memory        %" PRId64 " bytes, of them %" PRId64 " persistent\n", plan->arena_bytes,
                  plan->persistent_bytes);
    int64_t bytes[PLAN_CLASS_COUNT];
    tg_plan_memory(plan, bytes);
    for (int i = 0; i < PLAN_CLASS_COUNT; i++)
        if (bytes[i])
            tg_str_printf(to, "    %-12s %12" PRId64 " bytes\n", tg_plan_memory_name((PlanBufferClass)i), bytes[i]);
    tg_str_printf(to, "batch         %" PRId64 " in micro-batches of %" PRId64 ", %" PRId64 " lane%s\n", plan->batch,
                  plan->micro, plan->lanes, plan->lanes == 1 ? "" : "s");
    tg_str_printf(to, "kernels       %" PRIu32 "\ndots          %" PRIu32 "\n", plan->kernel_count, plan->dot_count);
    tg_str_printf(to, "\nsettings\n");
    for (uint32_t i = 0; i < plan->setting_count; i++)
        tg_str_printf(to, "    %-32s %-20s %s\n", plan->settings[i].name, plan->settings[i].value,
                      plan->settings[i].origin);
    for (uint32_t f = 0; f < plan->func_count; f++) {
        const PlanFunc *func = &plan->funcs[f];
        double bytes = 0, flops = 0;
        for (uint32_t i = 0; i < func->step_count; i++) {
            bytes += plan->steps[func->step_first + i].bytes;
            flops += plan->steps[func->step_first + i].flops;
        }
        tg_str_printf(to, "\n%s (%" PRId64 " records): %" PRIu32 " steps, %.0f bytes, %.0f flops\n", func->name,
                      func->capacity, func->step_count, bytes, flops);
        for (uint32_t i = 0; i < func->step_count; i++)
            print_step(to, &plan->steps[func->step_first + i]);
    }
}
