/* Inside of reduce: changes to a graph, gathered and then made at once. */
#ifndef TG_REDUCE_EDIT_H
#define TG_REDUCE_EDIT_H

#include "ir/build.h"

/* What stands in a node's place: an earlier value of its type, one number, or a new argument. */
typedef enum Swap { SWAP_NOTHING, SWAP_VALUE, SWAP_NUMBER, SWAP_ARG } Swap;

typedef struct NodeEdit {
    Swap swap;
    NodeId value;
    double number;
    const Attr *attr; /* other attributes; NULL: its own */
} NodeEdit;

typedef struct FuncEdit {
    bool drop;
    bool *drop_arg, *drop_result;
    NodeId *result; /* per result: what is given instead; 0: the same */
    NodeEdit *node;
    NodeId *use; /* per Func.operands: what is read instead; 0: the same */
} FuncEdit;

typedef enum SizeEdit { SIZE_SAME, SIZE_EXACT, SIZE_FACTORS, SIZE_BATCH } SizeEdit;

typedef struct Edits {
    Arena *arena;
    const Graph *graph;
    FuncEdit *func;
    bool *drop_buffer, *drop_scalar, *drop_setting, *drop_validate;
    bool drop_training, drop_train;
    SizeEdit size; /* EXACT: size `from` becomes `to`; FACTORS: so does each factor `from` of a size; BATCH: B becomes 1 */
    int64_t from, to;
    DType dtype_from, dtype_to; /* equal: nothing */
} Edits;

Edits reduce_edits(Arena *arena, const Graph *graph);
/* A new graph in the edits' arena, with what no result needs left out; NULL: they do not fit together. Not verified. */
Graph *reduce_apply(const Edits *edits);

/* One thing to try. What the fields mean is the kind's own. */
typedef struct Item {
    uint32_t func, index, choice;
    int64_t from, to;
} Item;
typedef Vec(Item) Items;

typedef struct MoveKind {
    void (*list)(Arena *arena, const Graph *graph, Items *items);
    void (*edit)(Edits *edits, Item item);
    bool together; /* many at once may work */
} MoveKind;

extern const MoveKind reduce_moves[];
extern const uint32_t reduce_move_count;

#endif
