#include "runtime/manifest.h"
#include "ir/base/file.h"
#include "ir/base/map.h"

#include <stdlib.h>
#include <string.h>

const char *tg_plan_hash(Session *session) {
    uint64_t hash = tg_hash(session->program->plan, session->program->plan_bytes, 0);
    return tg_arena_printf(session->arena, "%016llx", (unsigned long long)hash);
}

static json_t *settings_of(const Session *session) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < session->settings.all.count; i++) {
        const PlanSetting *setting = &session->settings.all.at[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", setting->name, "value", setting->value,
                                              "origin", setting->origin));
    }
    return list;
}

static json_t *data_of(const Session *session) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < session->plan->field_count; i++) {
        const PlanField *field = &session->plan->fields[i];
        if (tg_field_listed_before(session->plan, i))
            continue;
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:I}", "field", field->name, "reader", field->reader, "path",
                                        field->path, "records", (json_int_t)session->files.arrays[i].dims[0]));
    }
    return list;
}

static json_t *manifest(Session *session, json_t *result) {
    const TgPlan *plan = session->plan;
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:i, s:s}", "program", session->name, "source",
                  plan->source_path, "plan", tg_plan_hash(session), "cpu", plan->cpu, "abi", TG_ABI_VERSION, "batch",
                  (json_int_t)plan->batch, "micro", (json_int_t)plan->micro, "lanes", (json_int_t)plan->lanes,
                  "threads", tg_exec_threads(session->exec), "weights", "weights.safetensors");
    json_object_set_new(
        document, "data_root",
        json_pack("{s:s, s:s}", "path", session->files.root.path, "origin", session->files.root.origin));
    json_object_set_new(document, "data", data_of(session));
    json_object_set_new(document, "settings", settings_of(session));
    json_object_set(document, "result", result);
    return document;
}

Status tg_manifest_write(Session *session, const char *path, json_t *result) {
    const char *text = tg_json_text(session->arena, manifest(session, result), JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    if (text == NULL)
        return TG_MEMORY;
    TgFileWriter file;
    Status status = tg_file_put(&file, session->arena->host, path, text, strlen(text));
    return status == TG_OK ? TG_OK : tg_session_fail(session, status, "%s", file.why);
}
