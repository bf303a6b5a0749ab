/* The starters mlp and gpt. */
#include "driver/new.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char digits_images[] = "digits-images.idx.gz", digits_labels[] = "digits-labels.idx.gz";

static const char mlp_after_data[] = "    split { train = 80%, test = 20% }\n"
                                     "}\n"
                                     "\n"
                                     "module Mlp(in: int, hidden: int, classes: int) {\n"
                                     "    fc1 = Linear(in, hidden)\n"
                                     "    fc2 = Linear(hidden, classes)\n"
                                     "\n"
                                     "    fn (x: f32[B, in]) -> f32[B, classes] {\n"
                                     "        return fc2(relu(fc1(x)))\n"
                                     "    }\n"
                                     "}\n"
                                     "\n"
                                     "net = Mlp(8 * 8, hidden, 10)\n"
                                     "\n"
                                     "fn logits(image: u8[B, 8, 8]) -> f32[B, 10] {\n"
                                     "    return net(reshape(f32(image) / 16, [B, 8 * 8]))      // pixels are 0 .. 16\n"
                                     "}\n"
                                     "\n"
                                     "// All fields of the record are logged; training minimises `loss`.\n"
                                     "fn objective(b: Digits) {\n"
                                     "    y = logits(b.image)\n"
                                     "    return { loss: cross_entropy(y, b.label), accuracy: accuracy(y, b.label) }\n"
                                     "}\n"
                                     "\n"
                                     "train {\n"
                                     "    data      = Digits.train\n"
                                     "    validate  = Digits.test\n"
                                     "    objective = objective\n"
                                     "    batch     = 32\n"
                                     "    epochs    = 30\n"
                                     "    optimizer = AdamW(lr = warmup_cosine(1e-2, warmup = 50))\n"
                                     "    seed      = 1\n"
                                     "}\n"
                                     "\n"
                                     "export fn classify(image: u8[B, 8, 8]) {\n"
                                     "    p = softmax(logits(image))\n"
                                     "    return { digit: argmax(p), confidence: max(p, axis = -1) }\n"
                                     "}\n";

static bool is_there(Arena *arena, const char *folder, const char *name) {
    return access(tg_arena_printf(arena, "%s/%s", folder, name), R_OK) == 0;
}

/* --data; or where an installed tgc has the digits; or a folder that is still to be filled. */
static Status find_digits(Starter *s, const char **folder) {
    Pipeline *p = s->p;
    const char *given = p->cli->value[CLI_DATA];
    const char *own = tg_arena_printf(p->arena, "%s/../share/tgc/models/data", tg_library_directory(p->arena));
    *folder = given ? given : is_there(p->arena, own, digits_images) ? own : "data";
    if (is_there(p->arena, *folder, digits_images) && is_there(p->arena, *folder, digits_labels)) {
        char *full = realpath(*folder, NULL);
        if (*folder == own && full)
            *folder = tg_arena_str(p->arena, full, strlen(full));
        free(full);
        return TG_OK;
    }
    if (given) {
        tg_error(p->diags, (Loc){0}, "the folder %s does not hold %s and %s", given, digits_images, digits_labels);
        return TG_IO;
    }
    tg_note(p->diags, (Loc){0},
            "copy %s and %s from models/data of tgc's source into the folder 'data', or name theirs with --data",
            digits_images, digits_labels);
    return TG_OK;
}

Status starter_mlp(Starter *s) {
    const char *folder;
    TG_TRY(find_digits(s, &folder));
    folder = starter_path(s, folder);
    tg_str_printf(&s->text, "// An MLP that reads handwritten digits of 8x8 pixels. For other images: idx or npy files "
                            "of theirs, and their\n"
                            "// size in place of 8. `tgc check --shapes` shows what every line gives.\n\n"
                            "const hidden = 128\n\ndata Digits {\n    image: u8[8, 8] from idx(");
    starter_string(&s->text, tg_arena_printf(s->p->arena, "%s/%s", folder, digits_images));
    tg_str_printf(&s->text, ")\n    label: i32      from idx(");
    starter_string(&s->text, tg_arena_printf(s->p->arena, "%s/%s", folder, digits_labels));
    tg_str_printf(&s->text, ")\n");
    tg_str_add(&s->text, mlp_after_data, sizeof mlp_after_data - 1);
    return TG_OK;
}

/* ---- gpt ---- */

static const char gpt_model[] =
    "data Corpus {\n"
    "    tokens: u16[T + 1] from text(corpus, tokenizer = \"bytes\")   // windows of T + 1 bytes\n"
    "    split { train = 90%, test = 10% }\n"
    "}\n"
    "\n"
    "module Attention(C: int, H: int) {\n"
    "    query = Linear(C, C, bias = false)\n"
    "    key   = Linear(C, C, bias = false)\n"
    "    value = Linear(C, C, bias = false)\n"
    "    proj  = Linear(C, C, bias = false)\n"
    "\n"
    "    fn (x: f32[B, T, C]) -> f32[B, T, C] {\n"
    "        q = rearrange(query(x), [B, T, (H, D)] -> [B, H, T, D])\n"
    "        k = rearrange(key(x),   [B, T, (H, D)] -> [B, H, T, D])\n"
    "        v = rearrange(value(x), [B, T, (H, D)] -> [B, H, T, D])\n"
    "        y = attention(q, k, v, causal = true)\n"
    "        return proj(rearrange(y, [B, H, T, D] -> [B, T, (H, D)]))\n"
    "    }\n"
    "}\n"
    "\n"
    "module Block(C: int, H: int) {\n"
    "    n1   = LayerNorm(C)\n"
    "    attn = Attention(C, H)\n"
    "    n2   = LayerNorm(C)\n"
    "    up   = Linear(C, 4 * C)\n"
    "    down = Linear(4 * C, C)\n"
    "\n"
    "    fn (x: f32[B, T, C]) -> f32[B, T, C] {\n"
    "        x = x + attn(n1(x))\n"
    "        return x + dropout(down(gelu(up(n2(x)))), drop)\n"
    "    }\n"
    "}\n"
    "\n"
    "module Gpt(T: int, L: int, H: int, C: int) {\n"
    "    param token:    f32[256, C] = normal(std = 0.02)\n"
    "    param position: f32[T, C]   = normal(std = 0.02)\n"
    "    blocks = [Block(C, H) for i in 0..L]\n"
    "    norm   = LayerNorm(C)\n"
    "\n"
    "    fn (tokens: i32[B, N]) -> f32[B, N, 256] {\n"
    "        x = take(token, tokens) + position[0:N]\n"
    "        for block in blocks {\n"
    "            x = block(x)\n"
    "        }\n"
    "        return norm(x) @ transpose(token)\n"
    "    }\n"
    "}\n"
    "\n"
    "net = Gpt(T, L, H, C)\n"
    "\n"
    "fn objective(b: Corpus) {\n"
    "    tokens = i32(b.tokens)\n"
    "    loss   = cross_entropy(net(tokens[:, 0:T]), tokens[:, 1:])\n"
    "    return { loss, perplexity: exp(loss) }\n"
    "}\n"
    "\n"
    "train {\n"
    "    data      = Corpus.train\n"
    "    validate  = Corpus.test\n"
    "    objective = objective\n"
    "    batch     = 12\n"
    "    steps     = 2000\n"
    "    optimizer = AdamW(lr = warmup_cosine(1e-3, warmup = 100, floor = 1e-4), beta2 = 0.99,\n"
    "                      weight_decay = p -> if rank(p) > 1 then 0.1 else 0)\n"
    "    clip_norm = 1.0\n"
    "    seed      = 1\n"
    "}\n"
    "\n"
    "// The logits after the first `length` bytes of a window; what stands behind them is never read.\n"
    "export fn next(tokens: i32[B, T], length: i32) {\n"
    "    return { logits: take(net(tokens), length - 1, axis = 1) }\n"
    "}\n";

enum { SHORTEST_TEXT = 4096 }; /* windows of 64 for a batch of 12 and some to validate on */

Status starter_gpt(Starter *s) {
    Pipeline *p = s->p;
    const char *path = starter_data(s, "text");
    if (path == NULL)
        return TG_USAGE;
    struct stat info;
    bool there = stat(path, &info) == 0;
    if (!there || !S_ISREG(info.st_mode)) {
        tg_error(p->diags, (Loc){0}, "cannot read the text %s: %s", path, there ? "it is no file" : strerror(errno));
        return TG_IO;
    }
    if (info.st_size < SHORTEST_TEXT) {
        tg_error(p->diags, (Loc){0}, "%s has %lld bytes; a language model learns from %d or more", path,
                 (long long)info.st_size, SHORTEST_TEXT);
        return TG_MODEL;
    }
    tg_str_printf(
        &s->text,
        "// A GPT-2 style language model over the bytes of a text: T bytes are seen at once, L blocks with H heads of\n"
        "// width C / H. A larger one: tgc train %s.tg --set L=8 --set C=256\n\nconst corpus = ",
        s->name);
    starter_string(&s->text, starter_path(s, path));
    tg_str_printf(&s->text, "\nconst T = 64, L = 4, H = 4, C = 128\nconst drop = %s\n\n",
                  info.st_size < 1 << 20 ? "0.1   // of a small text, little is learned by heart" : "0.0");
    tg_str_add(&s->text, gpt_model, sizeof gpt_model - 1);
    return TG_OK;
}
