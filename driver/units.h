/* Amounts as people read and write them; bytes to read: tg_bytes_text. */
#ifndef TG_UNITS_H
#define TG_UNITS_H

#include "ir/base/arena.h"

const char *units_count(Arena *arena, double count);       /* "1.21 G" */
const char *units_time(Arena *arena, double microseconds); /* "22.5 µs", "164 ms" */
/* "24GiB", "1.5 GB", "800MB", "4096": false if it is none. */
bool units_read_bytes(const char *text, double *bytes);

#endif
