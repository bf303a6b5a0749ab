/* The `attrs` column of ops.def, taken apart: what a node carries besides operands and type, in the order of printing.
 */
#ifndef TG_ATTRS_H
#define TG_ATTRS_H

#include "ir/graph.h"

typedef enum AttrKind {
    ATTR_LIST,   /* word: Attr.list[list] */
    ATTR_NUMBER, /* #word */
    ATTR_DENSE,  /* %word */
    ATTR_BUFFER, /* @word */
    ATTR_SCALAR, /* $word */
    ATTR_FUNC,   /* &word */
    ATTR_KEY,    /* !word */
    ATTR_TEXT,   /* "word" */
} AttrKind;

typedef struct AttrField {
    AttrKind kind;
    const char *name; /* not NUL-terminated */
    uint32_t length;
    uint32_t list;           /* LIST: which one */
    const int64_t *standard; /* LIST: the one value that stands for an empty list, or NULL */
} AttrField;

enum { TG_ATTR_FIELDS = 6 };

uint32_t tg_attr_fields(Op op, AttrField fields[TG_ATTR_FIELDS]);
bool tg_attr_field_is(const AttrField *field, const char *name, size_t length);

#endif
