/* Vocabularies: what numbers stand for where a file holds words. */
#include "runtime/data.h"
#include "runtime/json.h"
#include "runtime/safetensors.h"

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
    int length = *at < 0x80                  ? 1
                 : *at >= 0xc2 && *at < 0xe0 ? 2
                 : (*at & 0xf0) == 0xe0      ? 3
                 : (*at & 0xf8) == 0xf0      ? 4
                                             : 0;
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

static const char note_prefix[] = "words.";

void tg_data_words_note(Arena *arena, const DataVocabulary *vocabulary, TensorFile *file) {
    for (uint32_t i = 0; i < vocabulary->fields.count; i++) {
        const DataWords *words = &vocabulary->fields.at[i];
        if (words->count == 0)
            continue;
        json_t *list = json_array();
        for (uint32_t w = 0; w < words->count; w++)
            json_array_append_new(list, json_string(words->at[w]));
        const char *text = tg_json_text(arena, list, JSON_COMPACT);
        if (text != NULL)
            tg_push(arena, &file->notes,
                    (TensorNote){tg_arena_printf(arena, "%s%s", note_prefix, words->name), text});
    }
}

static bool parse_words(Arena *arena, const char *text, const char ***words, uint32_t *count) {
    json_t *list = json_loads(text, 0, NULL);
    *count = (uint32_t)json_array_size(list);
    *words = TG_ALLOC(arena, const char *, *count + 1);
    bool good = json_is_array(list) && *count > 0;
    for (uint32_t i = 0; good && i < *count; i++) {
        const char *word = json_string_value(json_array_get(list, i));
        good = word != NULL && (i == 0 || strcmp((*words)[i - 1], word) < 0);
        if (good)
            (*words)[i] = tg_arena_str(arena, word, strlen(word));
    }
    json_decref(list);
    return good;
}

/* The first word that one of the lists lacks. */
static const char *odd_word(const DataWords *known, const char *const *words, uint32_t count) {
    for (uint32_t i = 0; i < known->count || i < count; i++)
        if (i >= known->count || i >= count || strcmp(known->at[i], words[i]) != 0)
            return i >= count || (i < known->count && strcmp(known->at[i], words[i]) < 0) ? known->at[i] : words[i];
    return NULL;
}

Status tg_data_words_take(Arena *arena, DataVocabulary *vocabulary, const TensorFile *file, const char **why) {
    for (uint32_t i = 0; i < file->notes.count; i++) {
        const TensorNote *note = &file->notes.at[i];
        if (strncmp(note->name, note_prefix, strlen(note_prefix)) != 0)
            continue;
        const char *name = note->name + strlen(note_prefix), **words = NULL;
        uint32_t count = 0;
        if (!parse_words(arena, note->text, &words, &count)) {
            *why = tg_arena_printf(arena, "%s: its metadata '%s' is no list of sorted words", file->path, note->name);
            return TG_MODEL;
        }
        const DataWords *known = tg_data_words(vocabulary, name);
        if (known == NULL) {
            (void)tg_data_words_add(arena, vocabulary, name, file->path, words, count);
            continue;
        }
        const char *odd = odd_word(known, words, count);
        if (odd == NULL)
            continue;
        *why = tg_arena_printf(arena,
                               "%s: it was trained with other words for '%s' than those of %s: '%.40s' is not in "
                               "both",
                               file->path, name, known->origin, odd);
        return TG_MODEL;
    }
    return TG_OK;
}
