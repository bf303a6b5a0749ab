/* Loads and stores: contiguous, of one element for all lanes, or element by element. */
#include "codegen/llvm/emit.h"

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
        store_one(a, value, group_address(a, group));
        return;
    }
    LLVMValueRef address = contiguous ? group_address(a, group) : lane_addresses(a, group);
    LLVMValueRef arguments[] = {value, address, alignment(a), mask ? mask : all_lanes(a)};
    LLVMTypeRef overloads[] = {LLVMTypeOf(value), LLVMTypeOf(address)};
    (void)tg_emit_intrinsic(e, contiguous ? "llvm.masked.store" : "llvm.masked.scatter", overloads, 2, arguments, 4);
}

void tg_emit_load(Emit *e, LoopId id) {
    Access a = access_of(e, id);
    if (a.index.first && a.index.coefficient == 0) {
        tg_emit_set_uniform(e, id, loaded(&a, load_one(&a, a.element, element_address(&a, a.index.first))));
        return;
    }
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
