/* Values that a program computes with while it is compiled, and the evaluator's state. Internal to lower*.c and
   builtins*.c.

   A value that exists only at run time is a TensorValue: a node of the function that is being built. Everything else is
   a compile-time value. VAL_ERROR means "reported already": it passes through every operation silently. */
#ifndef TG_VALUE_H
#define TG_VALUE_H

#include "frontend/ast.h"
#include "ir/build.h"

typedef enum ValueKind {
    VAL_ERROR,
    VAL_NONE,
    VAL_ABSENT, /* a member whose guard is false */
    VAL_INT,    /* `batch`: times B */
    VAL_FLOAT,
    VAL_BOOL,
    VAL_STRING,
    VAL_LIST, /* lists and tuples */
    VAL_RECORD,
    VAL_TENSOR,
    VAL_BUFFER, /* a parameter or a state: reading its name gives a TENSOR */
    VAL_DTYPE,  /* what a type variable is bound to */
    VAL_FN,
    VAL_LAMBDA,
    VAL_BUILTIN,
    VAL_MODULE,
    VAL_INSTANCE,
    VAL_OPTIMIZER,          /* the declaration */
    VAL_OPTIMIZER_INSTANCE, /* with its arguments */
    VAL_DATA,
    VAL_UNIT, /* an imported file under a name */
} ValueKind;

typedef struct Value Value;
typedef struct Env Env;
typedef struct Instance Instance;

/* How a number that stems from run-time settings is computed when the program runs. */
typedef struct RuntimeForm {
    const Func *func;
    NodeId node;
    const char *const *settings; /* names of those it depends on */
    uint32_t setting_count;
} RuntimeForm;

typedef struct TensorValue {
    const Func *func;
    NodeId node;
    bool scalar;    /* f64, computed from run-time scalars alone: takes the other side's type */
    bool is_buffer; /* exactly the value of `buffer` */
    uint32_t buffer;
    const char *names[TG_MAX_RANK]; /* of the dimensions, NULL where unknown */
} TensorValue;

typedef struct ListValue {
    Value *at;
    uint32_t count;
} ListValue;

typedef struct RecordValue {
    const char **names;
    Value *values;
    uint32_t count;
} RecordValue;

/* A declaration with the scope that it stands in. */
typedef struct Closure {
    const Ast *ast;
    Env *env;
    Instance *self; /* for the functions of a module */
} Closure;

struct Instance {
    const Closure *module;
    Env *arguments, *members;
    const char *path;
    Precision precision; /* of what its functions compute; BY_CLASS: as around it */
    const PrecisionRule *rule; /* of --autocast, which goes before marks; NULL: none */
};

typedef struct DataValue {
    const Closure *declaration;
    Env *arguments;
    const char *split; /* "" for all */
} DataValue;

struct Value {
    uint8_t kind;
    bool batch;
    union {
        int64_t integer;
        double number;
        bool truth;
        const char *text;
        ListValue *list;
        RecordValue *record;
        TensorValue *tensor;
        uint32_t buffer; /* of VAL_BUFFER, index into Graph.buffers */
        DType dtype;
        const Closure *closure;
        uint32_t builtin;
        Instance *instance; /* also of VAL_OPTIMIZER_INSTANCE */
        DataValue *data;
        Env *unit;
    };
    const RuntimeForm *runtime; /* of INT, FLOAT, BOOL; NULL: known when compiling */
};

typedef enum BindingState { BOUND, LAZY, EVALUATING } BindingState;

typedef struct Binding {
    const char *name;
    Value value;
    Loc loc;          /* where the value came from */
    const char *role; /* "argument", "dimension", ...: for messages */
    BindingState state;
    const Ast *item;  /* LAZY: CONST or BIND */
    const Func *func; /* of the tensors in it */
    bool has_tensor;
    bool compile_time_setting; /* a `const`, named by --set */
} Binding;

struct Env {
    Env *parent;
    Vec(Binding *) names;
    Vec(Env *) imports; /* of files: those imported without a name */
};

/* A call of an instance that is being evaluated, as random numbers see it. */
typedef struct Frame Frame;
struct Frame {
    uint64_t key;     /* of random numbers: hash(instance path, call ordinal) */
    uint32_t ordinal; /* the next in this body */
};

/* The function of the graph that is being built. */
typedef struct Stored {
    NodeId node;
    Loc loc;
} Stored;

/* A mean that the program gives as `over(sum, count)`: it is over nothing where the count is 0. */
typedef struct Over {
    NodeId mean, count;
} Over;

typedef struct FuncState {
    Func *func;
    Builder builder;
    bool training, regularise;
    Stored *stored; /* per buffer: what `:=` gave it */
    uint32_t stored_count;
    Map calls; /* instance path -> calls so far */
    Vec(Over) overs;
} FuncState;

/* Where the first value of a buffer comes from. */
typedef struct Initial {
    uint32_t buffer;
    const Ast *ast;
    Env *env;
} Initial;

typedef struct UnitEnv {
    const Unit *unit;
    Env *env;
} UnitEnv;

typedef struct Lower {
    Arena *arena;
    Diags *diags;
    const Sources *sources;
    const Unit *unit, *std;
    const LowerOptions *options;
    bool *set_used; /* per options->sets */
    bool *rule_used; /* per options->precision_rules */

    Graph *graph;
    Env *std_env, *file_env;
    Vec(UnitEnv) units;
    Vec(Initial) initials;
    FuncState *func; /* where nodes go */
    Frame *frame;
    uint32_t instance;              /* whose function is evaluated: index into the graph's instances, 0: none */
    Loc user_loc;                   /* of the innermost expression of the user's files */
    const char *path;               /* where instances made now hang, or NULL */
    const char *setting;            /* path of the setting that is evaluated, or NULL */
    const Type *initial;            /* type that an initialiser must give, or NULL */
    uint32_t depth;                 /* of calls */
    uint32_t eval_depth;            /* of expressions, over all calls */
    uint32_t trace;                 /* notes of calls below the last error */
    const Ast *last_trace;          /* the call that was looked at last for them */
    bool shown;                     /* the last error was printed, so may its notes be */
    bool restart;                   /* a run-time setting turned out to be needed now: begin again */
    Vec(const char *) compile_time; /* such settings, over all restarts */
    Vec(const char *) known_settings;
    Map averages; /* parameter's buffer -> 1 + buffer of its average, which validation and exports read */
    Map assigned; /* buffers that the objective updates -> 1 + index into assigned_locs */
    Vec(Loc) assigned_locs;
    Map reported; /* places and texts of diagnostics, over all restarts */
} Lower;

/* ---- values ---- */

static inline Value lower_error_value(void) { return (Value){.kind = VAL_ERROR}; }
static inline Value lower_none(void) { return (Value){.kind = VAL_NONE}; }
static inline Value lower_int(int64_t integer) { return (Value){.kind = VAL_INT, .integer = integer}; }
static inline Value lower_float(double number) { return (Value){.kind = VAL_FLOAT, .number = number}; }
static inline Value lower_bool(bool truth) { return (Value){.kind = VAL_BOOL, .truth = truth}; }
static inline Value lower_string(const char *text) { return (Value){.kind = VAL_STRING, .text = text}; }
static inline bool lower_is_error(Value value) { return value.kind == VAL_ERROR; }
static inline bool lower_is_number(Value v) { return (v.kind == VAL_INT && !v.batch) || v.kind == VAL_FLOAT; }
static inline double lower_number(Value v) { return v.kind == VAL_INT ? (double)v.integer : v.number; }
/* A tensor proper, no run-time scalar that takes the other side's type. */
static inline bool lower_is_tensor(Value v) { return v.kind == VAL_TENSOR && !v.tensor->scalar; }
static inline bool lower_is_scalar(Value v) { return v.kind == VAL_TENSOR && v.tensor->scalar; }
static inline Builder *lower_builder(Lower *l) { return &l->func->builder; }

Value lower_list(Lower *l, const Value *values, uint32_t count);
/* `names_from`: whose names of dimensions to take when the ranks agree, or NULL. Node 0 gives VAL_ERROR. */
Value lower_tensor(Lower *l, NodeId node, const TensorValue *names_from);
Value lower_scalar(Lower *l, NodeId node);
const Type *lower_type(const Lower *l, Value tensor);
const char *lower_kind_text(Lower *l, Value value); /* "an integer", "f32[B, 64]", ... */
/* The value with names of dimensions where they are known: "f32[B, T=64]". */
const char *lower_show(Lower *l, Value value);
const char *lower_type_text(Lower *l, const Type *type);
bool lower_has_tensor(Value value);
bool lower_same(Value x, Value y); /* equality of compile-time values */

/* ---- diagnostics ---- */

bool lower_in_std(const Lower *l, Loc loc);
/* Reports once per place and text; gives VAL_ERROR. An error inside the library is shown at the user's call. */
Value lower_fail(Lower *l, Loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
void lower_note(Lower *l, Loc loc, const char *format, ...) __attribute__((format(printf, 3, 4)));
void lower_warn(Lower *l, Warning warning, Loc loc, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- scopes ---- */

Env *lower_env(Lower *l, Env *parent);
Binding *lower_bind(Lower *l, Env *env, const char *name, Value value, Loc loc, const char *role);
Binding *lower_find_here(const Env *env, const char *name);
Binding *lower_find(const Env *env, const char *name);
/* The value of a binding: evaluates what is lazy. `env` is the scope it stands in. */
Value lower_binding_value(Lower *l, Env *env, Binding *binding, Loc use);
Value lower_name(Lower *l, Env *env, const char *name, Loc loc);
/* Without an error for what is not there (VAL_ABSENT), buffers not read. */
Value lower_peek(Lower *l, Env *env, const Ast *ast);

/* ---- evaluation ---- */

Value lower_eval(Lower *l, Env *env, const Ast *ast);
/* The compile-time truth of a condition; on error false and `*ok` false. */
bool lower_condition(Lower *l, Env *env, const Ast *ast, bool *ok);
/* A number that the compiler must know: forces a run-time setting to be a compile-time one. */
bool lower_force(Lower *l, Value *value);
/* Runs a block; `*result` is what `return` gave or VAL_NONE. False after an error. */
bool lower_block(Lower *l, Env *env, const Ast *block, Value *result, bool *returned);
/* Binds the NAMES of a binding, `for` or comprehension to a value (several: its elements). */
bool lower_bind_names(Lower *l, Env *env, const Ast *names, Value value, Loc loc, const char *role);
bool lower_iterate(Lower *l, Env *env, const Ast *iterated, ListValue *items);

/* ---- LowerOptions.see (lower_see.c) ---- */

void lower_see_statement(Lower *l, Env *env, const Ast *statement, Value result);
void lower_see_arguments(Lower *l, const Closure *closure, const Env *arguments);

/* ---- calls (lower_call.c) ---- */

Value lower_call(Lower *l, Env *env, const Ast *call);
/* Calls a function with values. */
Value lower_apply(Lower *l, Value callee, const Value *arguments, uint32_t count, const Ast *at);
/* Calls a function whose arguments are bound in `arguments` already. */
Value lower_call_bound(Lower *l, const Closure *closure, Env *arguments, const Ast *at);
Value lower_shape_list(Lower *l, const Type *type);
const char *lower_subpath(Lower *l, const char *path, const char *name);
/* The arguments of a call, bound to PARAMS in `target`; false after an error. */
bool lower_arguments(Lower *l, Env *env, const Ast *call, const Ast *params, Env *target, const char *callee);
const char *lower_callee_name(Lower *l, const Closure *closure);

/* ---- types in the source (lower_types.c) ---- */

/* A type whose dimensions are values in scope; `batched` puts B in front. False after an error. */
bool lower_declared_type(Lower *l, Env *env, const Ast *ast, bool batched, Type *type);
/* Checks a value against a type of a signature and binds the dimension names that are new in `env`. `module_args` holds
   the module's arguments. Compound dimensions are left to a second call with `compound`. The value may be converted. */
typedef struct Signature {
    Env *env;         /* where new dimensions are bound */
    Env *module;      /* the module's arguments, or NULL */
    const char *what; /* "argument `x` of `f`" */
    Loc loc;
    bool compound;
    bool result;
} Signature;
bool lower_match(Lower *l, const Signature *signature, const Ast *type, Value *value);
/* Sizes within 1 .. 2^31 - 1, at most TG_MAX_RANK, product below 2^63. */
bool lower_check_type(Lower *l, Loc loc, const Type *type);
/* A list of ints, or one, as dimensions. */
bool lower_dims(Lower *l, Loc loc, Value value, Type *type);

/* ---- arithmetic (lower_operand.c, lower_arith.c, lower_contract.c) ---- */

/* Appends a node after asking the shape rule; reports at `at` and gives 0 when it says no. */
NodeId lower_emit(Lower *l, const Ast *at, Op op, const Attr *attr, const NodeId *operands, uint32_t count,
                  TypeId wanted);
void lower_at(Lower *l, const Ast *at); /* sets the places of the nodes that follow */
TypeId lower_scalar_type(Lower *l, DType dtype);
/* A number whose value is known only when the program runs. */
bool lower_is_runtime(Lower *l, Value value);
/* The f64 node of a number or a run-time scalar. */
NodeId lower_scalar_node(Lower *l, const Ast *at, Value value);
Value lower_unary(Lower *l, const Ast *at, Op op, Value x);
Value lower_binary(Lower *l, const Ast *at, Op op, Value x, Value y);
Value lower_operator(Lower *l, const Ast *at, int op, Value x, Value y);
Value lower_power(Lower *l, const Ast *at, Value x, Value y);
Value lower_matmul(Lower *l, const Ast *at, Value x, Value y);
Value lower_cast(Lower *l, const Ast *at, Value x, DType dtype);
/* A number, run-time scalar or list as a node of this element type; tensors must have it. 0 after an error. */
NodeId lower_operand(Lower *l, const Ast *at, Value value, DType dtype);
/* As above, broadcast to the shape of `type` (its dtype too). */
NodeId lower_filled(Lower *l, const Ast *at, Value value, const Type *type);
/* A list becomes a tensor; anything else that is none is an error that names `what` takes it. */
bool lower_as_tensor(Lower *l, const Ast *at, Value *x, const char *what);
/* Operands as tensors of one type; numbers take the other's. False after an error. */
bool lower_unify(Lower *l, const Ast *at, Value *values, uint32_t count, NodeId *nodes, TensorValue *names);
/* The shape that the tensors among `values` broadcast to, and the names of its dimensions. */
bool lower_joined_shape(Lower *l, const Ast *at, const Value *values, uint32_t count, Type *shape, TensorValue *names);
NodeId lower_reduce(Lower *l, const Ast *at, Op op, NodeId x, const bool *axes);
NodeId lower_dot(Lower *l, const Ast *at, NodeId x, NodeId y, const int64_t *batch_x, const int64_t *batch_y,
                 uint32_t batch_count, int64_t contract_x, int64_t contract_y, NodeId bias);

/* ---- shapes (lower_shape.c) ---- */

Value lower_index(Lower *l, Env *env, const Ast *ast);
Value lower_rearrange(Lower *l, Env *env, const Ast *call, Value x, const Ast *pattern);
/* (lower_einsum.c) */
Value lower_einsum(Lower *l, Env *env, const Ast *call, const ListValue *operands, const Ast *pattern);
NodeId lower_reshape(Lower *l, const Ast *at, NodeId x, const Type *shape);

/* ---- modules (lower_module.c) ---- */

Value lower_instantiate(Lower *l, Env *env, const Ast *call, const Closure *module);
Value lower_mark(Lower *l, Env *env, const Ast *mark);
Value lower_read_buffer(Lower *l, uint32_t buffer, Loc loc);
bool lower_assign(Lower *l, Env *env, const Ast *assign);
bool lower_initial(Lower *l, const Initial *initial);
void lower_store(Lower *l, uint32_t buffer, NodeId node, Loc loc);

/* ---- settings, data, training (lower_train.c, lower_data.c, lower_settings.c) ---- */

const char *lower_origin(Lower *l, Loc loc);
/* --set for this name: its text, or NULL. Marks it as used and the name as known. */
const char *lower_set(Lower *l, const char *name);
Value lower_set_value(const char *text);
void lower_record_setting(Lower *l, const char *name, Value value, const char *origin, bool runtime);
/* Evaluates the value of a setting: whole literals become run-time scalars, arguments are settings of their own. */
Value lower_setting(Lower *l, Env *env, const Ast *ast, const char *path, bool is_default);
Value lower_runtime_scalar(Lower *l, const char *name, ScalarClass class, double value, Loc loc);
bool lower_settings_known(Lower *l);

Value lower_data_call(Lower *l, Env *env, const Ast *call, const DataValue *data);
bool lower_data_set(Lower *l, const DataValue *data, DataSet *set);
bool lower_train(Lower *l, const Ast *train);
/* Gives the objective that is being built the value TG_EMPTY_LOSS, if its loss can be over nothing. */
void lower_empty_loss(Lower *l);
/* `average`: NULL if the program keeps none. */
bool lower_update(Lower *l, const Ast *optimizer, const Ast *average);
/* `stop`, `keep`: NULL where the program has none. */
bool lower_monitor(Lower *l, const Ast *stop, const Ast *keep);
bool lower_export(Lower *l, const Ast *fn, Env *env);

/* ---- functions of the graph (lower.c) ---- */

FuncState *lower_func_begin(Lower *l, FuncKind kind, const char *name, bool training, bool regularise);
bool lower_func_end(Lower *l, FuncState *state);

/* ---- builtins ---- */

typedef Value BuiltinRule(Lower *l, Env *env, const Ast *call, Value *arguments, int detail);
typedef struct Builtin {
    const char *name, *parameters;
    BuiltinRule *rule;
    int detail;
} Builtin;
int lower_builtin(const char *name); /* -1: none */
Value lower_builtin_value(Lower *l, uint32_t builtin, Loc loc);
Value lower_builtin_call(Lower *l, Env *env, const Ast *call, uint32_t builtin);
Value lower_builtin_apply(Lower *l, Env *env, const Ast *at, uint32_t builtin, const Value *arguments, uint32_t count);
const char *lower_builtin_name(uint32_t builtin);
uint32_t lower_builtin_count(void);

/* ---- precision (lower_precision.c) ---- */

/* What --autocast says of a new instance. */
void lower_rule_precision(Lower *l, Instance *instance);
/* precision(f32) after an instance or a list of them. */
void lower_mark_f32(Value value);
/* f32(x) of an f32: mixed precision computes it in f32. The library's own casts say nothing. */
void lower_mark_value(Lower *l, const Ast *at, Value x);
/* Around a call: `self` is the instance whose function it is, or NULL. */
Precision lower_enter_precision(Lower *l, const Instance *self);
/* Nodes are made by its functions from here on; gives whose they were. */
uint32_t lower_enter_instance(Lower *l, const Instance *self);
void lower_leave_precision(Lower *l, Precision outer);
/* Reports rules of --autocast that named no instance; true: there are none. */
bool lower_check_rules(Lower *l);

#endif
