/* The first byte chooses what is asked for, the rest is a table. */
#include "tests/fuzz/any_file.h"

enum { FLOATS = 1, TWO_COLUMNS = 2, WORDS_KNOWN = 4, OPTIONS_FROM = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const options[] = {"",
                                          "missing=0",
                                          "missing=mean",
                                          "missing_name=?\ncategories=true",
                                          "categories=true",
                                          "categories=false",
                                          "separator=;",
                                          "separator=\t\nmissing=mean"};
    static const char *const known[] = {"blue", "red"};
    if (size == 0)
        return 0;
    DataWords words = {"field", known, 2, "weights"};
    DataVocabulary vocabulary = {0};
    if (data[0] & WORDS_KNOWN) {
        vocabulary.fields.at = &words;
        vocabulary.fields.count = vocabulary.fields.capacity = 1;
    }
    DataRequest request = {.columns = data[0] & TWO_COLUMNS ? "a\nb" : "a",
                           .options = options[(data[0] >> OPTIONS_FROM) % (sizeof options / sizeof *options)],
                           .field = "field",
                           .dtype = data[0] & FLOATS ? DT_F32 : DT_U8,
                           .vocabulary = &vocabulary};
    any_file(tg_read_csv, &request, data + 1, size - 1);
    return 0;
}
