/* manifest.json beside the weights: every setting and where it came from, the source, and the plan. */
#ifndef TG_MANIFEST_H
#define TG_MANIFEST_H

#include "runtime/session.h"

/* `result` is added as it is (borrowed). Written whole or not at all. */
TG_CHECKED Status tg_manifest_write(Session *session, const char *path, json_t *result);
/* 16 hexadecimal digits of the plan's hash. */
const char *tg_plan_hash(Session *session);

#endif
