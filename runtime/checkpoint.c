#include "runtime/checkpoint.h"
#include "ir/base/file.h"
#include "ir/base/map.h"
#include "runtime/weights.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAVED_CLASSES = 1 << PLAN_PARAM | 1 << PLAN_STATE | 1 << PLAN_OPTIMIZER };

static const char record_name[] = "latest.json", list_key[] = "checkpoints", folder_name[] = "checkpoints",
                  file_prefix[] = "step-", file_suffix[] = ".safetensors", setting_prefix[] = "setting.",
                  number_prefix[] = "run.";

void tg_checkpoints_open(Checkpoints *checkpoints, Session *session, const char *folder, int64_t keep) {
    *checkpoints = (Checkpoints){
        .session = session, .folder = tg_arena_printf(session->arena, "%s/%s", folder, folder_name), .keep = keep};
}

/* What the program computes, whatever its settings, places in the source and length of training are. */
static const char *functions_hash(Arena *arena, const TgPlan *plan) {
    static const char place[] = " loc(";
    const char *from = strstr(plan->model_text, "\n  func ");
    uint64_t hash = 0;
    for (; from != NULL && *from != '\0';) {
        const char *next = strstr(from, place), *end = next == NULL ? from + strlen(from) : next;
        hash = tg_hash(from, (size_t)(end - from), hash);
        from = next == NULL ? end : next + strcspn(next, ")");
    }
    return tg_arena_printf(arena, "%016llx", (unsigned long long)hash);
}

static void note(Arena *arena, TensorFile *file, const char *prefix, const char *name, const char *text) {
    tg_push(arena, &file->notes, (TensorNote){tg_arena_printf(arena, "%s%s", prefix, name), text});
}

static const char *noted(const TensorFile *file, const char *prefix, const char *name) {
    size_t length = strlen(prefix);
    for (uint32_t i = 0; i < file->notes.count; i++)
        if (strncmp(file->notes.at[i].name, prefix, length) == 0 && strcmp(file->notes.at[i].name + length, name) == 0)
            return file->notes.at[i].text;
    return NULL;
}

/* ---- saving ---- */

static Status write_tensors(Session *session, Arena *arena, const char *path, int64_t records, const RunNumber *numbers,
                            uint32_t count, const char **why) {
    TensorFile file = {0};
    char text[TG_NUMBER_TEXT];
    for (uint32_t i = 0; i < count; i++)
        note(arena, &file, number_prefix, numbers[i].name,
             numbers[i].real != NULL ? tg_arena_printf(arena, "%s", tg_number_text(*numbers[i].real, text))
                                     : tg_arena_printf(arena, "%lld", (long long)*numbers[i].whole));
    note(arena, &file, "", "records", tg_arena_printf(arena, "%lld", (long long)records));
    note(arena, &file, "", "functions", functions_hash(arena, session->plan));
    note(arena, &file, "", "source", session->plan->source_path);
    for (uint32_t i = 0; i < session->settings.all.count; i++)
        note(arena, &file, setting_prefix, session->settings.all.at[i].name, session->settings.all.at[i].value);
    tg_data_words_note(arena, &session->files.vocabulary, &file);
    tg_weights_gather(session->exec, session->plan, arena, SAVED_CLASSES, &file);
    return tg_tensors_write(arena, path, &file, why);
}

static Status write_record(Checkpoints *checkpoints, Arena *arena, const char **why) {
    json_t *list = json_array(), *record = json_object();
    for (uint32_t i = 0; i < checkpoints->files.count; i++)
        json_array_append_new(list, json_string(checkpoints->files.at[i]));
    json_object_set_new(record, list_key, list);
    const char *text = tg_json_text(arena, record, JSON_INDENT(2));
    if (text == NULL)
        return TG_MEMORY;
    TgFileWriter file;
    Status status = tg_file_put(&file, arena->host, tg_arena_printf(arena, "%s/%s", checkpoints->folder, record_name),
                                text, strlen(text));
    if (status != TG_OK)
        *why = tg_arena_printf(arena, "%s", file.why);
    return status;
}

static bool is_listed(const Checkpoints *checkpoints, const char *name) {
    for (uint32_t i = 0; i < checkpoints->files.count; i++)
        if (strcmp(checkpoints->files.at[i], name) == 0)
            return true;
    return false;
}

/* Old checkpoints, and what saves that were cut off or an earlier run left in the folder. */
static void remove_unlisted(const Checkpoints *checkpoints, Arena *arena) {
    DIR *folder = opendir(checkpoints->folder);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        const char *name = entry->d_name;
        bool ours = strncmp(name, file_prefix, strlen(file_prefix)) == 0 ||
                    strncmp(name, record_name, strlen(record_name)) == 0;
        if (ours && strcmp(name, record_name) != 0 && !is_listed(checkpoints, name))
            (void)unlink(tg_arena_printf(arena, "%s/%s", checkpoints->folder, name));
    }
    if (folder != NULL)
        (void)closedir(folder);
}

static void list_file(Checkpoints *checkpoints, const char *name) {
    Arena *arena = checkpoints->session->arena;
    if (is_listed(checkpoints, name))
        return;
    uint32_t drop = checkpoints->files.count >= checkpoints->keep
                        ? (uint32_t)(checkpoints->files.count - checkpoints->keep + 1)
                        : 0;
    if (drop > 0)
        memmove(checkpoints->files.at, checkpoints->files.at + drop,
                (checkpoints->files.count - drop) * sizeof *checkpoints->files.at);
    checkpoints->files.count -= drop;
    tg_push(arena, &checkpoints->files, tg_arena_str(arena, name, strlen(name)));
}

static Status save(Checkpoints *checkpoints, Arena *arena, int64_t step, int64_t records, const RunNumber *numbers,
                   uint32_t count, const char **why) {
    char text[256];
    Status status = tg_make_directories(checkpoints->folder, text, sizeof text);
    if (status != TG_OK) {
        *why = tg_arena_printf(arena, "%s", text);
        return status;
    }
    const char *name = tg_arena_printf(arena, "%s%06lld%s", file_prefix, (long long)step, file_suffix);
    TG_TRY(write_tensors(checkpoints->session, arena, tg_arena_printf(arena, "%s/%s", checkpoints->folder, name),
                         records, numbers, count, why));
    list_file(checkpoints, name);
    TG_TRY(write_record(checkpoints, arena, why));
    remove_unlisted(checkpoints, arena);
    return TG_OK;
}

Status tg_checkpoint_save(Checkpoints *checkpoints, int64_t step, int64_t records, const RunNumber *numbers,
                          uint32_t count) {
    Session *session = checkpoints->session;
    Arena arena; /* of this save: a run may have many */
    tg_arena_init(&arena, session->arena->host);
    Arena *const json = tg_json_memory(&arena);
    const char *why = NULL;
    Status status = TG_MEMORY;
    if (setjmp(arena.guard) == 0)
        status = save(checkpoints, &arena, step, records, numbers, count, &why);
    (void)tg_json_memory(json);
    if (status != TG_OK && why != NULL)
        session->why = tg_arena_str(session->arena, why, strlen(why));
    tg_arena_deinit(&arena);
    return status;
}

/* ---- resuming ---- */

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static const char *folder_of(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? NULL : tg_arena_str(arena, path, (size_t)(slash - path));
}

const char *tg_checkpoint_run(Arena *arena, const char *from) {
    const char *folder = is_folder(from) ? NULL : folder_of(arena, from);
    if (is_folder(from))
        return from;
    const char *run = folder == NULL ? NULL : folder_of(arena, folder);
    return folder == NULL ? ".." : run == NULL ? "." : run;
}

/* The files that the record names. */
static Status read_record(Checkpoints *checkpoints, Arena *arena, const char *path) {
    Session *session = checkpoints->session;
    char *text = NULL;
    size_t bytes = 0;
    TG_TRY(tg_file_read(arena, path, &text, &bytes, &session->why));
    json_t *record = json_loadb(text, bytes, 0, NULL);
    const json_t *list = json_object_get(record, list_key), *file;
    size_t i;
    json_array_foreach((json_t *)list, i, file) {
        const char *name = json_string_value(file);
        if (name != NULL && strchr(name, '/') == NULL)
            tg_push(session->arena, &checkpoints->files, tg_arena_str(session->arena, name, strlen(name)));
    }
    json_decref(record);
    return checkpoints->files.count > 0 ? TG_OK : tg_session_fail(session, TG_MODEL, "%s names no checkpoint", path);
}

static bool may_change(const char *name) {
    static const char *const free_names[] = {"epochs", "steps", "validate_every"};
    for (size_t i = 0; i < sizeof free_names / sizeof *free_names; i++)
        if (strcmp(name, free_names[i]) == 0)
            return true;
    return false;
}

/* "0.50" is 0.5. */
static bool same_value(const char *a, const char *b) {
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    bool numbers = end_a != a && end_b != b && *end_a == '\0' && *end_b == '\0';
    return numbers ? x == y : strcmp(a, b) == 0;
}

static Status check_settings(Session *session, const TensorFile *file) {
    Str list = tg_str(session->arena);
    for (uint32_t i = 0; i < session->settings.all.count; i++) {
        const PlanSetting *setting = &session->settings.all.at[i];
        const char *saved = noted(file, setting_prefix, setting->name);
        if (saved != NULL && !may_change(setting->name) && !same_value(saved, setting->value))
            tg_str_printf(&list, "%s'%s' is %s there and %s here", list.length > 0 ? ", " : "", setting->name, saved,
                          setting->value);
    }
    if (list.length == 0)
        return TG_OK;
    return tg_session_fail(session, TG_USAGE,
                           "%s was saved with other settings: %s; a resumed run may change only "
                           "epochs, steps and validate_every; --init takes the weights alone",
                           file->path, list.text);
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static Status check_program(Session *session, const TensorFile *file, int64_t records) {
    const char *functions = noted(file, "", "functions"), *saved = noted(file, "", "records");
    if (functions == NULL || saved == NULL)
        return tg_session_fail(session, TG_MODEL, "%s is no checkpoint; --init takes the weights of a file",
                               file->path);
    bool same = strcmp(functions, functions_hash(session->arena, session->plan)) == 0;
    const char *source = noted(file, "", "source"), *here = session->plan->source_path;
    if (!same && source != NULL && strcmp(last_part(source), last_part(here)) != 0)
        return tg_session_fail(session, TG_MODEL, "%s was saved by a program of %s, this is one of %s", file->path,
                               source, here);
    TG_TRY(check_settings(session, file));
    if (!same)
        return tg_session_fail(session, TG_MODEL,
                               "%s was saved by another program than this %s: its model, objective "
                               "or optimizer has changed since; --init takes the weights alone",
                               file->path, session->plan->source_path);
    if (strtoll(saved, NULL, 10) != records)
        return tg_session_fail(session, TG_MODEL, "%s was saved over %s training records, here are %lld", file->path,
                               saved, (long long)records);
    return TG_OK;
}

static Status read_numbers(Session *session, const TensorFile *file, const RunNumber *numbers, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const char *text = noted(file, number_prefix, numbers[i].name);
        if (text == NULL)
            return tg_session_fail(session, TG_MODEL, "%s: its metadata lacks '%s%s'", file->path, number_prefix,
                                   numbers[i].name);
        if (numbers[i].real != NULL)
            *numbers[i].real = strtod(text, NULL);
        else
            *numbers[i].whole = strtoll(text, NULL, 10);
    }
    return TG_OK;
}

/* Only files up to the one that the run goes on from stay listed, and those only if it saves beside them. */
static void forget_later(Checkpoints *checkpoints, const char *run, const char *name) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < checkpoints->files.count; i++)
        if (strcmp(checkpoints->files.at[i], name) == 0)
            count = i + 1;
    const char *beside = tg_arena_printf(checkpoints->session->arena, "%s/%s", run, folder_name);
    checkpoints->files.count = strcmp(beside, checkpoints->folder) == 0 ? count : 0;
}

static Status resume(Checkpoints *checkpoints, Arena *arena, const char *from, int64_t records,
                     const RunNumber *numbers, uint32_t count) {
    Session *session = checkpoints->session;
    const char *run = tg_checkpoint_run(arena, from), *path = from;
    const char *record = tg_arena_printf(arena, "%s/%s/%s", run, folder_name, record_name);
    bool is_run = is_folder(from), has_record = access(record, F_OK) == 0;
    if (is_run && !has_record)
        return tg_session_fail(session, TG_IO, "%s has no checkpoint; '%s train --save-every N' makes them", from,
                               session->name);
    if (has_record)
        TG_TRY(read_record(checkpoints, arena, record));
    if (is_run)
        path = tg_arena_printf(session->arena, "%s/%s/%s", run, folder_name,
                               checkpoints->files.at[checkpoints->files.count - 1]);
    forget_later(checkpoints, run, last_part(path));
    TensorFile file;
    TG_TRY(tg_tensors_read(arena, path, &file, &session->why));
    TG_TRY(check_program(session, &file, records));
    TG_TRY(tg_data_words_take(session->arena, &session->files.vocabulary, &file, &session->why));
    TG_TRY(read_numbers(session, &file, numbers, count));
    return tg_weights_restore(session->exec, session->plan, arena, &file, SAVED_CLASSES, &session->why);
}

Status tg_checkpoint_resume(Checkpoints *checkpoints, const char *from, int64_t records, const RunNumber *numbers,
                            uint32_t count) {
    Session *session = checkpoints->session;
    Arena arena;
    tg_arena_init(&arena, session->arena->host);
    Arena *const json = tg_json_memory(&arena);
    Status status = TG_MEMORY;
    if (setjmp(arena.guard) == 0)
        status = resume(checkpoints, &arena, from, records, numbers, count);
    else
        session->why = NULL;
    (void)tg_json_memory(json);
    if (session->why != NULL)
        session->why = tg_arena_str(session->arena, session->why, strlen(session->why));
    tg_arena_deinit(&arena);
    return status;
}
