/* The passes' entry points, one file each. */
#ifndef TG_PASSES_H
#define TG_PASSES_H

#include "passes/copy.h"
#include "passes/pass.h"

#define PASS(name, ...) TG_CHECKED PassRun run_##name;
#include "passes/passes.def"
#undef PASS

#endif
