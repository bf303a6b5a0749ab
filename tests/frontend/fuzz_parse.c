/* libFuzzer target: any bytes through the parser and the check of names. */
#include "tests/frontend/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    TestSource *source = source_parse(tg_host(), (const char *)data, size);
    if (source->status == TG_OK &&
        tg_parse_std(&source->arena, &source->diags, &source->sources, &source->std) == TG_OK &&
        tg_sema(&source->arena, &source->diags, source->unit, source->std) == TG_OK)
        (void)source_tree(source);
    source_free(source);
    return 0;
}
