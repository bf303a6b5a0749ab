/* Loops and the segments between them. */
#include "codegen/cuda/emit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static const LoopInstr *at(const Emit *e, LoopId id) { return &e->k->instrs.at[id]; }

static void add_line(Emit *e, const char *format, va_list arguments) {
    char small[512];
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    char *text = small;
    if ((size_t)length >= sizeof small) {
        text = tg_arena_alloc(e->arena, (size_t)length + 1);
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    tg_str_printf(e->out, "%*s", 4 * e->indent, "");
    tg_str_add(e->out, text, (size_t)length);
}

void tg_cuda_line(Emit *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_line(e, format, arguments);
    va_end(arguments);
    tg_str_printf(e->out, "\n");
}

void tg_cuda_open(Emit *e, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_line(e, format, arguments);
    va_end(arguments);
    tg_str_printf(e->out, " {\n");
    e->indent++;
}

static void open_block(Emit *e) {
    tg_cuda_line(e, "{");
    e->indent++;
}

void tg_cuda_close(Emit *e) {
    e->indent--;
    tg_cuda_line(e, "}");
}

void tg_cuda_barrier(Emit *e) {
    bool block = e->nest == 0 || e->nests[e->nest].block;
    if (block || e->nests[e->nest].threads > 1)
        tg_cuda_line(e, block ? "__syncthreads();" : "__syncwarp(team_mask);");
    e->pending = 0;
}

static void unroll(Emit *e) { tg_cuda_line(e, "#pragma unroll"); }

/* ---- single instructions ---- */

/* `if (...) ` before what not every thread may do. */
static const char *guard(const Emit *e) { return e->store ? tg_arena_printf(e->arena, "if (%s) ", e->store) : ""; }

static const char *stored_value(Emit *e, LoopId id) {
    LoopId value = at(e, id)->b;
    const char *text = tg_cuda_ref(e, value);
    return at(e, value)->type == DT_BOOL ? tg_arena_printf(e->arena, "(u8)%s", text) : text;
}

static void store(Emit *e, LoopId id) {
    if (e->element && tg_cuda_is_wide(e, id))
        tg_cuda_line(e, "x%u.at[%s] = %s;", id, e->j, stored_value(e, id));
    else
        tg_cuda_line(e, "%sb%u[%s] = %s;", guard(e), at(e, id)->buffer, tg_cuda_address(e, id), stored_value(e, id));
    e->pending |= PENDING_STORE;
}

static void instruction(Emit *e, LoopId id) {
    LoopOp op = (LoopOp)at(e, id)->op;
    if (op == LOOP_load)
        e->pending |= e->k->buffers.at[at(e, id)->buffer].role == ROLE_IN ? PENDING_INPUT : PENDING_LOAD;
    if (op == LOOP_store)
        store(e, id);
    else if (tg_loop_is_reduction(op))
        tg_cuda_reduce(e, id);
    else if (op != LOOP_const && e->element && e->facts[id].escapes && !e->facts[id].linear)
        tg_cuda_line(e, "x%u[%s] = %s;", id, e->j, tg_cuda_expression(e, id));
    else if (op != LOOP_const)
        tg_cuda_line(e, "const %s x%u = %s;", tg_cuda_type(e, id), id, tg_cuda_expression(e, id));
}

/* ---- segments ---- */

/* Made once a thread, not once an element. */
static bool is_common(const Emit *e, LoopId id) {
    const Fact *f = &e->facts[id];
    LoopOp op = (LoopOp)at(e, id)->op;
    return op != LOOP_store && !tg_loop_is_reduction(op) && (!f->varies || f->linear);
}

static bool is_wide_load(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_load && tg_cuda_is_wide(e, id); }
static bool is_wide_store(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_store && tg_cuda_is_wide(e, id); }

static const char *group_type(const Emit *e, LoopId id) {
    return tg_arena_printf(e->arena, "%sx%u", tg_cuda_memory_type(e->k->buffers.at[at(e, id)->buffer].dtype),
                           e->shapes[e->vector].width);
}

/* Where some elements of a thread may lie behind the end: how many do not. */
static const char *count_of(const Emit *e) {
    const Shape *s = &e->shapes[e->vector];
    bool cut = !s->full && (s->width > 1 || s->staged || s->along > 1);
    return cut ? tg_arena_printf(e->arena, "n%u", e->vector) : NULL;
}

static void load_groups(Emit *e, LoopId from, LoopId to) {
    const char *count = count_of(e);
    for (LoopId id = from; id < to; id++) {
        if (!is_wide_load(e, id))
            continue;
        const char *type = group_type(e, id), *address = tg_cuda_address(e, id);
        if (count)
            tg_cuda_line(e, "const %s x%u = tg_some_%s(&b%u[%s], %s);", type, id, type, at(e, id)->buffer, address, count);
        else
            tg_cuda_line(e, "const %s x%u = *(const %s *)&b%u[%s];", type, id, type, at(e, id)->buffer, address);
    }
}

static void store_groups(Emit *e, LoopId from, LoopId to) {
    const char *count = count_of(e);
    for (LoopId id = from; id < to; id++) {
        if (!is_wide_store(e, id))
            continue;
        const char *type = group_type(e, id), *address = tg_cuda_address(e, id);
        if (count)
            tg_cuda_line(e, "%stg_put_%s(&b%u[%s], x%u, %s);", guard(e), type, at(e, id)->buffer, address, id, count);
        else
            tg_cuda_line(e, "%s*(%s *)&b%u[%s] = x%u;", guard(e), type, at(e, id)->buffer, address, id);
    }
}

static bool in_elements(const Emit *e, LoopId id) { return !is_common(e, id) && !is_wide_load(e, id) && at(e, id)->op != LOOP_const; }

static void declare(Emit *e, LoopId from, LoopId to) {
    uint32_t width = e->shapes[e->vector].width;
    for (LoopId id = from; id < to; id++) {
        LoopOp op = (LoopOp)at(e, id)->op;
        if (is_wide_store(e, id))
            tg_cuda_line(e, "%s x%u;", group_type(e, id), id);
        else if (in_elements(e, id) && e->facts[id].escapes && op != LOOP_store && !tg_loop_is_reduction(op))
            tg_cuda_line(e, "%s x%u[%u];", tg_cuda_type(e, id), id, width);
    }
}

/* A loop over a thread's elements, those before the end. */
static void open_elements(Emit *e) {
    uint32_t width = e->shapes[e->vector].width;
    const char *count = count_of(e);
    e->element = true;
    if (width > 1) {
        unroll(e);
        tg_cuda_open(e, "for (int j = 0; j < %u; j++)", width);
        e->j = "j";
    }
    if (count)
        tg_cuda_open(e, "if (%s < %s)", e->j, count);
}

static void close_elements(Emit *e) {
    if (count_of(e))
        tg_cuda_close(e);
    if (e->shapes[e->vector].width > 1)
        tg_cuda_close(e);
    e->element = false;
    e->j = "0";
}

static void segment(Emit *e, LoopId from, LoopId to) {
    bool some = false;
    for (LoopId id = from; id < to; id++) {
        if (is_common(e, id))
            instruction(e, id);
        some = some || in_elements(e, id);
    }
    load_groups(e, from, to);
    declare(e, from, to);
    if (some)
        open_elements(e);
    for (LoopId id = from; id < to; id++)
        if (in_elements(e, id))
            instruction(e, id);
    if (some)
        close_elements(e);
    store_groups(e, from, to);
}

/* ---- loops inside of a vector loop ---- */

static const char *loop_type(const Emit *e, LoopId id) { return tg_cuda_type(e, id); }

/* What a thread begins with: `first` and its number times `each`. */
static const char *start_at(Emit *e, const char *first, const char *number, int64_t each) {
    const char *own = each == 1 ? number : tg_arena_printf(e->arena, "%s * %" PRId64, number, each);
    return strcmp(first, "0") == 0 ? own : tg_arena_printf(e->arena, "%s + %s", first, own);
}

static void inner_loop(Emit *e, LoopId id) {
    const LoopInstr *loop = at(e, id);
    const Shape *s = &e->shapes[e->vector];
    bool split = s->along > 1 && !e->shared_out;
    bool shared = split && loop->mode == MODE_PARALLEL, has_parallel = split && tg_cuda_has(e, id, LOOP_for, MODE_PARALLEL);
    const char *type = loop_type(e, id), *begin = tg_cuda_ref(e, loop->a), *end = tg_cuda_ref(e, loop->b), *store = e->store;
    bool reduces = false;
    EACH_CUDA_REDUCTION(e, id, r) {
        (void)r;
        reduces = true;
    }
    bool alone = store != NULL && !shared && !has_parallel && !reduces && tg_cuda_has(e, id, LOOP_store, MODE_TILE);
    if ((shared || has_parallel) && (e->pending & PENDING_STORE))
        tg_cuda_barrier(e);
    tg_cuda_reduce_begin(e, id);
    if (alone)
        tg_cuda_open(e, "if (%s)", store);
    if (shared)
        tg_cuda_open(e, "for (%s x%u = %s; x%u < %s; x%u += %" PRId64 ")", type, id, start_at(e, begin, "along", 1), id, end, id,
                     s->along);
    else
        tg_cuda_open(e, "for (%s x%u = %s; x%u < %s; x%u++)", type, id, begin, id, end, id);
    if (shared || alone)
        e->store = NULL;
    e->shared_out = e->shared_out || shared;
    tg_cuda_body(e, id + 1, e->facts[id].match);
    e->store = store;
    if (shared)
        e->shared_out = false;
    if (has_parallel && !shared)
        tg_cuda_barrier(e);
    tg_cuda_close(e);
    if (alone)
        tg_cuda_close(e);
    tg_cuda_reduce_end(e, id);
    if (shared)
        tg_cuda_barrier(e);
}

void tg_cuda_body(Emit *e, LoopId from, LoopId to) {
    for (LoopId id = from; id < to;) {
        if (at(e, id)->op == LOOP_for) {
            inner_loop(e, id);
            id = e->facts[id].match + 1;
            continue;
        }
        LoopId next = id;
        while (next < to && at(e, next)->op != LOOP_for && e->facts[next].segment == e->facts[id].segment)
            next++;
        segment(e, id, next);
        id = next;
    }
}

/* ---- vector loops ---- */

static void count_elements(Emit *e, LoopId id, const char *end, const char *inside) {
    const Shape *s = &e->shapes[id];
    if (count_of(e) == NULL)
        return;
    if (inside)
        tg_cuda_line(e, "const i32 n%u = %s ? (i32)tg_min_i64((i64)%s - x%u, %u) : 0;", id, inside, end, id, s->width);
    else
        tg_cuda_line(e, "const i32 n%u = (i32)tg_min_i64((i64)%s - x%u, %u);", id, end, id, s->width);
}

/* Every thread stays to the end: there are barriers inside. */
static void together(Emit *e, LoopId id, const char *begin, const char *end) {
    const Shape *s = &e->shapes[id];
    const char *type = loop_type(e, id);
    int64_t step = s->across * s->width;
    bool idle = s->across * s->along < e->threads;
    tg_cuda_open(e, "for (%s from%u = %s; from%u < %s; from%u += %" PRId64 ")", type, id, begin, id, end, id, step);
    const char *lane = s->along > 1 ? "across" : "lane";
    tg_cuda_line(e, "const %s x%u = from%u + %s * %u;", type, id, id, lane, s->width);
    count_elements(e, id, end, idle && s->staged ? tg_arena_printf(e->arena, "lane < %" PRId64, s->across) : NULL);
    tg_cuda_body(e, id + 1, e->facts[id].match);
    if (s->staged)
        tg_cuda_reduce_staged(e, id);
    else
        tg_cuda_barrier(e);
    tg_cuda_close(e);
}

/* A thread has elements of several lanes. */
static void stepped(Emit *e, LoopId id, const char *begin, const char *end) {
    const Shape *s = &e->shapes[id];
    const char *type = loop_type(e, id);
    int64_t step = s->across * s->width;
    tg_cuda_open(e, "for (%s from%u = %s; from%u < %s; from%u += %" PRId64 ")", type, id, begin, id, end, id, step * s->steps);
    unroll(e);
    tg_cuda_open(e, "for (int u%u = 0; u%u < %u; u%u++)", id, id, s->steps, id);
    if (s->single)
        tg_cuda_line(e, "const %s x%u = from%u + u%u;", type, id, id, id);
    else
        tg_cuda_line(e, "const %s x%u = from%u + u%u * %" PRId64 " + lane * %u;", type, id, id, id, step, s->width);
    tg_cuda_open(e, "if (x%u < %s)", id, end);
    count_elements(e, id, end, NULL);
    tg_cuda_body(e, id + 1, e->facts[id].match);
    tg_cuda_close(e);
    tg_cuda_close(e);
    tg_cuda_close(e);
}

static void plain(Emit *e, LoopId id, const char *begin, const char *end) {
    const Shape *s = &e->shapes[id];
    const char *start = s->single ? begin : start_at(e, begin, "lane", s->width);
    tg_cuda_open(e, "for (%s x%u = %s; x%u < %s; x%u += %" PRId64 ")", loop_type(e, id), id, start, id, end, id,
                 s->across * s->width);
    count_elements(e, id, end, NULL);
    tg_cuda_body(e, id + 1, e->facts[id].match);
    tg_cuda_close(e);
}

static void split_threads(Emit *e, const Shape *s) {
    tg_cuda_line(e, "const i32 across = lane %% %" PRId64 ", along = lane / %" PRId64 ";", s->across, s->across);
}

static void vector_loop(Emit *e, LoopId id) {
    const LoopInstr *loop = at(e, id);
    const Shape *s = &e->shapes[id];
    const char *begin = tg_cuda_ref(e, loop->a), *end = tg_cuda_ref(e, loop->b);
    e->vector = id;
    e->j = "0";
    const char *leader = e->store;
    e->store = s->along > 1 ? "along == 0" : s->single ? "lane == 0" : NULL;
    tg_cuda_reduce_begin(e, id);
    if (s->along > 1) {
        open_block(e);
        split_threads(e, s);
    }
    if (s->along > 1 || s->staged)
        together(e, id, begin, end);
    else if (s->steps > 1)
        stepped(e, id, begin, end);
    else
        plain(e, id, begin, end);
    if (s->along > 1)
        tg_cuda_close(e);
    e->store = leader;
    tg_cuda_reduce_end(e, id);
    e->vector = 0;
    e->pending |= PENDING_LOOP;
}

/* ---- outside of vector loops ---- */

static bool owns_scratch(const Emit *e, LoopId nest) {
    for (uint32_t i = 0; i < e->k->buffers.count; i++)
        if (e->storage[i].owner == nest)
            return true;
    return false;
}

static void serial_loop(Emit *e, LoopId id) {
    const LoopInstr *loop = at(e, id);
    const char *begin = tg_cuda_ref(e, loop->a), *end = tg_cuda_ref(e, loop->b), *type = loop_type(e, id);
    tg_cuda_reduce_begin(e, id);
    const Nest *nest = &e->nests[id];
    if (loop->mode == MODE_PARALLEL && e->nest == id && !nest->block)
        tg_cuda_open(e, "for (%s x%u = %s; x%u < %s; x%u += %" PRId64 ")", type, id, start_at(e, begin, "team", 1), id, end, id,
                     nest->teams);
    else
        tg_cuda_open(e, "for (%s x%u = %s; x%u < %s; x%u++)", type, id, begin, id, end, id);
    tg_cuda_range(e, id + 1, e->facts[id].match);
    if (e->pending && (loop->mode != MODE_PARALLEL || owns_scratch(e, id)))
        tg_cuda_barrier(e);
    tg_cuda_close(e);
    tg_cuda_reduce_end(e, id);
    e->pending |= PENDING_LOOP;
}

/* Scratch that each team has for itself. */
static void team_scratch(Emit *e, LoopId nest) {
    for (uint32_t i = 0; i < e->k->buffers.count; i++) {
        const LoopBuffer *buffer = &e->k->buffers.at[i];
        if (e->storage[i].owner != nest)
            continue;
        const char *type = tg_cuda_memory_type(buffer->dtype);
        const char *start = e->storage[i].space == SPACE_SHARED
                                ? tg_arena_printf(e->arena, "s%u", i)
                                : tg_arena_printf(e->arena, "(%s *)(workspace + %" PRId64 ")", type, e->storage[i].offset);
        int64_t each = tg_cuda_bytes(buffer) / tg_dtype(buffer->dtype)->bytes;
        tg_cuda_line(e, "%s *const b%u = %s + team * %" PRId64 ";", type, i, start, each);
    }
}

static void open_nest(Emit *e, LoopId id) {
    const Nest *nest = &e->nests[id];
    EACH_CUDA_REDUCTION(e, id, r)
    tg_cuda_line(e, "%s y%u;", tg_cuda_type(e, r), r);
    e->nest = id;
    open_block(e);
    e->store = "lane == 0";
    if (nest->block) {
        tg_cuda_line(e, "const i32 lane = threadIdx.x;");
        if (owns_scratch(e, id))
            tg_cuda_line(e, "const i32 team = 0;");
    } else {
        tg_cuda_line(e, "const i32 lane = threadIdx.x %% %" PRId64 ", team = threadIdx.x / %" PRId64 ";", nest->threads,
                     nest->threads);
        tg_cuda_line(e, "const u32 team_mask = tg_team_mask(%" PRId64 ");", nest->threads);
    }
    team_scratch(e, id);
    if (!nest->block && nest->threads * nest->teams < e->threads)
        tg_cuda_open(e, "if (team < %" PRId64 ")", nest->teams);
}

static void close_nest(Emit *e, LoopId id) {
    const Nest *nest = &e->nests[id];
    EACH_CUDA_REDUCTION(e, id, r)
    tg_cuda_line(e, "y%u = %s;", r, tg_cuda_ref(e, r));
    if (!nest->block && nest->threads * nest->teams < e->threads)
        tg_cuda_close(e);
    tg_cuda_close(e);
    e->nest = 0;
    e->store = "threadIdx.x == 0";
}

static void any_loop(Emit *e, LoopId id) {
    if (at(e, id)->mode == MODE_VECTOR)
        vector_loop(e, id);
    else
        serial_loop(e, id);
}

static void tile_loop(Emit *e, LoopId id) {
    const char *type = loop_type(e, id);
    tg_cuda_open(e, "for (%s x%u = (%s)first + blockIdx.x; x%u < last; x%u += gridDim.x)", type, id, type, id, id);
    e->store = "threadIdx.x == 0";
    tg_cuda_range(e, id + 1, e->facts[id].match);
    if (e->shared != 0 || e->work != 0)
        tg_cuda_line(e, "__syncthreads();");
    tg_cuda_close(e);
}

/* Whether other threads must first have come here: they may still read what is stored next, or have stored what is read. */
static bool must_meet(const Emit *e, const LoopInstr *instr) {
    uint32_t against = instr->op == LOOP_for     ? PENDING_STORE | PENDING_LOOP | PENDING_LOAD
                       : instr->op == LOOP_load  ? PENDING_STORE | PENDING_LOOP
                       : instr->op == LOOP_store ? PENDING_LOAD | PENDING_INPUT | PENDING_LOOP
                                                 : 0;
    return (e->pending & against) != 0;
}

void tg_cuda_range(Emit *e, LoopId from, LoopId to) {
    for (LoopId id = from; id < to; id++) {
        const LoopInstr *instr = at(e, id);
        if (instr->op == LOOP_for && instr->mode == MODE_TILE) {
            tile_loop(e, id);
            id = e->facts[id].match;
            continue;
        }
        if (must_meet(e, instr))
            tg_cuda_barrier(e);
        if (instr->op != LOOP_for) {
            instruction(e, id);
            continue;
        }
        bool nest = e->nests[id].threads != 0;
        if (nest)
            open_nest(e, id);
        any_loop(e, id);
        if (nest)
            close_nest(e, id);
        id = e->facts[id].match;
    }
}
