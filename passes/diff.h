/* What a pass changed, as a unified diff of the text forms. */
#ifndef TG_DIFF_H
#define TG_DIFF_H

#include "ir/graph.h"

/* Appends nothing where the graphs say the same. Functions are compared one by one, source places left out. A node that merely has
   another number is no change: numbers are compared by what they stand for. Unchanged lines show the new numbers. */
void tg_graph_diff(Str *to, const Graph *before, const Graph *after);

#endif
