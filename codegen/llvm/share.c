/* Kernels that differ in nothing but the keys of their random numbers, as the initial values of like parameters do, share one
   body: a function that takes the keys after a kernel's own arguments. Each such kernel is a call of it. */
#include "codegen/llvm/emit.h"

enum { KERNEL_ARGUMENTS = 4 };

/* What the seed is mixed with. */
static bool is_key(const LoopKernel *k, LoopId id) {
    const LoopInstr *mix = &k->instrs.at[id];
    return mix->op == LOOP_xor && k->instrs.at[mix->a].op == LOOP_seed && k->instrs.at[mix->b].op == LOOP_const;
}

static void find_keys(EmitModule *shared, const LoopKernel *k, EmitKeys *keys) {
    keys->of = TG_ALLOC(shared->arena, uint32_t, k->instrs.count);
    for (LoopId id = 1; id < k->instrs.count; id++)
        if (is_key(k, id) && keys->of[k->instrs.at[id].b] == 0)
            keys->of[k->instrs.at[id].b] = ++keys->count;
}

/* Everything about a kernel but its name and its keys. */
static void describe(Str *to, const LoopKernel *k, const EmitKeys *keys) {
    tg_str_add(to, (const char *)&k->buffers.count, sizeof k->buffers.count);
    for (uint32_t i = 0; i < k->buffers.count; i++) {
        const LoopBuffer *buffer = &k->buffers.at[i];
        int64_t fields[] = {buffer->role, buffer->dtype, buffer->count, buffer->streamed};
        tg_str_add(to, (const char *)fields, sizeof fields);
    }
    for (LoopId id = 1; id < k->instrs.count; id++) {
        const LoopInstr *instr = &k->instrs.at[id];
        uint32_t fields[] = {instr->op, instr->type, instr->mode, instr->a, instr->b, instr->c, instr->buffer, keys->of[id]};
        tg_str_add(to, (const char *)fields, sizeof fields);
        int64_t imm = keys->of[id] ? 0 : instr->imm;
        tg_str_add(to, (const char *)&imm, sizeof imm);
        tg_str_add(to, (const char *)&instr->number, sizeof instr->number);
        tg_str_printf(to, "%s;", instr->text ? instr->text : "");
    }
}

static LLVMTypeRef body_type(EmitModule *shared, uint32_t keys) {
    LLVMTypeRef pointer = LLVMPointerTypeInContext(shared->context, 0), i64 = LLVMInt64TypeInContext(shared->context);
    LLVMTypeRef *parameters = TG_ALLOC(shared->arena, LLVMTypeRef, KERNEL_ARGUMENTS + keys);
    for (uint32_t i = 0; i < KERNEL_ARGUMENTS + keys; i++)
        parameters[i] = i < 2 ? pointer : i64;
    return LLVMFunctionType(LLVMVoidTypeInContext(shared->context), parameters, KERNEL_ARGUMENTS + keys, 0);
}

/* The kernel as a call of the body with its keys. */
static LLVMValueRef call_body(EmitModule *shared, const LoopKernel *k, LLVMValueRef body, const EmitKeys *keys) {
    LLVMTypeRef i64 = LLVMInt64TypeInContext(shared->context);
    LLVMValueRef function = tg_emit_declare(shared, k->name, body_type(shared, 0), shared->global);
    LLVMValueRef *arguments = TG_ALLOC(shared->arena, LLVMValueRef, KERNEL_ARGUMENTS + keys->count);
    for (uint32_t i = 0; i < KERNEL_ARGUMENTS; i++)
        arguments[i] = LLVMGetParam(function, i);
    for (LoopId id = 1; id < k->instrs.count; id++)
        if (keys->of[id])
            arguments[KERNEL_ARGUMENTS + keys->of[id] - 1] = LLVMConstInt(i64, (uint64_t)k->instrs.at[id].imm, 0);
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(shared->context);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(shared->context, function, ""));
    LLVMTypeRef type = body_type(shared, keys->count);
    LLVMSetTailCall(LLVMBuildCall2(builder, type, body, arguments, KERNEL_ARGUMENTS + keys->count, ""), 1);
    LLVMBuildRetVoid(builder);
    LLVMDisposeBuilder(builder);
    return function;
}

LLVMValueRef tg_emit_kernel(EmitModule *shared, const LoopKernel *k) {
    EmitKeys keys = {0};
    find_keys(shared, k, &keys);
    LLVMTypeRef type = body_type(shared, keys.count);
    if (keys.count == 0) {
        LLVMValueRef function = tg_emit_declare(shared, k->name, type, shared->global);
        tg_emit_body(shared, k, function, &keys);
        return function;
    }
    Str key = tg_str(shared->arena);
    describe(&key, k, &keys);
    bool is_new;
    uint64_t *known = tg_map_put(&shared->bodies, key.text, key.length, &is_new);
    if (is_new) {
        const char *name = tg_arena_printf(shared->arena, "%s.body", k->name);
        LLVMValueRef body = tg_emit_declare(shared, name, type, false);
        *known = (uint64_t)(uintptr_t)body;
        tg_emit_body(shared, k, body, &keys);
    }
    return call_body(shared, k, (LLVMValueRef)(uintptr_t)*known, &keys);
}
