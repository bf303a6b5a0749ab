#include "runtime/json.h"

#include "ir/base/str.h"

#include <stdlib.h>

static Arena *json_arena;

static void *take(size_t bytes) { return json_arena != NULL ? tg_arena_alloc(json_arena, bytes) : malloc(bytes); }

static void give_back(void *old) {
    if (json_arena == NULL)
        free(old);
}

Arena *tg_json_memory(Arena *arena) {
    Arena *before = json_arena;
    json_set_alloc_funcs(take, give_back);
    json_arena = arena;
    return before;
}

static int add(const char *text, size_t length, void *to) {
    tg_str_add(to, text, length);
    return 0;
}

const char *tg_json_text(Arena *arena, json_t *document, size_t flags) {
    Str text = tg_str(arena);
    int result = json_dump_callback(document, add, &text, flags);
    json_decref(document);
    return result == 0 ? text.text : NULL;
}
