/* Where the compiler's own libraries lie, and opening the one that holds LLVM. */
#include "codegen/codegen.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_PATH = 4096 };

const char *tg_library_directory(Arena *arena) {
    const char *given = getenv("TGC_LIB");
    if (given && given[0])
        return given;
    char path[LONGEST_PATH];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return "../lib";
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return tg_arena_printf(arena, "%s/../lib", path);
}

typedef const LlvmModule *OpenLlvm(void);

Status tg_llvm_open(Arena *arena, Diags *diags, const LlvmModule **module) {
    const char *path = tg_arena_printf(arena, "%s/libtgc_llvm.so", tg_library_directory(arena));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        tg_error(diags, (Loc){0}, "cannot open the code generator: %s", dlerror());
        tg_note(diags, (Loc){0},
                "it needs LLVM 19: install libllvm19, or set TGC_LIB to the folder that holds libtgc_llvm.so");
        return TG_IO;
    }
    OpenLlvm *open_llvm;
    void *symbol = dlsym(library, "tgc_llvm_module");
    memcpy(&open_llvm, &symbol, sizeof symbol);
    if (open_llvm == NULL) {
        tg_error(diags, (Loc){0}, "%s is not a code generator of this tgc", path);
        return TG_IO;
    }
    *module = open_llvm();
    return TG_OK;
}
