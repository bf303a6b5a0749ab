/* How loops go to threads, and where scratch lies. Nothing here changes a bit: sums keep the lanes of codegen/loop.h. */
#include "codegen/cuda/emit.h"

static const LoopInstr *at(const Emit *e, LoopId id) { return &e->k->instrs.at[id]; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t power_above(int64_t x) {
    int64_t power = 1;
    while (power < x)
        power *= 2;
    return power;
}

#define EACH_IN(e, loop, id) for (LoopId id = (loop) + 1; id < (e)->facts[loop].match; id++)

static bool is_vector(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_for && at(e, id)->mode == MODE_VECTOR; }

/* ---- vector loops ---- */

static bool is_access(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_load || at(e, id)->op == LOOP_store; }

/* Two elements store to one place, or might. */
static bool stores_collide(const Emit *e, LoopId loop) {
    int64_t stride;
    EACH_IN(e, loop, id)
    if (at(e, id)->op == LOOP_store && (!tg_cuda_stride(e, id, &stride) || stride == 0))
        return true;
    return false;
}

/* The most neighbours that every contiguous access takes as one. */
static uint32_t width_of(const Emit *e, LoopId loop) {
    for (uint32_t width = CUDA_ACCESS; width > 1; width /= 2) {
        bool some = false, all = true;
        int64_t stride;
        EACH_IN(e, loop, id) {
            if (!is_access(e, id) || !tg_cuda_stride(e, id, &stride) || stride != 1)
                continue;
            some = true;
            all = all && tg_cuda_aligned(e, id, width) &&
                  width * tg_dtype(e->k->buffers.at[at(e, id)->buffer].dtype)->bytes <= CUDA_ACCESS;
        }
        if (some && all)
            return width;
    }
    return 1;
}

static bool is_parallel(const Emit *e, LoopId id) { return at(e, id)->op == LOOP_for && at(e, id)->mode == MODE_PARALLEL; }

/* Threads that share an element differ in what they load after one of them stores: such a value may not reach a parallel
   loop's inside. */
static bool splits(const Emit *e, LoopId loop) {
    EACH_CUDA_REDUCTION(e, loop, id) {
        (void)id;
        return false;
    }
    LoopId parallel = 0, first_store = 0;
    EACH_IN(e, loop, id) {
        if (is_parallel(e, id) && id > parallel)
            parallel = e->facts[id].match;
        else if (at(e, id)->op == LOOP_store && id > parallel && first_store == 0)
            first_store = id;
    }
    if (parallel == 0)
        return false;
    bool *late = TG_ALLOC(e->arena, bool, e->k->instrs.count);
    LoopId inside = 0;
    EACH_IN(e, loop, id) {
        const LoopInstr *instr = at(e, id);
        const LoopId ids[3] = {instr->a, instr->b, instr->c};
        if (is_parallel(e, id) && id > inside)
            inside = e->facts[id].match;
        late[id] = instr->op == LOOP_load && id > inside && first_store != 0;
        for (int i = 0; i < tg_loop_op_info((LoopOp)instr->op)->operands; i++)
            late[id] = late[id] || late[ids[i]];
        if (late[id] && id < inside)
            return false;
    }
    return true;
}

static int64_t lanes_of(const Emit *e, LoopId loop) { return tg_reduce_lanes(at(e, loop)->imm); }

/* Threads that a vector loop can use. */
static int64_t threads_for(const Emit *e, LoopId loop) {
    return e->shapes[loop].single ? 1 : divide_up(at(e, loop)->imm, e->shapes[loop].width);
}

static bool is_multiple(const Emit *e, LoopId loop, int64_t of) {
    const Fact *begin = &e->facts[at(e, loop)->a], *end = &e->facts[at(e, loop)->b];
    uint32_t begin_twos = e->facts[loop].twos;
    bool known = begin->bounded && end->bounded && begin->low == begin->high && end->low == end->high;
    if (known)
        return (end->low - begin->low) % of == 0;
    return (of & (of - 1)) == 0 && of <= INT64_C(1) << least(begin_twos, end->twos);
}

/* ---- nests ---- */

static void plan_split(Emit *e, LoopId loop, Nest *nest) {
    Shape *s = &e->shapes[loop];
    int64_t iterations = 1;
    EACH_IN(e, loop, id)
    if (is_parallel(e, id))
        iterations = most(iterations, at(e, id)->imm);
    s->across = least(power_above(threads_for(e, loop)), 128);
    s->along = least(power_above(iterations), CUDA_SPLIT_BLOCK / s->across);
    nest->block = true;
    nest->threads = most(nest->threads, most(s->across * s->along, CUDA_WARP));
}

static void plan_nest(Emit *e, LoopId loop) {
    Nest *nest = &e->nests[loop];
    bool rows = is_parallel(e, loop);
    int64_t team = CUDA_WARP, wanted = 1, lanes = 0;
    *nest = (Nest){.teams = 1};
    for (LoopId id = loop; id < e->facts[loop].match; id++) {
        if (!is_vector(e, id))
            continue;
        if (e->shapes[id].split) {
            plan_split(e, id, nest);
            continue;
        }
        wanted = most(wanted, threads_for(e, id));
        if (!tg_cuda_sums_floats(e, id) || e->shapes[id].single)
            continue;
        lanes = most(lanes, lanes_of(e, id));
        team = least(team, most(1, lanes_of(e, id) / e->shapes[id].width));
    }
    team = least(team, power_above(wanted));
    int64_t extent = most(1, at(e, loop)->imm), whole = most(least(power_above(wanted), CUDA_TEAMS_BLOCK), most(lanes, CUDA_WARP));
    if (nest->block || !rows || (wanted > CUDA_WARP && team * extent < 2 * CUDA_WARP)) {
        nest->block = true;
        nest->threads = most(nest->threads, whole);
        return;
    }
    nest->threads = team;
    nest->teams = least(extent, CUDA_TEAMS_BLOCK / team);
}

#define EACH_NEST(e, id)                                                                                               \
    for (LoopId id = 1; id < (e)->k->instrs.count; id++)                                                               \
        if ((e)->nests[id].threads != 0)

static int64_t round_up(int64_t x, int64_t to) { return divide_up(x, to) * to; }

static void count_threads(Emit *e) {
    e->threads = CUDA_WARP;
    EACH_NEST(e, id)
    e->threads = most(e->threads, round_up(e->nests[id].threads * e->nests[id].teams, CUDA_WARP));
}

/* Every loop over elements, once the block's threads are known. */
static void finish_shape(Emit *e, LoopId loop, const Nest *nest) {
    Shape *s = &e->shapes[loop];
    bool sums = tg_cuda_sums_floats(e, loop);
    int64_t threads = nest->block ? e->threads : nest->threads;
    s->steps = 1;
    if (s->single) {
        s->across = s->along = 1;
        EACH_CUDA_REDUCTION(e, loop, id) {
            (void)id;
            s->steps = (uint32_t)lanes_of(e, loop);
        }
        return;
    }
    if (s->split) {
        s->along = e->threads / s->across;
        s->across = s->along > 1 ? s->across : e->threads;
        s->full = is_multiple(e, loop, (s->along > 1 ? s->across : 1) * s->width);
        return;
    }
    s->along = 1;
    s->across = threads;
    s->staged = nest->block && sums;
    if (s->staged)
        s->across = threads - threads % lanes_of(e, loop);
    if (!nest->block && sums)
        s->steps = (uint32_t)(lanes_of(e, loop) / (threads * s->width));
    int64_t at_once = s->staged ? s->across * s->width : s->width;
    s->full = is_multiple(e, loop, at_once) && (!s->staged || s->across == threads);
}

/* ---- scratch ---- */

int64_t tg_cuda_bytes(const LoopBuffer *buffer) {
    return round_up(most(buffer->count, 1) * tg_dtype(buffer->dtype)->bytes, CUDA_ACCESS);
}

static LoopId nest_of(const Emit *e, LoopId id) {
    LoopId nest = 0;
    for (LoopId loop = e->facts[id].around; loop != 0; loop = e->facts[loop].around)
        nest = at(e, loop)->mode == MODE_TILE ? nest : loop;
    return nest;
}

static void find_owners(Emit *e) {
    for (LoopId id = 1; id < e->k->instrs.count; id++) {
        LoopId nest = nest_of(e, id);
        if (at(e, id)->op == LOOP_store && nest != 0 && is_parallel(e, nest) &&
            e->k->buffers.at[at(e, id)->buffer].role == ROLE_SCRATCH)
            e->storage[at(e, id)->buffer].owner = nest;
    }
}

static int64_t copies(const Emit *e, uint32_t buffer) {
    LoopId owner = e->storage[buffer].owner;
    return owner ? e->nests[owner].teams : 1;
}

/* Lanes of staged reductions: a value of each thread's elements, and an index of it for argmax. */
static int64_t staging_bytes(const Emit *e) {
    int64_t bytes = 0;
    for (LoopId id = 1; id < e->k->instrs.count; id++) {
        LoopId loop = e->facts[id].around;
        if (!tg_loop_is_reduction((LoopOp)at(e, id)->op) || !is_vector(e, loop))
            continue;
        const Shape *s = &e->shapes[loop];
        if (e->nests[nest_of(e, id)].block && !s->single)
            bytes += s->across * s->width * (tg_dtype((DType)at(e, at(e, id)->a)->type)->bytes + 4);
    }
    return bytes;
}

static int64_t shared_bytes(const Emit *e) {
    int64_t bytes = staging_bytes(e);
    for (uint32_t i = 0; i < e->k->buffers.count; i++)
        if (e->storage[i].space == SPACE_SHARED)
            bytes += copies(e, i) * tg_cuda_bytes(&e->k->buffers.at[i]);
    return bytes;
}

static bool fewer_teams(Emit *e) {
    bool fewer = false;
    EACH_NEST(e, id) {
        Nest *nest = &e->nests[id];
        if (nest->teams > 1 && nest->teams * nest->threads > 2 * CUDA_WARP) {
            nest->teams = divide_up(nest->teams, 2);
            fewer = true;
        }
    }
    return fewer;
}

static void move_largest(Emit *e) {
    uint32_t largest = 0;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < e->k->buffers.count; i++) {
        int64_t own = copies(e, i) * tg_cuda_bytes(&e->k->buffers.at[i]);
        if (e->storage[i].space == SPACE_SHARED && own > bytes) {
            largest = i;
            bytes = own;
        }
    }
    e->storage[largest] = (Storage){.space = SPACE_WORK, .owner = e->storage[largest].owner, .offset = e->work};
    e->work += bytes;
}

static bool any_shared(const Emit *e) {
    for (uint32_t i = 0; i < e->k->buffers.count; i++)
        if (e->storage[i].space == SPACE_SHARED)
            return true;
    return false;
}

static void finish_shapes(Emit *e) {
    count_threads(e);
    for (LoopId id = 1; id < e->k->instrs.count; id++)
        if (is_vector(e, id))
            finish_shape(e, id, &e->nests[nest_of(e, id) ? nest_of(e, id) : id]);
}

void tg_cuda_shape(Emit *e) {
    for (LoopId id = 1; id < e->k->instrs.count; id++) {
        if (!is_vector(e, id))
            continue;
        Shape *s = &e->shapes[id];
        s->single = stores_collide(e, id);
        s->width = s->single ? 1 : width_of(e, id);
        s->split = !s->single && splits(e, id);
    }
    for (LoopId id = 1; id < e->k->instrs.count; id++)
        if (at(e, id)->op == LOOP_for && e->facts[id].around != 0 && at(e, e->facts[id].around)->mode == MODE_TILE)
            plan_nest(e, id);
    for (uint32_t i = 0; i < e->k->buffers.count; i++)
        e->storage[i].space = e->k->buffers.at[i].role == ROLE_SCRATCH ? SPACE_SHARED : SPACE_PARAMETER;
    find_owners(e);
    finish_shapes(e);
    while (shared_bytes(e) > CUDA_SHARED && fewer_teams(e))
        finish_shapes(e);
    while (shared_bytes(e) > CUDA_SHARED && any_shared(e))
        move_largest(e);
    e->shared = shared_bytes(e);
}
