/* A text as tokens: its bytes, or its Unicode characters numbered in the order of their codes. */
#include "runtime/data.h"

#include <string.h>

static Status load(Arena *arena, const DataRequest *request, const unsigned char **text, size_t *bytes,
                   const char **why) {
    *text = request->output;
    *bytes = request->output_bytes;
    unsigned char *data = NULL;
    if (request->output != NULL)
        return TG_OK;
    TG_TRY(tg_data_load(arena, request->path, &data, bytes, why));
    *text = data;
    return TG_OK;
}

/* A number for each code up to the largest of the text. */
typedef struct Codes {
    uint32_t *at, count;
} Codes;

static uint32_t code_of(const unsigned char *at, int length) {
    uint32_t code = length == 1 ? *at : *at & (0xff >> (length + 1));
    for (int i = 1; i < length; i++)
        code = code << 6 | (at[i] & 0x3f);
    return code;
}

static void mark(Arena *arena, Codes *known, uint32_t code) {
    enum { LEAST = 256 };
    uint32_t count = known->count > 0 ? known->count : LEAST;
    while (count <= code)
        count *= 2;
    if (count > known->count)
        known->at = tg_arena_grow(arena, known->at, known->count * sizeof *known->at, count * sizeof *known->at);
    known->count = count;
    known->at[code] = 1;
}

/* Marks the codes of the text's characters in `known` and counts them. */
static Status scan(Arena *arena, const DataRequest *request, const unsigned char *text, size_t bytes, Codes *known,
                   int64_t *count, const char **why) {
    const unsigned char *end = text + bytes;
    for (const unsigned char *at = text; at < end; (*count)++) {
        int length = tg_utf8_length(at, end);
        if (length == 0) {
            *why = tg_arena_printf(arena, "%s: byte %zu: 0x%02x is not UTF-8; tokenizer = \"bytes\" takes any file",
                                   request->path, (size_t)(at - text), *at);
            return TG_MODEL;
        }
        mark(arena, known, code_of(at, length));
        at += length;
    }
    return TG_OK;
}

/* The order of codes is the order of their UTF-8 bytes. */
static const DataWords *add_words(Arena *arena, const DataRequest *request, const Codes *known) {
    Vec(const char *) words = {0};
    for (uint32_t code = 0; code < known->count; code++) {
        if (known->at[code] == 0)
            continue;
        char text[5] = "";
        if (code < 0x80) {
            text[0] = (char)code;
        } else {
            int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
            static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
            for (int i = length - 1; i > 0; i--)
                text[i] = (char)(0x80 | (code >> 6 * (length - 1 - i) & 0x3f));
            text[0] = (char)(lead[length] | code >> 6 * (length - 1));
        }
        tg_push(arena, &words, tg_arena_str(arena, text, strlen(text)));
    }
    return tg_data_words_add(arena, request->vocabulary, request->field, request->path, words.at, words.count);
}

/* Turns the marks into numbers of tokens, from 1; words whose characters the text lacks have none. */
static void number_codes(const DataWords *words, Codes *known) {
    if (known->count > 0)
        memset(known->at, 0, known->count * sizeof *known->at);
    for (uint32_t i = 0; i < words->count; i++) {
        const unsigned char *word = (const unsigned char *)words->at[i];
        int length = tg_utf8_length(word, word + strlen(words->at[i]));
        uint32_t code = length > 0 ? code_of(word, length) : 0;
        if (code < known->count)
            known->at[code] = i + 1;
    }
}

static Status unknown(Arena *arena, const DataRequest *request, const DataWords *words, const unsigned char *at,
                      int length, size_t byte, const char **why) {
    *why = tg_arena_printf(arena, "%s: byte %zu: the character '%.*s' is not among the %u of %s", request->path, byte,
                           length, (const char *)at, words->count, words->origin);
    return TG_MODEL;
}

static Status read_characters(Arena *arena, const DataRequest *request, const unsigned char *text, size_t bytes,
                              DataArray *array, const char **why) {
    Codes known = {0};
    int64_t count = 0;
    TG_TRY(scan(arena, request, text, bytes, &known, &count, why));
    const DataWords *words = tg_data_words(request->vocabulary, request->field);
    if (words == NULL)
        words = add_words(arena, request, &known);
    number_codes(words, &known);
    DType dtype = words->count <= 256 ? DT_U8 : words->count <= 65536 ? DT_U16 : DT_I32;
    *array = (DataArray){.dtype = dtype, .rank = 1, .dims = {count}};
    array->values = tg_arena_alloc(arena, (size_t)count * tg_dtype(dtype)->bytes);
    size_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        int length = tg_utf8_length(text + at, text + bytes);
        uint32_t place = known.at[code_of(text + at, length)];
        if (place == 0)
            return unknown(arena, request, words, text + at, length, at, why);
        tg_element_set(dtype, array->values, i, place - 1);
        at += (size_t)length;
    }
    return TG_OK;
}

Status tg_read_text(Arena *arena, const DataRequest *request, DataArray *array, const char **why) {
    const unsigned char *text = NULL;
    size_t bytes = 0;
    TG_TRY(load(arena, request, &text, &bytes, why));
    if (tg_data_option(arena, request, "tokenizer") != NULL)
        return read_characters(arena, request, text, bytes, array, why);
    *array =
        (DataArray){.dtype = DT_U8, .rank = 1, .dims = {(int64_t)bytes}, .values = (unsigned char *)(uintptr_t)text};
    return TG_OK;
}
