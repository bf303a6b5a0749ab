/* Loads and stores: contiguous, of one element for all lanes, or element by element. */
#include "codegen/llvm/emit.h"

enum { BUFFER_ALIGNMENT = 64 };

typedef struct Access {
    Emit *e;
    const LoopInstr *instr;
    DType dtype;
    LLVMTypeRef element; /* in memory */
    LLVMValueRef base;
    EmitValue index; /* with the stride in it */
} Access;

static Access access_of(Emit *e, LoopId id) {
    const LoopInstr *instr = &e->k->instrs.at[id];
    DType dtype = e->k->buffers.at[instr->buffer].dtype;
    Access access = {.e = e,
                     .instr = instr,
                     .dtype = dtype,
                     .element = tg_emit_memory_type(e, dtype),
                     .base = e->buffer[instr->buffer],
                     .index = e->values[instr->a]};
    if (instr->imm == 0)
        return access;
    LLVMBuilderRef b = e->builder;
    const EmitValue *variable = &e->values[e->variable];
    LLVMValueRef scaled = LLVMBuildMul(b, variable->first, tg_emit_int(e, instr->imm), "");
    if (access.index.first) {
        access.index.first = LLVMBuildAdd(b, access.index.first, scaled, "");
        access.index.coefficient += instr->imm * variable->coefficient;
        return access;
    }
    LLVMValueRef first = tg_emit_splat(e, scaled, LOOP_LANES);
    for (uint32_t g = 0; g < e->groups; g++) {
        LLVMValueRef steps = tg_emit_iota(e, e->i64, (int64_t)g * LOOP_LANES * instr->imm, instr->imm);
        LLVMValueRef sum = LLVMBuildAdd(b, access.index.group[g], LLVMBuildAdd(b, first, steps, ""), "");
        access.index.group[g] = sum;
    }
    return access;
}

static LLVMValueRef element_address(const Access *a, LLVMValueRef index) {
    return LLVMBuildGEP2(a->e->builder, a->element, a->base, &index, 1, "");
}

/* The first element of a group of contiguous ones. */
static LLVMValueRef group_address(const Access *a, uint32_t group) {
    LLVMValueRef offset = tg_emit_int(a->e, (int64_t)group * LOOP_LANES);
    return element_address(a, LLVMBuildAdd(a->e->builder, a->index.first, offset, ""));
}

static LLVMValueRef lane_addresses(const Access *a, uint32_t group) {
    Emit *e = a->e;
    LLVMValueRef index = a->index.group[group];
    if (a->index.first) {
        int64_t first = (int64_t)group * LOOP_LANES * a->index.coefficient;
        LLVMValueRef steps = tg_emit_iota(e, e->i64, first, a->index.coefficient);
        index = LLVMBuildAdd(e->builder, tg_emit_splat(e, a->index.first, LOOP_LANES), steps, "");
    }
    return element_address(a, index);
}

/* From memory's form: a bool is a byte there. */
static LLVMValueRef loaded(const Access *a, LLVMValueRef value) {
    if (a->dtype != DT_BOOL)
        return value;
    return LLVMBuildICmp(a->e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

static LLVMValueRef stored(const Access *a, LLVMValueRef value) {
    return a->dtype == DT_BOOL ? LLVMBuildZExt(a->e->builder, value, tg_emit_like(a->e, a->element, value), "") : value;
}

static LLVMValueRef alignment(const Access *a) { return LLVMConstInt(a->e->i32, tg_dtype(a->dtype)->bytes, 0); }

static LLVMValueRef all_lanes(const Access *a) { return LLVMConstAllOnes(LLVMVectorType(a->e->i1, LOOP_LANES)); }

static LLVMValueRef load_one(const Access *a, LLVMTypeRef type, LLVMValueRef address) {
    LLVMValueRef value = LLVMBuildLoad2(a->e->builder, type, address, "");
    LLVMSetAlignment(value, tg_dtype(a->dtype)->bytes);
    return value;
}

static void store_one(const Access *a, LLVMValueRef value, LLVMValueRef address) {
    LLVMSetAlignment(LLVMBuildStore(a->e->builder, value, address), tg_dtype(a->dtype)->bytes);
}

/* Stores past the cache are of whole vectors at whole multiples of their size. */
static bool streams(const Access *a) {
    const Emit *e = a->e;
    int64_t stride = a->instr->imm * e->factor[e->variable];
    return e->k->buffers.at[a->instr->buffer].streamed && a->instr->imm == 1 && e->factor[a->instr->a] >= LOOP_LANES &&
           stride >= LOOP_LANES;
}

static void stream_one(const Access *a, LLVMValueRef value, LLVMValueRef address) {
    LLVMContextRef c = a->e->context;
    LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(a->e->i32, 1, 0));
    LLVMValueRef store = LLVMBuildStore(a->e->builder, value, address);
    unsigned bytes = LOOP_LANES * tg_dtype(a->dtype)->bytes;
    LLVMSetAlignment(store, bytes < BUFFER_ALIGNMENT ? bytes : BUFFER_ALIGNMENT);
    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(c, "nontemporal", 11),
                    LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, &one, 1)));
}

static LLVMValueRef load_group(const Access *a, uint32_t group) {
    Emit *e = a->e;
    LLVMTypeRef vector = LLVMVectorType(a->element, LOOP_LANES);
    LLVMValueRef mask = e->mask[group];
    bool contiguous = a->index.first && a->index.coefficient == 1;
    if (contiguous && mask == NULL)
        return load_one(a, vector, group_address(a, group));
    LLVMValueRef address = contiguous ? group_address(a, group) : lane_addresses(a, group);
    LLVMValueRef arguments[] = {address, alignment(a), mask ? mask : all_lanes(a), LLVMConstNull(vector)};
    LLVMTypeRef overloads[] = {vector, LLVMTypeOf(address)};
    return tg_emit_intrinsic(e, contiguous ? "llvm.masked.load" : "llvm.masked.gather", overloads, 2, arguments, 4);
}

static void store_group(const Access *a, LLVMValueRef value, uint32_t group) {
    Emit *e = a->e;
    LLVMValueRef mask = e->mask[group];
    bool contiguous = a->index.first && a->index.coefficient == 1;
    if (contiguous && mask == NULL) {
        if (streams(a))
            stream_one(a, value, group_address(a, group));
        else
            store_one(a, value, group_address(a, group));
        return;
    }
    LLVMValueRef address = contiguous ? group_address(a, group) : lane_addresses(a, group);
    LLVMValueRef arguments[] = {value, address, alignment(a), mask ? mask : all_lanes(a)};
    LLVMTypeRef overloads[] = {LLVMTypeOf(value), LLVMTypeOf(address)};
    (void)tg_emit_intrinsic(e, contiguous ? "llvm.masked.store" : "llvm.masked.scatter", overloads, 2, arguments, 4);
}

/* ---- the next row, while this one is computed ---- */

/* Inputs from this size on come from memory. A row up to SMALL_ROW bytes is fetched into the first cache. */
enum { FETCHED_BYTES = 64 << 20, SMALL_ROW = 16 << 10, CACHE_LINE = 64, LONG_BODY = 24 };

/* Instructions an element; in short loops memory is busy anyway. */
static bool is_long(const Emit *e, LoopId loop) {
    uint32_t count = 0;
    for (LoopId id = loop + 1; id < e->match[loop]; id++)
        count += e->varies[id];
    return count >= LONG_BODY;
}

/* How much `id` grows from one turn of `loop` to the next; false: unknown. */
static bool step_of(const Emit *e, LoopId id, LoopId loop, int64_t *step) {
    const LoopInstr *instr = &e->k->instrs.at[id], *by = &e->k->instrs.at[instr->b];
    int64_t a, b;
    *step = id == loop;
    if (id <= loop || instr->op == LOOP_const)
        return true;
    if (instr->op < LOOP_iadd || instr->op > LOOP_imin || !step_of(e, instr->a, loop, &a) || !step_of(e, instr->b, loop, &b))
        return false;
    *step = instr->op == LOOP_iadd ? a + b : instr->op == LOOP_isub ? a - b : instr->op == LOOP_imul ? a * by->imm : 0;
    return instr->op <= LOOP_isub || (a == 0 && b == 0) || (instr->op == LOOP_imul && by->op == LOOP_const);
}

/* The loop over rows around a vector loop; 0: none. */
static LoopId rows_around(const Emit *e, LoopId vector) {
    for (LoopId id = vector - 1; id > 0; id--)
        if (e->k->instrs.at[id].op == LOOP_for && e->match[id] > vector)
            return e->k->instrs.at[id].mode != MODE_TILE ? id : 0;
    return 0;
}

/* Whether just one earlier vector loop of the row has read the same buffer. */
static bool reads_again(const Emit *e, LoopId rows, uint32_t buffer) {
    uint32_t loops = 0;
    LoopId last = 0;
    for (LoopId id = rows + 1, loop = 0; id < e->vector; id++) {
        const LoopInstr *instr = &e->k->instrs.at[id];
        loop = instr->op == LOOP_for && instr->mode == MODE_VECTOR ? id : loop;
        if (instr->op != LOOP_load || instr->buffer != buffer || instr->imm != 1)
            continue;
        loops += loop != last;
        last = loop;
    }
    return loops == 1;
}

/* What a row has read once comes from cache when it is read again: while that takes its time, memory brings the next row. 0: nothing to
   fetch; else how far it lies ahead, in elements. */
static int64_t distance_of_next_row(const Access *a) {
    const Emit *e = a->e;
    const LoopBuffer *buffer = &e->k->buffers.at[a->instr->buffer];
    int64_t step;
    bool whole = e->vector != 0 && a->instr->imm == 1 && a->index.first && a->index.coefficient == 1;
    if (!whole || buffer->role != ROLE_IN || buffer->count * tg_dtype(a->dtype)->bytes < FETCHED_BYTES)
        return 0;
    LoopId rows = rows_around(e, e->vector);
    return rows != 0 && is_long(e, e->vector) && reads_again(e, rows, a->instr->buffer) && step_of(e, a->instr->a, rows, &step) ? step : 0;
}

static void fetch_next_row(const Access *a) {
    Emit *e = a->e;
    int64_t distance = distance_of_next_row(a), lanes = CACHE_LINE / tg_dtype(a->dtype)->bytes;
    int near = distance * tg_dtype(a->dtype)->bytes <= SMALL_ROW ? 3 : 2;
    for (int64_t lane = 0; distance != 0 && lane < (int64_t)e->groups * LOOP_LANES; lane += lanes) {
        LLVMValueRef index = LLVMBuildAdd(e->builder, a->index.first, tg_emit_int(e, distance + lane), "");
        LLVMValueRef arguments[] = {element_address(a, index), LLVMConstInt(e->i32, 0, 0), LLVMConstInt(e->i32, near, 0),
                                    LLVMConstInt(e->i32, 1, 0)};
        (void)tg_emit_intrinsic(e, "llvm.prefetch", &e->pointer, 1, arguments, 4);
    }
}

void tg_emit_load(Emit *e, LoopId id) {
    Access a = access_of(e, id);
    if (a.index.first && a.index.coefficient == 0) {
        tg_emit_set_uniform(e, id, loaded(&a, load_one(&a, a.element, element_address(&a, a.index.first))));
        return;
    }
    fetch_next_row(&a);
    EmitValue value = {0};
    for (uint32_t g = 0; g < e->groups; g++)
        value.group[g] = loaded(&a, load_group(&a, g));
    e->values[id] = value;
}

/* In a vector loop all lanes store, in order: the last one's value stays where their addresses are equal. */
void tg_emit_store(Emit *e, LoopId id) {
    Access a = access_of(e, id);
    LoopId value = a.instr->b;
    bool one = a.index.first && a.index.coefficient == 0 && tg_emit_is_uniform(e, value) && e->mask[0] == NULL;
    if (e->vector == 0 || one) {
        store_one(&a, stored(&a, tg_emit_uniform(e, value)), element_address(&a, a.index.first));
        return;
    }
    for (uint32_t g = 0; g < e->groups; g++)
        store_group(&a, stored(&a, tg_emit_vector(e, value, g)), g);
}

void tg_emit_fence(Emit *e) {
    bool streamed = false;
    for (uint32_t i = 0; i < e->k->buffers.count; i++)
        streamed |= e->k->buffers.at[i].streamed;
    if (!streamed)
        return;
#if defined(__x86_64__)
    (void)tg_emit_intrinsic(e, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
#else
    (void)LLVMBuildFence(e->builder, LLVMAtomicOrderingRelease, 0, "");
#endif
}
