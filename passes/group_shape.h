/* Shapes as groups see them: what may stand in loops over another shape. */
#ifndef TG_GROUP_SHAPE_H
#define TG_GROUP_SHAPE_H

#include "ir/type.h"

/* `type` is `domain` without its last dimension, perhaps with a 1 in its place. */
bool tg_is_row_shape(const Type *type, const Type *domain);
/* A reshape that only adds or drops dimensions of size 1. */
bool tg_is_unit_reshape(const Type *from, const Type *to);

#endif
