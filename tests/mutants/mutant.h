/* Included in front of every file that holds mutants, in the copy that run.py builds. */
#ifndef TG_MUTANT_H
#define TG_MUTANT_H

#include <stdlib.h>

static inline int tg_mutant(int number) {
    static int chosen = -1;
    if (chosen < 0) {
        const char *text = getenv("TG_MUTANT");
        chosen = text ? atoi(text) : 0;
    }
    return chosen == number;
}

#endif
