"""The models in mixed precision with explicit casts, where tgc's policy (docs/precision.md) has them. Values are f32 tensors that were
rounded to the low type; a cotangent is rounded where the value was, a parameter's gradient is not. In f16 the loss is scaled by 2^16
and gradients by its inverse: powers of two, and no gradient of these runs overflows."""
import math

import torch
import torch.nn.functional as F

import torch_models

LOSS_SCALE = 65536.0


def low_models(low):
    def rounded(x):
        return x.to(low).float()

    def copy(weight):
        return weight + (rounded(weight) - weight).detach()

    def linear(layer, x):
        y = rounded(x) @ copy(layer.weight).T
        return rounded(y if layer.bias is None else y + layer.bias)

    def attention(q, k, v):
        """Scores and softmax in f32; weights and the gradient of scores are rounded for the dots that read them."""
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        t = q.shape[2]
        scores = Rounded.apply(q @ k.transpose(-1, -2), low) * (1 / math.sqrt(q.shape[-1]))
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
        weights = scores.softmax(-1)
        return rounded((weights + (rounded(weights) - weights).detach()) @ v)

    class Mlp(torch_models.Mlp):
        def forward(self, image):
            return linear(self.fc2, rounded(torch.relu(linear(self.fc1, image.float().reshape(-1, 64) / 16))))

    class Gpt(torch_models.Gpt):
        def forward(self, tokens):
            token = copy(self.token)
            x = rounded(rounded(token[tokens]) + self.position[:tokens.shape[1]])
            for i, block in enumerate(self.blocks):
                x = rounded(x + heads(block.attn, rounded(block.n1(x))))
                x = x + linear(block.mlp.down, rounded(F.gelu(linear(block.mlp.up, rounded(block.n2(x))))))
                x = rounded(x) if i + 1 < len(self.blocks) else x
            return rounded(rounded(self.norm(x)) @ token.T)

    class Llama(torch_models.Llama):
        def forward(self, tokens):
            x = rounded(copy(self.embed.weight)[tokens])
            for i, block in enumerate(self.blocks):
                x = rounded(x + heads(block.attn, rounded(block.n1(x)), torch_models.rotary))
                y = rounded(block.n2(x))
                x = x + linear(block.mlp.down, rounded(F.silu(linear(block.mlp.gate, y)) * linear(block.mlp.up, y)))
                x = rounded(x) if i + 1 < len(self.blocks) else x
            return linear(self.head, rounded(self.norm(x)))

    def heads(attn, x, turn=None):
        b, t, c = x.shape
        q, k, v = (linear(f, x).view(b, t, -1, c // attn.heads).transpose(1, 2) for f in (attn.query, attn.key, attn.value))
        if turn:
            q, k = rounded(turn(q)), rounded(turn(k))
        return linear(attn.proj, attention(q, k, v).transpose(1, 2).reshape(b, t, c))

    return {"digits": Mlp, "gpt": Gpt, "llama": Llama}


class Rounded(torch.autograd.Function):
    """Rounds the cotangent alone."""

    @staticmethod
    def forward(context, x, low):
        context.low = low
        return x

    @staticmethod
    def backward(context, cotangent):
        return cotangent.to(context.low).float(), None


def train(way, batches, steps, low):
    """The first losses of a way whose network is one of these."""
    scale = LOSS_SCALE if low == torch.float16 else 1.0
    losses = []
    for batch in batches:
        way.steps += 1
        way.set_rate(steps)
        way.optimizer.zero_grad()
        loss = way.loss(*batch)
        (loss * scale).backward()
        for parameter in way.net.parameters():
            parameter.grad /= scale
        way.update()
        losses.append(loss.item())
    return losses
