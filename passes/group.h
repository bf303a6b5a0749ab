/* Which nodes of a function become one kernel. (group.c decides, fuse.c builds) */
#ifndef TG_GROUP_H
#define TG_GROUP_H

#include "passes/pass.h"

typedef enum Place {
    PLACE_UNUSED,
    PLACE_MEMORY,  /* an argument or a buffer */
    PLACE_LIBRARY, /* a node of its own at kernel level */
    PLACE_ALIAS,   /* the same bytes as its operand: a reshape, or the order in which a dot is written */
    PLACE_INLINE,  /* computed again in every kernel that reads it */
    PLACE_GROUP,   /* a member of a group */
} Place;

typedef enum GroupKind { GROUP_ROWS, GROUP_COLUMN, GROUP_ALONE } GroupKind;

typedef struct Group {
    GroupKind kind;
    Type domain;     /* ROWS: the full shape; COLUMN: the reduced operand's */
    int64_t axis, split; /* COLUMN */
    bool has_rows;   /* ROWS: the last axis is reduced somewhere; row scalars may join */
    Vec(NodeId) members; /* ascending */
    Vec(NodeId) reads;   /* what members read from memory, each once */
} Group;

/* Per node: where it lives, and for members the group. Groups are numbered in an order in which they can run: a group reads
   only memory, library results that come before it (see `step`), and groups of smaller numbers. */
typedef struct Grouping {
    Place *place;
    uint32_t *group;
    uint32_t *step; /* members, library nodes: position in the function's order of kernels and calls, from 1; others: of the
                       latest thing that they read */
    bool *output;   /* members that something outside their group reads */
    bool *again;    /* members that other groups compute again instead of reading: see replay.c */
    Vec(Group) groups;
    uint32_t steps;
} Grouping;

/* Finds the members that are cheaper to compute again than to store; `memory`: per node, must be in memory. (replay.c) */
void tg_group_replay(PassContext *context, const Graph *graph, const Func *func, const bool *memory, Grouping *grouping);
/* One operation an element, or none. */
bool tg_is_cheap(uint16_t op);

/* By context->fuse; every join is a rewrite (passes/rewrite.h). */
Grouping tg_group(PassContext *context, const Graph *graph, const Func *func);

#endif
