#include "runtime/session.h"

#include <string.h>

static int64_t elements(const PlanBuffer *buffer) {
    return tg_data_bytes(buffer->dtype, buffer->rank, buffer->dims) / tg_dtype(buffer->dtype)->bytes;
}

static int64_t count_parameters(const TgPlan *plan) {
    int64_t count = 0;
    for (uint32_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].class == PLAN_PARAM)
            count += elements(&plan->buffers[i]);
    return count;
}

static json_t *json_dims(int rank, const int64_t *dims) {
    json_t *list = json_array();
    for (int i = 0; i < rank; i++)
        json_array_append_new(list, json_integer(dims[i]));
    return list;
}

static json_t *json_parameters(const TgPlan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if (buffer->class == PLAN_PARAM)
            json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I, s:b}", "name", buffer->name, "dtype",
                                                  tg_dtype(buffer->dtype)->name, "shape",
                                                  json_dims(buffer->rank, buffer->dims), "count",
                                                  (json_int_t)elements(buffer), "frozen", buffer->frozen));
    }
    return list;
}

static json_t *json_settings(const Settings *settings) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < settings->all.count; i++) {
        const PlanSetting *setting = &settings->all.at[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "name", setting->name, "value", setting->value,
                                              "origin", setting->origin, "runtime", setting->runtime));
    }
    return list;
}

static json_t *json_data(const TgPlan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->field_count; i++) {
        const PlanField *field = &plan->fields[i];
        if (tg_field_listed_before(plan, i))
            continue;
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", field->name, "reader", field->reader,
                                              "path", field->path, "dtype", tg_dtype(field->dtype)->name, "shape",
                                              json_dims(field->rank, field->dims)));
    }
    return list;
}

static json_t *json_functions(const TgPlan *plan) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < plan->func_count; i++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:I}", "name", plan->funcs[i].name, "steps",
                                              (int)plan->funcs[i].step_count, "capacity",
                                              (json_int_t)plan->funcs[i].capacity));
    return list;
}

static Status print_json(Session *session) {
    const TgPlan *plan = session->plan;
    json_t *memory = json_pack("{s:I, s:I}", "arena", (json_int_t)plan->arena_bytes, "persistent",
                               (json_int_t)plan->persistent_bytes);
    int64_t bytes[PLAN_CLASS_COUNT];
    tg_plan_memory(plan, bytes);
    for (int i = 0; i < PLAN_CLASS_COUNT; i++)
        json_object_set_new(memory, tg_plan_memory_name((PlanBufferClass)i), json_integer(bytes[i]));
    json_t *document = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "source", plan->source_path, "cpu", plan->cpu,
                                 "batch", (json_int_t)plan->batch, "micro", (json_int_t)plan->micro, "lanes",
                                 (json_int_t)plan->lanes, "parameter_count", (json_int_t)count_parameters(plan));
    json_object_set_new(document, "parameters", json_parameters(plan));
    json_object_set_new(document, "memory", memory);
    json_object_set_new(document, "settings", json_settings(&session->settings));
    json_object_set_new(document, "data", json_data(plan));
    json_object_set_new(document, "functions", json_functions(plan));
    return tg_session_print_json(session, document);
}

static void print_parameters(Session *session) {
    FILE *out = session->out;
    const TgPlan *plan = session->plan;
    fprintf(out, "parameters\n");
    for (uint32_t i = 0; i < plan->buffer_count; i++) {
        const PlanBuffer *buffer = &plan->buffers[i];
        if (buffer->class == PLAN_PARAM)
            fprintf(out, "  %-32s %-20s %12lld%s\n", buffer->name,
                    tg_data_shape(session->arena, buffer->dtype, buffer->rank, buffer->dims),
                    (long long)elements(buffer), buffer->frozen ? "  frozen" : "");
    }
    fprintf(out, "  %-32s %-20s %12lld\n", "in all", "", (long long)count_parameters(plan));
}

static void print_memory(Session *session) {
    FILE *out = session->out;
    int64_t bytes[PLAN_CLASS_COUNT];
    tg_plan_memory(session->plan, bytes);
    fprintf(out, "\nmemory\n");
    for (int i = 0; i < PLAN_CLASS_COUNT; i++)
        if (bytes[i] > 0)
            fprintf(out, "  %-32s %10s\n", tg_plan_memory_name((PlanBufferClass)i), tg_bytes_text(session->arena, (double)bytes[i]));
    fprintf(out, "  %-32s %10s\n", "in all", tg_bytes_text(session->arena, (double)session->plan->arena_bytes));
}

static void print_rest(Session *session) {
    FILE *out = session->out;
    const TgPlan *plan = session->plan;
    fprintf(out, "\nsettings\n");
    for (uint32_t i = 0; i < session->settings.all.count; i++) {
        const PlanSetting *setting = &session->settings.all.at[i];
        fprintf(out, "  %-32s %-20s %s%s\n", setting->name, setting->value, setting->origin,
                setting->runtime ? "" : "  (recompiles)");
    }
    fprintf(out, "\ndata\n");
    for (uint32_t i = 0; i < plan->field_count; i++) {
        const PlanField *field = &plan->fields[i];
        if (tg_field_listed_before(plan, i))
            continue;
        fprintf(out, "  %-32s %-20s %s(\"%s\")\n", field->name,
                tg_data_shape(session->arena, field->dtype, field->rank, field->dims), field->reader, field->path);
    }
    fprintf(out, "\nfunctions\n");
    for (uint32_t i = 0; i < plan->func_count; i++)
        fprintf(out, "  %-32s %lld steps, %lld rows\n", plan->funcs[i].name, (long long)plan->funcs[i].step_count,
                (long long)plan->funcs[i].capacity);
}

Status tg_verb_info(Session *session) {
    if (session->options->value[OPT_JSON] != NULL)
        return print_json(session);
    fprintf(session->out, "%s, compiled for %.60s\nbatch %lld, micro %lld, lanes %lld\n\n", session->plan->source_path,
            session->plan->cpu, (long long)session->plan->batch, (long long)session->plan->micro,
            (long long)session->plan->lanes);
    print_parameters(session);
    print_memory(session);
    print_rest(session);
    return TG_OK;
}
