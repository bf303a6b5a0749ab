/* tgc train, eval, predict, sample, info, bench: the program of the cache, compiled if need be, takes over. */
#include "driver/pipeline.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

Status command_run(Pipeline *p) {
    const Cli *cli = p->cli;
    TG_TRY(pipeline_run(p, STAGE_PLAN));
    LlvmRequest request = pipeline_request(p);
    const char *program;
    p->doing = "making the program";
    TG_TRY(tg_program_cached(p->arena, p->diags, &request, &program));
    Texts words = {0};
    tg_push(p->arena, &words,
            pipeline_base_name(p)); /* its results are named after the model, not after the cache's key */
    tg_push(p->arena, &words, cli_command_name(cli->command));
    for (uint32_t i = 0; i < p->run_sets.count; i++)
        tg_push(p->arena, &words, tg_arena_printf(p->arena, "--set=%s", p->run_sets.at[i]));
    for (uint32_t i = 0; i < cli->passed.count; i++)
        tg_push(p->arena, &words, cli->passed.at[i]);
    if (cli->arguments.count > 1)
        tg_push(p->arena, &words, "--");
    for (uint32_t i = 1; i < cli->arguments.count; i++)
        tg_push(p->arena, &words, cli->arguments.at[i]);
    tg_push(p->arena, &words, NULL);
    fflush(NULL);
    execv(program, (char *const *)words.at);
    tg_error(p->diags, (Loc){0}, "cannot start %s: %s; if you remove it, it is made again", program, strerror(errno));
    return TG_IO;
}
