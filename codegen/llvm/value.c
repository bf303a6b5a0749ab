#include "codegen/llvm/emit.h"

#include <string.h>

static LLVMTypeRef element_type(const Emit *e, DType type) {
    switch (type) {
    case DT_F32:
        return LLVMFloatTypeInContext(e->context);
    case DT_F64:
        return LLVMDoubleTypeInContext(e->context);
    default:
        return LLVMIntTypeInContext(e->context, 8u * tg_dtype(type)->bytes);
    }
}

LLVMTypeRef tg_emit_type(const Emit *e, DType type) { return type == DT_BOOL ? e->i1 : element_type(e, type); }

LLVMTypeRef tg_emit_memory_type(const Emit *e, DType type) { return element_type(e, type); }

LLVMTypeRef tg_emit_like(const Emit *e, LLVMTypeRef element, LLVMValueRef shape) {
    (void)e;
    LLVMTypeRef type = LLVMTypeOf(shape);
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(type)) : element;
}

LLVMValueRef tg_emit_int(const Emit *e, int64_t value) { return LLVMConstInt(e->i64, (uint64_t)value, 1); }

static LLVMValueRef constant_splat(LLVMTypeRef type, LLVMValueRef element) {
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return element;
    LLVMValueRef elements[EMIT_GROUPS * LOOP_LANES];
    uint32_t count = LLVMGetVectorSize(type);
    for (uint32_t i = 0; i < count; i++)
        elements[i] = element;
    return LLVMConstVector(elements, count);
}

static LLVMTypeRef scalar_of(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

LLVMValueRef tg_emit_constant(const Emit *e, LLVMTypeRef type, uint64_t bits) {
    LLVMTypeRef element = scalar_of(type);
    LLVMTypeKind kind = LLVMGetTypeKind(element);
    if (kind != LLVMFloatTypeKind && kind != LLVMDoubleTypeKind)
        return constant_splat(type, LLVMConstInt(element, bits, 0));
    LLVMTypeRef integer = LLVMIntTypeInContext(e->context, kind == LLVMFloatTypeKind ? 32 : 64);
    return constant_splat(type, LLVMConstBitCast(LLVMConstInt(integer, bits, 0), element));
}

LLVMValueRef tg_emit_real(const Emit *e, LLVMTypeRef type, double value) {
    uint64_t bits = 0;
    LLVMTypeRef element = scalar_of(type);
    if (LLVMGetTypeKind(element) == LLVMFloatTypeKind) {
        float narrow = (float)value;
        memcpy(&bits, &narrow, sizeof narrow);
    } else {
        memcpy(&bits, &value, sizeof value);
    }
    return tg_emit_constant(e, type, bits);
}

LLVMValueRef tg_emit_splat(Emit *e, LLVMValueRef value, uint32_t lanes) {
    LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(value), lanes);
    if (LLVMIsConstant(value))
        return constant_splat(type, value);
    LLVMValueRef zero = LLVMConstInt(e->i32, 0, 0), undefined = LLVMGetPoison(type);
    LLVMValueRef one = LLVMBuildInsertElement(e->builder, undefined, value, zero, "");
    return LLVMBuildShuffleVector(e->builder, one, undefined, LLVMConstNull(LLVMVectorType(e->i32, lanes)), "");
}

LLVMValueRef tg_emit_iota(const Emit *e, LLVMTypeRef element, int64_t first, int64_t step) {
    (void)e;
    LLVMValueRef elements[LOOP_LANES];
    for (int64_t i = 0; i < LOOP_LANES; i++)
        elements[i] = LLVMConstInt(element, (uint64_t)first + (uint64_t)i * (uint64_t)step, 0);
    return LLVMConstVector(elements, LOOP_LANES);
}

LLVMValueRef tg_emit_vector(Emit *e, LoopId id, uint32_t group) {
    EmitValue *v = &e->values[id];
    if (v->first == NULL)
        return v->group[group];
    LLVMValueRef splat = tg_emit_splat(e, v->first, LOOP_LANES);
    if (v->coefficient == 0)
        return splat;
    int64_t first = (int64_t)((uint64_t)v->coefficient * LOOP_LANES * group);
    return LLVMBuildAdd(e->builder, splat, tg_emit_iota(e, LLVMTypeOf(v->first), first, v->coefficient), "");
}

bool tg_emit_is_uniform(const Emit *e, LoopId id) {
    return e->values[id].first != NULL && e->values[id].coefficient == 0;
}

LLVMValueRef tg_emit_uniform(Emit *e, LoopId id) { return e->values[id].first; }

void tg_emit_set_uniform(Emit *e, LoopId id, LLVMValueRef value) { e->values[id] = (EmitValue){.first = value}; }

LLVMValueRef tg_emit_slot(Emit *e, LLVMTypeRef type) { return LLVMBuildAlloca(e->entry, type, ""); }

LLVMValueRef tg_emit_intrinsic(Emit *e, const char *name, LLVMTypeRef *overloads, uint32_t overload_count,
                               LLVMValueRef *arguments, uint32_t argument_count) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->shared->module, id, overloads, overload_count);
    LLVMTypeRef type = LLVMIntrinsicGetType(e->context, id, overloads, overload_count);
    return LLVMBuildCall2(e->builder, type, function, arguments, argument_count, "");
}
