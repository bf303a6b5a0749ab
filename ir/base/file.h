/* Whole files: read at once, written so that a reader sees the old content or the new, never a part. */
#ifndef TG_FILE_H
#define TG_FILE_H

#include "ir/base/arena.h"
#include "ir/base/status.h"

/* Reads all of `path` ("-": standard input), NUL-terminated. On failure `*why` says what (arena memory), TG_IO. */
TG_CHECKED Status tg_file_read(Arena *arena, const char *path, char **text, size_t *length, const char **why);

/* A file being written: to a temporary name beside `path`, then synced, renamed, and its directory synced. */
typedef struct TgFileWriter {
    const TgHost *host;
    int fd;
    char path[4096], temporary[4096 + 32];
    char why[256]; /* after a failure: what went wrong, with the path */
} TgFileWriter;

TG_CHECKED Status tg_file_begin(TgFileWriter *file, const TgHost *host, const char *path, unsigned mode);
TG_CHECKED Status tg_file_write(TgFileWriter *file, const void *data, size_t bytes);
TG_CHECKED Status tg_file_commit(TgFileWriter *file);
/* All of that at once, the temporary file removed after a failure. */
TG_CHECKED Status tg_file_put(TgFileWriter *file, const TgHost *host, const char *path, const void *data, size_t bytes);
/* After any failure, or to give up: removes the temporary file. Harmless after a commit. */
void tg_file_abandon(TgFileWriter *file);

/* Makes the directory and its parents. */
TG_CHECKED Status tg_make_directories(const char *path, char *why, size_t why_bytes);

#endif
