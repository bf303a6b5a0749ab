/* The first byte chooses the tokens, the rest is a text. */
#include "tests/fuzz/any_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    DataVocabulary vocabulary = {0};
    DataRequest request = {.options = data[0] & 1 ? "tokenizer=characters" : "",
                           .field = "field",
                           .dtype = DT_I32,
                           .vocabulary = &vocabulary};
    any_file(tg_read_text, &request, data + 1, size - 1);
    return 0;
}
