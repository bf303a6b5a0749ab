/* The one object of the archive that a program pulls in for its main(). */
#include "runtime/program.h"

extern const TgProgram tg_program;

int main(int argc, char **argv) { return tg_program_main(&tg_program, tg_host(), argc, argv, stdout, stderr); }
