#include "ir/attention.h"

bool tg_attention_is_by_blocks(const Graph *graph, const Func *func, const Node *node) {
    uint32_t plain = node->op == OP_attention ? 3 : 4;
    if (node->operand_count != plain)
        return false;
    for (uint32_t i = 0; i < plain; i++) {
        const Type *type = tg_node_type(graph, func, tg_operand(func, node, i));
        if ((type->dtype != DT_F32 && !tg_is_low(type->dtype)) || type->dims[type->rank - 1].batch || type->dims[type->rank - 2].batch)
            return false;
        for (int d = 0; d < type->rank; d++)
            if (type->dims[d].size == 0)
                return false;
    }
    return true;
}
