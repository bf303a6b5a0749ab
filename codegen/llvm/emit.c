#include "codegen/llvm/emit.h"

#include <string.h>

static void add_attribute(EmitModule *shared, LLVMValueRef function, const char *name, const char *value) {
    LLVMAttributeRef attribute =
        LLVMCreateStringAttribute(shared->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static void add_flag(EmitModule *shared, LLVMValueRef function, int index, const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)index, LLVMCreateEnumAttribute(shared->context, kind, 0));
}

/* void name(void *const *buffers, const TgScalars *scalars, int64_t first, int64_t last, ...) */
LLVMValueRef tg_emit_declare(EmitModule *shared, const char *name, LLVMTypeRef type, bool global) {
    LLVMValueRef function = LLVMAddFunction(shared->module, name, type);
    LLVMSetLinkage(function, global ? LLVMExternalLinkage : LLVMInternalLinkage);
    add_flag(shared, function, LLVMAttributeFunctionIndex, "nounwind");
    for (int i = 1; i <= 2; i++) {
        add_flag(shared, function, i, "noalias");
        add_flag(shared, function, i, "readonly");
    }
    add_attribute(shared, function, "target-cpu", shared->cpu);
    add_attribute(shared, function, "target-features", shared->features);
    add_attribute(shared, function, "prefer-vector-width", "512");
    add_attribute(shared, function, "min-legal-vector-width", "512");
    return function;
}

/* Addresses of the call's buffers, and stack for the others. */
static void bind_buffers(Emit *e) {
    uint32_t argument = 0;
    for (uint32_t i = 0; i < e->k->buffers.count; i++) {
        const LoopBuffer *buffer = &e->k->buffers.at[i];
        if (buffer->role == ROLE_SCRATCH) {
            LLVMTypeRef type =
                LLVMArrayType2(tg_emit_memory_type(e, buffer->dtype), (uint64_t)(buffer->count ? buffer->count : 1));
            e->buffer[i] = LLVMBuildAlloca(e->entry, type, "");
            LLVMSetAlignment(e->buffer[i], 64);
            continue;
        }
        LLVMValueRef index = tg_emit_int(e, argument++);
        LLVMValueRef slot = LLVMBuildGEP2(e->entry, e->pointer, e->buffers_argument, &index, 1, "");
        e->buffer[i] = LLVMBuildLoad2(e->entry, e->pointer, slot, "");
    }
}

static void emit_blocks(Emit *e) {
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(e->context, e->function, "");
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(e->context, e->function, "");
    LLVMPositionBuilderAtEnd(e->entry, entry);
    LLVMPositionBuilderAtEnd(e->builder, start);
    bind_buffers(e);
    tg_emit_analyse(e);
    tg_emit_range(e, 1, e->k->instrs.count);
    tg_emit_fence(e);
    LLVMBuildRetVoid(e->builder);
    LLVMBuildBr(e->entry, start);
}

void tg_emit_body(EmitModule *shared, const LoopKernel *k, LLVMValueRef function, const EmitKeys *keys) {
    uint32_t count = k->instrs.count;
    Emit e = {
        .shared = shared,
        .k = k,
        .keys = keys,
        .function = function,
        .context = shared->context,
        .i1 = LLVMInt1TypeInContext(shared->context),
        .i32 = LLVMInt32TypeInContext(shared->context),
        .i64 = LLVMInt64TypeInContext(shared->context),
        .pointer = LLVMPointerTypeInContext(shared->context, 0),
        .values = TG_ALLOC(shared->arena, EmitValue, count),
        .partials = TG_ALLOC(shared->arena, EmitPartial, count),
        .match = TG_ALLOC(shared->arena, LoopId, count),
        .varies = TG_ALLOC(shared->arena, bool, count),
        .factor = TG_ALLOC(shared->arena, uint8_t, count),
        .buffer = TG_ALLOC(shared->arena, LLVMValueRef, k->buffers.count),
    };
    e.buffers_argument = LLVMGetParam(e.function, 0);
    e.scalars = LLVMGetParam(e.function, 1);
    e.builder = LLVMCreateBuilderInContext(shared->context);
    e.entry = LLVMCreateBuilderInContext(shared->context);
    emit_blocks(&e);
    LLVMDisposeBuilder(e.builder);
    LLVMDisposeBuilder(e.entry);
}
