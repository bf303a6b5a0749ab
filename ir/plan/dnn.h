/* How a dot is computed on a CPU: what PlanDot.variant counts. Chosen by codegen/dnn.c, carried out by
 * runtime/cpu/dot.c. */
#ifndef TG_PLAN_DNN_H
#define TG_PLAN_DNN_H

/* name; text */
#define TG_DNN_VARIANTS(X)                                                                                             \
    X(MATMUL, "matmul")       /* oneDNN's matmul primitive: a row's bits do not depend on the number of rows */        \
    X(SGEMM, "sgemm")         /* dnnl_sgemm: f32 only; a row's bits depend on the number of rows */                    \
    X(GEMM_BF16, "gemm_bf16") /* dnnl_gemm_bf16bf16f32: bf16 to f32; likewise */                                       \
    X(CONVERT, "convert")     /* operands gathered into packed f32, then matmul: any float type, any strides */        \
    X(PLAIN, "plain")         /* a plain loop in f64, for f64, which the library does not have */                      \
    X(COLUMN, "column")       /* f32, one column: our own loop over whole lines; a row's bits depend on the row alone */

typedef enum DnnVariant {
#define X(name, text) DNN_##name,
    TG_DNN_VARIANTS(X)
#undef X
        DNN_VARIANT_COUNT
} DnnVariant;

#endif
