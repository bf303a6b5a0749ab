/* The result of every operation that can fail. The values are the exit codes of all tgc programs. */
#ifndef TG_STATUS_H
#define TG_STATUS_H

typedef enum Status {
    TG_OK = 0,
    TG_DIFFERS = 1,   /* tgc diff: not the same; tgc bisect: not right */
    TG_USAGE = 2,     /* a flag, a verb, a setting */
    TG_MODEL = 3,     /* the .tg file or what it says of the data */
    TG_IO = 4,        /* a file, a disk, a library that cannot be opened */
    TG_MEMORY = 5,    /* no memory left */
    TG_PEER = 6,      /* another process is gone or late */
    TG_NUMERIC = 7,   /* a value that is not finite stopped the run */
    TG_INTERNAL = 70, /* a bug in tgc */
} Status;

#define TG_CHECKED __attribute__((warn_unused_result))
#define TG_PRINTF(text, first) __attribute__((format(printf, text, first)))

#define TG_TRY(call)                                  \
    do {                                              \
        Status tg_try_status = (call);                \
        if (tg_try_status != TG_OK)                   \
            return tg_try_status;                     \
    } while (0)

#endif
