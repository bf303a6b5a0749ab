/* The pipeline, and why it has this order.

   autocast comes first, on what the user wrote, so that gradients have the types of what they are gradients of. simplify is next: autodiff then differentiates dots that have absorbed their transposes, so that their gradients are dots
   without copies too. autodiff adds the gradients to the objective. optimizer follows, since clipping and the gate read
   gradients. A second simplify cleans what the gradient rules left (transposed results, double casts). chunk must see forward and
   backward of a head together, and a sum over slices as one batch sum: so it stands behind them and before batch. batch cuts the joint
   graph into the step's functions: it must see forward and backward together, to know which sums must be known before which
   rows. copies follows at once, while a weight's cast is still one node. attention stays one node until then, so that its
   gradients share what they have in common in one function; merge follows, which puts the dots of a loop's steps together: it must see a function's dots of both directions. clean simplifies what
   both left and drops what no function needs after the cut. recompute follows, when micro has all its dots and no value too many: what it copies for the
   backward half would be shared again by the passes before. layout makes operands of dots regular while a
   transpose is still a node that fusion can place. fuse is last: a kernel never crosses a function. */
#include "passes/passes.h"

#include <string.h>

static const char *const order[] = {"autocast", "simplify", "autodiff", "optimizer", "simplify", "chunk", "batch", "copies", "attention", "merge", "clean", "recompute", "layout", "fuse"};

enum { ORDER = sizeof order / sizeof *order };

static const char *joined(Arena *arena, uint32_t first, uint32_t end) {
    Str names = tg_str(arena);
    for (uint32_t i = first; i < end; i++)
        tg_str_printf(&names, "%s%s", i > first ? "," : "", order[i]);
    return names.text;
}

const char *tg_phases_from(Arena *arena, Level level) {
    uint32_t first = 0;
    while (first < ORDER && tg_pass(tg_pass_named(order[first]))->from != level)
        first++;
    return joined(arena, first, ORDER);
}

Status tg_phases_run(PassContext *context, const PassOptions *options, const char *until, const Graph *in, Graph **out) {
    uint32_t last = ORDER - 1;
    for (uint32_t i = last; until && i > 0 && strcmp(order[last], until) != 0; i--)
        last = i - 1;
    return tg_passes_run(context, options, joined(context->arena, 0, last + 1), in, out);
}
