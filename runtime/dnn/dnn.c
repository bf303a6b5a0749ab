/* The plugin: oneDNN behind runtime/cpu/dnn.h. Primitives are made with one OpenMP thread and the caller's scratchpad;
   each thread has its own memory objects, whose pointers are exchanged from call to call. */
#include "runtime/cpu/dnn.h"

#include <dnnl.h>
#include <stdio.h>
#include <string.h>

/* libgomp's, which libdnnl brings along; absent where oneDNN was built for another kind of threads. */
extern void omp_set_num_threads(int threads) __attribute__((weak));
/* Exported by libdnnl, in none of its headers. */
extern dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                           float alpha, const void *a, dnnl_dim_t lda, const void *b, dnnl_dim_t ldb,
                                           float beta, float *c, dnnl_dim_t ldc) __attribute__((weak));

enum { OPERAND_A, OPERAND_B, OPERAND_OUT, OPERAND_SCRATCH, OPERAND_BIAS, OPERANDS };
static const int operand_names[OPERANDS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD,
                                            DNNL_ARG_BIAS};

struct TgDnnLibrary {
    const TgHost *host;
    int threads;
    dnnl_engine_t engine;
    dnnl_stream_t *streams; /* one a thread */
    TgDnnCall *calls;       /* all that were prepared */
};

struct TgDnnCall {
    TgDnnLibrary *library;
    TgDnnCall *next;
    DnnShape shape;
    char trans_a, trans_b;
    dnnl_dim_t lda, ldb;
    int operands; /* of the primitive: OPERANDS, one less without a bias */
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t *args; /* [threads][OPERANDS] */
};

static void library_version(char *text, size_t bytes) {
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, bytes, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

static void enter_thread(void) {
    if (omp_set_num_threads)
        omp_set_num_threads(1);
}

static Status status_of(dnnl_status_t status) {
    switch (status) {
    case dnnl_success:
        return TG_OK;
    case dnnl_out_of_memory:
        return TG_MEMORY;
    case dnnl_unimplemented:
        return TG_MODEL;
    default:
        return TG_INTERNAL;
    }
}

static void *new_zeroed(const TgHost *host, size_t bytes) {
    void *memory = tg_new(host, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

static void free_call(TgDnnCall *call) {
    TgDnnLibrary *library = call->library;
    for (int i = 0; call->args && i < library->threads * OPERANDS; i++)
        if (call->args[i].memory)
            (void)dnnl_memory_destroy(call->args[i].memory);
    if (call->primitive)
        (void)dnnl_primitive_destroy(call->primitive);
    tg_free(library->host, call->args);
    tg_free(library->host, call);
}

static void close_library(TgDnnLibrary *library) {
    const TgHost *host = library->host;
    for (TgDnnCall *call = library->calls, *next; call; call = next) {
        next = call->next;
        free_call(call);
    }
    for (int i = 0; library->streams && i < library->threads; i++)
        if (library->streams[i])
            (void)dnnl_stream_destroy(library->streams[i]);
    if (library->engine)
        (void)dnnl_engine_destroy(library->engine);
    tg_free(host, library->streams);
    tg_free(host, library);
}

static Status open_library(const TgHost *host, int threads, TgDnnLibrary **out) {
    TgDnnLibrary *library = new_zeroed(host, sizeof *library);
    if (!library)
        return TG_MEMORY;
    library->host = host;
    library->threads = threads;
    library->streams = new_zeroed(host, (size_t)threads * sizeof *library->streams);
    Status status = library->streams ? status_of(dnnl_engine_create(&library->engine, dnnl_cpu, 0)) : TG_MEMORY;
    for (int i = 0; status == TG_OK && i < threads; i++)
        status = status_of(dnnl_stream_create(&library->streams[i], library->engine, dnnl_stream_default_flags));
    if (status != TG_OK)
        close_library(library);
    else
        *out = library;
    return status;
}

static dnnl_data_type_t type_of(DType dtype) { return dtype == DT_BF16 ? dnnl_bf16 : dnnl_f32; }

static dnnl_status_t describe(dnnl_memory_desc_t *desc, DType dtype, int64_t rows, int64_t columns, int64_t row_stride,
                              int64_t column_stride) {
    dnnl_dims_t dims = {rows, columns}, strides = {row_stride, column_stride};
    if (rows == 1) /* a stride that is never used confuses the library's choice of a kernel */
        strides[0] = column_stride == 1 ? columns : 1;
    if (columns == 1)
        strides[1] = strides[0] == 1 ? rows : 1;
    return dnnl_memory_desc_init_by_strides(desc, 2, dims, type_of(dtype), strides);
}

static dnnl_status_t make_primitive(TgDnnCall *call, dnnl_memory_desc_t descs[OPERANDS]) {
    const DnnShape *s = &call->shape;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_primitive_desc_t primitive = NULL;
    dnnl_status_t status = describe(&descs[OPERAND_A], s->dtype, s->m, s->k, s->a_m, s->a_k);
    if (status == dnnl_success)
        status = describe(&descs[OPERAND_B], s->dtype, s->k, s->n, s->b_k, s->b_n);
    if (status == dnnl_success)
        status = describe(&descs[OPERAND_OUT], s->out_dtype, s->m, s->n, s->out_m, 1);
    if (status == dnnl_success && s->bias)
        status = describe(&descs[OPERAND_BIAS], s->bias_dtype, 1, s->n, s->n, 1);
    if (status == dnnl_success)
        status = dnnl_matmul_desc_init(&matmul, &descs[OPERAND_A], &descs[OPERAND_B],
                                       s->bias ? &descs[OPERAND_BIAS] : NULL, &descs[OPERAND_OUT]);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&attributes);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&primitive, &matmul, attributes, call->library->engine, NULL);
    if (status == dnnl_success) {
        descs[OPERAND_SCRATCH] = *dnnl_primitive_desc_query_md(primitive, dnnl_query_scratchpad_md, 0);
        status = dnnl_primitive_create(&call->primitive, primitive);
    }
    if (primitive)
        (void)dnnl_primitive_desc_destroy(primitive);
    if (attributes)
        (void)dnnl_primitive_attr_destroy(attributes);
    return status;
}

static bool takes(DType dtype) { return dtype == DT_F32 || dtype == DT_BF16; }

static Status prepare_matmul(TgDnnCall *call, size_t *scratch_bytes) {
    TgDnnLibrary *library = call->library;
    const DnnShape *s = &call->shape;
    if (!takes(s->dtype) || !takes(s->out_dtype) || (s->bias && !takes(s->bias_dtype)))
        return TG_MODEL;
    dnnl_memory_desc_t descs[OPERANDS] = {0};
    TG_TRY(status_of(make_primitive(call, descs)));
    *scratch_bytes = dnnl_memory_desc_get_size(&descs[OPERAND_SCRATCH]);
    call->operands = s->bias ? OPERANDS : OPERAND_BIAS;
    call->args = new_zeroed(library->host, (size_t)library->threads * OPERANDS * sizeof *call->args);
    if (!call->args)
        return TG_MEMORY;
    for (int thread = 0; thread < library->threads; thread++)
        for (int i = 0; i < call->operands; i++) {
            dnnl_exec_arg_t *arg = &call->args[thread * OPERANDS + i];
            arg->arg = operand_names[i];
            TG_TRY(status_of(dnnl_memory_create(&arg->memory, &descs[i], library->engine, DNNL_MEMORY_NONE)));
        }
    return TG_OK;
}

/* A matrix [rows][columns] as BLAS has it: transposed or not, and the distance of its lines. */
static char transposition(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                          dnnl_dim_t *distance) {
    bool by_rows = (column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1);
    *distance = by_rows ? (rows == 1 ? columns : row_stride) : (columns == 1 ? rows : column_stride);
    return by_rows ? 'N' : 'T';
}

/* The library has the call for some processors only. */
static bool has_gemm_bf16(void) {
    const uint16_t factor = 0;
    float out = 0;
    return dnnl_gemm_bf16bf16f32 &&
           dnnl_gemm_bf16bf16f32('N', 'N', 1, 1, 1, 1, &factor, 1, &factor, 1, 0, &out, 1) == dnnl_success;
}

static Status prepare_gemm(TgDnnCall *call) {
    const DnnShape *s = &call->shape;
    bool bf16 = s->variant == DNN_GEMM_BF16;
    if (bf16 && !has_gemm_bf16())
        return TG_MODEL;
    if (s->dtype != (bf16 ? DT_BF16 : DT_F32) || s->out_dtype != DT_F32 || s->bias)
        return TG_INTERNAL;
    call->trans_a = transposition(s->m, s->k, s->a_m, s->a_k, &call->lda);
    call->trans_b = transposition(s->k, s->n, s->b_k, s->b_n, &call->ldb);
    return TG_OK;
}

static Status prepare(TgDnnLibrary *library, const DnnShape *shape, TgDnnCall **out, size_t *scratch_bytes) {
    TgDnnCall *call = new_zeroed(library->host, sizeof *call);
    if (!call)
        return TG_MEMORY;
    call->library = library;
    call->shape = *shape;
    *scratch_bytes = 0;
    Status status = shape->variant == DNN_MATMUL ? prepare_matmul(call, scratch_bytes) : prepare_gemm(call);
    if (status != TG_OK) {
        free_call(call);
        return status;
    }
    call->next = library->calls;
    library->calls = call;
    *out = call;
    return TG_OK;
}

static void run_matmul(TgDnnCall *call, int thread, const DnnTask *task) {
    dnnl_exec_arg_t *args = call->args + thread * OPERANDS;
    (void)dnnl_memory_set_data_handle(args[OPERAND_A].memory, (void *)(uintptr_t)task->a);
    (void)dnnl_memory_set_data_handle(args[OPERAND_B].memory, (void *)(uintptr_t)task->b);
    (void)dnnl_memory_set_data_handle(args[OPERAND_OUT].memory, task->out);
    (void)dnnl_memory_set_data_handle(args[OPERAND_SCRATCH].memory, task->scratch);
    if (call->shape.bias)
        (void)dnnl_memory_set_data_handle(args[OPERAND_BIAS].memory, (void *)(uintptr_t)task->bias);
    (void)dnnl_primitive_execute(call->primitive, call->library->streams[thread], call->operands, args);
}

static void run(TgDnnCall *call, int thread, const DnnTask *task) {
    const DnnShape *s = &call->shape;
    switch (s->variant) {
    case DNN_SGEMM:
        (void)dnnl_sgemm(call->trans_a, call->trans_b, s->m, s->n, s->k, 1, task->a, call->lda, task->b, call->ldb,
                         s->adds ? 1 : 0, task->out, s->out_m);
        break;
    case DNN_GEMM_BF16:
        (void)dnnl_gemm_bf16bf16f32(call->trans_a, call->trans_b, s->m, s->n, s->k, 1, task->a, call->lda, task->b,
                                    call->ldb, s->adds ? 1 : 0, task->out, s->out_m);
        break;
    default:
        run_matmul(call, thread, task);
    }
}

const TgDnn tg_dnn = {
    .abi = TG_DNN_ABI,
    .version = library_version,
    .open = open_library,
    .close = close_library,
    .enter_thread = enter_thread,
    .prepare = prepare,
    .run = run,
};
