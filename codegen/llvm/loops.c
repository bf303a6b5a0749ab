/* Loops: tile and serial ones as they stand; vector loops as full groups and a masked rest. */
#include "codegen/llvm/emit.h"

enum { MOST_FACTOR = 64 };

static uint8_t least(uint8_t a, uint8_t b) { return a < b ? a : b; }

static uint8_t factor_of(const Emit *e, const LoopInstr *instr) {
    uint8_t a = e->factor[instr->a], b = e->factor[instr->b];
    switch (instr->op) {
    case LOOP_const:
        return instr->imm % MOST_FACTOR == 0 ? MOST_FACTOR : (uint8_t)(instr->imm & -instr->imm);
    case LOOP_for:
        return instr->mode == MODE_VECTOR ? least(a, LOOP_LANES) : 1;
    case LOOP_imul:
        return a * b < MOST_FACTOR ? (uint8_t)(a * b) : MOST_FACTOR;
    case LOOP_iadd:
    case LOOP_isub:
    case LOOP_imin:
    case LOOP_imax:
        return least(a, b);
    default:
        return 1;
    }
}

void tg_emit_analyse(Emit *e) {
    const LoopKernel *k = e->k;
    LoopId open[64];
    uint32_t depth = 0, vectors = 0;
    for (LoopId id = 1; id < k->instrs.count; id++) {
        const LoopInstr *instr = &k->instrs.at[id];
        const LoopId operands[3] = {instr->a, instr->b, instr->c};
        bool varies = instr->op == LOOP_load && instr->imm != 0 && vectors > 0;
        for (int i = 0; i < tg_loop_op_info((LoopOp)instr->op)->operands; i++)
            varies = varies || e->varies[operands[i]];
        if (instr->op == LOOP_for) {
            open[depth++] = id;
            vectors += instr->mode == MODE_VECTOR;
            varies = instr->mode == MODE_VECTOR;
        } else if (instr->op == LOOP_end) {
            LoopId loop = open[--depth];
            e->match[loop] = id;
            vectors -= k->instrs.at[loop].mode == MODE_VECTOR;
        } else if (tg_loop_is_reduction((LoopOp)instr->op) && k->instrs.at[open[depth - 1]].mode == MODE_VECTOR) {
            varies = false;
        }
        e->varies[id] = varies;
        e->factor[id] = factor_of(e, instr);
    }
}

static LLVMBasicBlockRef new_block(Emit *e) { return LLVMAppendBasicBlockInContext(e->context, e->function, ""); }

/* A loop while variable < end, tested at its end; the builder is left in its body. */
typedef struct Counted {
    LLVMBasicBlockRef before, body, after;
    LLVMValueRef variable;
} Counted;

static Counted counted_begin(Emit *e, LLVMValueRef begin, LLVMValueRef end) {
    Counted loop = {.before = LLVMGetInsertBlock(e->builder), .body = new_block(e), .after = new_block(e)};
    LLVMValueRef some = LLVMBuildICmp(e->builder, LLVMIntSLT, begin, end, "");
    LLVMBuildCondBr(e->builder, some, loop.body, loop.after);
    LLVMPositionBuilderAtEnd(e->builder, loop.body);
    loop.variable = LLVMBuildPhi(e->builder, e->i64, "");
    LLVMAddIncoming(loop.variable, &begin, &loop.before, 1);
    return loop;
}

static void counted_end(Emit *e, Counted *loop, LLVMValueRef end, int64_t step) {
    LLVMValueRef next = LLVMBuildNSWAdd(e->builder, loop->variable, tg_emit_int(e, step), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->builder);
    LLVMAddIncoming(loop->variable, &next, &last, 1);
    LLVMBuildCondBr(e->builder, LLVMBuildICmp(e->builder, LLVMIntSLT, next, end, ""), loop->body, loop->after);
    LLVMPositionBuilderAtEnd(e->builder, loop->after);
}

static void body(Emit *e, LoopId loop) {
    LoopId outer = e->around;
    e->around = loop;
    tg_emit_range(e, loop + 1, e->match[loop]);
    e->around = outer;
}

static void scalar_loop(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    bool tile = instr->mode == MODE_TILE;
    LLVMValueRef begin = tile ? LLVMGetParam(e->function, 2) : tg_emit_uniform(e, instr->a);
    LLVMValueRef end = tile ? LLVMGetParam(e->function, 3) : tg_emit_uniform(e, instr->b);
    tg_emit_reduce_begin(e, id);
    Counted loop = counted_begin(e, begin, end);
    tg_emit_set_uniform(e, id, loop.variable);
    body(e, id);
    counted_end(e, &loop, end, 1);
    tg_emit_reduce_end(e, id);
}

/* Vectors an iteration: enough to hide latencies while the values fit the registers. */
static uint32_t groups_of(const Emit *e, LoopId id) {
    uint32_t weight = 0;
    for (LoopId i = id + 1; i < e->match[id]; i++)
        weight += e->varies[i] ? 1u + (tg_dtype((DType)e->k->instrs.at[i].type)->bytes == 8) : 0;
    return weight <= 8 ? 4 : weight <= 16 ? 2 : 1;
}

static bool has_own_reduction(const Emit *e, LoopId id) {
    for (LoopId i = id + 1; i < e->match[id]; i++)
        if (e->k->instrs.at[i].op == LOOP_for)
            i = e->match[i];
        else if (tg_loop_is_reduction((LoopOp)e->k->instrs.at[i].op))
            return true;
    return false;
}

static void run_groups(Emit *e, LoopId id, LLVMValueRef first, uint32_t groups) {
    e->groups = groups;
    e->values[id] = (EmitValue){.first = first, .coefficient = 1};
    body(e, id);
}

/* Lanes of a group whose element lies before `end`. */
static LLVMValueRef mask_before(Emit *e, LLVMValueRef first, LLVMValueRef end, uint32_t group) {
    LLVMBuilderRef b = e->builder;
    LLVMValueRef left = LLVMBuildSub(b, end, first, "");
    LLVMTypeRef overload = e->i64;
    LLVMValueRef bound[] = {left, tg_emit_int(e, EMIT_GROUPS * LOOP_LANES)};
    LLVMValueRef small = tg_emit_intrinsic(e, "llvm.smin", &overload, 1, bound, 2);
    LLVMValueRef count = tg_emit_splat(e, LLVMBuildTrunc(b, small, e->i32, ""), LOOP_LANES);
    return LLVMBuildICmp(b, LLVMIntSLT, tg_emit_iota(e, e->i32, (int64_t)group * LOOP_LANES, 1), count, "");
}

static void clear_masks(Emit *e) {
    for (uint32_t g = 0; g < EMIT_GROUPS; g++)
        e->mask[g] = NULL;
}

/* Bounds known: the rest is full groups and at most one masked one, in line. */
static void constant_rest(Emit *e, LoopId id, int64_t first, int64_t end) {
    uint32_t groups = (uint32_t)((end - first + LOOP_LANES - 1) / LOOP_LANES);
    if ((end - first) % LOOP_LANES != 0)
        e->mask[groups - 1] = mask_before(e, tg_emit_int(e, first), tg_emit_int(e, end), groups - 1);
    run_groups(e, id, tg_emit_int(e, first), groups);
    clear_masks(e);
}

/* The rest of a reduction with several partial results: all groups at once, masked. Otherwise one masked group at a
 * time. */
static void variable_rest(Emit *e, LoopId id, LLVMValueRef first, LLVMValueRef end, uint32_t groups) {
    Counted loop = counted_begin(e, first, end);
    for (uint32_t g = 0; g < groups; g++)
        e->mask[g] = mask_before(e, loop.variable, end, g);
    run_groups(e, id, loop.variable, groups);
    clear_masks(e);
    counted_end(e, &loop, end, (int64_t)groups * LOOP_LANES);
}

static void known_bounds(Emit *e, LoopId id, LLVMValueRef begin, LLVMValueRef end, uint32_t groups) {
    int64_t first = LLVMConstIntGetSExtValue(begin), last = LLVMConstIntGetSExtValue(end),
            step = (int64_t)groups * LOOP_LANES;
    int64_t whole = last > first ? (last - first) / step * step : 0;
    if (whole > 0) {
        LLVMValueRef middle = tg_emit_int(e, first + whole);
        Counted loop = counted_begin(e, begin, middle);
        run_groups(e, id, loop.variable, groups);
        counted_end(e, &loop, middle, step);
    }
    if (last > first + whole)
        constant_rest(e, id, first + whole, last);
}

static void vector_loop_over(Emit *e, LoopId id, LLVMValueRef begin, LLVMValueRef end) {
    LLVMBuilderRef b = e->builder;
    uint32_t groups = groups_of(e, id);
    bool many_lanes = has_own_reduction(e, id) && tg_reduce_lanes(e->k->instrs.at[id].imm) > LOOP_LANES;
    if (many_lanes)
        groups = EMIT_GROUPS;
    bool known = LLVMIsAConstantInt(begin) && LLVMIsAConstantInt(end);
    while (!known && groups > 1 && (int64_t)groups * LOOP_LANES > e->k->instrs.at[id].imm)
        groups /= 2;
    int64_t step = (int64_t)groups * LOOP_LANES;
    if (known) {
        known_bounds(e, id, begin, end, groups);
        return;
    }
    if (e->k->instrs.at[id].imm < step) {
        variable_rest(e, id, begin, end, 1);
        return;
    }
    LLVMTypeRef overload = e->i64;
    LLVMValueRef bound[] = {LLVMBuildSub(b, end, begin, ""), tg_emit_int(e, 0)};
    LLVMValueRef length = tg_emit_intrinsic(e, "llvm.smax", &overload, 1, bound, 2);
    LLVMValueRef whole = LLVMBuildAnd(b, length, tg_emit_int(e, -step), "");
    LLVMValueRef middle = LLVMBuildAdd(b, begin, whole, "");
    Counted loop = counted_begin(e, begin, middle);
    run_groups(e, id, loop.variable, groups);
    counted_end(e, &loop, middle, step);
    variable_rest(e, id, middle, end, many_lanes ? groups : 1);
}

/* One element needs no vector. */
static bool is_single(const Emit *e, LoopId id, LLVMValueRef begin, LLVMValueRef end) {
    return LLVMIsAConstantInt(begin) && LLVMIsAConstantInt(end) && !has_own_reduction(e, id) &&
           LLVMConstIntGetSExtValue(end) - LLVMConstIntGetSExtValue(begin) == 1;
}

static void vector_loop(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    LLVMValueRef begin = tg_emit_uniform(e, instr->a), end = tg_emit_uniform(e, instr->b);
    if (is_single(e, id, begin, end)) {
        tg_emit_set_uniform(e, id, begin);
        e->variable = id;
        body(e, id);
        return;
    }
    tg_emit_reduce_begin(e, id);
    e->vector = e->variable = id;
    vector_loop_over(e, id, begin, end);
    e->vector = 0;
    e->groups = 0;
    tg_emit_reduce_end(e, id);
}

/* A sum, difference or multiple of linear values is linear; wrapped to a narrower integer it stays so. */
static bool linear(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    EmitValue a = e->values[instr->a], b = instr->b ? e->values[instr->b] : (EmitValue){0};
    if (tg_is_float((DType)instr->type) || instr->type == DT_BOOL || a.first == NULL)
        return false;
    EmitValue result = {0};
    LLVMBuilderRef builder = e->builder;
    if (instr->op == LOOP_wrap || instr->op == LOOP_zero) {
        LLVMTypeRef type = tg_emit_type(e, (DType)instr->type);
        if (tg_dtype((DType)instr->type)->bytes >= tg_dtype((DType)e->k->instrs.at[instr->a].type)->bytes)
            return false;
        result = (EmitValue){.first = LLVMBuildTrunc(builder, a.first, type, ""), .coefficient = a.coefficient};
    } else if (b.first == NULL) {
        return false;
    } else if (instr->op == LOOP_iadd) {
        result.first = LLVMBuildAdd(builder, a.first, b.first, "");
        result.coefficient = (int64_t)((uint64_t)a.coefficient + (uint64_t)b.coefficient);
    } else if (instr->op == LOOP_isub) {
        result.first = LLVMBuildSub(builder, a.first, b.first, "");
        result.coefficient = (int64_t)((uint64_t)a.coefficient - (uint64_t)b.coefficient);
    } else if (instr->op == LOOP_imul && b.coefficient == 0 && LLVMIsAConstantInt(b.first)) {
        result.first = LLVMBuildMul(builder, a.first, b.first, "");
        result.coefficient = (int64_t)((uint64_t)a.coefficient * (uint64_t)LLVMConstIntGetSExtValue(b.first));
    } else {
        return false;
    }
    e->values[id] = result;
    return true;
}

static void operation(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    const LoopId ids[3] = {instr->a, instr->b, instr->c};
    int count = tg_loop_op_info((LoopOp)instr->op)->operands;
    if (instr->op == LOOP_libm && instr->b == 0)
        count = 1;
    bool uniform = true;
    for (int i = 0; i < count; i++)
        uniform = uniform && tg_emit_is_uniform(e, ids[i]);
    LLVMValueRef operands[3] = {NULL, NULL, NULL};
    if (uniform) {
        for (int i = 0; i < count; i++)
            operands[i] = tg_emit_uniform(e, ids[i]);
        tg_emit_set_uniform(e, id, tg_emit_op(e, instr, operands, NULL));
        return;
    }
    if (linear(e, id))
        return;
    EmitValue value = {0};
    for (uint32_t g = 0; g < e->groups; g++) {
        for (int i = 0; i < count; i++)
            operands[i] = tg_emit_vector(e, ids[i], g);
        value.group[g] = tg_emit_op(e, instr, operands, e->mask[g]);
    }
    e->values[id] = value;
}

static LLVMValueRef constant(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    if (e->keys->of[id])
        return LLVMGetParam(e->function, 3 + e->keys->of[id]);
    DType dtype = (DType)instr->type;
    LLVMTypeRef type = tg_emit_type(e, dtype);
    if (dtype == DT_F32 || dtype == DT_F64)
        return tg_emit_real(e, type, instr->number);
    if (!tg_is_float(dtype))
        return tg_emit_constant(e, type, dtype == DT_BOOL ? instr->imm != 0 : (uint64_t)instr->imm);
    uint16_t bits;
    tg_element_set(dtype, &bits, 0, instr->number);
    return tg_emit_constant(e, type, bits);
}

static LLVMValueRef scalars_member(Emit *e, size_t offset, LLVMTypeRef type) {
    LLVMTypeRef byte = LLVMInt8TypeInContext(e->context);
    LLVMValueRef at = tg_emit_int(e, (int64_t)offset);
    LLVMValueRef value = LLVMBuildLoad2(e->builder, type, LLVMBuildGEP2(e->builder, byte, e->scalars, &at, 1, ""), "");
    unsigned kind = LLVMGetMDKindIDInContext(e->context, "invariant.load", 14);
    LLVMSetMetadata(value, kind, LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, NULL, 0)));
    return value;
}

static LLVMValueRef leaf(Emit *e, const LoopInstr *instr) {
    switch (instr->op) {
    case LOOP_rows:
        return scalars_member(e, offsetof(TgScalars, rows), e->i64);
    case LOOP_first_row:
        return scalars_member(e, offsetof(TgScalars, first_row), e->i64);
    case LOOP_iteration:
        return scalars_member(e, offsetof(TgScalars, iteration), e->i64);
    case LOOP_seed:
        return scalars_member(e, offsetof(TgScalars, seed), e->i64);
    default:
        break;
    }
    LLVMTypeRef number = LLVMDoubleTypeInContext(e->context);
    LLVMValueRef values = scalars_member(e, offsetof(TgScalars, values), e->pointer),
                 index = tg_emit_int(e, instr->imm);
    return LLVMBuildLoad2(e->builder, number, LLVMBuildGEP2(e->builder, number, values, &index, 1, ""), "");
}

void tg_emit_range(Emit *e, LoopId first, LoopId end) {
    for (LoopId id = first; id < end; id++) {
        const LoopInstr *instr = &e->k->instrs.at[id];
        LoopOp op = (LoopOp)instr->op;
        if (op == LOOP_for) {
            if (instr->mode == MODE_VECTOR)
                vector_loop(e, id);
            else
                scalar_loop(e, id);
            id = e->match[id];
        } else if (op == LOOP_load) {
            tg_emit_load(e, id);
        } else if (op == LOOP_store) {
            tg_emit_store(e, id);
        } else if (tg_loop_is_reduction(op)) {
            tg_emit_reduce(e, id);
        } else if (op == LOOP_const) {
            tg_emit_set_uniform(e, id, constant(e, id));
        } else if (op >= LOOP_scalar && op <= LOOP_seed) {
            tg_emit_set_uniform(e, id, leaf(e, instr));
        } else {
            operation(e, id);
        }
    }
}
