#include "runtime/predict.h"

#include <stdlib.h>
#include <string.h>

static const char prefix[] = "export.";

static const char *export_name(const PlanFunc *func) {
    return strncmp(func->name, prefix, strlen(prefix)) == 0 ? func->name + strlen(prefix) : func->name;
}

bool tg_predict_is_export(const TgPlan *plan, const char *name) {
    for (uint32_t i = 0; i < plan->func_count; i++)
        if (plan->funcs[i].kind == PLAN_EXPORT && strcmp(export_name(&plan->funcs[i]), name) == 0)
            return true;
    return false;
}

Status tg_predict_export(Session *session, const char *name, Export *found) {
    const TgPlan *plan = session->plan;
    *found = (Export){.name = name};
    Str names = tg_str(session->arena);
    const char *last = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->func_count; i++) {
        const PlanFunc *func = &plan->funcs[i];
        if (func->kind != PLAN_EXPORT)
            continue;
        if (strcmp(export_name(func), last) != 0) {
            last = export_name(func);
            tg_str_printf(&names, "%s%s", count++ > 0 ? ", " : "", last);
        }
        if (name != NULL && strcmp(last, name) != 0)
            continue;
        if (found->few == NULL || func->capacity < found->few->capacity)
            found->few = func;
        if (found->many == NULL || func->capacity > found->many->capacity)
            found->many = func;
        found->name = last;
    }
    if (count == 0)
        return tg_session_fail(session, TG_MODEL, "%s has no export fn", plan->source_path);
    if (name == NULL && count > 1)
        return tg_session_fail(session, TG_USAGE, "name the function to run: %s", names.text);
    if (found->many == NULL)
        return tg_session_fail(session, TG_USAGE, "there is no export fn '%s': %s", name, names.text);
    return TG_OK;
}

static const PlanBuffer *input_of(const Session *session, const PlanFunc *func, uint32_t i) {
    return &session->plan->buffers[session->plan->inputs[func->input_first + i]];
}

/* The input as a field: what one record of it looks like. */
static Status describe_inputs(Session *session, const Export *export, PredictInputs *inputs) {
    Arena *arena = session->arena;
    uint32_t count = export->many->input_count;
    PlanField *fields = TG_ALLOC(arena, PlanField, count);
    bool *per_record = TG_ALLOC(arena, bool, count);
    *inputs = (PredictInputs){.export = export, .per_record = per_record};
    inputs->set = (RecordSet){.fields = fields,
                            .field_count = count,
                            .values = TG_ALLOC(arena, const unsigned char *, count),
                            .record_bytes = TG_ALLOC(arena, size_t, count),
                            .count = -1};
    for (uint32_t i = 0; i < count; i++) {
        const PlanBuffer *buffer = input_of(session, export->many, i);
        PlanField *field = &fields[i];
        *field = (PlanField){.name = buffer->name, .dtype = buffer->dtype, .rank = buffer->rank};
        memcpy(field->dims, buffer->dims, sizeof field->dims);
        per_record[i] = buffer->batch_axis >= 0;
        if (buffer->batch_axis > 0)
            return tg_session_fail(session, TG_MODEL, "argument '%s' of %s: its batch dimension is not the first",
                                   buffer->name, export->name);
        if (per_record[i] && buffer->row_size == 1) {
            field->rank--;
            memmove(field->dims, field->dims + 1, field->rank * sizeof field->dims[0]);
        } else if (per_record[i]) {
            field->dims[0] = buffer->row_size;
        }
        inputs->set.record_bytes[i] = (size_t)tg_data_bytes(field->dtype, field->rank, field->dims);
    }
    return TG_OK;
}

static Status read_number(Session *session, const PlanField *field, const char *text, DataArray *array,
                          bool *is_number) {
    char *end;
    double value = strtod(text, &end);
    *is_number = end != text && *end == '\0';
    if (!*is_number)
        return TG_OK;
    if (!tg_is_float(field->dtype) && tg_round_to(field->dtype, value) != value)
        return tg_session_fail(session, TG_USAGE, "argument '%s': %s is not a value of %s", field->name, text,
                               tg_dtype(field->dtype)->name);
    *array = (DataArray){.dtype = field->dtype, .values = tg_arena_alloc(session->arena, sizeof value)};
    tg_element_set(field->dtype, array->values, 0, value);
    return TG_OK;
}

static bool has_suffix(const char *text, const char *suffix) {
    size_t length = strlen(text), tail = strlen(suffix);
    return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

static Status read_array(Session *session, const PlanField *field, const char *text, DataArray *array) {
    bool is_number = false;
    TG_TRY(read_number(session, field, text, array, &is_number));
    if (is_number)
        return TG_OK;
    bool npy = has_suffix(text, ".npy") || has_suffix(text, ".npy.gz");
    DataRequest request = {.path = text, .columns = "", .dtype = field->dtype};
    TG_TRY((npy ? tg_read_npy : tg_read_idx)(session->arena, &request, array, &session->why));
    return tg_data_widen(session->arena, array, field->dtype, text, &session->why);
}

/* Records of `array`: one if it has no leading dimension; -1 if its shape does not fit. */
static int64_t records_of(const DataArray *array, const PlanField *field, bool per_record) {
    int leading = array->rank - field->rank;
    if (leading < 0 || leading > 1 || (leading == 1 && !per_record))
        return -1;
    for (int i = 0; i < field->rank; i++)
        if (array->dims[leading + i] != field->dims[i])
            return -1;
    return leading == 1 ? array->dims[0] : 1;
}

static Status list_arguments(Session *session, const PredictInputs *inputs, uint32_t given) {
    Str list = tg_str(session->arena);
    for (uint32_t i = 0; i < inputs->set.field_count; i++) {
        const PlanField *field = &inputs->set.fields[i];
        tg_str_printf(&list, "%s%s: %s%s", i > 0 ? ", " : "", field->name,
                      tg_data_shape(session->arena, field->dtype, field->rank, field->dims),
                      inputs->per_record[i] ? " per record" : "");
    }
    return tg_session_fail(session, TG_USAGE, "%s takes %u arguments (%s), %u are given", inputs->export->name,
                           inputs->set.field_count, list.text, given);
}

static void count_all(Session *session, PredictInputs *inputs) {
    RecordSet *set = &inputs->set;
    if (set->count < 0)
        set->count = 1;
    set->file_records = set->count;
    set->records = tg_data_split(session->arena, set->count, NULL, 0, 0, true, &set->count);
}

Status tg_predict_read(Session *session, const Export *export, const char *const *texts, uint32_t count,
                       PredictInputs *inputs) {
    TG_TRY(describe_inputs(session, export, inputs));
    if (count != inputs->set.field_count)
        return list_arguments(session, inputs, count);
    for (uint32_t i = 0; i < count; i++) {
        const PlanField *field = &inputs->set.fields[i];
        DataArray array;
        TG_TRY(read_array(session, field, texts[i], &array));
        int64_t records = records_of(&array, field, inputs->per_record[i]);
        if (records < 0)
            return tg_session_fail(session, TG_MODEL, "argument '%s' is %s%s, but %s holds %s", field->name,
                                   tg_data_shape(session->arena, field->dtype, field->rank, field->dims),
                                   inputs->per_record[i] ? " per record" : "", texts[i],
                                   tg_data_shape(session->arena, array.dtype, array.rank, array.dims));
        inputs->set.values[i] = array.values;
        if (!inputs->per_record[i])
            continue;
        if (inputs->set.count >= 0 && inputs->set.count != records)
            return tg_session_fail(session, TG_MODEL, "%s holds %lld records, the argument before it %lld", texts[i],
                                   (long long)records, (long long)inputs->set.count);
        inputs->set.count = records;
    }
    count_all(session, inputs);
    return TG_OK;
}

Status tg_predict_from_data(Session *session, const Export *export, const RecordSet *data, PredictInputs *inputs) {
    TG_TRY(describe_inputs(session, export, inputs));
    for (uint32_t i = 0; i < inputs->set.field_count; i++) {
        const PlanField *field = &inputs->set.fields[i];
        uint32_t from = 0;
        while (from < data->field_count && strcmp(data->fields[from].name, field->name) != 0)
            from++;
        if (from == data->field_count || !inputs->per_record[i])
            return tg_session_fail(session, TG_USAGE,
                                   "the data has no field for argument '%s' of %s: give its value or a file",
                                   field->name, export->name);
        if (data->fields[from].dtype != field->dtype || data->record_bytes[from] != inputs->set.record_bytes[i])
            return tg_session_fail(
                session, TG_USAGE, "argument '%s' of %s is %s per record, the data's field %s: give a file",
                field->name, export->name, tg_data_shape(session->arena, field->dtype, field->rank, field->dims),
                tg_data_shape(session->arena, data->fields[from].dtype, data->fields[from].rank,
                              data->fields[from].dims));
        inputs->set.values[i] = data->values[from];
    }
    inputs->set.file_records = data->file_records;
    inputs->set.records = data->records;
    inputs->set.count = data->count;
    inputs->set.window_step = data->window_step;
    return TG_OK;
}

static void open_outputs(Session *session, const PredictInputs *inputs, Prediction *prediction) {
    const PlanFunc *func = inputs->export->many;
    prediction->count = func->result_count;
    prediction->outputs = TG_ALLOC(session->arena, PredictOutput, func->result_count);
    for (uint32_t i = 0; i < func->result_count; i++) {
        const PlanResult *result = &session->plan->results[func->result_first + i];
        const PlanBuffer *buffer = &session->plan->buffers[result->buffer];
        PredictOutput *output = &prediction->outputs[i];
        *output = (PredictOutput){.name = result->name, .batch_axis = buffer->batch_axis, .row_size = buffer->row_size};
        output->array = (DataArray){.dtype = buffer->dtype, .rank = buffer->rank};
        memcpy(output->array.dims, buffer->dims, sizeof buffer->dims);
        if (buffer->batch_axis >= 0)
            output->array.dims[buffer->batch_axis] = inputs->set.count * buffer->row_size;
        output->array.values =
            tg_arena_alloc(session->arena, (size_t)tg_data_bytes(buffer->dtype, buffer->rank, output->array.dims));
    }
}

/* Copies the rows of one run to their place among all records. */
static void collect(PredictOutput *output, const PlanBuffer *buffer, const unsigned char *from, int64_t first,
                    int64_t rows) {
    int axis = buffer->batch_axis;
    if (axis < 0) {
        memcpy(output->array.values, from, (size_t)tg_data_bytes(buffer->dtype, buffer->rank, buffer->dims));
        return;
    }
    int64_t outer = 1, inner = tg_data_bytes(buffer->dtype, buffer->rank - axis - 1, buffer->dims + axis + 1);
    for (int i = 0; i < axis; i++)
        outer *= buffer->dims[i];
    int64_t row = inner * buffer->row_size;
    for (int64_t o = 0; o < outer; o++)
        memcpy(output->array.values + o * output->array.dims[axis] * inner + first * row,
               from + o * buffer->dims[axis] * inner, (size_t)(rows * row));
}

static void run_rows(Session *session, const PredictInputs *inputs, const PlanFunc *func, int64_t first, int64_t rows,
                     Prediction *prediction) {
    const TgPlan *plan = session->plan;
    Batch all = {.set = &inputs->set, .records = inputs->set.records, .count = inputs->set.count};
    for (uint32_t i = 0; i < func->input_count; i++) {
        unsigned char *to = tg_exec_address(session->exec, plan->inputs[func->input_first + i], 0);
        if (inputs->per_record[i])
            tg_batch_copy(&all, i, first, rows, func->capacity, to);
        else
            memcpy(to, inputs->set.values[i], inputs->set.record_bytes[i]);
    }
    TgScalars *scalars = tg_exec_scalars(session->exec);
    scalars->rows = rows;
    scalars->first_row = first;
    tg_exec_run(session->exec, func, 0);
    for (uint32_t i = 0; i < func->result_count; i++) {
        uint32_t buffer = plan->results[func->result_first + i].buffer;
        collect(&prediction->outputs[i], &plan->buffers[buffer], tg_exec_address(session->exec, buffer, 0), first,
                rows);
    }
}

void tg_predict_run(Session *session, const PredictInputs *inputs, Prediction *prediction) {
    open_outputs(session, inputs, prediction);
    int64_t count = inputs->set.count;
    tg_session_set_builtin(session, "records", (double)count);
    tg_session_set_builtin(session, "lane_start", 1);
    tg_exec_compute_scalars(session->exec);
    for (int64_t first = 0; first < count;) {
        int64_t left = count - first;
        const PlanFunc *func = left <= inputs->export->few->capacity ? inputs->export->few : inputs->export->many;
        int64_t rows = left < func->capacity ? left : func->capacity;
        run_rows(session, inputs, func, first, rows, prediction);
        first += rows;
    }
}
