#include "runtime/weights.h"
#include "runtime/data.h"

#include <string.h>

enum { SAVED_CLASSES = 1 << PLAN_PARAM | 1 << PLAN_STATE };

void tg_weights_gather(TgExec *exec, const TgPlan *plan, Arena *arena, unsigned classes, TensorFile *file) {
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if ((classes >> buffer->class & 1) == 0)
            continue;
        Tensor tensor = {
            .name = buffer->name, .dtype = buffer->dtype, .rank = buffer->rank, .values = tg_exec_address(exec, i, 0)};
        memcpy(tensor.dims, buffer->dims, sizeof tensor.dims);
        tensor.bytes = (size_t)tg_data_bytes(buffer->dtype, buffer->rank, buffer->dims);
        tg_push(arena, &file->tensors, tensor);
    }
}

Status tg_weights_save(TgExec *exec, const TgPlan *plan, Arena *arena, const char *path, const char **why) {
    TensorFile file = {0};
    tg_weights_gather(exec, plan, arena, SAVED_CLASSES, &file);
    return tg_tensors_write(arena, path, &file, why);
}

static Status check_tensor(Arena *arena, const char *path, const PlanBuffer *buffer, const Tensor *tensor,
                           const char **why) {
    bool same = tensor->dtype == buffer->dtype && tensor->rank == buffer->rank;
    for (int i = 0; same && i < buffer->rank; i++)
        same = tensor->dims[i] == buffer->dims[i];
    if (same)
        return TG_OK;
    *why = tg_arena_printf(arena, "%s: '%s' is %s, but the model has %s", path, buffer->name,
                           tg_data_shape(arena, tensor->dtype, tensor->rank, tensor->dims),
                           tg_data_shape(arena, buffer->dtype, buffer->rank, buffer->dims));
    return TG_MODEL;
}

static bool is_saved(const PlanBuffer *buffer) { return (SAVED_CLASSES >> buffer->class & 1) != 0; }

/* A tensor that no buffer takes is a mistake: most often a name that differs a little. */
static Status check_known(Arena *arena, const TgPlan *plan, const TensorFile *file, const char **why) {
    const char **names = TG_ALLOC(arena, const char *, plan->buffer_count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (is_saved(&plan->buffers[i]))
            names[count++] = plan->buffers[i].name;
    for (uint32_t i = 0; i < file->tensors.count; i++) {
        const char *name = file->tensors.at[i].name;
        bool known =
            strncmp(name, "optimizer.", strlen("optimizer.")) == 0 || strncmp(name, "batch.", strlen("batch.")) == 0;
        for (uint32_t j = 0; j < count && !known; j++)
            known = strcmp(names[j], name) == 0;
        if (known)
            continue;
        const char *close = tg_closest(name, names, count);
        *why = tg_arena_printf(arena, "%s: the model has no parameter '%s'%s%s%s", file->path, name,
                               close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "");
        return TG_MODEL;
    }
    return TG_OK;
}

Status tg_weights_load(TgExec *exec, const TgPlan *plan, Arena *arena, const char *path, const char **why) {
    TensorFile file;
    TG_TRY(tg_tensors_read(arena, path, &file, why));
    TG_TRY(check_known(arena, plan, &file, why));
    const Tensor **found = TG_ALLOC(arena, const Tensor *, plan->buffer_count);
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        found[i] = is_saved(buffer) ? tg_tensor_find(&file, buffer->name) : NULL;
        if (found[i] != NULL)
            TG_TRY(check_tensor(arena, path, buffer, found[i], why));
        if (found[i] == NULL && buffer->class == PLAN_PARAM) {
            *why = tg_arena_printf(arena, "%s: parameter '%s' (%s) is missing", path, buffer->name,
                                   tg_data_shape(arena, buffer->dtype, buffer->rank, buffer->dims));
            return TG_MODEL;
        }
    }
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (found[i] != NULL)
            memcpy(tg_exec_address(exec, i, 0), found[i]->values, found[i]->bytes);
    return TG_OK;
}
