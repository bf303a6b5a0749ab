/* Vocabularies: what numbers stand for where a file holds words. */
#include "runtime/data.h"

#include <stdlib.h>
#include <string.h>

const DataWords *tg_data_words(const DataVocabulary *vocabulary, const char *name) {
    for (uint32_t i = 0; i < vocabulary->fields.count; i++)
        if (strcmp(vocabulary->fields.at[i].name, name) == 0)
            return &vocabulary->fields.at[i];
    return NULL;
}

const DataWords *tg_data_words_add(Arena *arena, DataVocabulary *vocabulary, const char *name, const char *origin,
                                   const char **words, int64_t count) {
    uint32_t distinct = 0;
    const char **kept = TG_ALLOC(arena, const char *, count);
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || strcmp(words[i], words[i - 1]) != 0)
            kept[distinct++] = words[i];
    tg_push(arena, &vocabulary->fields, (DataWords){name, kept, distinct, origin});
    return &vocabulary->fields.at[vocabulary->fields.count - 1];
}

static int compare(const void *word, const void *entry) { return strcmp(word, *(const char *const *)entry); }

int64_t tg_data_word_place(const DataWords *words, const char *word) {
    const char *const *found = bsearch(word, words->at, words->count, sizeof *words->at, compare);
    return found == NULL ? -1 : found - words->at;
}

int tg_utf8_length(const unsigned char *at, const unsigned char *end) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int length = *at < 0x80 ? 1 : *at >= 0xc2 && *at < 0xe0 ? 2 : (*at & 0xf0) == 0xe0 ? 3 : (*at & 0xf8) == 0xf0 ? 4 : 0;
    if (length <= 1 || end - at < length)
        return length == 1 ? 1 : 0;
    uint32_t code = *at & (0xff >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    return code >= least[length] && code <= 0x10ffff && !surrogate ? length : 0;
}

const char *tg_data_option(Arena *arena, const DataRequest *request, const char *name) {
    size_t length = strlen(name);
    const char *line = request->options != NULL ? request->options : "";
    while (*line != '\0') {
        size_t all = strcspn(line, "\n");
        if (all > length && strncmp(line, name, length) == 0 && line[length] == '=')
            return tg_arena_str(arena, line + length + 1, all - length - 1);
        line += all + (line[all] == '\n');
    }
    return NULL;
}
