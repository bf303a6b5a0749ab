/* A text as tokens: its bytes. */
#include "runtime/data.h"

Status tg_read_text(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    unsigned char *bytes = NULL;
    size_t count = 0;
    TG_TRY(tg_data_load(arena, request->path, &bytes, &count, why));
    *array = (DataArray){.dtype = DT_U8, .rank = 1, .dims = {(int64_t)count}, .values = bytes};
    return TG_OK;
}
