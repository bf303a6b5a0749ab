/* Copying parts of functions: what every pass does with the nodes that it leaves as they are. */
#ifndef TG_COPY_H
#define TG_COPY_H

#include "passes/pass.h"

/* A copy of (part of) `from` into the builder's function. map[n] is node n's copy, 0 while it has none; a pass that wants another
   value in a node's place sets map[n] first, or gives it as `replace` meets the node. */
typedef struct Copy Copy;
struct Copy {
    Builder *b;
    const Graph *graph; /* of `from` */
    const Func *from;
    NodeId *map;
    bool *needed;
    const NodeId *order; /* NULL: as in `from`; else `ordered` nodes, all that are needed, each after its operands */
    uint32_t ordered;
    NodeId (*replace)(void *context, const Copy *copy, NodeId id, const NodeId *operands); /* 0: a plain copy; may be NULL */
    void *context;
};

Copy tg_copy(Arena *arena, Builder *b, const Graph *graph, const Func *from);
/* Asks for node `id`. */
void tg_copy_need(Copy *copy, NodeId id);
/* Asks for all that the nodes asked for depend on. */
void tg_copy_mark(Copy *copy);
/* The same, and copies it in order. `replace` may set the map of nodes that come later. */
void tg_copy_run(Copy *copy);
/* The same results over the copies; asks for nothing: run before. */
void tg_copy_results(Copy *copy);
/* All of a function: what its results need. */
void tg_copy_func(Arena *arena, Builder *b, const Graph *graph, const Func *from);

/* A pass over one function that replaces single nodes, or none (`replace` NULL): adds to `out` the copy of `from`. */
TG_CHECKED Status tg_copy_replacing(PassContext *context, const Graph *graph, const Func *from, Graph *out,
                                    NodeId (*replace)(void *, const Copy *, NodeId, const NodeId *), void *replace_context);

#endif
