/* Reductions: partial results of a thread, folded as codegen/loop.h says. Sums of floats keep their lanes; what else there is
   gives the same bits in any order. */
#include "codegen/cuda/emit.h"

#include <inttypes.h>
#include <math.h>

static const LoopInstr *at(const Emit *e, LoopId id) { return &e->k->instrs.at[id]; }
static DType operand_type(const Emit *e, LoopId id) { return (DType)at(e, at(e, id)->a)->type; }
static const char *suffix(const Emit *e, LoopId id) { return tg_cuda_name(operand_type(e, id)); }
static bool is_argmax(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_reduce_argmax; }
static bool is_float_sum(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_reduce_sum && tg_is_float(operand_type(e, id)); }
static bool in_vector_loop(const Emit *e, LoopId id) { return at(e, e->facts[id].around)->mode == MODE_VECTOR; }

static const char *function(const Emit *e, LoopId id) {
    LoopOp op = (LoopOp)at(e, id)->op;
    return op == LOOP_reduce_sum ? "add" : op == LOOP_reduce_min ? "min" : "max";
}

/* Partial results of a thread. */
static int64_t partials(const Emit *e, LoopId id) {
    LoopId loop = e->facts[id].around;
    if (!in_vector_loop(e, id))
        return e->facts[id].varies ? e->shapes[e->facts[id].vector].width : 1;
    const Shape *s = &e->shapes[loop];
    return s->staged && is_float_sum(e, id) ? 1 : s->steps * (int64_t)s->width;
}

static const char *start(Emit *e, LoopId id) {
    DType type = operand_type(e, id);
    LoopOp op = (LoopOp)at(e, id)->op;
    if (op == LOOP_reduce_sum)
        return tg_is_float(type) && !in_vector_loop(e, id) ? tg_cuda_number(e, type, -0.0) : tg_cuda_number(e, type, 0);
    return tg_arena_printf(e->arena, "tg_%s_%s", op == LOOP_reduce_min ? "most" : "least", tg_cuda_name(type));
}

static void fill(Emit *e, const char *type, const char *name, LoopId id, int64_t count, const char *value) {
    if (count == 1) {
        tg_cuda_line(e, "%s %s%u[1] = {%s};", type, name, id, value);
        return;
    }
    tg_cuda_line(e, "%s %s%u[%" PRId64 "];", type, name, id, count);
    tg_cuda_line(e, "#pragma unroll");
    tg_cuda_line(e, "for (int i = 0; i < %" PRId64 "; i++)", count);
    tg_cuda_line(e, "    %s%u[i] = %s;", name, id, value);
}

static bool is_staged(const Emit *e, LoopId id) {
    return in_vector_loop(e, id) && e->nests[e->nest].block && !e->shapes[e->facts[id].around].single;
}

/* Shared memory of a reduction: a value of every element, or of every warp. */
static void declare_stage(Emit *e, LoopId id) {
    const Shape *s = &e->shapes[e->facts[id].around];
    int64_t count = is_float_sum(e, id) ? s->across * s->width : e->threads / CUDA_WARP;
    tg_cuda_line(e, "__shared__ %s sp%u[%" PRId64 "];", suffix(e, id), id, count);
    if (is_argmax(e, id))
        tg_cuda_line(e, "__shared__ i32 sq%u[%" PRId64 "];", id, count);
}

void tg_cuda_reduce_begin(Emit *e, LoopId loop) {
    EACH_CUDA_REDUCTION(e, loop, id) {
        int64_t count = partials(e, id);
        fill(e, suffix(e, id), "p", id, count, start(e, id));
        if (is_argmax(e, id))
            fill(e, "i32", "q", id, count, "0x7fffffff");
        if (is_staged(e, id))
            declare_stage(e, id);
    }
}

/* p[to] takes in a value; q: the index that goes with it. */
static void fold(Emit *e, LoopId id, const char *to, const char *value, const char *index) {
    if (is_argmax(e, id))
        tg_cuda_line(e, "tg_argmax_%s(&p%u[%s], &q%u[%s], %s, %s);", suffix(e, id), id, to, id, to, value, index);
    else
        tg_cuda_line(e, "p%u[%s] = tg_%s_%s(p%u[%s], %s);", id, to, function(e, id), suffix(e, id), id, to, value);
}

void tg_cuda_reduce(Emit *e, LoopId id) {
    LoopId loop = e->facts[id].around;
    const Shape *s = &e->shapes[loop];
    const char *value = tg_cuda_ref(e, at(e, id)->a);
    const char *index = is_argmax(e, id) ? tg_arena_printf(e->arena, "(i32)%s", tg_cuda_ref(e, loop)) : NULL;
    const char *element = e->element ? e->j : "0", *to = e->facts[id].varies ? element : "0";
    if (in_vector_loop(e, id) && s->staged && is_float_sum(e, id)) {
        tg_cuda_line(e, "sp%u[lane * %u + %s] = %s;", id, s->width, element, value);
        return;
    }
    if (in_vector_loop(e, id))
        to = s->steps > 1 ? tg_arena_printf(e->arena, "u%u * %u + %s", loop, s->width, element) : element;
    fold(e, id, to, value, index);
}

/* After the block has put its elements: each lane's thread folds those of its lane, in order. */
void tg_cuda_reduce_staged(Emit *e, LoopId loop) {
    const Shape *s = &e->shapes[loop];
    int64_t lanes = tg_reduce_lanes(at(e, loop)->imm), count = s->across * s->width;
    const char *end = tg_cuda_ref(e, at(e, loop)->b);
    int64_t first = 0;
    tg_cuda_line(e, "__syncthreads();");
    EACH_CUDA_REDUCTION(e, loop, id) {
        if (!is_float_sum(e, id))
            continue;
        /* Sums go to different warps as far as there are some. */
        first = first + lanes > e->threads ? 0 : first;
        tg_cuda_open(e, "if (lane >= %" PRId64 " && lane < %" PRId64 ")", first, first + lanes);
        const char *inside = s->full ? "" : tg_arena_printf(e->arena, " && from%u + i < %s", loop, end);
        tg_cuda_open(e, "for (int i = lane - %" PRId64 "; i < %" PRId64 "%s; i += %" PRId64 ")", first, count, inside, lanes);
        fold(e, id, "0", tg_arena_printf(e->arena, "sp%u[i]", id), NULL);
        tg_cuda_close(e);
        tg_cuda_close(e);
        first += lanes;
    }
    tg_cuda_line(e, "__syncthreads();");
}

/* p[i] with p[i + h], for h from `first` down to `last`. */
static void fold_own(Emit *e, LoopId id, int64_t first, int64_t last) {
    if (first < last)
        return;
    tg_cuda_line(e, "#pragma unroll");
    tg_cuda_open(e, "for (int h = %" PRId64 "; h >= %" PRId64 "; h /= 2)", first, last);
    tg_cuda_line(e, "#pragma unroll");
    tg_cuda_open(e, "for (int i = 0; i < h; i++)");
    fold(e, id, "i", tg_arena_printf(e->arena, "p%u[i + h]", id), tg_arena_printf(e->arena, "q%u[i + h]", id));
    tg_cuda_close(e);
    tg_cuda_close(e);
}

/* The first `count` partial results with those of the threads h away. */
static void fold_threads(Emit *e, LoopId id, int64_t threads, int64_t count) {
    if (threads < 2)
        return;
    const char *mask = e->nests[e->nest].block ? "0xffffffffu" : "team_mask";
    tg_cuda_line(e, "#pragma unroll");
    tg_cuda_open(e, "for (int h = %" PRId64 "; h >= 1; h /= 2)", threads / 2);
    tg_cuda_line(e, "#pragma unroll");
    tg_cuda_open(e, "for (int i = 0; i < %" PRId64 "; i++)", count);
    if (is_argmax(e, id))
        tg_cuda_line(e, "const i32 other = tg_swap_i32(%s, q%u[i], h);", mask, id);
    fold(e, id, "i", tg_arena_printf(e->arena, "tg_swap_%s(%s, p%u[i], h)", suffix(e, id), mask, id), "other");
    tg_cuda_close(e);
    tg_cuda_close(e);
}

/* Lanes are (step, thread, element): the upper half onto the lower, until one is left. */
static void fold_team(Emit *e, LoopId id, const Shape *s) {
    int64_t width = s->width;
    fold_own(e, id, s->steps * width / 2, width);
    if (!s->single)
        fold_threads(e, id, s->across, width);
    fold_own(e, id, width / 2, 1);
}

/* The lanes' sums lie in the first threads of the group that `first` begins. */
static void fold_lanes(Emit *e, LoopId id, int64_t lanes, int64_t first) {
    tg_cuda_line(e, "if (lane >= %" PRId64 " && lane < %" PRId64 ")", first, first + lanes);
    tg_cuda_line(e, "    sp%u[lane - %" PRId64 "] = p%u[0];", id, first, id);
    tg_cuda_line(e, "__syncthreads();");
    int64_t threads = lanes < CUDA_WARP ? lanes : CUDA_WARP;
    tg_cuda_line(e, "p%u[0] = sp%u[lane %% %" PRId64 "];", id, id, threads);
    for (int64_t more = threads; more < lanes; more += threads)
        fold(e, id, "0", tg_arena_printf(e->arena, "sp%u[lane %% %" PRId64 " + %" PRId64 "]", id, threads, more), NULL);
    fold_threads(e, id, threads, 1);
}

static void fold_warps(Emit *e, LoopId id, const Shape *s) {
    fold_own(e, id, s->steps * (int64_t)s->width / 2, 1);
    fold_threads(e, id, CUDA_WARP, 1);
    tg_cuda_open(e, "if (lane %% %d == 0)", CUDA_WARP);
    tg_cuda_line(e, "sp%u[lane / %d] = p%u[0];", id, CUDA_WARP, id);
    if (is_argmax(e, id))
        tg_cuda_line(e, "sq%u[lane / %d] = q%u[0];", id, CUDA_WARP, id);
    tg_cuda_close(e);
    tg_cuda_line(e, "__syncthreads();");
    tg_cuda_line(e, "p%u[0] = sp%u[0];", id, id);
    if (is_argmax(e, id))
        tg_cuda_line(e, "q%u[0] = sq%u[0];", id, id);
    tg_cuda_open(e, "for (int i = 1; i < %" PRId64 "; i++)", e->threads / CUDA_WARP);
    fold(e, id, "0", tg_arena_printf(e->arena, "sp%u[i]", id), tg_arena_printf(e->arena, "sq%u[i]", id));
    tg_cuda_close(e);
}

static void end_vector(Emit *e, LoopId loop) {
    const Shape *s = &e->shapes[loop];
    int64_t lanes = tg_reduce_lanes(at(e, loop)->imm), first = 0;
    bool staged = false;
    EACH_CUDA_REDUCTION(e, loop, id) {
        if (!is_staged(e, id)) {
            fold_team(e, id, s);
            continue;
        }
        staged = true;
        if (!is_float_sum(e, id)) {
            fold_warps(e, id, s);
            continue;
        }
        first = first + lanes > e->threads ? 0 : first;
        fold_lanes(e, id, lanes, first);
        first += lanes;
    }
    if (staged)
        tg_cuda_line(e, "__syncthreads();");
}

/* A serial sum over nothing is +0, not the -0 that it begins with. */
static void end_serial(Emit *e, LoopId loop, LoopId id) {
    const Fact *begin = &e->facts[at(e, loop)->a], *end = &e->facts[at(e, loop)->b];
    bool runs = begin->bounded && end->bounded && begin->high < end->low;
    if (!is_float_sum(e, id) || runs)
        return;
    tg_cuda_open(e, "if (%s >= %s)", tg_cuda_ref(e, at(e, loop)->a), tg_cuda_ref(e, at(e, loop)->b));
    tg_cuda_line(e, "for (int i = 0; i < %" PRId64 "; i++)", partials(e, id));
    tg_cuda_line(e, "    p%u[i] = 0;", id);
    tg_cuda_close(e);
}

void tg_cuda_reduce_end(Emit *e, LoopId loop) {
    if (at(e, loop)->mode == MODE_VECTOR) {
        end_vector(e, loop);
        return;
    }
    EACH_CUDA_REDUCTION(e, loop, id)
    end_serial(e, loop, id);
}
