"""models/gpt.tg, llama.tg and lstm.tg in PyTorch. Parameters have tgc's names after `net.`; sizes come as a dict of the .tg file's
constants."""
import math
import os

import numpy as np
import torch
import torch.nn.functional as F

import tgdata

CORPUS = os.path.join(os.environ.get("TG_DATA", "../shared"), "data", "tinyshakespeare.txt")
SHARES = [0.9, 0.1]


class GptAttention(torch.nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.heads = h
        for name in ("query", "key", "value", "proj"):
            setattr(self, name, torch.nn.Linear(c, c, bias=False))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.heads, c // self.heads).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class GptMlp(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up = torch.nn.Linear(c, 4 * c, bias=False)
        self.down = torch.nn.Linear(4 * c, c, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class GptBlock(torch.nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.n1, self.attn = torch.nn.LayerNorm(c), GptAttention(c, h)
        self.n2, self.mlp = torch.nn.LayerNorm(c), GptMlp(c)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Gpt(torch.nn.Module):
    sizes = dict(T=64, L=4, H=4, C=128, V=256)
    recipe = dict(batch=12, steps=2000, peak=1e-3, warmup=100, floor=1e-4, betas=(0.9, 0.99), decay=0.1, clip=1.0, seed=1337)

    def __init__(self, T, L, H, C, V):
        super().__init__()
        self.token = torch.nn.Parameter(0.02 * torch.randn(V, C))
        self.position = torch.nn.Parameter(0.02 * torch.randn(T, C))
        self.blocks = torch.nn.ModuleList(GptBlock(C, H) for _ in range(L))
        self.norm = torch.nn.LayerNorm(C)

    def forward(self, tokens):
        x = self.token[tokens] + self.position[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token.T


class RmsNorm(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(c))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight


def rotary(x):
    t, d = x.shape[-2:]
    i = torch.arange(d // 2, dtype=x.dtype)
    angle = torch.arange(t, dtype=x.dtype)[:, None] * 10000 ** (-2 * i / d)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


class LlamaAttention(torch.nn.Module):
    def __init__(self, c, h, kv):
        super().__init__()
        self.heads, self.kv = h, kv
        self.query = torch.nn.Linear(c, c, bias=False)
        self.key = torch.nn.Linear(c, kv * (c // h), bias=False)
        self.value = torch.nn.Linear(c, kv * (c // h), bias=False)
        self.proj = torch.nn.Linear(c, c, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        d = c // self.heads
        q = rotary(self.query(x).view(b, t, self.heads, d).transpose(1, 2))
        k = rotary(self.key(x).view(b, t, self.kv, d).transpose(1, 2))
        v = self.value(x).view(b, t, self.kv, d).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class SwiGlu(torch.nn.Module):
    def __init__(self, c, f):
        super().__init__()
        self.gate = torch.nn.Linear(c, f, bias=False)
        self.up = torch.nn.Linear(c, f, bias=False)
        self.down = torch.nn.Linear(f, c, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class LlamaBlock(torch.nn.Module):
    def __init__(self, c, h, kv, f):
        super().__init__()
        self.n1, self.attn, self.n2, self.mlp = RmsNorm(c), LlamaAttention(c, h, kv), RmsNorm(c), SwiGlu(c, f)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class Llama(torch.nn.Module):
    sizes = dict(T=128, L=4, H=8, KV=2, C=256, F=704, V=256)
    recipe = dict(batch=16, steps=1000, peak=1e-3, warmup=100, floor=1e-4, betas=(0.9, 0.95), decay=0.1, clip=1.0, seed=1)

    def __init__(self, T, L, H, KV, C, F, V):
        super().__init__()
        self.embed = torch.nn.Embedding(V, C)
        self.blocks = torch.nn.ModuleList(LlamaBlock(C, H, KV, F) for _ in range(L))
        self.norm = RmsNorm(C)
        self.head = torch.nn.Linear(C, V, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class LstmCell(torch.nn.Module):
    def __init__(self, inputs, c):
        super().__init__()
        self.wx, self.wh = torch.nn.Linear(inputs, 4 * c), torch.nn.Linear(c, 4 * c, bias=False)

    def forward(self, x, h, c):
        i, f, g, o = (self.wx(x) + self.wh(h)).chunk(4, -1)
        c = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Lstm(torch.nn.Module):
    sizes = dict(T=32, C=128, V=256)
    recipe = dict(batch=32, steps=500, peak=2e-3, warmup=0, floor=2e-3, betas=(0.9, 0.999), decay=None, clip=1.0, seed=1)

    def __init__(self, T, C, V):
        super().__init__()
        self.embed = torch.nn.Embedding(V, C)
        self.one, self.two = LstmCell(C, C), LstmCell(C, C)
        self.head = torch.nn.Linear(C, V)
        self.width = C

    def forward(self, tokens):
        x = self.embed(tokens)
        zero = torch.zeros(len(tokens), self.width, dtype=x.dtype)
        h1 = c1 = h2 = c2 = zero
        out = []
        for t in range(tokens.shape[1]):
            h1, c1 = self.one(x[:, t], h1, c1)
            h2, c2 = self.two(h1, h2, c2)
            out.append(h2)
        return self.head(torch.stack(out, 1))


MODELS = dict(gpt=Gpt, llama=Llama, lstm=Lstm)


def learning_rate(recipe, step):
    """warmup_cosine with a floor; step counts from 1. A constant where there is no warm-up."""
    peak, warmup, floor, total = recipe["peak"], recipe["warmup"], recipe["floor"], recipe["steps"]
    if warmup == 0:
        return peak
    if step <= warmup:
        return peak * step / warmup
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def make_optimizer(net, recipe):
    if recipe["decay"] is None:
        return torch.optim.Adam(net.parameters(), lr=recipe["peak"], betas=recipe["betas"])
    groups = [dict(params=[p for p in net.parameters() if (p.dim() > 1) == wide], weight_decay=recipe["decay"] if wide else 0.0)
              for wide in (True, False)]
    return torch.optim.AdamW(groups, lr=recipe["peak"], betas=recipe["betas"])


def batches(recipe, length, seed):
    """Windows of length + 1 tokens, epoch after epoch."""
    tokens, epoch = tgdata.text_tokens(CORPUS, SHARES, 0), 0
    while True:
        order = tgdata.text_epoch(len(tokens), length, seed, epoch)
        for at in range(0, len(order), recipe["batch"]):
            rows = order[at:at + recipe["batch"]]
            yield torch.from_numpy(np.stack([tokens[i:i + length + 1] for i in rows]).astype(np.int64))
        epoch += 1


def loss_of(net, window):
    logits = net(window[:, :-1])
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), window[:, 1:].reshape(-1))


def train_step(net, optimizer, recipe, step, window):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(recipe, step)
    optimizer.zero_grad()
    loss = loss_of(net, window)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), recipe["clip"])
    optimizer.step()
    return loss.item()
