/* `data`: what the data blocks yield, read as training reads them. */
#include "runtime/session.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_RECORDS = 3, SHOWN_VALUES = 8, SHOWN_CLASSES = 20, COUNTED_VALUES = 65536 };

typedef struct ClassCount {
    int64_t value, records;
} ClassCount;

typedef struct FieldSummary {
    double least, most, mean;
    int64_t values, zeros, nans;
    ClassCount *classes; /* the most frequent first; NULL: not counted */
    uint32_t class_count;
} FieldSummary;

/* One set and how it is used. */
typedef struct Report {
    Session *session;
    const char *use, *as, *split; /* as: its name among several; "": the only one */
    RecordSet set;
    int64_t batch;         /* 0: the set is read as a whole */
    const int64_t *sample; /* its first records, as they are drawn */
    int64_t samples;
    FieldSummary *fields;
} Report;

static int64_t values_of(const RecordSet *set, uint32_t field) {
    return (int64_t)set->record_bytes[field] / tg_dtype(set->fields[field].dtype)->bytes;
}

static int by_records(const void *a, const void *b) {
    const ClassCount *x = a, *y = b;
    if (x->records != y->records)
        return x->records > y->records ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* Single integers and tokens are classes; integers in larger shapes (pixels) are not. */
static void count_classes(Arena *arena, const RecordSet *set, uint32_t field, FieldSummary *summary) {
    const PlanField *plan = &set->fields[field];
    bool classes = (plan->rank == 0 || set->window_step > 0) && !tg_is_float(plan->dtype) && summary->values > 0;
    if (!classes || summary->most - summary->least >= COUNTED_VALUES)
        return;
    int64_t least = (int64_t)summary->least, range = (int64_t)summary->most - least + 1;
    int64_t each = values_of(set, field), *counts = TG_ALLOC(arena, int64_t, range);
    for (int64_t r = 0; r < set->count; r++)
        for (int64_t i = 0; i < each; i++)
            counts[(int64_t)tg_element_get(plan->dtype, tg_data_record(set, field, set->records[r]), i) - least]++;
    summary->classes = TG_ALLOC(arena, ClassCount, range);
    for (int64_t v = 0; v < range; v++)
        if (counts[v] > 0)
            summary->classes[summary->class_count++] = (ClassCount){least + v, counts[v]};
    qsort(summary->classes, summary->class_count, sizeof *summary->classes, by_records);
}

static FieldSummary summarise(Arena *arena, const RecordSet *set, uint32_t field) {
    FieldSummary summary = {.least = INFINITY, .most = -INFINITY};
    DType dtype = set->fields[field].dtype;
    int64_t each = values_of(set, field);
    double sum = 0;
    for (int64_t r = 0; r < set->count; r++) {
        const unsigned char *record = tg_data_record(set, field, set->records[r]);
        for (int64_t i = 0; i < each; i++) {
            double value = tg_element_get(dtype, record, i);
            if (isnan(value)) {
                summary.nans++;
                continue;
            }
            summary.least = value < summary.least ? value : summary.least;
            summary.most = value > summary.most ? value : summary.most;
            summary.zeros += value == 0;
            sum += value;
        }
    }
    summary.values = set->count * each;
    summary.mean = sum / (double)(summary.values - summary.nans);
    count_classes(arena, set, field, &summary);
    return summary;
}

/* ---- values as text ---- */

static const char *word_of(const Report *report, uint32_t field, int64_t value) {
    const DataWords *words = tg_data_words(&report->session->files.vocabulary, report->set.fields[field].name);
    return words != NULL && value >= 0 && value < words->count ? words->at[value] : NULL;
}

static void add_visible(Str *to, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n' || c == '\t' || c == '\\' || c == '"')
            tg_str_printf(to, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : c);
        else if (c < ' ' || c == 127)
            tg_str_printf(to, "\\x%02x", c);
        else
            tg_str_add(to, text + i, 1);
    }
}

static bool is_utf8(const char *text, size_t length) {
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    while (at < end) {
        int bytes = tg_utf8_length(at, end);
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

/* A window as the text that it was; single bytes of cut characters are shown as \xHH. */
static const char *window_text(const Report *report, uint32_t field, const unsigned char *record) {
    Str raw = tg_str(report->session->arena), text = tg_str(report->session->arena);
    for (int64_t i = 0; i < values_of(&report->set, field); i++) {
        int64_t value = (int64_t)tg_element_get(report->set.fields[field].dtype, record, i);
        const char *word = word_of(report, field, value), byte = (char)value;
        tg_str_add(&raw, word != NULL ? word : &byte, word != NULL ? strlen(word) : 1);
    }
    if (is_utf8(raw.text, raw.length)) {
        add_visible(&text, raw.text, raw.length);
        return text.text;
    }
    for (size_t i = 0; i < raw.length; i++)
        tg_str_printf(&text, isprint((unsigned char)raw.text[i]) ? "%c" : "\\x%02x", (unsigned char)raw.text[i]);
    return text.text;
}

static const char *class_text(const Report *report, uint32_t field, int64_t value) {
    const char *word = word_of(report, field, value);
    Str text = tg_str(report->session->arena);
    if (word != NULL) {
        add_visible(&text, word, strlen(word));
    } else if (report->set.window_step > 0 && value >= 0 && value < 127) {
        char byte = (char)value;
        add_visible(&text, &byte, 1);
    } else {
        tg_str_printf(&text, "%lld", (long long)value);
    }
    return word != NULL || report->set.window_step > 0 ? tg_arena_printf(report->session->arena, "\"%s\"", text.text)
                                                       : text.text;
}

static const char *record_text(const Report *report, uint32_t field, const unsigned char *record) {
    const PlanField *plan = &report->set.fields[field];
    Arena *arena = report->session->arena;
    if (report->set.window_step > 0)
        return tg_arena_printf(arena, "\"%s\"", window_text(report, field, record));
    int64_t values = values_of(&report->set, field);
    Str text = tg_str(arena);
    for (int64_t i = 0; i < values && i < SHOWN_VALUES; i++)
        tg_str_printf(&text, "%s%.5g", i > 0 ? " " : "", tg_element_get(plan->dtype, record, i));
    if (values > SHOWN_VALUES)
        tg_str_printf(&text, " ... (%lld)", (long long)values);
    const char *word = plan->rank == 0 ? word_of(report, field, (int64_t)tg_element_get(plan->dtype, record, 0)) : NULL;
    if (word != NULL) {
        tg_str_printf(&text, " \"");
        add_visible(&text, word, strlen(word));
        tg_str_printf(&text, "\"");
    }
    return text.text;
}

/* ---- the two forms ---- */

static double share(int64_t part, int64_t all) { return all > 0 ? 100.0 * (double)part / (double)all : 0; }

static void print_field(const Report *report, uint32_t index) {
    const PlanField *field = &report->set.fields[index];
    const FieldSummary *summary = &report->fields[index];
    FILE *out = report->session->out;
    fprintf(out, "  %-12s %s from %s %s\n", field->name,
            tg_data_shape(report->session->arena, field->dtype, field->rank, field->dims), field->reader, field->path);
    if (summary->values == summary->nans) {
        fprintf(out, "    no values\n");
        return;
    }
    fprintf(out, "    least %.6g  most %.6g  mean %.6g  zeros %.1f %%  NaN %lld\n", summary->least, summary->most,
            summary->mean, share(summary->zeros, summary->values), (long long)summary->nans);
    if (summary->classes == NULL)
        return;
    fprintf(out, "    %u values:", summary->class_count);
    for (uint32_t i = 0; i < summary->class_count && i < SHOWN_CLASSES; i++)
        fprintf(out, "%s %s %.1f %%", i > 0 ? "," : "", class_text(report, index, summary->classes[i].value),
                share(summary->classes[i].records, summary->values));
    fprintf(out, "%s\n", summary->class_count > SHOWN_CLASSES ? ", ..." : "");
}

static void print_report(const Report *report) {
    FILE *out = report->session->out;
    const RecordSet *set = &report->set;
    fprintf(out, "%s%s%s  %s%s%s: %lld %s", set->plan->name, report->split[0] != '\0' ? "." : "", report->split,
            report->use, report->as[0] != '\0' ? " " : "", report->as, (long long)set->count,
            set->window_step > 0 ? "windows" : "records");
    if (report->batch > 0)
        fprintf(out, ", %lld batches of %lld an epoch", (long long)((set->count + report->batch - 1) / report->batch),
                (long long)report->batch);
    if (report->batch > 0 && set->count % report->batch != 0)
        fprintf(out, ", the last of %lld", (long long)(set->count % report->batch));
    fputc('\n', out);
    for (uint32_t i = 0; i < set->field_count; i++)
        print_field(report, i);
    for (int64_t r = 0; r < report->samples; r++) {
        fprintf(out, "  at %lld:", (long long)report->sample[r]);
        for (uint32_t i = 0; i < set->field_count; i++)
            fprintf(out, "  %s %s", set->fields[i].name,
                    record_text(report, i, tg_data_record(set, i, report->sample[r])));
        fputc('\n', out);
    }
}

static json_t *json_classes(const Report *report, uint32_t index) {
    const FieldSummary *summary = &report->fields[index];
    json_t *list = json_array();
    for (uint32_t i = 0; i < summary->class_count && i < SHOWN_CLASSES; i++) {
        const ClassCount *entry = &summary->classes[i];
        const char *word = word_of(report, index, entry->value);
        json_t *row = json_pack("{s:I, s:I}", "value", (json_int_t)entry->value, "count", (json_int_t)entry->records);
        if (word != NULL)
            json_object_set_new(row, "word", json_string(word));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *json_field(const Report *report, uint32_t index) {
    const PlanField *field = &report->set.fields[index];
    const FieldSummary *summary = &report->fields[index];
    const char *type = tg_data_shape(report->session->arena, field->dtype, field->rank, field->dims);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I}", "name", field->name, "type", type, "reader",
                  field->reader, "path", field->path, "min", tg_json_number(summary->least), "max",
                  tg_json_number(summary->most), "mean", tg_json_number(summary->mean), "values",
                  (json_int_t)summary->values, "zeros", (json_int_t)summary->zeros, "nan", (json_int_t)summary->nans);
    if (summary->classes != NULL) {
        json_object_set_new(row, "distinct", json_integer(summary->class_count));
        json_object_set_new(row, "classes", json_classes(report, index));
    }
    return row;
}

static json_t *json_sample(const Report *report, int64_t record) {
    json_t *row = json_object();
    json_object_set_new(row, "at", json_integer((json_int_t)record));
    for (uint32_t i = 0; i < report->set.field_count; i++) {
        const PlanField *field = &report->set.fields[i];
        const unsigned char *values = tg_data_record(&report->set, i, record);
        json_t *list = json_array();
        for (int64_t v = 0; v < values_of(&report->set, i); v++)
            json_array_append_new(list, tg_json_number(tg_element_get(field->dtype, values, v)));
        json_object_set_new(row, field->name, list);
        if (report->set.window_step > 0)
            json_object_set_new(row, "text", json_string(window_text(report, i, values)));
    }
    return row;
}

static json_t *json_report(const Report *report) {
    const RecordSet *set = &report->set;
    json_t *fields = json_array(), *samples = json_array();
    for (uint32_t i = 0; i < set->field_count; i++)
        json_array_append_new(fields, json_field(report, i));
    for (int64_t r = 0; r < report->samples; r++)
        json_array_append_new(samples, json_sample(report, report->sample[r]));
    int64_t batches = report->batch > 0 ? (set->count + report->batch - 1) / report->batch : 1;
    json_t *row = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "use", report->use, "name", set->plan->name,
                            "split", report->split, "records", (json_int_t)set->count, "batch",
                            (json_int_t)(report->batch > 0 ? report->batch : set->count), "batches",
                            (json_int_t)batches, "fields", fields, "samples", samples);
    if (report->as[0] != '\0')
        json_object_set_new(row, "as", json_string(report->as));
    return row;
}

/* ---- the sets ---- */

/* The first records that training draws. */
static Status draw_samples(Report *report, int64_t wanted) {
    Session *session = report->session;
    int64_t *sample = TG_ALLOC(session->arena, int64_t, wanted);
    FeedOptions options = {.host = session->arena->host,
                           .batch = report->batch,
                           .seed = session->settings.seed,
                           .shuffle = session->settings.shuffle,
                           .ahead_bytes = INT64_MAX};
    Feed *feed = NULL;
    TG_TRY(tg_feed_open(session->arena, &options, &report->set, &feed));
    while (report->samples < wanted) {
        const Batch *batch = tg_feed_next(feed);
        for (int64_t i = 0; i < batch->count && report->samples < wanted; i++)
            sample[report->samples++] = batch->records[i];
    }
    report->sample = sample;
    return TG_OK;
}

static void summarise_all(Report *report) {
    Arena *arena = report->session->arena;
    report->fields = TG_ALLOC(arena, FieldSummary, report->set.field_count);
    for (uint32_t i = 0; i < report->set.field_count; i++)
        report->fields[i] = summarise(arena, &report->set, i);
}

static Status open_train(Report *report, int64_t samples) {
    const TgPlan *plan = report->session->plan;
    TG_TRY(tg_session_train_set(report->session, &report->set));
    report->split = plan->train.split;
    report->batch = plan->batch;
    summarise_all(report);
    int64_t wanted = samples < report->set.count ? samples : report->set.count;
    return wanted > 0 ? draw_samples(report, wanted) : TG_OK;
}

static Status open_validate(Report *report, const PlanDataSet *plan, int64_t samples) {
    TG_TRY(tg_data_open(&report->session->files, plan, NULL, &report->set, &report->session->why));
    report->split = plan->split;
    summarise_all(report);
    report->sample = report->set.records;
    report->samples = samples < report->set.count ? samples : report->set.count;
    return TG_OK;
}

Status tg_verb_data(Session *session) {
    const TgPlan *plan = session->plan;
    int64_t samples = 0;
    bool json = session->options->value[OPT_JSON] != NULL;
    TG_TRY(tg_options_count(session->arena, session->options, OPT_RECORDS, 0, SHOWN_RECORDS, &samples, &session->why));
    if (plan->train.field_count == 0)
        return tg_session_fail(session, TG_MODEL, "%s has no train { } block, so it reads no data", plan->source_path);
    uint32_t count = 1 + plan->validate_count;
    Report *reports = TG_ALLOC(session->arena, Report, count);
    reports[0] = (Report){.session = session, .use = "train", .as = ""};
    TG_TRY(open_train(&reports[0], samples));
    for (uint32_t i = 0; i < plan->validate_count; i++) {
        reports[1 + i] = (Report){.session = session, .use = "validate", .as = plan->validate[i].as};
        TG_TRY(open_validate(&reports[1 + i], &plan->validate[i], samples));
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        if (json)
            json_array_append_new(list, json_report(&reports[i]));
        else
            print_report(&reports[i]);
    }
    if (json)
        return tg_session_print_json(session, json_pack("{s:o}", "sets", list));
    json_decref(list);
    return TG_OK;
}
