/* What is known of a kernel's values before anything is printed: ranges, multiples of powers of two, how they vary. */
#include "codegen/cuda/emit.h"

enum { NEST_DEPTH = 64, ZERO_TWOS = 32 };
static const int64_t MOST_ROWS = INT32_MAX, NARROW = 0x7fff0000;

typedef __int128 Wide;

static const LoopInstr *at(const Emit *e, LoopId id) { return &e->k->instrs.at[id]; }

static void bound(Fact *f, Wide low, Wide high) {
    f->bounded = low >= INT64_MIN && high <= INT64_MAX;
    f->low = f->bounded ? (int64_t)low : 0;
    f->high = f->bounded ? (int64_t)high : 0;
}

static void type_bounds(Fact *f, DType type, bool as_unsigned) {
    uint32_t bits = 8u * tg_dtype(type)->bytes;
    if (type == DT_BOOL)
        bound(f, 0, 1);
    else if (tg_dtype(type)->kind == KIND_UNSIGNED || (as_unsigned && bits < 64))
        bound(f, 0, ((Wide)1 << bits) - 1);
    else if (bits < 64)
        bound(f, -((Wide)1 << (bits - 1)), ((Wide)1 << (bits - 1)) - 1);
}

static uint32_t twos_of(int64_t value) {
    uint32_t twos = 0;
    while (value != 0 && twos < ZERO_TWOS && (value & 1) == 0) {
        value /= 2;
        twos++;
    }
    return value == 0 ? ZERO_TWOS : twos;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void product_bounds(Fact *f, const Fact *a, const Fact *b) {
    Wide corner[4] = {(Wide)a->low * b->low, (Wide)a->low * b->high, (Wide)a->high * b->low, (Wide)a->high * b->high};
    Wide low = corner[0], high = corner[0];
    for (int i = 1; i < 4; i++) {
        low = corner[i] < low ? corner[i] : low;
        high = corner[i] > high ? corner[i] : high;
    }
    bound(f, low, high);
}

static int64_t mask_over(int64_t value) {
    uint64_t mask = (uint64_t)value;
    for (int shift = 1; shift < 64; shift *= 2)
        mask |= mask >> shift;
    return (int64_t)mask;
}

/* Bounds of an operation on bounded operands. */
static void arithmetic_bounds(Fact *f, LoopOp op, const Fact *a, const Fact *b) {
    bool positive = b->low > 0, natural = a->low >= 0;
    bool naturals = natural && b->low >= 0;
    if (op == LOOP_iadd)
        bound(f, (Wide)a->low + b->low, (Wide)a->high + b->high);
    else if (op == LOOP_isub)
        bound(f, (Wide)a->low - b->high, (Wide)a->high - b->low);
    else if (op == LOOP_imul)
        product_bounds(f, a, b);
    else if (op == LOOP_imin)
        bound(f, a->low < b->low ? a->low : b->low, a->high < b->high ? a->high : b->high);
    else if (op == LOOP_imax)
        bound(f, a->low > b->low ? a->low : b->low, a->high > b->high ? a->high : b->high);
    else if ((op == LOOP_idiv || op == LOOP_udiv) && positive && natural)
        bound(f, a->low / b->high, a->high / b->low);
    else if (op == LOOP_idiv && positive)
        bound(f, a->low, a->high > 0 ? a->high : 0);
    else if ((op == LOOP_irem || op == LOOP_urem) && positive && natural)
        bound(f, 0, a->high < b->high - 1 ? a->high : b->high - 1);
    else if (op == LOOP_irem && positive)
        bound(f, -(Wide)(b->high - 1), b->high - 1);
    else if ((op == LOOP_or || op == LOOP_xor) && naturals)
        bound(f, 0, mask_over(a->high | b->high));
    else if (op == LOOP_lshr && natural && b->low == b->high && b->low >= 0 && b->low < 64)
        bound(f, a->low >> b->low, a->high >> b->low);
}

/* Of `and` and a shift, one known operand is enough. */
static void half_known(Fact *f, LoopOp op, const Fact *a, const Fact *b) {
    if (op == LOOP_and && b->bounded && b->low >= 0)
        bound(f, 0, b->high);
    else if (op == LOOP_and && a->bounded && a->low >= 0)
        bound(f, 0, a->high);
    else if (op == LOOP_lshr && b->bounded && b->low == b->high && b->low > 0 && b->low < 64)
        bound(f, 0, ((Wide)1 << (64 - b->low)) - 1);
}

static bool is_bounded_by(const Emit *e, LoopId id, LoopId top, int depth) {
    const LoopInstr *instr = at(e, id);
    if (id == top || (instr->op == LOOP_const && at(e, top)->op == LOOP_const && instr->imm == at(e, top)->imm))
        return true;
    if (depth == 0 || (instr->op != LOOP_imin && instr->op != LOOP_imax))
        return false;
    bool a = is_bounded_by(e, instr->a, top, depth - 1), b = is_bounded_by(e, instr->b, top, depth - 1);
    return instr->op == LOOP_imin ? a || b : a && b;
}

/* Of a loop's variable. Where it begins with min(x, y) and ends before y, it runs only if it begins with x. */
static uint32_t first_twos(const Emit *e, const LoopInstr *loop) {
    const LoopInstr *begin = at(e, loop->a);
    if (begin->op == LOOP_imin && is_bounded_by(e, loop->b, begin->b, 6))
        return e->facts[begin->a].twos;
    if (begin->op == LOOP_imin && is_bounded_by(e, loop->b, begin->a, 6))
        return e->facts[begin->b].twos;
    return e->facts[loop->a].twos;
}

static void loop_fact(Emit *e, LoopId id, Fact *f) {
    const LoopInstr *loop = at(e, id);
    const Fact *begin = &e->facts[loop->a], *end = &e->facts[loop->b];
    f->varies = f->linear = loop->mode == MODE_VECTOR;
    f->step = f->linear;
    f->twos = loop->mode == MODE_VECTOR ? first_twos(e, loop) : 0;
    if (!begin->bounded)
        return;
    Wide high = (Wide)begin->high + loop->imm - 1;
    if (end->bounded && end->high - (Wide)1 < high)
        high = end->high - (Wide)1;
    bound(f, begin->low, high > begin->low ? high : begin->low);
}

static void leaf_fact(Fact *f, const LoopInstr *instr) {
    if (instr->op == LOOP_const) {
        bound(f, instr->imm, instr->imm);
        f->twos = twos_of(instr->imm);
    } else if (instr->op == LOOP_rows) {
        bound(f, 0, MOST_ROWS);
    } else if (instr->op == LOOP_first_row) {
        bound(f, 0, INT64_MAX / 2);
    }
}

static uint32_t arithmetic_twos(LoopOp op, const Fact *a, const Fact *b) {
    if (op == LOOP_imul)
        return least(a->twos + b->twos, ZERO_TWOS);
    bool keeps = op == LOOP_iadd || op == LOOP_isub || op == LOOP_imin || op == LOOP_imax;
    return keeps ? least(a->twos, b->twos) : 0;
}

static void linear_fact(Fact *f, const LoopInstr *instr, const Fact *a, const Fact *b) {
    bool straight = (!a->varies || a->linear) && (!b->varies || b->linear);
    Wide step = 0;
    if (!f->bounded || !straight)
        return;
    if (instr->op == LOOP_iadd)
        step = (Wide)a->step + b->step;
    else if (instr->op == LOOP_isub)
        step = (Wide)a->step - b->step;
    else if (instr->op == LOOP_imul && !b->varies && b->low == b->high)
        step = (Wide)a->step * b->low;
    else if (instr->op == LOOP_imul && !a->varies && a->low == a->high)
        step = (Wide)b->step * a->low;
    else
        return;
    f->linear = step != 0 && step <= NARROW && step >= -NARROW;
    f->step = f->linear ? (int64_t)step : 0;
}

static void value_fact(Emit *e, LoopId id, Fact *f) {
    const LoopInstr *instr = at(e, id);
    const LoopId ids[3] = {instr->a, instr->b, instr->c};
    f->varies = instr->op == LOOP_load && instr->imm != 0 && f->vector != 0;
    for (int i = 0; i < tg_loop_op_info((LoopOp)instr->op)->operands; i++)
        f->varies = f->varies || e->facts[ids[i]].varies;
    if (tg_loop_is_reduction((LoopOp)instr->op) && at(e, f->around)->mode == MODE_VECTOR)
        f->varies = false;
    if (instr->type != DT_I64 || instr->op == LOOP_load || instr->op == LOOP_store)
        return;
    const Fact *a = &e->facts[instr->a], *b = &e->facts[instr->b];
    LoopOp op = (LoopOp)instr->op;
    if (op >= LOOP_const && op <= LOOP_seed) {
        leaf_fact(f, instr);
    } else if (op == LOOP_select && b->bounded && e->facts[instr->c].bounded) {
        const Fact *c = &e->facts[instr->c];
        bound(f, b->low < c->low ? b->low : c->low, b->high > c->high ? b->high : c->high);
        f->twos = least(b->twos, c->twos);
    } else if (op == LOOP_wrap || op == LOOP_zero || op == LOOP_convert) {
        if (!tg_is_float((DType)at(e, instr->a)->type))
            type_bounds(f, (DType)at(e, instr->a)->type, op == LOOP_zero);
    } else if (op >= LOOP_iadd && op <= LOOP_ashr) {
        f->twos = arithmetic_twos(op, a, b);
        half_known(f, op, a, b);
        if (a->bounded && b->bounded)
            arithmetic_bounds(f, op, a, b);
        if (f->varies)
            linear_fact(f, instr, a, b);
    }
}

static void mark_escapes(Emit *e) {
    for (LoopId id = 1; id < e->k->instrs.count; id++) {
        const LoopInstr *instr = at(e, id);
        const LoopId ids[3] = {instr->a, instr->b, instr->c};
        for (int i = 0; i < tg_loop_op_info((LoopOp)instr->op)->operands; i++)
            if (e->facts[ids[i]].segment != e->facts[id].segment)
                e->facts[ids[i]].escapes = true;
    }
}

void tg_cuda_facts(Emit *e) {
    LoopId open[NEST_DEPTH];
    uint32_t depth = 0, segment = 1;
    LoopId vector = 0;
    bool stored = false;
    for (LoopId id = 1; id < e->k->instrs.count; id++) {
        const LoopInstr *instr = at(e, id);
        Fact *f = &e->facts[id];
        f->around = depth ? open[depth - 1] : 0;
        f->vector = vector;
        if (instr->op == LOOP_for || instr->op == LOOP_end || (instr->op == LOOP_load && stored)) {
            segment++;
            stored = false;
        }
        stored = stored || instr->op == LOOP_store;
        f->segment = segment;
        if (instr->op == LOOP_end) {
            LoopId loop = open[--depth];
            e->facts[loop].match = id;
            vector = loop == vector ? 0 : vector;
            continue;
        }
        if (instr->op != LOOP_for) {
            value_fact(e, id, f);
            continue;
        }
        loop_fact(e, id, f);
        open[depth++] = id;
        vector = instr->mode == MODE_VECTOR ? id : vector;
        f->segment = segment++;
    }
    mark_escapes(e);
}

bool tg_cuda_narrow(const Emit *e, LoopId id) {
    const Fact *f = &e->facts[id];
    return f->bounded && f->low >= -NARROW && f->high <= NARROW;
}

bool tg_cuda_stride(const Emit *e, LoopId id, int64_t *stride) {
    const LoopInstr *instr = at(e, id);
    const Fact *a = &e->facts[instr->a];
    *stride = instr->imm + a->step;
    return !a->varies || a->linear;
}

bool tg_cuda_aligned(const Emit *e, LoopId id, uint32_t width) {
    const LoopInstr *instr = at(e, id);
    uint32_t twos = e->facts[instr->a].twos;
    if (instr->imm != 0)
        twos = least(twos, e->facts[e->facts[id].vector].twos);
    return twos >= twos_of(width);
}

bool tg_cuda_sums_floats(const Emit *e, LoopId loop) {
    EACH_CUDA_REDUCTION(e, loop, id)
    if (at(e, id)->op == LOOP_reduce_sum && tg_is_float((DType)at(e, id)->type))
        return true;
    return false;
}

bool tg_cuda_has(const Emit *e, LoopId loop, LoopOp op, LoopMode mode) {
    for (LoopId id = loop + 1; id < e->facts[loop].match; id++)
        if (at(e, id)->op == op && (op != LOOP_for || at(e, id)->mode == mode))
            return true;
    return false;
}

bool tg_cuda_is_wide(const Emit *e, LoopId id) {
    const Fact *f = &e->facts[id];
    uint32_t width = f->vector ? e->shapes[f->vector].width : 1;
    int64_t stride;
    return width > 1 && tg_cuda_stride(e, id, &stride) && stride == 1 && tg_cuda_aligned(e, id, width);
}
