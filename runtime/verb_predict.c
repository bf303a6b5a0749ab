#include "runtime/predict.h"

#include <string.h>
#include <unistd.h>

enum { SHOWN_RECORDS = 10, SHOWN_VALUES = 4 };

/* One column of the result: an output, or a field of the data that is no input. */
typedef struct Column {
    const char *name;
    DType dtype;
    const unsigned char *values;
    int64_t per_record; /* elements */
} Column;

typedef struct Result {
    PredictInputs inputs;
    Prediction prediction;
    const RecordSet *data; /* NULL: the inputs came from files */
    Vec(Column) columns;
} Result;

static void add_columns(Session *session, Result *result) {
    const RecordSet *data = result->data;
    for (uint32_t i = 0; i < result->prediction.count; i++) {
        const PredictOutput *output = &result->prediction.outputs[i];
        if (output->batch_axis != 0)
            continue;
        int64_t bytes =
            tg_data_bytes(output->array.dtype, output->array.rank - 1, output->array.dims + 1) * output->row_size;
        tg_push(session->arena, &result->columns,
                (Column){output->name, output->array.dtype, output->array.values,
                         bytes / tg_dtype(output->array.dtype)->bytes});
    }
    for (uint32_t i = 0; data != NULL && i < data->field_count; i++) {
        if (data->fields[i].rank > 0)
            continue;
        size_t bytes = data->record_bytes[i];
        unsigned char *values = tg_arena_alloc(session->arena, bytes * (size_t)result->inputs.set.count);
        Batch batch = {.set = data, .records = data->records, .count = result->inputs.set.count};
        tg_batch_copy(&batch, i, 0, batch.count, batch.count, values);
        tg_push(session->arena, &result->columns, (Column){data->fields[i].name, data->fields[i].dtype, values, 1});
    }
}

static json_t *json_element(DType dtype, const unsigned char *values, int64_t index) {
    double value = tg_element_get(dtype, values, index);
    if (dtype == DT_BOOL)
        return json_boolean(value != 0);
    return tg_is_float(dtype) ? tg_json_number(value) : json_integer((json_int_t)value);
}

/* Row-major elements from `*next` as nested lists. */
static json_t *json_nested(DType dtype, const unsigned char *values, int rank, const int64_t *dims, int64_t *next) {
    if (rank == 0)
        return json_element(dtype, values, (*next)++);
    json_t *list = json_array();
    for (int64_t i = 0; i < dims[0]; i++)
        json_array_append_new(list, json_nested(dtype, values, rank - 1, dims + 1, next));
    return list;
}

static Status print_json(Session *session, const Result *result) {
    json_t *outputs = json_object(), *fields = json_object();
    for (uint32_t i = 0; i < result->prediction.count; i++) {
        const PredictOutput *output = &result->prediction.outputs[i];
        int64_t next = 0;
        json_object_set_new(
            outputs, output->name,
            json_nested(output->array.dtype, output->array.values, output->array.rank, output->array.dims, &next));
    }
    for (uint32_t i = 0; i < result->columns.count && result->data != NULL; i++) {
        const Column *column = &result->columns.at[i];
        if (json_object_get(outputs, column->name) != NULL)
            continue;
        int64_t next = 0;
        json_object_set_new(fields, column->name,
                            json_nested(column->dtype, column->values, 1, &result->inputs.set.count, &next));
    }
    return tg_session_print_json(session,
                                 json_pack("{s:s, s:I, s:o, s:o}", "export", result->inputs.export->name, "records",
                                           (json_int_t)result->inputs.set.count, "outputs", outputs, "fields", fields));
}

static Status write_npy(Session *session, const Result *result, const char *path) {
    size_t length = strlen(path), stem = length > 4 && strcmp(path + length - 4, ".npy") == 0 ? length - 4 : length;
    for (uint32_t i = 0; i < result->prediction.count; i++) {
        const PredictOutput *output = &result->prediction.outputs[i];
        const char *file = result->prediction.count == 1
                               ? path
                               : tg_arena_printf(session->arena, "%.*s.%s.npy", (int)stem, path, output->name);
        DataArray array = output->array;
        if (array.dtype == DT_BF16) {
            int64_t count = tg_data_bytes(array.dtype, array.rank, array.dims) / tg_dtype(array.dtype)->bytes;
            array.dtype = DT_F32;
            array.values = tg_arena_alloc(session->arena, (size_t)count * sizeof(float));
            for (int64_t e = 0; e < count; e++)
                tg_element_set(DT_F32, array.values, e, tg_element_get(DT_BF16, output->array.values, e));
        }
        char why[256];
        Status status = tg_npy_write(session->arena->host, file, &array, why, sizeof why);
        if (status != TG_OK)
            return tg_session_fail(session, status, "%s", why);
        fprintf(session->out, "%s  %s\n", file, tg_data_shape(session->arena, array.dtype, array.rank, array.dims));
    }
    return TG_OK;
}

static const char *element_text(Arena *arena, const Column *column, int64_t index) {
    double value = tg_element_get(column->dtype, column->values, index);
    return tg_is_float(column->dtype) ? tg_arena_printf(arena, "%.4g", value)
                                      : tg_arena_printf(arena, "%lld", (long long)value);
}

static const char *cell(Arena *arena, const Column *column, int64_t record) {
    if (column->per_record == 1)
        return element_text(arena, column, record);
    Str text = tg_str(arena);
    for (int64_t i = 0; i < column->per_record && i < SHOWN_VALUES; i++)
        tg_str_printf(&text, "%s%s", i > 0 ? " " : "", element_text(arena, column, record * column->per_record + i));
    if (column->per_record > SHOWN_VALUES)
        tg_str_printf(&text, " ... (%lld)", (long long)column->per_record);
    return text.text;
}

static void print_table(Session *session, const Result *result, int64_t all) {
    Arena *arena = session->arena;
    int64_t rows = result->inputs.set.count;
    fprintf(session->out, "%8s", "record");
    for (uint32_t c = 0; c < result->columns.count; c++)
        fprintf(session->out, "  %12s", result->columns.at[c].name);
    fputc('\n', session->out);
    for (int64_t r = 0; r < rows; r++) {
        fprintf(session->out, "%8lld", (long long)result->inputs.set.records[r]);
        for (uint32_t c = 0; c < result->columns.count; c++)
            fprintf(session->out, "  %12s", cell(arena, &result->columns.at[c], r));
        fputc('\n', session->out);
    }
    if (rows < all)
        fprintf(session->out, "... of %lld records\n", (long long)all);
}

/* The first input that is an image, or -1. */
static int image_of(const PredictInputs *inputs) {
    for (uint32_t i = 0; i < inputs->set.field_count; i++)
        if (inputs->per_record[i] && inputs->set.fields[i].rank == 2 && inputs->set.fields[i].dtype == DT_U8)
            return (int)i;
    return -1;
}

static void draw_image(FILE *out, const unsigned char *pixels, int64_t height, int64_t width) {
    static const char shades[] = " .:-=+*#%@";
    int most = 1;
    for (int64_t i = 0; i < height * width; i++)
        most = pixels[i] > most ? pixels[i] : most;
    for (int64_t y = 0; y < height; y++) {
        fputs("  ", out);
        for (int64_t x = 0; x < width; x++) {
            char shade = shades[pixels[y * width + x] * 9 / most];
            fputc(shade, out);
            fputc(shade, out);
        }
        fputc('\n', out);
    }
}

static Status draw(Session *session, const Result *result) {
    int image = image_of(&result->inputs);
    if (image < 0)
        return tg_session_fail(session, TG_USAGE, "--draw: %s takes no u8[height, width] image",
                               result->inputs.export->name);
    const RecordSet *set = &result->inputs.set;
    for (int64_t r = 0; r < set->count; r++) {
        const unsigned char *pixels = set->values[image] + (size_t)set->records[r] * set->record_bytes[image];
        draw_image(session->out, pixels, set->fields[image].dims[0], set->fields[image].dims[1]);
        for (uint32_t c = 0; c < result->columns.count; c++)
            fprintf(session->out, "  %s %s", result->columns.at[c].name,
                    cell(session->arena, &result->columns.at[c], r));
        fputs("\n\n", session->out);
    }
    return TG_OK;
}

/* Separates the export's name from its inputs. */
static Status choose_export(Session *session, Export *export, uint32_t *inputs_from) {
    const Options *options = session->options;
    const char *first = options->arguments.count > 0 ? options->arguments.at[0] : NULL;
    bool named = first != NULL && tg_predict_is_export(session->plan, first);
    *inputs_from = named ? 1 : 0;
    /* Neither an export nor a file nor a number: most likely a wrong name, so say which there are. */
    if (first != NULL && !named && strpbrk(first, "./0123456789") == NULL && access(first, F_OK) != 0)
        named = true;
    return tg_predict_export(session, named ? first : NULL, export);
}

static Status open_inputs(Session *session, const Export *export, uint32_t inputs_from, Result *result) {
    const Options *options = session->options;
    if (options->arguments.count > inputs_from)
        return tg_predict_read(session, export, options->arguments.at + inputs_from,
                               options->arguments.count - inputs_from, &result->inputs);
    RecordSet *data = TG_ALLOC(session->arena, RecordSet, 1);
    TG_TRY(tg_session_eval_set(session, data));
    result->data = data;
    return tg_predict_from_data(session, export, data, &result->inputs);
}

Status tg_verb_predict(Session *session) {
    const Options *options = session->options;
    bool to_json = options->value[OPT_JSON] != NULL, to_file = options->value[OPT_OUT] != NULL;
    bool to_drawing = options->value[OPT_DRAW] != NULL;
    Export export;
    Result result = {0};
    uint32_t inputs_from = 0;
    int64_t records = 0;
    TG_TRY(tg_options_count(session->arena, options, OPT_RECORDS, 1, INT64_MAX, &records, &session->why));
    TG_TRY(choose_export(session, &export, &inputs_from));
    TG_TRY(tg_session_start(session));
    TG_TRY(tg_session_load_weights(session)); /* the words of its data first */
    TG_TRY(open_inputs(session, &export, inputs_from, &result));
    int64_t all = result.inputs.set.count;
    if (options->value[OPT_RECORDS] == NULL && !to_json && !to_file)
        records = to_drawing ? 1 : SHOWN_RECORDS;
    result.inputs.set.count = records < all ? records : all;
    tg_predict_run(session, &result.inputs, &result.prediction);
    add_columns(session, &result);
    if (to_file)
        return write_npy(session, &result, options->value[OPT_OUT]);
    if (to_json)
        return print_json(session, &result);
    if (to_drawing)
        return draw(session, &result);
    print_table(session, &result, all);
    return TG_OK;
}
