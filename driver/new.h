/* Starters: what `tgc new` writes. */
#ifndef TG_NEW_H
#define TG_NEW_H

#include "driver/pipeline.h"

typedef struct Starter {
    Pipeline *p;
    const char *output; /* the .tg file */
    const char *name;   /* its name without folder and .tg */
    Str text;
} Starter;

TG_CHECKED Status starter_mlp(Starter *s);
TG_CHECKED Status starter_gpt(Starter *s);
TG_CHECKED Status starter_table(Starter *s);

/* --data, which must be given: `what` says what of. NULL: reported. */
const char *starter_data(Starter *s, const char *what);
/* `path` as the .tg file names it: relative paths start in its folder. */
const char *starter_path(Starter *s, const char *path);
/* Text as a string of the language, with its quotes. */
void starter_string(Str *to, const char *text);

#endif
