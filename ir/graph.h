/* The IR: a graph is a module of functions in SSA form that share persistent buffers, run-time scalars, types and kernels.

   A node has one result and refers to operands that stand before it in its function, so a function's order is a topological
   one. Nodes, operands and attributes live in the graph's arena; a pass reads one graph and appends to another through
   ir/build.h. Uses are computed on demand (tg_uses). docs/ir.md has the grammar of the text form. */
#ifndef TG_GRAPH_H
#define TG_GRAPH_H

#include "ir/base/diag.h"
#include "ir/type.h"

typedef enum Op {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} Op;

/* How mixed precision treats an op: takes the low type, needs f32, follows its operands, or (take) gives the low type when it
   reads a parameter. */
typedef enum CastClass { CAST_follow, CAST_low, CAST_f32, CAST_take } CastClass;

/* What the user says of one value, whatever its op's class: it is computed in f32, or in the low type where the class allows it. */
typedef enum Precision { PRECISION_BY_CLASS, PRECISION_F32, PRECISION_LOW, PRECISION_COUNT } Precision;

/* How fusion treats an op: a leaf that any kernel may hold; one element of the result from one of each operand; only an index
   map; a reduction; a kernel of its own; a library's; a call at kernel level. */
typedef enum FuseKind {
    FUSE_leaf,
    FUSE_point,
    FUSE_view,
    FUSE_reduce,
    FUSE_alone,
    FUSE_library,
    FUSE_call,
} FuseKind;

typedef struct OpInfo {
    const char *name;
    int min_operands, max_operands; /* max -1: any */
    const char *levels, *attrs;
    CastClass cast;
    FuseKind fuse;
} OpInfo;

const OpInfo *tg_op(Op op);
/* The names of a function's kind, a buffer's and a scalar's class, a level, as in text. */
const char *tg_func_kind_name(int kind);
const char *tg_buffer_class_name(int class);
const char *tg_scalar_class_name(int class);
const char *tg_level_name(int level);
const char *tg_precision_name(int precision); /* "f32", "low" */
Op tg_op_named(const char *name); /* OP_COUNT: no such op */

typedef uint32_t NodeId; /* index into Func.nodes; node 0 is no node */

typedef struct Ints {
    const int64_t *at;
    uint32_t count;
} Ints;

enum { TG_ATTR_LISTS = 5 };

/* What a node carries besides operands and type; the op's `attrs` column says what is used. NULL where an op has none. */
typedef struct Attr {
    Ints list[TG_ATTR_LISTS];
    double number;          /* #word; integers in it are exact to 2^53 */
    const double *dense;    /* %word: row-major, as many as the type has elements; NULL: all are `number` */
    uint64_t key;           /* !word */
    uint32_t ref;           /* @word: index into Graph.buffers; $word: Graph.scalars; &word: Graph.funcs */
    const char *text;       /* "word" */
} Attr;

/* The one integer of a list that holds one or none. `split` (1), `reverse` (0) and `causal` (0) are always there in a graph:
   the builder fills them in; without `lane` a load is of the current lane. */
static inline int64_t tg_attr_int(const Attr *attr, uint32_t list, int64_t if_none) {
    return attr != NULL && attr->list[list].count ? attr->list[list].at[0] : if_none;
}

typedef uint32_t LocsId; /* a set of source places; 0: none */

typedef struct Node {
    uint16_t op;
    uint16_t operand_count;
    TypeId type;
    uint32_t operands; /* first of operand_count in Func.operands */
    LocsId locs;
    Precision precision; /* graph@model, until the pass autocast */
    const Attr *attr;
} Node;

/* What a function gives: a named value, or a value that is stored to a persistent buffer when the function ends (all loads
   see the old value). */
typedef enum ResultKind { RESULT_VALUE, RESULT_STORE } ResultKind;
typedef struct Result {
    ResultKind kind;
    NodeId node;
    const char *name; /* RESULT_VALUE: field, export or kernel output; RESULT_STORE: NULL */
    uint32_t buffer;  /* RESULT_STORE: index into Graph.buffers */
    LocsId locs;
} Result;

/* What a function is for; the name says it too (objective, update, init, scalars, pre.0, micro, tail, eval.micro, fields,
   export.NAME, kernel.N). */
typedef enum FuncKind {
    FUNC_OBJECTIVE, /* model: the objective with `training` true; values: the fields; stores: states */
    FUNC_OBJECTIVE_EVAL, /* model: the same with `training` false */
    FUNC_UPDATE,    /* model: loads of parameters and optimizer states, gradient leaves; stores */
    FUNC_INIT,      /* stores every persistent buffer's first value */
    FUNC_SCALARS,   /* values: f64, one per computed scalar, in the order of Graph.scalars */
    FUNC_PRE,       /* per level of parameter-free batch sums */
    FUNC_MICRO,
    FUNC_TAIL,
    FUNC_EVAL_MICRO,
    FUNC_FIELDS,     /* what follows the batch sums, in training */
    FUNC_EVAL_FIELDS, /* the same over the whole validation set */
    FUNC_MONITOR,    /* after a validation, from the scalars val.FIELD and since_best.N: best.N, keep, plateau.N, stop */
    FUNC_COPIES,     /* stores every low copy of a parameter */
    FUNC_EXPORT,
    FUNC_KERNEL,    /* the body of a kernel: args are its inputs, values its outputs */
} FuncKind;

/* A value of FUNC_OBJECTIVE that is no field: a bool, true when no record of the batch counts in the loss. It is not there where
   that cannot be. */
#define TG_EMPTY_LOSS "empty.loss"

typedef struct FuncArg {
    const char *name;
    TypeId type;
    Loc loc;
} FuncArg;

typedef struct Func {
    FuncKind kind;
    const char *name;
    Vec(FuncArg) args;
    Vec(Node) nodes; /* nodes.at[0] is no node */
    Vec(NodeId) operands;
    Vec(Result) results;
} Func;

typedef enum BufferClass {
    BUFFER_PARAM,
    BUFFER_STATE,     /* a module's `state` */
    BUFFER_OPTIMIZER, /* optimizer.<path>.<state> */
    BUFFER_COPY,      /* the low copy of a parameter: copy.<path> */
    BUFFER_SUM,       /* accumulator of a batch sum over micro-batches: one copy per lane */
} BufferClass;

typedef struct Buffer {
    const char *name; /* its path: net.fc1.weight */
    TypeId type;      /* never has B */
    BufferClass class;
    bool frozen;      /* a parameter that is not trained */
    int64_t lanes;    /* BUFFER_SUM: copies; else 0 */
    Loc loc;
} Buffer;

typedef enum ScalarClass {
    SCALAR_BUILTIN,  /* step, total_steps, epoch; records: those in the batch over all ranks (in eval: in the set);
                        lane_start: 1 in the first micro-batch of a lane; val.FIELD (val.SET.FIELD of several sets) and since_best.N: of MONITOR; plateaus.N:
                        how often plateau.N had no new least in N + 1 validations */
    SCALAR_SETTING,  /* a run-time setting, named by its path: optimizer.lr.peak */
    SCALAR_COMPUTED, /* a value of the function `scalars` */
} ScalarClass;

/* A run-time scalar, f64. */
typedef struct Scalar {
    const char *name;
    ScalarClass class;
    double value; /* a setting's default */
    Loc loc;
} Scalar;

/* A field of the data block's record: an argument of objective and micro. */
typedef struct DataField {
    const char *name, *reader; /* reader: idx, csv, text, ... */
    TypeId type;               /* with B */
    const char *path;          /* as written in the source */
    const char *const *columns; /* csv */
    uint32_t column_count;
    const char *options; /* what else the reader is told: "name=value" lines; NULL: nothing */
    Loc loc;
} DataField;

typedef struct Split {
    const char *name; /* "" : all */
    double share;     /* 0 .. 1 */
} Split;

/* A data set that training or validation reads: fields in the order of the objective's arguments. */
typedef struct DataSet {
    const char *name; /* Digits */
    const char *as;   /* its name among several validation sets; NULL: the only one */
    const char *split; /* "train", or "" for all */
    Vec(DataField) fields;
    Vec(Split) splits;
    bool by_runs; /* splits of a text are runs */
    const char *by, *stratify; /* fields: records of one value stay together; shares hold for each value. NULL: none */
} DataSet;

/* A compile-time or run-time setting as the program's manifest reports it. */
typedef struct Setting {
    const char *name;
    const char *value;  /* as text */
    const char *origin; /* "digits.tg:39", "default", "--set" */
    bool runtime;       /* a program takes --set for it */
} Setting;

typedef struct Training {
    DataSet train; /* name NULL: none */
    Vec(DataSet) validate; /* fields of equal names and types; the order may differ */
    int64_t batch, micro, lanes;
    int64_t steps, epochs;   /* one of them is 0 */
    int64_t validate_every;  /* steps; 0: every epoch, or at most ten times if training is counted in steps */
    bool shuffle;
    double clip_norm;        /* 0: none */
    int32_t clip_scalar;     /* index into scalars of the setting clip_norm, or -1 */
    uint64_t seed;
    const char *loss;        /* name of the field that is minimised: "loss" */
    DType precision;         /* the low type of mixed precision, BF16 or F16; another: there is none */
    double loss_scale;       /* of f16: fixed, 1 for none; 0: it follows overflows */
} Training;

/* An instance whose functions made nodes. `said`: the user's words that keep it in f32, of itself or of what it is in; NULL: it is
   not kept so. */
typedef struct InstanceInfo {
    const char *path, *said;
} InstanceInfo;

typedef enum Level { LEVEL_MODEL, LEVEL_STEP, LEVEL_KERNEL } Level;

typedef struct Graph {
    Arena *arena;
    const Sources *sources;
    Types types;
    Level level;
    const char *path; /* of the .tg file */
    Vec(Func *) funcs;
    Vec(Buffer) buffers;
    Vec(Scalar) scalars;
    Vec(Setting) settings;
    Training training;
    Vec(Loc) loc_items;  /* sets of places as chains: a LocsId is the index of the first, loc_next of the others; 0 ends */
    Vec(uint32_t) loc_next;
    Vec(InstanceInfo) instances; /* at[0]: none. Texts of graphs do not have them */
    struct NameIndex *buffer_names, *scalar_names; /* by name, brought up to date when something is looked for */
    Map *strings; /* interned names: equal text is one pointer, also between a graph and those made like it */
} Graph;

Graph *tg_graph_new(Arena *arena, const Sources *sources, Level level);
/* A new graph with the same sources, types, buffers, scalars, settings, training and places, and no functions: where a pass
   begins. TypeIds, LocsIds, buffer and scalar indices stay valid. Names are shared: `graph` must outlive the new one. */
Graph *tg_graph_like(Arena *arena, const Graph *graph, Level level);
Func *tg_func_new(Graph *graph, FuncKind kind, const char *name);
Func *tg_func_find(const Graph *graph, FuncKind kind, const char *name); /* name NULL: the first of the kind */
bool tg_has_batch(const Training *training); /* batch, micro and lanes are sizes: a graph may name none, or others */
bool tg_is_mixed(const Training *training);
bool tg_is_loss(const Graph *graph, const Result *result); /* the value that is minimised; a graph may name none */
const char *tg_intern(Graph *graph, const char *text);

static inline const Node *tg_node(const Func *func, NodeId id) { return &func->nodes.at[id]; }
static inline NodeId tg_operand(const Func *func, const Node *node, uint32_t i) {
    return func->operands.at[node->operands + i];
}
static inline const Type *tg_node_type(const Graph *graph, const Func *func, NodeId id) {
    return tg_type_of(&graph->types, func->nodes.at[id].type);
}

int32_t tg_buffer_find(const Graph *graph, const char *name); /* -1: none */
int32_t tg_scalar_find(const Graph *graph, const char *name);
uint32_t tg_buffer_add(Graph *graph, Buffer buffer);
uint32_t tg_scalar_add(Graph *graph, Scalar scalar); /* the existing one if the name is known */

uint32_t tg_instance(Graph *graph, const char *path); /* the index of an instance, for Loc.instance */

/* Sets of source places, kept through every pass. Of one place that stands in several sets the first instance stays. */
LocsId tg_locs_one(Graph *graph, Loc loc);
LocsId tg_locs_union(Graph *graph, LocsId a, LocsId b); /* at most 8 places are kept */
Loc tg_locs_first(const Graph *graph, LocsId locs);
/* Writes up to `max` places to `out`, returns how many. */
uint32_t tg_locs_list(const Graph *graph, LocsId locs, Loc *out, uint32_t max);

/* Uses of each node: uses.at[first[n] .. first[n + 1]) are the nodes that read node n; result_uses counts Func.results. */
typedef struct Uses {
    uint32_t *first;
    NodeId *at;
    uint32_t *result_uses;
} Uses;
Uses tg_uses(Arena *arena, const Func *func);

/* Text form: print -> parse -> print is the identity. The parser reports through `diags`. */
void tg_graph_print(Str *to, const Graph *graph);
void tg_graph_print_plain(Str *to, const Graph *graph); /* without source places */
void tg_func_print(Str *to, const Graph *graph, const Func *func); /* without source places */
void tg_node_print(Str *to, const Graph *graph, const Func *func, NodeId node); /* one line, without its end */
TG_CHECKED Status tg_graph_parse(Arena *arena, Diags *diags, Sources *sources, const char *path, const char *text,
                                 size_t length, Graph **graph);

/* Rules of the graph's level; the first violation is reported as an internal error with the node's text. */
TG_CHECKED Status tg_graph_verify(const Graph *graph, Diags *diags);
/* The same of a text that someone wrote: TG_MODEL. */
TG_CHECKED Status tg_graph_verify_input(const Graph *graph, Diags *diags);

#endif
