/* The store of compiled programs: one file each, named by what it was made of. Entries are written whole or not at all
   and never change, so readers need no lock. */
#ifndef TG_CACHE_H
#define TG_CACHE_H

#include "codegen/codegen.h"

/* $TGC_CACHE, else $XDG_CACHE_HOME/tgc, else ~/.cache/tgc, else /tmp/tgc-UID, made if need be; NULL: it cannot be used.
 */
const char *tg_cache_directory(Arena *arena);

/* 32 hexadecimal digits of everything that a program depends on: this compiler and its libraries, the plan, the
   kernels' loops, the CPU, the optimisation. TG_INTERNAL: the plan is damaged. */
TG_CHECKED Status tg_cache_key(Arena *arena, Diags *diags, const LlvmRequest *request, const char **key);

/* The host's CPU: its name and what it reports of its features; without LLVM. */
const char *tg_host_cpu(Arena *arena);

#endif
