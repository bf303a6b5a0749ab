/* Amounts as people read and write them; bytes to read: tg_bytes_text. */
#ifndef TG_UNITS_H
#define TG_UNITS_H

#include "ir/base/diag.h"

const char *units_count(Arena *arena, double count);       /* "1.21 G" */
const char *units_time(Arena *arena, double microseconds); /* "22.5 µs", "164 ms" */
/* The value of --memory, "24GiB", "1.5 GB", "800MB", "4096", as bytes; NULL leaves them. TG_USAGE: it is none, and reported. */
TG_CHECKED Status units_memory(Diags *diags, const char *text, double *bytes);

#endif
