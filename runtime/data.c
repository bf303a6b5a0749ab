#include "runtime/data.h"
#include "runtime/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct ReaderRow {
    const char *name;
    DataReader *read;
} ReaderRow;

static const ReaderRow readers[] = {{"idx", tg_read_idx},
                                    {"csv", tg_read_csv},
                                    {"npy", tg_read_npy},
                                    {"text", tg_read_text},
                                    {"records", tg_read_records}};

DataReader *tg_data_reader(const char *name) {
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (strcmp(readers[i].name, name) == 0)
            return readers[i].read;
    return NULL;
}

DataRoot tg_data_root(const char *option, const TgPlan *plan) {
    const char *variable = getenv("TG_DATA");
    if (option != NULL)
        return (DataRoot){option, "--data-root"};
    if (variable != NULL && variable[0] != '\0')
        return (DataRoot){variable, "$TG_DATA"};
    return (DataRoot){plan->source_directory, "the folder of the .tg file"};
}

static DataRoot beside_program(Arena *arena) {
    enum { LONGEST_PATH = 4096 };
    char *path = TG_ALLOC(arena, char, LONGEST_PATH);
    return (DataRoot){tg_program_folder(path, LONGEST_PATH) ? path : ".", "the program's folder"};
}

void tg_data_files_init(DataFiles *files, Arena *arena, const TgPlan *plan, DataRoot root) {
    if (strcmp(root.path, PLAN_BESIDE_PROGRAM) == 0)
        root = beside_program(arena);
    *files = (DataFiles){
        .arena = arena, .plan = plan, .root = root, .arrays = TG_ALLOC(arena, DataArray, plan->field_count)};
}

static const char *options_of(const PlanField *field) { return field->options != NULL ? field->options : ""; }

static bool same_source(const PlanField *a, const PlanField *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->reader, b->reader) == 0 && strcmp(a->path, b->path) == 0 &&
           strcmp(a->columns, b->columns) == 0 && strcmp(options_of(a), options_of(b)) == 0 && a->dtype == b->dtype &&
           a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static const char *place(Arena *arena, const PlanField *field) {
    if (field->line.line == 0)
        return tg_arena_printf(arena, "field '%s'", field->name);
    return tg_arena_printf(arena, "%s:%u: field '%s'", field->line.file, field->line.line, field->name);
}

static bool is_text(const PlanField *field) { return strcmp(field->reader, "text") == 0; }

/* The records of a text are cut out of its tokens, so the array has none of their dimensions. */
static Status check_text(Arena *arena, const PlanField *field, const DataArray *array, const char **why) {
    if (field->rank == 1 && field->dims[0] > 1 && array->rank == 1)
        return TG_OK;
    *why = tg_arena_printf(arena, "%s is declared %s, but text gives windows of at least 2 tokens: %s[T + 1]",
                           place(arena, field), tg_data_shape(arena, field->dtype, field->rank, field->dims),
                           tg_dtype(field->dtype)->name);
    return TG_MODEL;
}

static Status check_shape(Arena *arena, const PlanField *field, const DataArray *array, const char **why) {
    if (is_text(field))
        return check_text(arena, field, array, why);
    bool same = array->rank == field->rank + 1;
    for (int i = 0; same && i < field->rank; i++)
        same = array->dims[i + 1] == field->dims[i];
    if (same)
        return TG_OK;
    if (array->rank == 0) {
        *why = tg_arena_printf(arena, "%s: %s holds a single value, not records", place(arena, field), field->path);
        return TG_MODEL;
    }
    *why = tg_arena_printf(arena, "%s is declared %s, but a record of %s is %s", place(arena, field),
                           tg_data_shape(arena, field->dtype, field->rank, field->dims), field->path,
                           tg_data_shape(arena, array->dtype, array->rank - 1, array->dims + 1));
    return TG_MODEL;
}

/* The whole record that `records` reads is made of the set's fields with the same path, in their order. */
static void place_in_record(const DataFiles *files, const PlanField *field, DataRequest *request) {
    const TgPlan *plan = files->plan;
    uint32_t index = (uint32_t)(field - plan->fields);
    for (uint32_t s = 0; s <= plan->validate_count; s++) {
        const PlanDataSet *set = s == 0 ? &plan->train : &plan->validate[s - 1];
        if (index < set->field_first || index >= set->field_first + set->field_count)
            continue;
        for (uint32_t i = set->field_first; i < set->field_first + set->field_count; i++) {
            const PlanField *other = &plan->fields[i];
            if (strcmp(other->reader, field->reader) != 0 || strcmp(other->path, field->path) != 0)
                continue;
            if (i == index)
                request->record_offset = request->record_bytes;
            request->record_bytes += (size_t)tg_data_bytes(other->dtype, other->rank, other->dims);
        }
    }
}

static Status run_once(DataFiles *files, const PlanField *field, DataRequest *request, const char **why) {
    const char *command = field->path + 1;
    if (tg_read_csv != tg_data_reader(field->reader) && tg_read_records != tg_data_reader(field->reader) &&
        tg_read_text != tg_data_reader(field->reader)) {
        *why = tg_arena_printf(files->arena, "%s: the reader '%s' takes no command; csv, records and text do",
                               place(files->arena, field), field->reader);
        return TG_MODEL;
    }
    const DataOutput *found = NULL;
    for (uint32_t i = 0; i < files->outputs.count; i++)
        if (strcmp(files->outputs.at[i].command, command) == 0)
            found = &files->outputs.at[i];
    if (found == NULL) {
        DataOutput output = {.command = command};
        const char *reason = "";
        Status status = tg_data_run(files->arena, command, files->root.path, &output.data, &output.bytes, &reason);
        if (status != TG_OK) {
            *why = tg_arena_printf(files->arena, "%s: %s", place(files->arena, field), reason);
            return status;
        }
        tg_push(files->arena, &files->outputs, output);
        found = &files->outputs.at[files->outputs.count - 1];
    }
    request->output = found->data;
    request->output_bytes = found->bytes;
    return TG_OK;
}

/* Where the file is; *path has `*` and the like still in it if no file has that very name. */
static Status find_file(DataFiles *files, const PlanField *field, const char **path, const char **why) {
    Arena *arena = files->arena;
    bool absolute = field->path[0] == '/' || files->root.path[0] == '\0';
    *path = absolute ? field->path : tg_arena_printf(arena, "%s/%s", files->root.path, field->path);
    struct stat info;
    bool pattern = strpbrk(field->path, "*?[") != NULL && strcmp(field->reader, "csv") == 0;
    if (pattern || stat(*path, &info) == 0)
        return TG_OK;
    *why = absolute ? tg_arena_printf(arena, "%s: there is no file %s", place(arena, field), *path)
                    : tg_arena_printf(arena,
                                      "%s: there is no file %s ('%s' in %s, from %s); --data-root DIR or $TG_DATA "
                                      "names another folder",
                                      place(arena, field), *path, field->path, files->root.path, files->root.origin);
    return TG_IO;
}

static Status read_field(DataFiles *files, const PlanField *field, DataArray *array, const char **why) {
    Arena *arena = files->arena;
    DataReader *read = tg_data_reader(field->reader);
    if (read == NULL) {
        *why = tg_arena_printf(arena, "%s: reader '%s' is not built yet", place(arena, field), field->reader);
        return TG_MODEL;
    }
    DataRequest request = {.path = field->path,
                           .columns = field->columns,
                           .options = options_of(field),
                           .field = field->name,
                           .dtype = field->dtype,
                           .rank = field->rank,
                           .dims = field->dims,
                           .vocabulary = &files->vocabulary};
    place_in_record(files, field, &request);
    TG_TRY(field->path[0] == '|' ? run_once(files, field, &request, why) : find_file(files, field, &request.path, why));
    TG_TRY(read(arena, &request, array, why));
    TG_TRY(check_shape(arena, field, array, why));
    return tg_data_widen(arena, array, field->dtype, request.path, why);
}

static Status load_field(DataFiles *files, uint32_t index, const char **why) {
    const PlanField *field = &files->plan->fields[index];
    DataArray *array = &files->arrays[index];
    if (array->rank > 0)
        return TG_OK;
    for (uint32_t i = 0; i < files->plan->field_count; i++)
        if (files->arrays[i].rank > 0 && same_source(&files->plan->fields[i], field)) {
            *array = files->arrays[i];
            return check_shape(files->arena, field, array, why);
        }
    return read_field(files, field, array, why);
}

typedef struct Range {
    int64_t least, most;
} Range;
typedef Range RangeOf(const void *values, int64_t count);

#define RANGE_OF(name, type)                                                                                           \
    typedef type name##_anywhere __attribute__((aligned(1))); /* files align nothing */                                \
    static Range range_##name(const void *values, int64_t count) {                                                     \
        const name##_anywhere *at = values;                                                                            \
        type least = at[0], most = at[0];                                                                              \
        for (int64_t i = 1; i < count; i++) {                                                                          \
            least = at[i] < least ? at[i] : least;                                                                     \
            most = at[i] > most ? at[i] : most;                                                                        \
        }                                                                                                              \
        return (Range){least, most};                                                                                   \
    }
RANGE_OF(u8, uint8_t)
RANGE_OF(i8, int8_t)
RANGE_OF(u16, uint16_t)
RANGE_OF(i16, int16_t)
RANGE_OF(i32, int32_t)
RANGE_OF(i64, int64_t)
#undef RANGE_OF

/* Long texts pass here: one quick sweep says that all is well, or not. */
static bool all_within(const PlanField *field, const DataArray *array, int64_t count) {
    static RangeOf *const range_of[DT_COUNT] = {[DT_U8] = range_u8,   [DT_I8] = range_i8,   [DT_U16] = range_u16,
                                                [DT_I16] = range_i16, [DT_I32] = range_i32, [DT_I64] = range_i64};
    if (count == 0 || range_of[array->dtype] == NULL)
        return count == 0;
    Range range = range_of[array->dtype](array->values, count);
    return range.least >= field->low && range.most < field->high;
}

static Status check_bounds(Arena *arena, const PlanField *field, const DataArray *array, int64_t per_record,
                           const char **why) {
    if (!field->bounded)
        return TG_OK;
    int64_t count = array->dims[0] * per_record;
    if (all_within(field, array, count))
        return TG_OK;
    for (int64_t i = 0; i < count; i++) {
        int64_t value = (int64_t)tg_element_get(array->dtype, array->values, i);
        if ((value >= field->low && value < field->high) || (field->has_also && value == field->also))
            continue;
        const char *also = field->has_also ? tg_arena_printf(arena, " or %lld", (long long)field->also) : "";
        *why = tg_arena_printf(arena, "%s: %s %lld of %s is %lld; allowed are %lld to %lld%s", place(arena, field),
                               is_text(field) ? "token" : "record", (long long)(i / per_record), field->path,
                               (long long)value, (long long)field->low, (long long)field->high - 1, also);
        return TG_MODEL;
    }
    return TG_OK;
}

static SplitKey key_of(const RecordSet *set, uint32_t field) {
    return field ? (SplitKey){set->values[field - 1], set->record_bytes[field - 1]} : (SplitKey){0};
}

/* The records of split `index`, of all records if `split_count` is 0. */
static void take_split(DataFiles *files, const PlanSplit *splits, uint32_t split_count, uint32_t index, RecordSet *set) {
    if (set->window_step == 0) {
        bool by_runs = set->plan->by_runs;
        SplitKey by = key_of(set, set->plan->by), stratify = key_of(set, set->plan->stratify);
        if (split_count && (by.values || stratify.values)) {
            set->records = tg_data_split_by(files->arena, set->file_records, splits, split_count, index, by, stratify,
                                            &set->count);
            return;
        }
        set->records = tg_data_split(files->arena, set->file_records, splits, split_count, index, by_runs, &set->count);
        return;
    }
    int64_t first, last;
    tg_data_cut(set->file_records, splits, split_count, index, &first, &last);
    set->records = tg_data_windows(files->arena, first, last, set->window_step, &set->count);
    set->tokens_last = last;
}

static Status choose_split(DataFiles *files, const PlanDataSet *plan, const char *name, RecordSet *set,
                           const char **why) {
    if (name[0] == '\0') {
        take_split(files, NULL, 0, 0, set);
        return TG_OK;
    }
    const PlanSplit *splits = files->plan->splits + plan->split_first;
    const char **names = TG_ALLOC(files->arena, const char *, plan->split_count + 1);
    for (uint32_t i = 0; i < plan->split_count; i++) {
        names[i] = splits[i].name;
        if (strcmp(names[i], name) != 0)
            continue;
        take_split(files, splits, plan->split_count, i, set);
        return TG_OK;
    }
    const char *close = tg_closest(name, names, plan->split_count);
    *why = tg_arena_printf(files->arena, "data set '%s' has no split '%s'%s%s%s", plan->name, name,
                           close ? "; did you mean '" : "", close ? close : "", close ? "'?" : "");
    return TG_USAGE;
}

/* Windows of all fields begin at the same tokens. */
static Status check_windows(DataFiles *files, RecordSet *set, const char **why) {
    const PlanField *first = &set->fields[0];
    set->window_step = is_text(first) ? first->dims[0] - 1 : 0;
    for (uint32_t i = 1; i < set->field_count; i++) {
        const PlanField *field = &set->fields[i];
        if (is_text(field) == is_text(first) && (!is_text(first) || field->dims[0] == first->dims[0]))
            continue;
        *why = tg_arena_printf(files->arena, "%s: the fields of a data block are windows of one length, or none is",
                               place(files->arena, field));
        return TG_MODEL;
    }
    return TG_OK;
}

Status tg_data_open(DataFiles *files, const PlanDataSet *plan, const char *split, RecordSet *set, const char **why) {
    Arena *arena = files->arena;
    *set = (RecordSet){.plan = plan,
                     .fields = files->plan->fields + plan->field_first,
                     .field_count = plan->field_count,
                     .values = TG_ALLOC(arena, const unsigned char *, plan->field_count),
                     .record_bytes = TG_ALLOC(arena, size_t, plan->field_count)};
    for (uint32_t i = 0; i < plan->field_count; i++) {
        const PlanField *field = &set->fields[i];
        const DataArray *array = &files->arrays[plan->field_first + i];
        TG_TRY(load_field(files, plan->field_first + i, why));
        if (i > 0 && array->dims[0] != set->file_records) {
            *why = tg_arena_printf(arena, "%s has %lld records, but field '%s' has %lld", place(arena, field),
                                   (long long)array->dims[0], set->fields[0].name, (long long)set->file_records);
            return TG_MODEL;
        }
        set->file_records = array->dims[0];
        set->values[i] = array->values;
        set->record_bytes[i] = (size_t)tg_data_bytes(field->dtype, field->rank, field->dims);
        int64_t per_record = is_text(field) ? 1 : (int64_t)set->record_bytes[i] / tg_dtype(field->dtype)->bytes;
        TG_TRY(check_bounds(arena, field, array, per_record, why));
    }
    TG_TRY(check_windows(files, set, why));
    return choose_split(files, plan, split != NULL ? split : plan->split, set, why);
}
