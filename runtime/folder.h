/* Where the program lies. */
#ifndef TG_FOLDER_H
#define TG_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* The folder of the running program, also where there is no /proc; false: it is not known, or longer than `bytes`. */
bool tg_program_folder(char *path, size_t bytes);

#endif
