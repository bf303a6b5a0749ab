/* Diagnostics in Clang's form, and the table of source files that positions refer to.

   Errors and warnings are counted and printed as they come (text to `out`) or gathered for --diagnostics=json. A library
   reports through tg_report and returns its Status; it never prints by itself. */
#ifndef TG_DIAG_H
#define TG_DIAG_H

#include "ir/base/arena.h"
#include "ir/base/status.h"
#include "ir/base/str.h"
#include "ir/base/vec.h"

#include <stdio.h>

/* A place in a source file. Lines and columns count from 1, columns in bytes; line 0: no place. */
typedef struct Loc {
    uint16_t file;              /* index into Sources */
    uint16_t column, end_column; /* end_column is one past the end, on `line`; equal to `column`: a point */
    uint32_t line;
    uint32_t instance;          /* whose function ran there: index into Graph.instances, 0: none. No part of the place */
} Loc;

typedef struct Source {
    const char *path; /* as the user wrote it; "<std>/nn.tg" for the library */
    const char *text; /* NUL-terminated; may contain further NULs */
    size_t length;
} Source;

typedef struct Sources {
    Vec(Source) files;
    struct Map *names; /* the frontend's: names of all files, so that equal ones are one pointer; NULL at first */
} Sources;

typedef enum Severity { SEV_NOTE, SEV_REMARK, SEV_WARNING, SEV_ERROR } Severity;

/* What -W and -Wno- can name. One row: name, default, one sentence for `tgc explain -Wname`. */
#define TG_WARNINGS(X)                                                                                                     \
    X(broadcast, true, "a result has one named dimension twice, as [B] + [B, 1] gives [B, B]; often a lost axis.")        \
    X(shadow, true, "a name hides an argument or a file-level name that was meant.")                                      \
    X(unused, true, "a value, an argument or a binding is never read.")                                                   \
    X(untrained, true, "the optimizer has no parameter to update: there is none, or all are frozen.")                     \
    X(batch_coupled, true, "rows depend on a sum over the batch that depends on parameters; micro-batches can't be split.") \
    X(emulated_type, true, "-p asks for a type that this machine has no units for; it computes in another.") \
    X(loss_scale, true, "loss_scale is set, but only f16 scales the loss.")

typedef enum Warning {
#define X(name, on, text) WARN_##name,
    TG_WARNINGS(X)
#undef X
    WARNING_COUNT
} Warning;

typedef enum WarningState { WARNING_OFF, WARNING_ON, WARNING_AS_ERROR } WarningState;

typedef struct Diags {
    Arena *arena;
    const Sources *sources;
    FILE *out;      /* NULL: keep silent, only count (tests, speculative parses) */
    bool json;      /* one JSON object a line instead of text */
    bool color;
    uint32_t errors, warnings;
    uint32_t error_limit; /* 20; past it errors are counted, not printed */
    WarningState state[WARNING_COUNT];
    bool muted;   /* the last error or warning was not shown: nor are its notes */
    Str *capture; /* NULL, or the text goes here instead of `out` */
} Diags;

void tg_diags_init(Diags *diags, Arena *arena, const Sources *sources, FILE *out);

/* "-Wname", "-Wno-name", "-Werror", "-Werror=name" without the leading -W; false: there is no such warning. */
bool tg_diags_flag(Diags *diags, const char *flag);
const char *tg_warning_text(Warning warning);
/* The name as the table has it: underscores where users write dashes. */
const char *tg_warning_name(Warning warning);

void tg_error(Diags *diags, Loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
void tg_warn(Diags *diags, Warning warning, Loc loc, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* What the compiler did or did not do; asked for by a flag, which the text names at its end. */
void tg_remark(Diags *diags, Loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Belongs to the error or warning before it. */
void tg_note(Diags *diags, Loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A fix-it for the error or warning before it: `loc` replaced by `text`. */
void tg_fixit(Diags *diags, Loc loc, const char *text);

uint16_t tg_source_add(Sources *sources, Arena *arena, const char *path, const char *text, size_t length);
static inline Loc tg_loc_span(Loc from, Loc to) {
    if (from.file == to.file && from.line == to.line && to.end_column >= from.column)
        from.end_column = to.end_column;
    return from;
}

#endif
