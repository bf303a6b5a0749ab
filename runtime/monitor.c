#include "runtime/monitor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char plateau_prefix[] = "plateau.";

static double *named_scalar(Monitor *monitor, const char *prefix, const char *name) {
    return tg_loop_builtin(monitor->loop, tg_arena_printf(monitor->loop->arena, "%s%s", prefix, name));
}

static void open_tracker(Monitor *monitor, const PlanResult *result) {
    Tracker *tracker = &monitor->trackers[monitor->count++];
    *tracker = (Tracker){.name = result->name, .buffer = result->buffer, .best = INFINITY, .patience = INFINITY};
    tracker->since_scalar = named_scalar(monitor, "since_", result->name);
    tracker->plateaus_scalar = &monitor->loop->ignored;
    size_t prefix = strlen(plateau_prefix);
    if (strcmp(result->name, "keep") == 0)
        monitor->keep = tracker;
    if (strncmp(result->name, plateau_prefix, prefix) != 0)
        return;
    tracker->patience = strtod(result->name + prefix, NULL);
    tracker->plateaus_scalar = named_scalar(monitor, "plateaus.", result->name + prefix);
}

static void open_fields(Monitor *monitor) {
    Loop *loop = monitor->loop;
    uint32_t each = loop->set_count > 0 ? loop->sets[0].fields.count : 0, count = 0;
    monitor->fields = TG_ALLOC(loop->arena, double *, (size_t)each * loop->set_count + 1);
    for (uint32_t s = 0; s < loop->set_count; s++) {
        const char *as = loop->sets[s].as;
        const char *prefix = as[0] != '\0' ? tg_arena_printf(loop->arena, "val.%s.", as) : "val.";
        for (uint32_t i = 0; i < each; i++)
            monitor->fields[count++] = named_scalar(monitor, prefix, loop->sets[s].fields.names[i]);
    }
}

static void set_fields(const Monitor *monitor) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < monitor->loop->set_count; s++) {
        const LoopFields *fields = &monitor->loop->sets[s].fields;
        for (uint32_t i = 0; i < fields->count; i++)
            *monitor->fields[count++] = fields->values[i];
    }
}

void tg_monitor_open(Monitor *monitor, Loop *loop) {
    *monitor = (Monitor){.loop = loop, .func = tg_plan_func(loop->plan, PLAN_MONITOR, NULL)};
    if (monitor->func == NULL)
        return;
    monitor->trackers = TG_ALLOC(loop->arena, Tracker, monitor->func->result_count);
    for (uint32_t i = 0; i < monitor->func->result_count; i++) {
        const PlanResult *result = &loop->plan->results[monitor->func->result_first + i];
        if (strcmp(result->name, "stop") == 0)
            monitor->stop = result;
        else
            open_tracker(monitor, result);
    }
    open_fields(monitor);
}

static double value_of(const Monitor *monitor, uint32_t buffer) {
    return tg_element_get(monitor->loop->plan->buffers[buffer].dtype, tg_exec_address(monitor->loop->exec, buffer, 0),
                          0);
}

void tg_monitor_resume(Monitor *monitor) {
    for (uint32_t i = 0; i < monitor->count; i++)
        *monitor->trackers[i].plateaus_scalar = monitor->trackers[i].plateaus;
}

bool tg_monitor_update(Monitor *monitor, bool *keep) {
    *keep = false;
    if (monitor->func == NULL)
        return false;
    set_fields(monitor);
    tg_exec_run(monitor->loop->exec, monitor->func, 0);
    for (uint32_t i = 0; i < monitor->count; i++) {
        Tracker *tracker = &monitor->trackers[i];
        double value = value_of(monitor, tracker->buffer);
        bool better = value < tracker->best;
        tracker->since = better ? 0 : tracker->since + 1;
        tracker->best = better ? value : tracker->best;
        *tracker->since_scalar = tracker->since;
        if (tracker->since > tracker->patience) {
            tracker->since = 0;
            tracker->plateaus++;
        }
        *keep |= better && tracker == monitor->keep;
    }
    tg_monitor_resume(monitor);
    if (monitor->stop == NULL)
        return false;
    tg_exec_run(monitor->loop->exec, monitor->func, 0); /* now with what the trackers say */
    return value_of(monitor, monitor->stop->buffer) != 0;
}
