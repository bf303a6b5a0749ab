/* Element types. The one table of them: name, bytes, kind, safetensors name. */
#ifndef TG_DTYPE_H
#define TG_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum DKind { KIND_BOOL, KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT } DKind;

/*  enum, name, bytes, kind, safetensors */
#define TG_DTYPES(X)                          \
    X(BOOL, "bool", 1, KIND_BOOL, "BOOL")     \
    X(U8, "u8", 1, KIND_UNSIGNED, "U8")       \
    X(I8, "i8", 1, KIND_SIGNED, "I8")         \
    X(U16, "u16", 2, KIND_UNSIGNED, "U16")    \
    X(I16, "i16", 2, KIND_SIGNED, "I16")      \
    X(I32, "i32", 4, KIND_SIGNED, "I32")      \
    X(I64, "i64", 8, KIND_SIGNED, "I64")      \
    X(BF16, "bf16", 2, KIND_FLOAT, "BF16")    \
    X(F16, "f16", 2, KIND_FLOAT, "F16")       \
    X(F32, "f32", 4, KIND_FLOAT, "F32")       \
    X(F64, "f64", 8, KIND_FLOAT, "F64")

typedef enum DType {
#define X(id, name, bytes, kind, st) DT_##id,
    TG_DTYPES(X)
#undef X
    DT_COUNT
} DType;

typedef struct DTypeInfo {
    const char *name, *safetensors;
    uint8_t bytes;
    DKind kind;
} DTypeInfo;

const DTypeInfo *tg_dtype(DType dtype);
/* DT_COUNT: no such type. */
DType tg_dtype_named(const char *name);
static inline bool tg_is_float(DType dtype) { return tg_dtype(dtype)->kind == KIND_FLOAT; }
/* What is computed in f32. */
static inline bool tg_is_low(DType dtype) { return dtype == DT_BF16 || dtype == DT_F16; }
static inline bool tg_is_integer(DType dtype) {
    return tg_dtype(dtype)->kind == KIND_SIGNED || tg_dtype(dtype)->kind == KIND_UNSIGNED;
}

/* f64 -> nearest value of the type, ties to even (integers: toward zero, saturating, NaN gives 0; bool: not equal 0).
   A bf16 denormal becomes a zero of its sign, as the bf16 instructions do. */
double tg_round_to(DType dtype, double value);
/* One element in memory. */
double tg_element_get(DType dtype, const void *memory, int64_t index);
void tg_element_set(DType dtype, void *memory, int64_t index, double value); /* rounds first */

#endif
