/* CSV, row by row: RFC 4180 quoting; a line ends with \n, \r or \r\n. */
#ifndef TG_CSV_H
#define TG_CSV_H

#include "ir/base/status.h"
#include "ir/base/vec.h"

typedef struct Csv {
    Arena *arena;
    const char *path;
    char *next, *end;  /* NUL-terminated text, which is read in place */
    int64_t line;      /* of the row read last; 0 at first */
    char separator;    /* of cells: a comma unless it is changed before the first row */
    const char **why;  /* path:line: what is wrong */
    Vec(char *) cells; /* of the row read last */
} Csv;

/* The whole file, decompressed if it is a gzip file. TG_IO or TG_MODEL. */
TG_CHECKED Status tg_csv_open(Csv *csv, Arena *arena, const char *path, const char **why);
/* `bytes` of text that came from `path`; it is copied. */
void tg_csv_open_text(Csv *csv, Arena *arena, const char *path, const unsigned char *text, size_t bytes,
                      const char **why);
/* Reads one row into `cells`; *more is false at the end of the file. */
TG_CHECKED Status tg_csv_row(Csv *csv, bool *more);
/* Is it a cell without a value: nothing, or NA, N/A, nan, null in any case? */
bool tg_csv_missing(const char *cell);
/* "path:line: ..." into `*why`; TG_MODEL. */
Status tg_csv_bad(Csv *csv, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
