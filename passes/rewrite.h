/* Rewrites: what a pass does that it might as well have left. A pass asks before each one, so that --opt-bisect-limit finds the
   one that breaks a program, --stats counts them, and remarks tell the user at the source line. What a program cannot do
   without (a gradient, a function of the step, a transpose that a library call needs) is counted, not asked for. */
#ifndef TG_REWRITE_H
#define TG_REWRITE_H

#include "passes/pass.h"

/* May `rule` fire at `locs` (of the graph that the pass reads)? Counts it if so. The answer "no" leaves the program right. */
bool tg_rewrite(PassContext *context, const char *rule, LocsId locs);
/* Adds `count` to what --stats shows of `rule`. */
void tg_counted(PassContext *context, const char *rule, uint64_t count);

/* Are remarks wanted of the pass that runs? Ask before building their text. */
bool tg_says_remarks(const PassContext *context);
bool tg_says_missed(const PassContext *context);
void tg_pass_remark(const PassContext *context, LocsId locs, const char *text);
void tg_pass_missed(const PassContext *context, LocsId locs, const char *text);

/* The table of --stats: pass, rule, how often; in the order in which they first fired. */
void tg_rewrites_print(Str *to, const PassContext *context);

#endif
