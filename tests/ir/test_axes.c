/* The axes rule of each kind of op, and costs that follow from it. */
#include "ir/axes.h"
#include "ir/cost.h"
#include "tests/ir/support.h"

#include <string.h>

/* "r: 0 1 | 0: 0 1": the parts of each dimension of the result and of the operands; "3*2" are two parts, "w4" is whole,
   "o1+2x3" the axis 1 at offset 2 and stride 3. */
static const char *shown(World *w, const Graph *graph, const Func *func, NodeId node) {
    const Axes *axes = tg_node_axes(&w->arena, graph, func, node);
    Str text = tg_str(&w->arena);
    for (uint32_t v = 0; v < axes->value_count; v++) {
        NodeId id = v == 0 ? node : tg_operand(func, tg_node(func, node), v - 1);
        tg_str_printf(&text, v ? " |" : "");
        for (int d = 0; d < tg_node_type(graph, func, id)->rank; d++) {
            const DimParts *parts = tg_dim_parts(axes, v, (uint32_t)d);
            tg_str_printf(&text, " ");
            if (parts->count == 0)
                tg_str_printf(&text, "-");
            for (int i = 0; i < parts->count; i++) {
                Part part = parts->parts[i];
                tg_str_printf(&text, "%s%s%u", i ? "*" : "",
                              part.kind == PART_WHOLE    ? "w"
                              : part.kind == PART_OFFSET ? "o"
                                                         : "",
                              part.axis);
                if (part.kind == PART_OFFSET)
                    tg_str_printf(&text, "%+lldx%lld", (long long)part.offset, (long long)part.stride);
            }
        }
    }
    tg_str_printf(&text, " ;");
    for (uint32_t i = 0; i < axes->axis_count; i++)
        tg_str_printf(&text, " %s%lld%s", axes->axes[i].size.batch ? "B" : "", (long long)axes->axes[i].size.size,
                      axes->axes[i].role == AXIS_REDUCED ? "r"
                      : axes->axes[i].role == AXIS_WHOLE ? "w"
                                                         : "");
    return text.text;
}

static const struct {
    const char *args, *op, *axes;
    double flops, bytes; /* with 10 rows */
} rows[] = {
    {"f32[B, 4];f32[B, 4]", "f32[B, 4] = add %1, %2", " 0 1 | 0 1 | 0 1 ; B1 4", 40, 480},
    {"f32[2, 3]", "f32[3, 2] = transpose %1 perm=[1, 0]", " 0 1 | 1 0 ; 3 2", 0, 48},
    {"f32[1, 3]", "f32[B, 4, 3] = broadcast %1 dims=[1, 2]", " 0 1 2 | - 2 ; B1 4 3", 0, 492},
    {"f32[B, 8, 8]", "f32[B*64] = reshape %1", " 0*1*2 | 0 1 2 ; B1 8 8", 0, 5120},
    {"f32[B, 6]", "f32[B, 2, 3] = reshape %1", " 0 1 2 | 0 1*2 ; B1 2 3", 0, 480},
    {"f32[2, 6]", "f32[4, 3] = reshape %1", " 0*1 2 | 0 1*2 ; 2 2 3", 0, 96},
    {"f32[6, 4]", "f32[4, 6] = reshape %1", " w0 w1 | w2 w3 ; 4w 6w 6w 4w", 0, 192},
    {"f32[1, B, 1]", "f32[B] = reshape %1", " 0 | - 0 - ; B1", 0, 80},
    {"f32[10]", "f32[4] = slice %1 start=1 limit=9 stride=2", " 0 | o0+1x2 ; 4", 0, 56},
    {"f32[3, 2]", "f32[8, 2] = pad %1 low=[1, 0] high=[2, 0] interior=[1, 0] value=0", " o0+1x2 1 | 0 1 ; 3 2", 0, 88},
    {"f32[2, 3];f32[2, 4]", "f32[2, 7] = concat %1, %2 axis=1", " 0 1 | 0 o1+0x1 | 0 o1-3x1 ; 2 7", 0, 112},
    {"f32[B, 3]", "f32[B] = reduce_sum %1 axes=1", " 0 | 0 1 ; B1 3r", 30, 160},
    {"f32[B, 3]", "i32[B] = argmax %1 axis=1", " 0 | 0 1 ; B1 3w", 30, 160},
    {"f32[B, 3]", "f32[B, 3] = cumsum %1 axis=1", " 0 1 | 0 w1 ; B1 3w", 30, 240},
    {"f32[B, 64];f32[8, 64];f32[8]", "f32[B, 8] = dot %1, %2, %3 contract_a=1 contract_b=1",
     " 1 2 | 1 0 | 2 0 | 2 ; 64r B1 8", 10240, 4960},
    {"f32[50, 8];i32[B, 4]", "f32[B, 4, 8] = take %1, %2 axis=0", " 1 2 3 | w0 3 | 1 2 ; 50w B1 4 8", 0, 3040},
    {"i32[B, 4];f32[B, 4, 8]", "f32[50, 8] = scatter_add %1, %2 axis=0", " w0 3 | 1 2 | 1 2 3 ; 50w B1r 4r 8", 320, 3040},
    {"f32[B, 4, 7, 8];f32[B, 2, 9, 8];f32[B, 2, 9, 8]", "f32[B, 4, 7, 8] = attention %1, %2, %3 causal=0 scale=1",
     " 0 1*2 3 5 | 0 1*2 3 5 | 0 1 4 5 | 0 1 4 5 ; B1 2 2 7 9w 8w", 80640, 29440},
};

static void test_rules(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        World w;
        world_init(&w, LEVEL_STEP);
        Str text = tg_str(&w.arena);
        NodeId count = 0;
        tg_str_printf(&text, "graph @step { func @micro micro() {\n");
        for (const char *at = rows[i].args; *at != '\0';) {
            size_t length = strcspn(at, ";");
            tg_str_printf(&text, "%%%u : %.*s = const value=2\n", ++count, (int)length, at);
            at += length + (at[length] == ';');
        }
        tg_str_printf(&text, "%%r : %s\n } }\n", rows[i].op);
        Graph *graph = parsed(&w, text.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
        const Func *func = graph->funcs.at[0];
        CU_ASSERT_STRING_EQUAL(shown(&w, graph, func, count + 1), rows[i].axes);
        if (strcmp(shown(&w, graph, func, count + 1), rows[i].axes) != 0)
            printf("%s: %s\n", rows[i].op, shown(&w, graph, func, count + 1));
        CU_ASSERT_EQUAL(tg_node_flops(graph, func, count + 1, 10), rows[i].flops);
        CU_ASSERT_EQUAL(tg_node_bytes(graph, func, count + 1, 10), rows[i].bytes);
        world_deinit(&w);
    }
}

int main(void) {
    static const TestCase cases[] = {{"rules and costs", test_rules}};
    return run_tests("axes", cases, sizeof cases / sizeof *cases);
}
