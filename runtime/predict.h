/* Running an exported function over any number of records. */
#ifndef TG_PREDICT_H
#define TG_PREDICT_H

#include "runtime/session.h"

/* An export: one function for few rows, one for many (they may be the same). */
typedef struct Export {
    const char *name;
    const PlanFunc *few, *many;
} Export;

/* What the inputs are filled from. `set` has one field per input that has a batch dimension. */
typedef struct PredictInputs {
    const Export *export;
    RecordSet set;            /* of the inputs, in their order; count is the number of records to run */
    const bool *per_record; /* per input: else `set.values` holds the one value */
} PredictInputs;

typedef struct PredictOutput {
    const char *name;
    DataArray array;
    int batch_axis; /* -1: one value for all records */
    int64_t row_size;
} PredictOutput;

typedef struct Prediction {
    uint32_t count;
    PredictOutput *outputs;
} Prediction;

/* Name NULL: the only one. TG_USAGE with the names otherwise. */
TG_CHECKED Status tg_predict_export(Session *session, const char *name, Export *found);
/* Is there an export of this name? */
bool tg_predict_is_export(const TgPlan *plan, const char *name);
/* Inputs from files and numbers, in the order of the arguments. */
TG_CHECKED Status tg_predict_read(Session *session, const Export *export, const char *const *texts, uint32_t count,
                                  PredictInputs *inputs);
/* Inputs from the fields of a data set that have the arguments' names. */
TG_CHECKED Status tg_predict_from_data(Session *session, const Export *export, const RecordSet *data,
                                       PredictInputs *inputs);
void tg_predict_run(Session *session, const PredictInputs *inputs, Prediction *prediction);

#endif
