/* Offsets in the one arena. What persists comes first, in the order of the classes; then what functions exchange; then a frame
   for temporaries that all functions use in turn. In a frame a buffer takes the lowest place that is free from its first to its
   last step, so what was used last is used again first, while it is in cache. */
#include "codegen/plan_build.h"

static int64_t round_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static bool is_temporary(const PlanBuffer *b) { return b->class == PLAN_TEMP || b->class == PLAN_SCRATCH; }

/* Streams that begin at equal places modulo the size of a way of the second cache push each other out of it: AdamW took three times as
   long. So large buffers begin at pages of PHASES kinds; those that a step uses together are rarely of one kind. */
enum { STAGGERED_BYTES = 2 << 20, PAGE = 4096, PHASES = 16 };

static int64_t staggered(int64_t offset, int64_t bytes, uint32_t phase) {
    if (bytes < STAGGERED_BYTES)
        return offset;
    int64_t page = (offset + PAGE - 1) / PAGE;
    return (page + (phase + PHASES - page % PHASES) % PHASES) * PAGE;
}

/* A parameter, the states of its optimizer (neighbours) and its gradient differ. */
static uint32_t phase_of(PlanBufferClass class, uint32_t index) {
    static const uint32_t first[] = {[PLAN_PARAM] = 0, [PLAN_STATE] = 4, [PLAN_SUM] = 4, [PLAN_OPTIMIZER] = 8, [PLAN_COPY] = 12};
    return class < sizeof first / sizeof *first ? first[class] + index % 4 : index % PHASES;
}

static int64_t place_class(Planner *p, PlanBufferClass class, int64_t offset) {
    uint32_t large = 0;
    for (uint32_t i = 0; i < p->buffers.count; i++) {
        PlanBuffer *b = &p->buffers.at[i].buffer;
        if (b->class != class)
            continue;
        offset = staggered(offset, b->bytes, phase_of(class, large));
        large += b->bytes >= STAGGERED_BYTES;
        b->offset = offset;
        offset += class == PLAN_SUM ? b->lanes * b->lane_bytes : round_up(b->bytes);
    }
    return offset;
}

/* A stretch of the frame that a living buffer holds. */
typedef struct Held {
    int64_t begin, end;
    uint32_t last;
} Held;

typedef struct Frame {
    Held *held; /* by offset */
    uint32_t count;
} Frame;

static void release(Frame *frame, uint32_t step) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < frame->count; i++)
        if (frame->held[i].last >= step)
            frame->held[kept++] = frame->held[i];
    frame->count = kept;
}

static int64_t take(Frame *frame, int64_t bytes, uint32_t last, uint32_t phase) {
    int64_t begin = staggered(0, bytes, phase);
    uint32_t at = 0;
    while (at < frame->count && frame->held[at].begin - begin < bytes)
        begin = staggered(frame->held[at++].end, bytes, phase);
    for (uint32_t i = frame->count++; i > at; i--)
        frame->held[i] = frame->held[i - 1];
    frame->held[at] = (Held){begin, begin + bytes, last};
    return begin;
}

/* A place of a chain: parts lie in it as in any buffer of the same size, so a thread finds there only what is its own. */
typedef struct Spent {
    int64_t offset;
    uint32_t dies; /* step */
    struct Spent *next;
} Spent;

static Spent **spent_places(Map *places, const Draft *draft) {
    int64_t key[] = {draft->chain, draft->buffer.bytes};
    return (Spent **)(void *)tg_map_put(places, key, sizeof key, NULL);
}

/* What lay there is held to the chain's end: now for the new buffer, if that lives longer. */
static bool take_spent(Frame *frame, Spent **places, const Draft *draft, int64_t *offset) {
    while (*places && (*places)->dies >= draft->first)
        places = &(*places)->next;
    if (*places == NULL)
        return false;
    *offset = (*places)->offset;
    *places = (*places)->next;
    for (uint32_t i = 0; i < frame->count; i++)
        if (frame->held[i].begin == *offset)
            frame->held[i].last = draft->last;
    return true;
}

static int64_t place_temporary(Planner *p, Frame *frame, Map *places, const Draft *draft, uint32_t phase) {
    int64_t offset;
    Spent **spent = draft->chain ? spent_places(places, draft) : NULL;
    if (spent == NULL || !take_spent(frame, spent, draft, &offset))
        offset = take(frame, round_up(draft->buffer.bytes), draft->last, phase);
    if (spent && draft->dies < draft->last) {
        Spent *place = TG_ALLOC(p->arena, Spent, 1);
        *place = (Spent){offset, draft->dies, *spent};
        *spent = place;
    }
    return offset;
}

/* Buffers of one function stand in the order of their first steps. */
static int64_t place_frames(Planner *p, int64_t base) {
    int64_t highest = base;
    Frame frame = {.held = TG_ALLOC(p->arena, Held, p->buffers.count + 1)};
    Map places = tg_map(p->arena);
    uint32_t owner = 0, large = 0;
    for (uint32_t i = 0; i < p->buffers.count; i++) {
        Draft *draft = &p->buffers.at[i];
        if (!is_temporary(&draft->buffer))
            continue;
        if (draft->frame != owner)
            frame.count = 0;
        owner = draft->frame;
        release(&frame, draft->first);
        large += draft->buffer.bytes >= STAGGERED_BYTES;
        draft->buffer.offset = base + place_temporary(p, &frame, &places, draft, large % PHASES);
        int64_t end = draft->buffer.offset + round_up(draft->buffer.bytes);
        highest = end > highest ? end : highest;
    }
    return highest;
}

void tg_plan_place(Planner *p, TgPlan *plan) {
    static const PlanBufferClass fixed[] = {PLAN_SUM, PLAN_INPUT, PLAN_OUTPUT, PLAN_CONST};
    static const PlanBufferClass persistent[] = {PLAN_PARAM, PLAN_STATE, PLAN_OPTIMIZER, PLAN_COPY};
    int64_t offset = 0;
    for (size_t i = 0; i < sizeof persistent / sizeof *persistent; i++)
        offset = place_class(p, persistent[i], offset);
    plan->persistent_bytes = offset;
    for (uint32_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        offset = place_class(p, fixed[i], offset);
    plan->arena_bytes = place_frames(p, offset);
}
