/* Lines are matched by their text without node numbers (Myers, "An O(ND) Difference Algorithm", 1986, in linear space). A matched
   pair then has to agree in its numbers: an old number stands for one new number. A number that only one side knows stands for
   whatever replaced it, so that a change does not spread to all that reads it. */
#include "passes/diff.h"

#include "ir/base/map.h"

#include <string.h>

enum { CONTEXT = 3, MOST_EDITS = 2000 };

typedef struct Line {
    const char *text;
    uint32_t length;
    uint64_t key;
} Line;

/* A function, or what stands before the first one. */
typedef struct Section {
    const char *name;
    uint32_t name_length, first, count; /* lines */
} Section;

typedef struct Text {
    Vec(Line) lines;
    Vec(Section) sections;
} Text;

typedef struct Diff {
    Arena *arena;
    Str *to;
    const Line *a, *b;
    int32_t *mate; /* per line of a: its line of b, or -1 */
    bool *mated;   /* per line of b */
    int32_t *ahead, *back;
} Diff;

/* ---- lines ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Past the number that stands at `p`, "%12", or NULL: there is none. */
static const char *number_at(const char *p, const char *end, uint32_t *number) {
    if (p + 1 >= end || p[0] != '%' || !is_digit(p[1]))
        return NULL;
    *number = 0;
    for (p++; p < end && is_digit(*p); p++)
        *number = *number * 10 + (uint32_t)(*p - '0');
    return p;
}

static uint64_t key_of(Str *scratch, const char *text, const char *end) {
    scratch->length = 0;
    for (const char *p = text; p < end;) {
        uint32_t number;
        const char *next = number_at(p, end, &number);
        tg_str_add(scratch, p, 1);
        p = next ? next : p + 1;
    }
    return tg_hash(scratch->text, scratch->length, 0);
}

static Text text_of(Arena *arena, const Graph *graph) {
    static const char start[] = "  func @";
    Str all = tg_str(arena), scratch = tg_str(arena);
    tg_graph_print_plain(&all, graph);
    Text text = {0};
    tg_push(arena, &text.sections, (Section){.name = "", .count = 0});
    for (const char *p = all.text, *end = p + all.length; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (strncmp(p, start, sizeof start - 1) == 0) {
            const char *name = p + sizeof start - 1;
            tg_push(arena, &text.sections, (Section){name, (uint32_t)strcspn(name, "(\n"), text.lines.count, 0});
        }
        if (*p != '}') { /* the graph's end is part of no function */
            tg_push(arena, &text.lines, (Line){p, (uint32_t)(newline - p), key_of(&scratch, p, newline)});
            text.sections.at[text.sections.count - 1].count++;
        }
        p = newline + 1;
    }
    return text;
}

/* ---- matching ---- */

typedef struct Point {
    int32_t x, y;
} Point;

static bool same(const Diff *d, int32_t a, int32_t b) { return d->a[a].key == d->b[b].key; }

/* The furthest point on diagonal k after one more edit; `table` holds the furthest x per diagonal. */
static int32_t step(const int32_t *table, int32_t k, int32_t edits) {
    bool down = k == -edits || (k != edits && table[k - 1] < table[k + 1]);
    return down ? table[k + 1] : table[k - 1] + 1;
}

static Point furthest(const int32_t *table, int32_t low, int32_t high) {
    Point best = {0, 0};
    for (int32_t k = low; k <= high; k += 2)
        if (2 * table[k] - k > best.x + best.y)
            best = (Point){table[k], table[k] - k};
    return best;
}

/* A point on a shortest path from (0, 0) to (n, m), about half way; past MOST_EDITS the best so far. */
static Point middle(Diff *d, int32_t a, int32_t n, int32_t b, int32_t m) {
    int32_t delta = n - m, *ahead = d->ahead, *back = d->back;
    bool odd = delta & 1;
    ahead[1] = back[1] = 0;
    for (int32_t edits = 0;; edits++) {
        int32_t low = -(edits - 2 * (edits > m ? edits - m : 0)), high = edits - 2 * (edits > n ? edits - n : 0);
        for (int32_t k = low; k <= high; k += 2) {
            int32_t x = step(ahead, k, edits), y = x - k, other = delta - k;
            while (x < n && y < m && same(d, a + x, b + y))
                x++, y++;
            ahead[k] = x;
            if (odd && other > -edits && other < edits && x + back[other] >= n)
                return (Point){x, y};
        }
        if (edits >= MOST_EDITS)
            return furthest(ahead, low, high);
        for (int32_t k = low; k <= high; k += 2) {
            int32_t x = step(back, k, edits), y = x - k, other = delta - k;
            while (x < n && y < m && same(d, a + n - 1 - x, b + m - 1 - y))
                x++, y++;
            back[k] = x;
            if (!odd && other >= -edits && other <= edits && x + ahead[other] >= n)
                return (Point){n - x, m - y};
        }
    }
}

static void match(Diff *d, int32_t a, int32_t n, int32_t b, int32_t m) {
    for (; n > 0 && m > 0 && same(d, a, b); a++, b++, n--, m--)
        d->mate[a] = b;
    for (; n > 0 && m > 0 && same(d, a + n - 1, b + m - 1); n--, m--)
        d->mate[a + n - 1] = b + m - 1;
    if (n == 0 || m == 0)
        return;
    Point half = middle(d, a, n, b, m);
    match(d, a, half.x, b, half.y);
    match(d, a + half.x, n - half.x, b + half.y, m - half.y);
}

/* ---- numbers ---- */

/* Does old number `from` stand for new number `to`? Binds them if neither is bound. */
static bool stands_for(Map *forth, Map *back, uint32_t from, uint32_t to) {
    uint64_t *there = tg_map_put(forth, &from, sizeof from, NULL), *here = tg_map_put(back, &to, sizeof to, NULL);
    if (*there == 0 && *here == 0) {
        *there = 1 + (uint64_t)to;
        *here = 1 + (uint64_t)from;
    }
    return *there == 1 + (uint64_t)to;
}

static bool numbers_agree(Map *forth, Map *back, const Line *a, const Line *b) {
    bool agree = true;
    const char *q = b->text, *a_end = a->text + a->length, *b_end = b->text + b->length;
    for (const char *p = a->text; p < a_end && q < b_end;) {
        uint32_t from, to;
        const char *past = number_at(p, a_end, &from), *other = number_at(q, b_end, &to);
        agree = agree && (past == NULL || other == NULL || stands_for(forth, back, from, to));
        p = past ? past : p + 1;
        q = other ? other : q + 1;
    }
    return agree;
}

static bool check_numbers(Diff *d, const Section *a, const Section *b) {
    Map forth = tg_map(d->arena), back = tg_map(d->arena);
    uint32_t matched = 0;
    for (uint32_t i = a->first; i < a->first + a->count; i++) {
        int32_t mate = d->mate[i];
        if (mate >= 0 && !numbers_agree(&forth, &back, &d->a[i], &d->b[mate]))
            d->mate[i] = mate = -1;
        if (mate >= 0) {
            d->mated[mate] = true;
            matched++;
        }
    }
    return matched == a->count && matched == b->count;
}

/* ---- printing ---- */

typedef struct Cursor {
    uint32_t a, b;
} Cursor;

/* One line of the script: '-', '+' or ' ', and the place after it. */
static char next_line(const Diff *d, Cursor end, Cursor *at) {
    if (at->a < end.a && d->mate[at->a] < 0)
        return at->a++, '-';
    if (at->b < end.b && !d->mated[at->b])
        return at->b++, '+';
    return at->a++, at->b++, ' ';
}

static bool at_end(Cursor at, Cursor end) { return at.a >= end.a && at.b >= end.b; }

/* The end of the hunk that begins at `from`: past its last change and what stands around it. */
static Cursor hunk_end(const Diff *d, Cursor from, Cursor end) {
    uint32_t quiet = 0;
    Cursor at = from, last = from;
    while (!at_end(at, end) && quiet <= 2 * CONTEXT) {
        bool changed = next_line(d, end, &at) != ' ';
        quiet = changed ? 0 : quiet + 1;
        if (quiet <= CONTEXT)
            last = at;
    }
    return last;
}

static void print_hunk(const Diff *d, const Section *a, const Section *b, Cursor from, Cursor until, Cursor end) {
    uint32_t lines_a = until.a - from.a, lines_b = until.b - from.b;
    tg_str_printf(d->to, "@@ -%u,%u +%u,%u @@ %s%.*s\n", from.a - a->first + (lines_a != 0), lines_a,
                  from.b - b->first + (lines_b != 0), lines_b, a->name_length + b->name_length ? "func @" : "graph",
                  (int)(a->name_length ? a->name_length : b->name_length), a->name_length ? a->name : b->name);
    while (from.a < until.a || from.b < until.b) {
        Cursor at = from;
        char kind = next_line(d, end, &from);
        const Line *line = kind == '-' ? &d->a[at.a] : &d->b[at.b];
        tg_str_printf(d->to, "%c%.*s\n", kind, (int)line->length, line->text);
    }
}

static void print_section(const Diff *d, const Section *a, const Section *b) {
    Cursor end = {a->first + a->count, b->first + b->count}, at = {a->first, b->first};
    while (!at_end(at, end)) {
        Cursor start = at;
        uint32_t before = 0; /* unchanged lines from start to the first change */
        for (Cursor ahead = at; !at_end(ahead, end) && next_line(d, end, &ahead) == ' '; at = ahead)
            before++;
        if (at_end(at, end))
            return;
        uint32_t kept = before < CONTEXT ? before : CONTEXT;
        start = (Cursor){at.a - kept, at.b - kept};
        Cursor until = hunk_end(d, start, end);
        print_hunk(d, a, b, start, until, end);
        at = until;
    }
}

static void compare(Diff *d, const Section *a, const Section *b) {
    match(d, (int32_t)a->first, (int32_t)a->count, (int32_t)b->first, (int32_t)b->count);
    if (!check_numbers(d, a, b))
        print_section(d, a, b);
}

static const Section *named(const Text *text, const Section *like) {
    for (uint32_t i = 0; i < text->sections.count; i++) {
        const Section *section = &text->sections.at[i];
        if (section->name_length == like->name_length && memcmp(section->name, like->name, like->name_length) == 0)
            return section;
    }
    return NULL;
}

void tg_graph_diff(Str *to, const Graph *before, const Graph *after) {
    Arena *arena = to->arena;
    Text a = text_of(arena, before), b = text_of(arena, after);
    uint32_t room = a.lines.count + b.lines.count + 3;
    Diff d = {.arena = arena, .to = to, .a = a.lines.at, .b = b.lines.at};
    d.mate = TG_ALLOC(arena, int32_t, a.lines.count);
    d.mated = TG_ALLOC(arena, bool, b.lines.count);
    d.ahead = TG_ALLOC(arena, int32_t, 2 * room) + room;
    d.back = TG_ALLOC(arena, int32_t, 2 * room) + room;
    for (uint32_t i = 0; i < a.lines.count; i++)
        d.mate[i] = -1;
    const Section none = {.name = ""};
    for (uint32_t i = 0; i < a.sections.count; i++) {
        const Section *other = named(&b, &a.sections.at[i]);
        compare(&d, &a.sections.at[i], other ? other : &none);
    }
    for (uint32_t i = 0; i < b.sections.count; i++)
        if (named(&a, &b.sections.at[i]) == NULL)
            compare(&d, &none, &b.sections.at[i]);
}
