/* Data sets: files read into memory, checked against the schema, split, put in order, and handed out in batches.

   A function that fails leaves the reason in `*why` (arena text, one line): TG_IO when a file cannot be read, TG_MODEL
   when what it holds is not what the program declares. */
#ifndef TG_DATA_H
#define TG_DATA_H

#include "ir/base/vec.h"
#include "ir/plan/plan.h"

#include <sched.h>

/* An array as a file holds it, in the machine's byte order. dims[0] counts the records; rank 0 is a single value. */
typedef struct DataArray {
    DType dtype;
    uint8_t rank;
    int64_t dims[TG_PLAN_RANK + 1];
    unsigned char *values;
} DataArray;

/* What the numbers of a field stand for: categories of a column, characters of a text. Sorted by their bytes, distinct; a
   number is a place in the list. */
typedef struct DataWords {
    const char *name; /* of the field; of one of several columns "field.column" */
    const char *const *at;
    uint32_t count;     /* 0: its numbers are numbers */
    const char *origin; /* the file they are from */
} DataWords;

/* The first file that is read with a field decides: training data, or the weights for which it is opened. */
typedef struct DataVocabulary {
    Vec(DataWords) fields;
} DataVocabulary;

const DataWords *tg_data_words(const DataVocabulary *vocabulary, const char *name); /* NULL: none */
/* Adds the distinct ones of `count` words under `name`. `words` is sorted. */
const DataWords *tg_data_words_add(Arena *arena, DataVocabulary *vocabulary, const char *name, const char *origin,
                                   const char **words, int64_t count);
int64_t tg_data_word_place(const DataWords *words, const char *word); /* -1: not in it */
/* As notes of a file of tensors, and back: words that are known already must be the same (TG_MODEL). */
struct TensorFile;
void tg_data_words_note(Arena *arena, const DataVocabulary *vocabulary, struct TensorFile *file);
TG_CHECKED Status tg_data_words_take(Arena *arena, DataVocabulary *vocabulary, const struct TensorFile *file,
                                     const char **why);
/* Bytes of the UTF-8 character that `at` begins with, 0 if it is none. */
int tg_utf8_length(const unsigned char *at, const unsigned char *end);

/* What a reader is asked for. What is not set is not known. */
typedef struct DataRequest {
    const char *path, *columns; /* columns: names separated by newlines */
    const char *options;        /* "name=value" lines */
    const char *field;          /* its name */
    DType dtype;
    uint8_t rank;
    const int64_t *dims;         /* of one record */
    const unsigned char *output; /* of the command that `path` is; read in place of a file */
    size_t output_bytes;
    size_t record_bytes, record_offset; /* records: of all fields together, and where this one begins */
    DataVocabulary *vocabulary;
} DataRequest;

/* The value of an option, NULL: it is not given. */
const char *tg_data_option(Arena *arena, const DataRequest *request, const char *name);

typedef Status DataReader(Arena *arena, const DataRequest *request, DataArray *array, const char **why);
DataReader tg_read_idx, tg_read_csv, tg_read_npy, tg_read_text, tg_read_records;

/* NULL: no such reader, or not one that is built. */
DataReader *tg_data_reader(const char *name);

/* The whole file, decompressed if it is a gzip file. `*bytes` is a count of the decompressed data, a zero follows them. */
TG_CHECKED Status tg_data_load(Arena *arena, const char *path, unsigned char **data, size_t *bytes, const char **why);
/* What `/bin/sh -c command` writes to its standard output, in `directory`. A zero follows. */
TG_CHECKED Status tg_data_run(Arena *arena, const char *command, const char *directory, unsigned char **data,
                              size_t *bytes, const char **why);
void tg_data_from_big_endian(unsigned char *values, int64_t count, int bytes_each);
/* The product of dims and the element size; -1 when it passes 2^63 - 1 or a dimension is negative. */
int64_t tg_data_bytes(DType dtype, int rank, const int64_t *dims);
/* "u8[8, 8]" */
const char *tg_data_shape(Arena *arena, DType dtype, int rank, const int64_t *dims);
/* The same array if it has the type; integers widen to a type that holds all their values. */
TG_CHECKED Status tg_data_widen(Arena *arena, DataArray *array, DType to, const char *what, const char **why);
TG_CHECKED Status tg_npy_write(const TgHost *host, const char *path, const DataArray *array, char *why,
                               size_t why_bytes);

/* Where relative paths start. */
typedef struct DataRoot {
    const char *path;
    const char *origin; /* "--data-root", "$TG_DATA", or "the folder of the .tg file" */
} DataRoot;
DataRoot tg_data_root(const char *option, const TgPlan *plan);

/* The records of one set: a view into the files' arrays. The records of a text are windows, which share their last token
   with the next one's first: a record is then the position of its first token. */
typedef struct RecordSet {
    const PlanDataSet *plan;
    const PlanField *fields;
    uint32_t field_count;
    const unsigned char **values; /* per field: of record 0 of the file */
    size_t *record_bytes;         /* per field */
    int64_t file_records;
    int64_t *records; /* positions in the file, ascending */
    int64_t count;
    int64_t window_step; /* tokens from one window to the next; 0: not a text */
    int64_t tokens_last; /* behind the last token of the set */
    int64_t shifts;      /* each epoch moves all windows by fewer tokens than this; 0: by none */
} RecordSet;

static inline const unsigned char *tg_data_record(const RecordSet *set, uint32_t field, int64_t record) {
    size_t each = set->window_step > 0 ? tg_dtype(set->fields[field].dtype)->bytes : set->record_bytes[field];
    return set->values[field] + (size_t)record * each;
}

typedef struct DataOutput {
    const char *command;
    unsigned char *data;
    size_t bytes;
} DataOutput;

/* Files that several sets share are read once, commands run once. */
typedef struct DataFiles {
    Arena *arena;
    const TgPlan *plan;
    DataRoot root;
    DataArray *arrays; /* per plan field; rank 0: not read yet */
    Vec(DataOutput) outputs;
    DataVocabulary vocabulary;
} DataFiles;

void tg_data_files_init(DataFiles *files, Arena *arena, const TgPlan *plan, DataRoot root);
/* `split` NULL: the set's own. Reads the files, checks type, shape, equal counts and bounds, and applies the split. */
TG_CHECKED Status tg_data_open(DataFiles *files, const PlanDataSet *plan, const char *split, RecordSet *set,
                               const char **why);

/* The positions of `count` records that belong to split `index`, ascending. Depends on count and shares only. */
int64_t *tg_data_split(Arena *arena, int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index,
                       bool by_runs, int64_t *split_records);
/* The values of a field: records of equal bytes are of one group or class. `values` NULL: none. */
typedef struct SplitKey {
    const unsigned char *values;
    size_t bytes; /* of one record */
} SplitKey;
/* As tg_data_split, but records of one value of `by` stay together, and each value of `stratify` has its shares (a group counts
   as what its first record is). Counts meet the shares as well as groups let them. Depends on count, shares and values only. */
int64_t *tg_data_split_by(Arena *arena, int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index,
                          SplitKey by, SplitKey stratify, int64_t *split_records);
/* Of `count` records split `index` has [*first, *last) of the order in which they are dealt out. */
void tg_data_cut(int64_t count, const PlanSplit *splits, uint32_t split_count, uint32_t index, int64_t *first,
                 int64_t *last);
/* The windows of tokens [first, last). */
int64_t *tg_data_windows(Arena *arena, int64_t first, int64_t last, int64_t step, int64_t *count);
/* For training with shuffled records: the epochs' windows will be shifted, so fewer of them may fit. */
void tg_data_let_shift(RecordSet *set);
/* Of the epoch: 0 <= shift < shifts. */
int64_t tg_data_shift(int64_t shifts, uint64_t seed, int64_t epoch);
/* Shuffles in place: order = f(seed, epoch). docs/training.md has the definition in Python. */
void tg_data_shuffle(int64_t *records, int64_t count, uint64_t seed, int64_t epoch);

/* Some records of a set. */
typedef struct Batch {
    const RecordSet *set;
    const int64_t *records;         /* NULL: `gathered` has them */
    unsigned char *const *gathered; /* per field: the records one after the other */
    int64_t count;
    int64_t epoch;
    bool ends_epoch;
} Batch;

/* Copies records [first, first + rows) of the batch; rows up to `capacity` become zero. */
void tg_batch_copy(const Batch *batch, uint32_t field, int64_t first, int64_t rows, int64_t capacity,
                   unsigned char *to);

typedef struct FeedOptions {
    const TgHost *host;
    int64_t batch;
    uint64_t seed;
    bool shuffle;
    int64_t ahead_bytes;   /* batches of fewer bytes are gathered by the caller's thread: a hand-over costs more */
    const cpu_set_t *cpus; /* where the reading thread may run; NULL: as the caller */
    int64_t drawn;         /* batches that a run which is resumed has had already */
} FeedOptions;
enum { TG_FEED_AHEAD_BYTES = 256 * 1024 };

/* The training batches, epoch after epoch: each record once an epoch, the last batch may be short. */
typedef struct Feed Feed;
TG_CHECKED Status tg_feed_open(Arena *arena, const FeedOptions *options, const RecordSet *set, Feed **feed);
/* Never ends. Valid until the next call. */
const Batch *tg_feed_next(Feed *feed);
void tg_feed_close(Feed *feed);

#endif
