#include "runtime/profile.h"

static void add_span(Profile *profile, int thread, SpanKind kind, uint32_t index, int64_t begin, int64_t end) {
    ProfileTrack *track = profile->tracks[thread];
    track->spans[track->count++] = (ProfileSpan){begin, end, kind, index};
}

/* Each thread writes to its own track. */
static void ran(void *context, int thread, int64_t begin, int64_t end) {
    Profile *profile = context;
    add_span(profile, thread, SPAN_SHARE, profile->running, begin, end);
}

/* A step of a chain: thread 0 ends it when its own part is done. */
static void ran_link(void *context, int thread, uint32_t step, int64_t begin, int64_t end) {
    Profile *profile = context;
    if (thread == 0) {
        profile->run = profile->tracks[0]->count;
        add_span(profile, 0, SPAN_RUN, step, profile->last, end);
        profile->last = end;
    }
    add_span(profile, thread, SPAN_SHARE, step, begin, end);
}

/* The most spans of a thread in one training step: a dot is shared out twice if its sum is cut. */
static int64_t most_spans(const TgPlan *plan) {
    enum { OF_A_STEP = 3, OF_A_FUNC = 2, OF_ALL = 2 };
    int64_t spans = OF_ALL, micros = plan->micro > 0 ? (plan->batch + plan->micro - 1) / plan->micro : 1;
    for (uint32_t i = 0; i < plan->func_count; i++) {
        const PlanFunc *func = &plan->funcs[i];
        bool each = func->kind == PLAN_PRE || func->kind == PLAN_MICRO;
        bool once = func->kind == PLAN_SCALARS || func->kind == PLAN_TAIL || func->kind == PLAN_FIELDS;
        if (each || once)
            spans += (each ? micros : 1) * (OF_A_FUNC + OF_A_STEP * (int64_t)func->step_count);
    }
    return spans;
}

void tg_profile_open(Profile *profile, Arena *arena, const TgPlan *plan, const Roof *roof, int threads, int64_t wanted) {
    *profile = (Profile){.plan = plan, .roof = roof, .threads = threads, .warm = TG_PROFILE_WARM, .wanted = wanted};
    profile->watch = (TgWatch){profile, ran, ran_link};
    profile->tracks = TG_ALLOC(arena, ProfileTrack *, threads);
    size_t bytes = sizeof(ProfileTrack) + (size_t)(wanted * most_spans(plan)) * sizeof(ProfileSpan);
    for (int i = 0; i < threads; i++)
        profile->tracks[i] = tg_arena_alloc(arena, bytes);
}

static ProfileSpan *span(const Profile *profile, uint32_t index) { return &profile->tracks[0]->spans[index]; }

static uint32_t open_span(Profile *profile, SpanKind kind, uint32_t index, int64_t begin) {
    add_span(profile, 0, kind, index, begin, begin);
    return profile->tracks[0]->count - 1;
}

/* What passes between two functions is the copy of the records into the inputs of the next. */
void tg_profile_enter(Profile *profile, const PlanFunc *func) {
    int64_t now = tg_nanoseconds();
    if (func->input_count)
        add_span(profile, 0, SPAN_GATHER, 0, profile->last, now);
    profile->last = now;
    profile->func = open_span(profile, SPAN_FUNC, (uint32_t)(func - profile->plan->funcs), now);
}

/* A step begins where the one before it ended: one look at the clock each. */
void tg_profile_run(Profile *profile, uint32_t step) {
    profile->running = step;
    profile->run = open_span(profile, SPAN_RUN, step, profile->last);
}

void tg_profile_ran(Profile *profile) { profile->last = span(profile, profile->run)->end = tg_nanoseconds(); }

void tg_profile_leave(Profile *profile) { span(profile, profile->func)->end = profile->last; }

void tg_profile_begin_step(Profile *profile, int64_t number) {
    profile->recording = profile->seen++ >= profile->warm && profile->recorded < profile->wanted;
    if (!profile->recording)
        return;
    profile->last = tg_nanoseconds();
    profile->step = open_span(profile, SPAN_STEP, (uint32_t)number, profile->last);
}

void tg_profile_batch(Profile *profile) {
    if (!profile->recording)
        return;
    int64_t now = tg_nanoseconds();
    add_span(profile, 0, SPAN_WAIT, 0, profile->last, now);
    profile->last = now;
}

void tg_profile_end_step(Profile *profile) {
    if (!profile->recording)
        return;
    span(profile, profile->step)->end = tg_nanoseconds();
    profile->recorded++;
    profile->recording = false;
}
