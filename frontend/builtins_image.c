/* Operations that are not built yet. `tgc check` knows their shapes, so that a model that uses them can be checked; compiling it
   says so at the line. */
#include "frontend/value.h"

typedef enum Unbuilt { UNBUILT_CONVOLUTION, UNBUILT_POOLING, UNBUILT_AUGMENTATION, UNBUILT_PER_MICRO } Unbuilt;

/* A compile-time integer of at least `least`; `if_none` where the argument is left out. */
static bool whole_number(Lower *l, const Ast *call, Value value, const char *name, int64_t least, int64_t if_none, int64_t *out) {
    *out = if_none;
    if (value.kind == VAL_NONE)
        return true;
    if (!lower_force(l, &value))
        return false;
    if (value.kind != VAL_INT || value.batch || value.integer < least) {
        lower_fail(l, call->loc, "'%s' is a whole number of at least %lld, not %s", name, (long long)least,
                   lower_kind_text(l, value));
        return false;
    }
    *out = value.integer;
    return true;
}

/* [B, Y, X, C], the one form of images. */
static bool is_image(Lower *l, const Ast *call, Value image) {
    const Type *type = lower_type(l, image);
    if (type->rank == 4)
        return true;
    lower_fail(l, call->loc, "images are [B, rows, columns, channels], not %s", lower_show(l, image));
    return false;
}

/* Rows and columns after windows of `window` in steps of `stride` over `pad` more on each side. */
static bool slide(Lower *l, const Ast *call, Type *type, const int64_t window[2], int64_t stride, const int64_t pad[2]) {
    for (int i = 0; i < 2; i++) {
        int64_t room = type->dims[1 + i].size + 2 * pad[i] - window[i];
        if (room < 0) {
            lower_fail(l, call->loc, "a window of %lld does not fit into %lld %s", (long long)window[i],
                       (long long)type->dims[1 + i].size, i ? "columns" : "rows");
            return false;
        }
        type->dims[1 + i].size = room / stride + 1;
    }
    return true;
}

static bool convolved(Lower *l, const Ast *call, Value *arguments, Type *type) {
    if (!lower_as_tensor(l, call, &arguments[1], "conv") || !is_image(l, call, arguments[0]))
        return false;
    const Type *weight = lower_type(l, arguments[1]);
    if (weight->rank != 4 || weight->dims[3].size != type->dims[3].size) {
        lower_fail(l, call->loc, "a convolution of %s needs weights [out, rows, columns, %lld], not %s",
                   lower_show(l, arguments[0]), (long long)type->dims[3].size, lower_show(l, arguments[1]));
        return false;
    }
    int64_t window[2] = {weight->dims[1].size, weight->dims[2].size}, stride, pad;
    if (!whole_number(l, call, arguments[2], "stride", 1, 1, &stride) || !whole_number(l, call, arguments[3], "pad", 0, -1, &pad))
        return false;
    int64_t pads[2] = {pad < 0 ? (window[0] - 1) / 2 : pad, pad < 0 ? (window[1] - 1) / 2 : pad};
    type->dims[3] = weight->dims[0];
    return slide(l, call, type, window, stride, pads);
}

static bool pooled(Lower *l, const Ast *call, Value *arguments, Type *type) {
    int64_t window, stride, pad;
    if (!is_image(l, call, arguments[0]) || !whole_number(l, call, arguments[1], "window", 1, 1, &window) ||
        !whole_number(l, call, arguments[2], "stride", 1, window, &stride) ||
        !whole_number(l, call, arguments[3], "pad", 0, 0, &pad))
        return false;
    return slide(l, call, type, (int64_t[]){window, window}, stride, (int64_t[]){pad, pad});
}

Value builtin_unbuilt(Lower *l, Env *env, const Ast *call, Value *arguments, int detail) {
    static const char *const what[] = {"convolution", "pooling", "augmentation of images", "a value per micro-batch"};
    (void)env;
    if (!l->options->check_only)
        return lower_fail(l, call->loc, "%s is not built yet", what[detail]);
    if (!lower_as_tensor(l, call, &arguments[0], what[detail]))
        return lower_error_value();
    Type type = *lower_type(l, arguments[0]);
    bool right = detail == UNBUILT_CONVOLUTION    ? convolved(l, call, arguments, &type)
                 : detail == UNBUILT_POOLING      ? pooled(l, call, arguments, &type)
                 : detail == UNBUILT_AUGMENTATION ? is_image(l, call, arguments[0])
                                                  : true;
    if (!right)
        return lower_error_value();
    lower_at(l, call);
    return lower_tensor(l, tg_const(lower_builder(l), tg_type(&l->graph->types, &type), 0), arguments[0].tensor);
}
