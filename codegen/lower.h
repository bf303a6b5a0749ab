/* Inside of tg_lower_kernel: from a kernel's body to loops.

   A body is lowered by pulling: the value of a node at a place (one index an axis) is made from its operands' values at
   the places that the node's index map gives, down to loads of the inputs. Places are symbolic: sums of digits of loop
   variables, so that reshapes, transposes and broadcasts of one loop variable stay affine wherever they can. */
#ifndef TG_LOWER_H
#define TG_LOWER_H

#include "codegen/codegen.h"
#include "codegen/loop_info.h"
#include "ir/graph.h"

enum { INDEX_TERMS = 12 };

/* ((var / div) mod mod) * coeff */
typedef struct Term {
    uint32_t var;
    int64_t div, mod, coeff;
} Term;

/* constant + terms, sorted by (var, div); no two terms that could be one. */
typedef struct Index {
    int64_t constant;
    uint32_t count;
    Term at[INDEX_TERMS];
} Index;

typedef struct Place {
    uint32_t rank;
    Index at[TG_MAX_RANK];
} Place;

typedef enum VarKind {
    VAR_LOOP,
    VAR_QUOTIENT, /* of / by, where no digits say it */
    VAR_REMAINDER,
    VAR_TAKEN,   /* the value of an index node at a place, clamped to [0, by) */
    VAR_CLAMPED, /* of / step, clamped to [0, by) */
} VarKind;

typedef struct Var {
    VarKind kind;
    int64_t extent;
    int depth; /* loops that must be open for it to be known */
    LoopId id; /* LOOP: the loop */
    const Index *of;
    int64_t by, step;
    NodeId node;
    const Place *place;
} Var;

/* What is known of a node at a place. */
typedef struct Entry {
    NodeId node;
    const Place *place;
    LoopId value;     /* 0: not computed, or its loop is closed */
    uint32_t walk;    /* the last walk that came here */
    int first_stage;  /* 1 + the stage that computes it first; 0: none */
    uint32_t scratch; /* 1 + the buffer that keeps it for later stages; 0: recomputed */
} Entry;

typedef Vec(Entry *) Entries;

typedef struct Lower {
    Arena *arena;
    Diags *diags;
    const Graph *graph;
    const Func *func;
    int64_t capacity;
    LoopTarget target;
    bool in_place; /* see tg_lower_kernel */
    LoopKernel *k;
    uint32_t *arg_buffer; /* by argument */
    int *level;           /* by node: reductions on the longest path to it */
    double *weight;       /* by node: rough cost of an element */
    LoopId *reduced;      /* by node: a reduction's value, in its row */
    NodeId *label;        /* by node: of a sum with one element that is not 0, what says where it is; 0: of all others */
    const Index *row;     /* flat index of the reduced values that `reduced` holds */
    bool empty_rows;      /* rows have no elements: no element's place tells its row, and none is computed */
    uint32_t *dense;      /* by node: 1 + the buffer that holds a constant's numbers */
    int stage;            /* reductions of a lower level are known */
    Vec(Var) vars;
    int depth;       /* open loops */
    uint32_t vector; /* variable of the open vector loop; 0: none */
    LoopId tile;
    Map entry_map; /* key of (node, place) -> 1 + index into entries */
    Entries entries;
    Entries live;            /* with a value, in order of computing */
    uint32_t live_marks[16]; /* live.count when the loop of that depth was opened */
    uint32_t walk;
    int64_t common; /* while measuring: greatest common divisor of the digits' sizes */
    Status status;
} Lower;

/* Reports once; the lowering goes on with values of no meaning and its result is dropped. */
void tg_lower_fail(Lower *l, NodeId node, Status status, const char *what);

/* lower_index.c */
uint32_t tg_lower_var(Lower *l, int64_t extent, int depth);
Index tg_index_const(int64_t value);
Index tg_index_var(const Lower *l, uint32_t var);
void tg_index_add(Lower *l, Index *to, const Index *from, int64_t scale);
/* from = quotient * by + remainder, 0 <= remainder < by. */
void tg_index_split(Lower *l, const Index *from, int64_t by, Index *quotient, Index *remainder);
bool tg_index_equal(const Index *a, const Index *b);
int tg_index_depth(const Lower *l, const Index *index);
int tg_place_depth(const Lower *l, const Place *place);
/* Row-major. */
Place *tg_index_unflatten(Lower *l, const Index *flat, const Type *type);
Index tg_place_flatten(Lower *l, const Place *place, const Type *type);
int64_t tg_dim_extent(const Lower *l, Dim dim);
int64_t tg_type_extent(const Lower *l, const Type *type);
/* As an address: base + stride * the vector variable. */
LoopId tg_index_address(Lower *l, const Index *index, int64_t *stride);
/* As a value, i64. */
LoopId tg_index_value(Lower *l, const Index *index);
void tg_index_measure(Lower *l, const Index *index);

/* lower_value.c */
Entry *tg_lower_entry(Lower *l, NodeId node, const Place *place);
LoopId tg_lower_value(Lower *l, NodeId node, const Place *place);
/* In the type that it computes in. */
LoopId tg_lower_compute(Lower *l, NodeId node, const Place *place);
/* An integer node's value as i64. */
LoopId tg_lower_index(Lower *l, NodeId node, const Place *place);
/* Computes what `node` needs and what the open loops already fix, so that it stands outside of the next loop. */
void tg_lower_hoist(Lower *l, NodeId node, const Place *place);
/* Visits the addresses that `node` needs, for tg_index_measure. */
void tg_lower_measure(Lower *l, NodeId node, const Place *place);
void tg_lower_new_walk(Lower *l);
/* Sums over a row of which only one element can differ from 0 are that element, and no reductions: fills `label`. */
void tg_lower_find_picks(Lower *l);
bool tg_lower_is_reduction(const Lower *l, NodeId node);
/* A broadcast along the last axis: its operand is made once a row. */
bool tg_lower_made_once(const Lower *l, NodeId node);
/* The place of operand `i` of a view, a pointwise node or a pick. */
const Place *tg_lower_operand_place(Lower *l, NodeId node, uint32_t i, const Place *place);
/* Whether `node`'s operands are read at places known beforehand: all but reductions and nodes of a lower.c nest of
 * their own. */
bool tg_lower_descends(const Lower *l, NodeId node);
/* The row and the index of a random number: see tg_random. */
void tg_lower_random_counter(Lower *l, NodeId node, const Place *place, Index *row, Index *index);

/* lower.c: loops that keep `depth`, the live values and the variables in step. */
LoopId tg_lower_open(Lower *l, LoopMode mode, uint32_t var, LoopId begin, LoopId end, int64_t extent);
void tg_lower_close(Lower *l, uint32_t var);

/* A value that a nest stores. */
typedef struct Output {
    NodeId node;
    uint32_t buffer;
    const Type *type; /* shape of the domain: the node's own */
    const Type *into; /* concat: the result's shape, and where this operand begins on `axis` */
    int64_t axis, start;
} Output;

typedef enum NestKind { NEST_ROWS, NEST_COLUMNS, NEST_CUMSUM, NEST_SCATTER } NestKind;

/* One nest of loops: `rows` x `width` (rows kernels; pointwise ones have no reductions), or outer x length x inner. */
typedef struct Nest {
    NestKind kind;
    Vec(NodeId) reductions;
    Vec(Output) outputs;
    int64_t rows, width;                        /* ROWS; COLUMNS: outer and inner */
    int64_t length;                             /* COLUMNS */
    bool flat;                                  /* ROWS with one row, its elements spread over the tiles */
    bool batch_rows, batch_width, batch_length; /* B lies there, as its major dimension */
    bool masked;                                /* B lies elsewhere: padding is cleared by a mask */
    int64_t block;                              /* COLUMNS: columns a unit */
    int64_t units, grain;                       /* what tiles divide */
    int64_t work;                               /* elements a unit */
} Nest;

void tg_lower_rows_size(Lower *l, Nest *nest);
void tg_lower_rows(Lower *l, const Nest *nest);
void tg_lower_columns_size(Lower *l, Nest *nest);
void tg_lower_columns(Lower *l, const Nest *nest);
void tg_lower_scan_size(Lower *l, Nest *nest);
void tg_lower_cumsum(Lower *l, const Nest *nest);
void tg_lower_scatter(Lower *l, const Nest *nest);

/* The units of this tile: [lo, hi) hold records, [hi, all) are padding. `extent`: in units, `valid`: per record, 0 if
   there is no B in them. */
typedef struct Span {
    LoopId lo, hi, all;
} Span;
Span tg_lower_span(Lower *l, const Nest *nest, bool batch);
/* rows * per: elements of a dimension that hold records. */
LoopId tg_lower_valid(Lower *l, int64_t per);

/* Stores `value` (0: zero) of an output at `place` of its domain; clears it in padding where the nest is masked. */
void tg_lower_store(Lower *l, const Nest *nest, const Output *output, const Place *place, LoopId value);

/* One step of a reduction on two partial results, and its LoopOp. */
LoopId tg_lower_combine(Lower *l, Op op, LoopId a, LoopId b);
LoopOp tg_lower_reduce_op(Op op);
/* Neighbours first, an odd one passes up. */
LoopId tg_lower_tree(Lower *l, Op op, LoopId *values, int64_t count);

static inline int64_t tg_lower_int(const Node *node, int list, int64_t absent) {
    return node->attr != NULL && node->attr->list[list].count ? node->attr->list[list].at[0] : absent;
}

#endif
