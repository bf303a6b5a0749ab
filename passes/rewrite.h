/* Rewrites: what a pass does that it might as well have left. A pass asks before each one, so that --opt-bisect-limit finds the
   one that breaks a program, --stats counts them, and remarks tell the user at the source line. What only codegen cannot do
   without (attention as dots, a transpose that a library call needs) is asked for too, but left only where nothing but the graph
   is wanted. What makes another graph (a gradient, a function of the step) is counted, not asked for. */
#ifndef TG_REWRITE_H
#define TG_REWRITE_H

#include "passes/pass.h"

/* May `rule` fire at `locs` (of the graph that the pass reads)? Counts it if so. The answer "no" leaves the program right. */
bool tg_rewrite(PassContext *context, const char *rule, LocsId locs);
bool tg_needed_rewrite(PassContext *context, const char *rule, LocsId locs);
/* The builder of a pass: with --opt-bisect-limit, what it folds and shares are rewrites as well. */
Builder tg_pass_builder(PassContext *context, Graph *graph, Func *func);
/* Says where the values of `from` are in `to`. */
void tg_pass_map(PassContext *context, const Func *from, const Func *to, const NodeId *map);
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
