#include "runtime/weights.h"
#include "runtime/json.h"

#include <string.h>

static const char average_prefix[] = "average.";

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

static Status save(TgExec *exec, const TgPlan *plan, Arena *arena, const DataVocabulary *words, const char *path,
                   const char **why) {
    TensorFile file = {0};
    tg_data_words_note(arena, words, &file);
    tg_weights_gather(exec, plan, arena, SAVED_CLASSES, &file);
    return tg_tensors_write(arena, path, &file, why);
}

Status tg_weights_save(TgExec *exec, const TgPlan *plan, Arena *arena, const DataVocabulary *words, const char *path,
                       const char **why) {
    Arena own; /* a run may save many times */
    tg_arena_init(&own, arena->host);
    Arena *const json = tg_json_memory(&own);
    const char *text = NULL;
    Status status = TG_MEMORY;
    if (setjmp(own.guard) == 0)
        status = save(exec, plan, &own, words, path, &text);
    (void)tg_json_memory(json);
    if (text != NULL)
        *why = tg_arena_str(arena, text, strlen(text));
    tg_arena_deinit(&own);
    return status;
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

/* Finds the buffers of `classes`; those of `needed` must be there. */
static Status find_tensors(const TgPlan *plan, Arena *arena, const TensorFile *file, unsigned classes, unsigned needed,
                           const Tensor **found, const char **why) {
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        found[i] = (classes >> buffer->class & 1) != 0 ? tg_tensor_find(file, buffer->name) : NULL;
        bool average = strncmp(buffer->name, average_prefix, strlen(average_prefix)) == 0;
        if (found[i] == NULL && average && (needed >> buffer->class & 1) == 0) /* it begins where its parameter does */
            found[i] = tg_tensor_find(file, buffer->name + strlen(average_prefix));
        if (found[i] != NULL)
            TG_TRY(check_tensor(arena, file->path, buffer, found[i], why));
        if (found[i] == NULL && (needed >> buffer->class & 1) != 0) {
            *why = tg_arena_printf(arena, "%s: %s '%s' (%s) is missing", file->path,
                                   buffer->class == PLAN_PARAM ? "parameter" : "state", buffer->name,
                                   tg_data_shape(arena, buffer->dtype, buffer->rank, buffer->dims));
            return TG_MODEL;
        }
    }
    return TG_OK;
}

void tg_weights_copy(TgExec *exec, const TgPlan *plan) {
    const PlanFunc *copies = tg_plan_func(plan, PLAN_COPIES, NULL);
    if (copies != NULL)
        tg_exec_run(exec, copies, 0);
}

static void take_tensors(TgExec *exec, const TgPlan *plan, const Tensor *const *found) {
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (found[i] != NULL)
            memcpy(tg_exec_address(exec, i, 0), found[i]->values, found[i]->bytes);
    tg_weights_copy(exec, plan);
}

Status tg_weights_load(TgExec *exec, const TgPlan *plan, Arena *arena, DataVocabulary *words, const char *path,
                       const char **why) {
    TensorFile file;
    TG_TRY(tg_tensors_read(arena, path, &file, why));
    TG_TRY(check_known(arena, plan, &file, why));
    const Tensor **found = TG_ALLOC(arena, const Tensor *, plan->buffer_count);
    TG_TRY(find_tensors(plan, arena, &file, SAVED_CLASSES, 1 << PLAN_PARAM, found, why));
    TG_TRY(tg_data_words_take(arena, words, &file, why));
    take_tensors(exec, plan, found);
    return TG_OK;
}

Status tg_weights_restore(TgExec *exec, const TgPlan *plan, Arena *arena, const TensorFile *file, unsigned classes,
                          const char **why) {
    const Tensor **found = TG_ALLOC(arena, const Tensor *, plan->buffer_count);
    TG_TRY(find_tensors(plan, arena, file, classes, classes, found, why));
    take_tensors(exec, plan, found);
    return TG_OK;
}
