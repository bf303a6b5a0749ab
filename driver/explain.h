/* tgc explain: a warning (explain.c), or a line of a model (explain_line.c). */
#ifndef TG_EXPLAIN_H
#define TG_EXPLAIN_H

#include "driver/pipeline.h"

bool explain_is_line(const char *argument); /* FILE.tg:LINE, and what is meant as one */
TG_CHECKED Status explain_line(Pipeline *p);

#endif
