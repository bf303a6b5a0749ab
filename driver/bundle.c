/* tgc compile --bundle: a folder with the program and all that it needs but libc. */
#include "driver/pipeline.h"

#include "ir/base/file.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

static const char plugin[] = "libtgrt_dnn.so";

/* What every machine with this libc has. */
static bool is_of_libc(const char *name) {
    static const char *const names[] = {"libc.so",      "libm.so",    "libpthread.so", "libdl.so",  "librt.so",
                                        "libresolv.so", "libutil.so", "ld-linux",      "linux-vdso"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static Status copy_file(Pipeline *p, const char *from, const char *to, unsigned mode) {
    char *bytes;
    size_t length;
    const char *why;
    Status status = tg_file_read(p->arena, from, &bytes, &length, &why);
    if (status != TG_OK) {
        tg_error(p->diags, (Loc){0}, "%s", why);
        return status;
    }
    TgFileWriter file;
    status = tg_file_begin(&file, p->arena->host, to, mode);
    if (status == TG_OK)
        status = tg_file_write(&file, bytes, length);
    if (status == TG_OK)
        status = tg_file_commit(&file);
    if (status != TG_OK)
        tg_error(p->diags, (Loc){0}, "%s", file.why);
    tg_file_abandon(&file);
    return status;
}

/* ---- libraries ---- */

typedef Vec(const struct link_map *) Libraries;

static bool has(const Libraries *libraries, const struct link_map *library) {
    for (uint32_t i = 0; i < libraries->count; i++)
        if (libraries->at[i] == library)
            return true;
    return false;
}

static const struct link_map *loaded(const struct link_map *any, const char *name) {
    while (any->l_prev)
        any = any->l_prev;
    for (; any; any = any->l_next)
        if (strcmp(last_part(any->l_name), name) == 0)
            return any;
    return NULL;
}

/* Adds what the library's dynamic section asks for; the loader has found all of it already. */
static void add_needed(Arena *arena, Libraries *libraries, const struct link_map *library) {
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = library->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
    for (const ElfW(Dyn) *entry = library->l_ld; strings && entry->d_tag != DT_NULL; entry++) {
        const char *name = strings + entry->d_un.d_val;
        if (entry->d_tag != DT_NEEDED || is_of_libc(name))
            continue;
        const struct link_map *needed = loaded(library, name);
        if (needed && !has(libraries, needed))
            tg_push(arena, libraries, needed);
    }
}

static Status copy_libraries(Pipeline *p, const char *folder) {
    const char *path = tg_arena_printf(p->arena, "%s/%s", tg_library_directory(p->arena), plugin);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct link_map *first = NULL;
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &first) != 0) {
        tg_error(p->diags, (Loc){0}, "cannot bundle %s: %s", plugin, dlerror());
        return TG_IO;
    }
    Libraries libraries = {0};
    tg_push(p->arena, &libraries, first);
    Status status = TG_OK;
    for (uint32_t i = 0; i < libraries.count && status == TG_OK; i++) {
        add_needed(p->arena, &libraries, libraries.at[i]);
        const char *name = last_part(libraries.at[i]->l_name);
        status = copy_file(p, libraries.at[i]->l_name, tg_arena_printf(p->arena, "%s/%s", folder, name), 0755);
    }
    dlclose(handle);
    return status;
}

/* ---- data ---- */

static Status check_data_path(Pipeline *p, const PlanField *field) {
    const char *path = field->path, *why = NULL;
    if (path[0] == '|')
        why = "comes from a command";
    else if (path[0] == '/')
        why = "is named by an absolute path: name it from the .tg file's folder";
    else if (strncmp(path, "../", 3) == 0 || strstr(path, "/../"))
        why = "lies outside of the .tg file's folder";
    else if (strpbrk(path, "*?["))
        why = "is named by a pattern";
    if (why == NULL)
        return TG_OK;
    tg_error(p->diags, (Loc){0}, "--bundle-data: '%s' of field '%s' %s", path, field->name, why);
    return TG_USAGE;
}

static Status copy_data(Pipeline *p, const char *folder, const char *source) {
    const TgPlan *plan = p->lowered.plan;
    for (uint32_t i = 0; i < plan->field_count; i++) {
        const char *path = plan->fields[i].path;
        bool copied = false;
        for (uint32_t k = 0; k < i; k++)
            copied = copied || strcmp(plan->fields[k].path, path) == 0;
        if (copied)
            continue;
        TG_TRY(check_data_path(p, &plan->fields[i]));
        char *to = tg_arena_printf(p->arena, "%s/%s", folder, path), *slash = strrchr(to, '/'), why[256];
        *slash = '\0';
        Status status = tg_make_directories(to, why, sizeof why);
        *slash = '/';
        if (status != TG_OK) {
            tg_error(p->diags, (Loc){0}, "%s", why);
            return status;
        }
        TG_TRY(copy_file(p, tg_arena_printf(p->arena, "%s/%s", source, path), to, 0644));
    }
    return TG_OK;
}

static Status check_folder(Pipeline *p, const char *folder) {
    struct stat info;
    char why[256];
    if (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode)) {
        tg_error(p->diags, (Loc){0}, "cannot bundle into %s: it is no folder", folder);
        return TG_IO;
    }
    Status status = tg_make_directories(folder, why, sizeof why);
    if (status != TG_OK)
        tg_error(p->diags, (Loc){0}, "%s", why);
    return status;
}

Status bundle_write(Pipeline *p) {
    const char *folder = p->cli->value[CLI_BUNDLE];
    if (p->cli->value[CLI_OUTPUT]) {
        tg_error(p->diags, (Loc){0}, "the program of a bundle lies in its folder under the model's name: leave out -o");
        return TG_USAGE;
    }
    TG_TRY(pipeline_run(p, STAGE_PLAN));
    TG_TRY(check_folder(p, folder));
    const char *source = p->lowered.plan->source_directory;
    if (p->cli->value[CLI_BUNDLE_DATA]) {
        TG_TRY(copy_data(p, folder, source));
        p->lowered.plan->source_directory = PLAN_BESIDE_PROGRAM;
    }
    LlvmRequest request = pipeline_request(p);
    TG_TRY(tg_program_write(p->arena, p->diags, &request,
                            tg_arena_printf(p->arena, "%s/%s", folder, pipeline_base_name(p)), NULL));
    return copy_libraries(p, folder);
}
