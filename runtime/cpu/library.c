#include "runtime/cpu/cpu.h"
#include "runtime/folder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char plugin_name[] = "libtgrt_dnn.so";
enum { PATH_BYTES = 4096 };

/* `directory`/libtgrt_dnn.so; false: not there or not loadable, `error` says which. */
static bool open_in(CpuDevice *device, const char *directory, char *error, size_t error_bytes) {
    char path[PATH_BYTES];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, plugin_name) >= sizeof path || access(path, F_OK) != 0)
        return false;
    device->plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!device->plugin)
        snprintf(error, error_bytes, "%s", dlerror());
    return device->plugin != NULL;
}

static Status open_plugin(CpuDevice *device) {
    char own[PATH_BYTES], error[512] = "";
    const char *directories[] = {tg_program_folder(own, sizeof own) ? own : NULL, device->options.directories[0],
                                 device->options.directories[1]};
    char looked[512] = "";
    for (size_t i = 0; i < sizeof directories / sizeof *directories && !device->plugin; i++)
        if (directories[i] && *directories[i] && !open_in(device, directories[i], error, sizeof error)) {
            size_t length = strlen(looked);
            snprintf(looked + length, sizeof looked - length, "%s%s", length ? ", " : "", directories[i]);
        }
    if (device->plugin)
        return TG_OK;
    if (*error)
        snprintf(device->options.why, TG_DEVICE_WHY,
                 "cannot load %s: %s; it needs oneDNN: install the package libdnnl-dev (Debian, Ubuntu)", plugin_name,
                 error);
    else
        snprintf(device->options.why, TG_DEVICE_WHY,
                 "cannot find %s, which computes dots (looked in %s): install tgc, or put the file beside the program",
                 plugin_name, looked);
    return TG_IO;
}

Status tg_cpu_library(CpuDevice *device) {
    if (device->library)
        return TG_OK;
    if (!device->plugin)
        TG_TRY(open_plugin(device));
    device->dnn = dlsym(device->plugin, TG_DNN_SYMBOL);
    if (!device->dnn || device->dnn->abi != TG_DNN_ABI) {
        snprintf(device->options.why, TG_DEVICE_WHY,
                 "%s is of another version than this program: compile the program again or install the same tgc",
                 plugin_name);
        return TG_IO;
    }
    device->dnn->enter_thread();
    Status status = device->dnn->open(device->options.arena->host, device->options.threads, &device->library);
    if (status != TG_OK)
        snprintf(device->options.why, TG_DEVICE_WHY,
                 status == TG_MEMORY ? "no memory left" : "oneDNN does not start on this machine");
    return status;
}

void tg_cpu_library_close(CpuDevice *device) {
    if (device->library)
        device->dnn->close(device->library);
    if (device->plugin)
        (void)dlclose(device->plugin);
}
