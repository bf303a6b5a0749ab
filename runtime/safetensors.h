/* safetensors files: an 8-byte little-endian length, a JSON header, the tensors' bytes one after the other. */
#ifndef TG_SAFETENSORS_H
#define TG_SAFETENSORS_H

#include "ir/base/vec.h"
#include "ir/plan/plan.h"

typedef struct Tensor {
    const char *name;
    DType dtype;
    uint8_t rank;
    int64_t dims[TG_PLAN_RANK];
    const void *values; /* little-endian, row-major; not aligned in a file that was read */
    size_t bytes;
} Tensor;

typedef struct TensorNote {
    const char *name, *text;
} TensorNote;

typedef struct TensorFile {
    const char *path;
    Vec(Tensor) tensors;   /* in the order of their bytes */
    Vec(TensorNote) notes; /* the header's __metadata__ */
} TensorFile;

/* Sizes, offsets, overlaps and gaps are checked: TG_MODEL with the reason; TG_IO when it cannot be read. */
TG_CHECKED Status tg_tensors_read(Arena *arena, const char *path, TensorFile *file, const char **why);
/* Whole or not at all. */
TG_CHECKED Status tg_tensors_write(Arena *arena, const char *path, const TensorFile *file, const char **why);
const Tensor *tg_tensor_find(const TensorFile *file, const char *name);

#endif
