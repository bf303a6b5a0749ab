/* Reads what loop_print.c writes. Numbers of instructions need only be unique: they are replaced by places. */
#include "codegen/loop_info.h"
#include "ir/base/map.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Parser {
    Arena *arena;
    Diags *diags;
    LoopKernel *k;
    Map ids; /* written number -> LoopId */
    const char *at, *end, *line_start;
    Loc loc;  /* line and file of `at` */
    int open; /* loops not closed yet */
    bool failed;
} Parser;

static void fail(Parser *p, const char *what) {
    if (!p->failed) {
        Loc loc = p->loc;
        loc.column = (uint16_t)(p->at - p->line_start + 1);
        loc.end_column = loc.column;
        tg_error(p->diags, loc, "%s", what);
    }
    p->failed = true;
}

static void skip_space(Parser *p) {
    for (; p->at < p->end; p->at++) {
        if (*p->at == '\n') {
            p->loc.line++;
            p->line_start = p->at + 1;
        } else if (*p->at == '/' && p->at + 1 < p->end && p->at[1] == '/') {
            while (p->at + 1 < p->end && p->at[1] != '\n')
                p->at++;
        } else if (!isspace((unsigned char)*p->at)) {
            return;
        }
    }
}

static bool accept(Parser *p, const char *text) {
    skip_space(p);
    size_t length = strlen(text);
    if (p->failed || (size_t)(p->end - p->at) < length || memcmp(p->at, text, length) != 0)
        return false;
    if (isalpha((unsigned char)text[0]) && p->at + length < p->end &&
        (isalnum((unsigned char)p->at[length]) || p->at[length] == '_'))
        return false;
    p->at += length;
    return true;
}

static void expect(Parser *p, const char *text) {
    if (!accept(p, text))
        fail(p, tg_arena_printf(p->arena, "expected '%s'", text));
}

static const char *word(Parser *p) {
    skip_space(p);
    const char *start = p->at;
    while (!p->failed && p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '.'))
        p->at++;
    if (p->at == start)
        fail(p, "expected a name");
    return tg_arena_str(p->arena, start, (size_t)(p->at - start));
}

static int64_t integer(Parser *p) {
    skip_space(p);
    char *after = NULL;
    long long value = p->failed ? 0 : strtoll(p->at, &after, 10);
    if (after == p->at)
        fail(p, "expected an integer");
    else if (after != NULL)
        p->at = after;
    return value;
}

static double number(Parser *p) {
    skip_space(p);
    char *after = NULL;
    double value = p->failed ? 0 : strtod(p->at, &after);
    if (after == p->at)
        fail(p, "expected a number");
    else if (after != NULL)
        p->at = after;
    return value;
}

static DType dtype(Parser *p) {
    DType type = tg_dtype_named(word(p));
    if (type == DT_COUNT && !p->failed)
        fail(p, "no such element type");
    return p->failed ? DT_F32 : type;
}

static LoopId operand(Parser *p) {
    expect(p, "%");
    int64_t written = integer(p);
    uint64_t *id = p->failed ? NULL : tg_map_find(&p->ids, &written, sizeof written);
    if (id == NULL && !p->failed)
        fail(p, "no such value above");
    return id ? (LoopId)*id : 0;
}

static int named(Parser *p, const char *const *names, int count, const char *what) {
    const char *name = word(p);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    fail(p, what);
    return 0;
}

static void address(Parser *p, LoopInstr *instr) {
    instr->buffer = (uint32_t)integer(p);
    if (!p->failed && instr->buffer >= p->k->buffers.count)
        fail(p, "no such buffer");
    expect(p, "[");
    instr->a = operand(p);
    if (accept(p, "+")) {
        instr->imm = integer(p);
        expect(p, "*");
        expect(p, "v");
    }
    expect(p, "]");
}

static void buffer(Parser *p) {
    static const char *const ROLES[] = {"in", "out", "scratch"};
    if (integer(p) != p->k->buffers.count && !p->failed)
        fail(p, "buffers are numbered from 0");
    int role = named(p, ROLES, 3, "expected in, out or scratch");
    DType type = dtype(p);
    expect(p, "[");
    int64_t count = integer(p);
    expect(p, "]");
    uint32_t index = tg_loop_buffer(p->k, (LoopRole)role, type, count);
    if (role == ROLE_OUT)
        p->k->buffers.at[index].streamed = accept(p, "streamed");
}

static void loop(Parser *p, LoopInstr *instr) {
    static const char *const MODES[] = {"tile", "serial", "vector", "parallel"};
    instr->type = DT_I64;
    instr->mode = (uint8_t)named(p, MODES, 4, "expected tile, serial, vector or parallel");
    instr->a = operand(p);
    expect(p, "to");
    instr->b = operand(p);
    expect(p, "extent");
    instr->imm = integer(p);
    expect(p, "{");
    p->open++;
    if (instr->mode == MODE_TILE)
        p->k->tiles = instr->imm;
}

static LoopOp op_named(Parser *p) {
    const char *name = word(p);
    for (int op = 0; op < LOOP_OP_COUNT; op++)
        if (strcmp(tg_loop_op_info((LoopOp)op)->name, name) == 0 && tg_loop_has_value((LoopOp)op))
            return (LoopOp)op;
    fail(p, "no such instruction");
    return LOOP_const;
}

static void operands(Parser *p, LoopInstr *instr) {
    LoopId *to[3] = {&instr->a, &instr->b, &instr->c};
    int count = tg_loop_op_info((LoopOp)instr->op)->operands;
    for (int i = 0; i < count; i++) {
        if (i > 0 && !accept(p, ",")) {
            if (instr->op == LOOP_libm)
                return;
            fail(p, "expected ','");
        }
        *to[i] = operand(p);
    }
}

static void value(Parser *p) {
    int64_t written = integer(p);
    expect(p, "=");
    LoopInstr instr = {.op = (uint8_t)op_named(p)};
    if (instr.op == LOOP_for) {
        loop(p, &instr);
    } else {
        instr.type = (uint8_t)dtype(p);
        if (instr.op == LOOP_load)
            address(p, &instr);
        else if (instr.op == LOOP_const && tg_is_float((DType)instr.type))
            instr.number = number(p);
        else if (instr.op == LOOP_const || instr.op == LOOP_scalar)
            instr.imm = integer(p);
        else if (instr.op == LOOP_libm)
            instr.text = word(p);
        if (instr.op != LOOP_load)
            operands(p, &instr);
    }
    bool is_new;
    uint64_t *id = tg_map_put(&p->ids, &written, sizeof written, &is_new);
    if (!is_new)
        fail(p, "this number is taken");
    *id = p->k->instrs.count;
    tg_push(p->arena, &p->k->instrs, instr);
}

static void store(Parser *p) {
    LoopInstr instr = {.op = LOOP_store};
    address(p, &instr);
    expect(p, ",");
    instr.b = operand(p);
    instr.type = p->k->instrs.at[instr.b].type;
    tg_push(p->arena, &p->k->instrs, instr);
}

static void body(Parser *p) {
    while (!p->failed) {
        if (accept(p, "}")) {
            if (p->open-- == 0)
                return;
            tg_loop_end(p->k);
        } else if (accept(p, "store")) {
            store(p);
        } else {
            expect(p, "%");
            value(p);
        }
    }
}

static void kernel(Parser *p) {
    p->ids = tg_map(p->arena);
    p->open = 0;
    expect(p, "kernel");
    p->k = tg_loop_kernel(p->arena, word(p));
    expect(p, "{");
    while (accept(p, "buffer"))
        buffer(p);
    body(p);
    skip_space(p);
}

Status tg_loop_parse(Arena *arena, Diags *diags, uint16_t source, LoopKernels *out) {
    const Source *text = &diags->sources->files.at[source];
    Parser p = {.arena = arena,
                .diags = diags,
                .at = text->text,
                .end = text->text + text->length,
                .line_start = text->text,
                .loc = {.file = source, .line = 1}};
    *out = (LoopKernels){0};
    do {
        kernel(&p);
        tg_push(arena, out, p.k);
    } while (!p.failed && p.at != p.end);
    return p.failed ? TG_MODEL : TG_OK;
}
