"""The models of models/ in PyTorch. Parameters have tgc's names after `net.`; a network's `loss` takes a batch of recipes.py, `measure`
is what validation asks for, and sizes are those of the .tg file's constants."""
import torch
import torch.nn.functional as F


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(64, 128), torch.nn.Linear(128, 10)

    def forward(self, image):
        x = image.to(self.fc1.weight.dtype) / 16
        return self.fc2(torch.relu(self.fc1(x.reshape(-1, 64))))

    def loss(self, image, label):
        return F.cross_entropy(self(image), label)

    def measure(self, image, label):
        return {"accuracy": (self(image).argmax(1) == label).float().mean().item()}


class Regression(torch.nn.Module):
    """models/custom.tg: standardises with running statistics, which are no part of the initial weights."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(10, 64), torch.nn.Linear(64, 1)
        self.register_buffer("mu", torch.zeros(10), persistent=False)
        self.register_buffer("var", torch.ones(10), persistent=False)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                mean = x.mean(0)
                self.mu.copy_(0.9 * self.mu + 0.1 * mean)
                self.var.copy_(0.9 * self.var + 0.1 * ((x - mean) ** 2).mean(0))
        x = (x - self.mu) * torch.rsqrt(self.var + 1e-6)
        return 150 + 75 * self.fc2(torch.tanh(self.fc1(x)))[:, 0]

    def loss(self, x, target, delta=30):
        dtype = self.fc1.weight.dtype
        e = (self(x.to(dtype)) - target.to(dtype)).abs()
        return torch.where(e < delta, 0.5 * e ** 2, delta * (e - 0.5 * delta)).mean()

    def measure(self, x, target):
        return {"rmse": (self(x) - target).square().mean().sqrt().item()}


class LanguageModel(torch.nn.Module):
    def loss(self, window):
        logits = self(window[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())


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


class Gpt(LanguageModel):
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


class Llama(LanguageModel):
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


class Lstm(LanguageModel):
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


MODELS = dict(digits=Mlp, custom=Regression, gpt=Gpt, llama=Llama, lstm=Lstm)
