#include "ir/graph.h"

#include <string.h>

const OpInfo *tg_op(Op op) {
    static const OpInfo infos[] = {
#define OP(name, min, max, levels, attrs, shape, eval, grad, cast, axes, fuse, cost, emit, gen)                        \
    {#name, min, max, levels, attrs, CAST_##cast, FUSE_##fuse},
#include "ir/ops.def"
#undef OP
    };
    return &infos[op];
}

Op tg_op_named(const char *name) {
    for (int op = 0; op < OP_COUNT; op++)
        if (strcmp(tg_op((Op)op)->name, name) == 0)
            return (Op)op;
    return OP_COUNT;
}

const char *tg_func_kind_name(int kind) {
    static const char *const names[] = {
        [FUNC_OBJECTIVE] = "objective",
        [FUNC_OBJECTIVE_EVAL] = "objective_eval",
        [FUNC_UPDATE] = "update",
        [FUNC_INIT] = "init",
        [FUNC_SCALARS] = "scalars",
        [FUNC_PRE] = "pre",
        [FUNC_MICRO] = "micro",
        [FUNC_TAIL] = "tail",
        [FUNC_EVAL_MICRO] = "eval_micro",
        [FUNC_FIELDS] = "fields",
        [FUNC_EVAL_FIELDS] = "eval_fields",
        [FUNC_MONITOR] = "monitor",
        [FUNC_COPIES] = "copies",
        [FUNC_EXPORT] = "export",
        [FUNC_KERNEL] = "kernel",
    };
    return kind <= FUNC_KERNEL ? names[kind] : NULL;
}

const char *tg_buffer_class_name(int class) {
    static const char *const names[] = {"param", "state", "optimizer", "copy", "sum"};
    return class <= BUFFER_SUM ? names[class] : NULL;
}

const char *tg_scalar_class_name(int class) {
    static const char *const names[] = {"builtin", "setting", "computed"};
    return class <= SCALAR_COMPUTED ? names[class] : NULL;
}

const char *tg_precision_name(int precision) {
    static const char *const names[] = {"by_class", "f32", "low"};
    return precision < PRECISION_COUNT ? names[precision] : NULL;
}

const char *tg_level_name(int level) {
    static const char *const names[] = {"model", "step", "kernel"};
    return level <= LEVEL_KERNEL ? names[level] : NULL;
}
