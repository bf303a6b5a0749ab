#include "ir/attrs.h"

#include <string.h>

static const int64_t zero = 0, one = 1;

static const struct {
    const char *name;
    const int64_t *value;
} standards[] = {{"split", &one}, {"reverse", &zero}, {"causal", &zero}};

bool tg_attr_field_is(const AttrField *field, const char *name, size_t length) {
    return field->length == length && memcmp(field->name, name, length) == 0;
}

static AttrField field_of(const char *word, size_t length, uint32_t *lists) {
    static const char marks[] = "#%@$&!\"";
    const char *mark = strchr(marks, word[0]);
    if (mark != NULL) {
        AttrKind kind = (AttrKind)(ATTR_NUMBER + (mark - marks));
        return (AttrField){.kind = kind, .name = word + 1, .length = (uint32_t)length - 1 - (kind == ATTR_TEXT)};
    }
    AttrField field = {.kind = ATTR_LIST, .name = word, .length = (uint32_t)length, .list = (*lists)++};
    for (size_t i = 0; i < sizeof standards / sizeof *standards; i++)
        if (tg_attr_field_is(&field, standards[i].name, strlen(standards[i].name)))
            field.standard = standards[i].value;
    return field;
}

uint32_t tg_attr_fields(Op op, AttrField fields[TG_ATTR_FIELDS]) {
    uint32_t count = 0, lists = 0;
    for (const char *at = tg_op(op)->attrs; *at != '\0';) {
        size_t length = strcspn(at, " ");
        fields[count++] = field_of(at, length, &lists);
        at += length + (at[length] == ' ');
    }
    return count;
}
