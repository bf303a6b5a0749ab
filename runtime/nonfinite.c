#include "runtime/nonfinite.h"
#include "runtime/manifest.h"
#include "runtime/stop.h"
#include "runtime/weights.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void note(Session *session, TensorFile *file, const char *name, const char *text) {
    tg_push(session->arena, &file->notes, (TensorNote){name, text});
}

static void note_count(Session *session, TensorFile *file, const char *name, uint64_t count) {
    note(session, file, name, tg_arena_printf(session->arena, "%llu", (unsigned long long)count));
}

static void add_batch(Session *session, const Batch *batch, TensorFile *file) {
    for (uint32_t i = 0; i < batch->set->field_count; i++) {
        const PlanField *field = &batch->set->fields[i];
        if (field->rank == TG_PLAN_RANK)
            continue;
        Tensor tensor = {.name = tg_arena_printf(session->arena, "batch.%s", field->name),
                         .dtype = field->dtype,
                         .rank = (uint8_t)(field->rank + 1),
                         .bytes = batch->set->record_bytes[i] * (size_t)batch->count};
        tensor.dims[0] = batch->count;
        memcpy(tensor.dims + 1, field->dims, field->rank * sizeof field->dims[0]);
        unsigned char *values = tg_arena_alloc(session->arena, tensor.bytes);
        tg_batch_copy(batch, i, 0, batch->count, batch->count, values);
        tensor.values = values;
        tg_push(session->arena, &file->tensors, tensor);
    }
}

static Status write_dump(Session *session, const Batch *batch, const LoopPlace *place, const char *path) {
    TensorFile file = {0};
    note_count(session, &file, "step", (uint64_t)place->step);
    note_count(session, &file, "iteration", (uint64_t)place->iteration);
    note_count(session, &file, "epoch", (uint64_t)place->epoch);
    note_count(session, &file, "records", (uint64_t)batch->count);
    note_count(session, &file, "seed", session->settings.seed);
    note(session, &file, "plan", tg_plan_hash(session));
    char text[TG_NUMBER_TEXT];
    const double *values = tg_exec_values(session->exec);
    for (uint32_t i = 0; i < session->plan->scalar_count; i++)
        note(session, &file, tg_arena_printf(session->arena, "scalar.%s", session->plan->scalars[i].name),
             tg_arena_printf(session->arena, "%s", tg_number_text(values[i], text)));
    tg_weights_gather(session->exec, session->plan, session->arena,
                      1 << PLAN_PARAM | 1 << PLAN_STATE | 1 << PLAN_OPTIMIZER, &file);
    add_batch(session, batch, &file);
    return tg_tensors_write(session->arena, path, &file, &session->why);
}

/* Lets the compiler say which line it was. false: there is none at its place, or it could not. */
static bool replay(Session *session, const char *dump) {
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    const char *tgc = session->plan->tgc;
    if (length <= 0 || tgc[0] == '\0' || access(tgc, X_OK) != 0)
        return false;
    program[length] = '\0';
    char *arguments[] = {(char *)(uintptr_t)tgc, "replay", program, (char *)(uintptr_t)dump, NULL};
    fflush(session->err);
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    pid_t child;
    bool started = posix_spawn_file_actions_adddup2(&actions, fileno(session->err), STDOUT_FILENO) == 0 &&
                   tg_spawn(&child, tgc, &actions, arguments) == 0;
    posix_spawn_file_actions_destroy(&actions);
    int result = 0;
    while (started && waitpid(child, &result, 0) < 0)
        if (errno != EINTR)
            return false;
    return started && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

static float *loss_scale(const Session *session) {
    for (uint32_t i = 0; i < session->plan->buffer_count; i++)
        if (strcmp(session->plan->buffers[i].name, "optimizer.loss_scale") == 0)
            return tg_exec_address(session->exec, i, 0);
    return NULL;
}

Status tg_nonfinite_name(Session *session, const Batch *batch, const LoopPlace *place, const char *folder, float scale) {
    const char *path = tg_arena_printf(session->arena, "%s/overflow.safetensors", folder);
    float *state = loss_scale(session), next = state != NULL ? *state : 0;
    if (state != NULL)
        *state = scale;
    Status status = write_dump(session, batch, place, path);
    if (state != NULL)
        *state = next;
    TG_TRY(status);
    (void)replay(session, path); /* without a compiler beside the program nobody can say where */
    unlink(path);
    return TG_OK;
}

Status tg_nonfinite_stop(Session *session, const Batch *batch, const LoopPlace *place, const char *folder) {
    const char *path = tg_arena_printf(session->arena, "%s/nonfinite.safetensors", folder);
    TG_TRY(write_dump(session, batch, place, path));
    const char *loss = session->plan->loss[0] != '\0' ? session->plan->loss : "loss";
    fprintf(session->err,
            "%s: %s is not finite at step %lld (epoch %lld); the step changed nothing, the state before it is in %s\n",
            session->name, loss, (long long)place->step, (long long)place->epoch + 1, path);
    session->why = NULL;
    if (!replay(session, path))
        fprintf(session->err, "%s: 'tgc replay %s %s' finds the line\n", session->name, session->path, path);
    return TG_NUMERIC;
}
