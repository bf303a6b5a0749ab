#include "runtime/folder.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

bool tg_program_folder(char *path, size_t bytes) {
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    const char *started = (const char *)getauxval(AT_EXECFN); /* as exec was told */
    if (length <= 0) {
        if (started == NULL || strlen(started) >= bytes)
            return false;
        length = (ssize_t)strlen(started);
        memcpy(path, started, (size_t)length);
    }
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return false;
    slash[slash == path] = '\0';
    return true;
}
