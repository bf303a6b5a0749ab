/* jansson with its memory in an arena: a document is whole or the arena's guard takes over, and nothing is left behind by either.
   (Its own ways without memory are a document that lacks a part, and a wrong reason for what it cannot read.) */
#ifndef TG_JSON_H
#define TG_JSON_H

#include "ir/base/arena.h"

#include <jansson.h>

/* From now on, for the whole process, documents are made in the arena and live as long as it does; NULL: in malloc's memory. Gives
   the arena until now. The hooks of jansson know no context: this is the one place with a variable of its own. */
Arena *tg_json_memory(Arena *arena);

/* The document as text in `arena`; it is given back. */
const char *tg_json_text(Arena *arena, json_t *document, size_t flags);

#endif
