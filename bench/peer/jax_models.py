"""The models of models/ in JAX: the loss of a batch, given a dictionary of parameters with tgc's names after `net.`. A loss returns what
it writes beside it: the states of models/custom.tg."""
import jax
import jax.numpy as jnp


def linear(p, name, x):
    x = x @ p[name + ".weight"].T
    return x + p[name + ".bias"] if name + ".bias" in p else x


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean()


def digits(p, states, image, label):
    x = image.reshape(-1, 64).astype(jnp.float32) / 16
    return cross_entropy(linear(p, "fc2", jax.nn.relu(linear(p, "fc1", x))), label), states


def custom(p, states, x, target, delta=30):
    mean = x.mean(0)
    mu = 0.9 * states["mu"] + 0.1 * mean
    var = 0.9 * states["var"] + 0.1 * ((x - mean) ** 2).mean(0)
    h = jnp.tanh(linear(p, "fc1", (x - mu) * jax.lax.rsqrt(var + 1e-6)))
    e = jnp.abs(150 + 75 * linear(p, "fc2", h)[:, 0] - target)
    return jnp.where(e < delta, 0.5 * e ** 2, delta * (e - 0.5 * delta)).mean(), {"mu": mu, "var": var}


def layer_norm(p, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return x * p[name + ".weight"] + p[name + ".bias"]


def rms_norm(p, name, x):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * p[name + ".weight"]


def rotary(x):
    t, d = x.shape[1], x.shape[3]
    angle = jnp.arange(t, dtype=x.dtype)[:, None, None] * 10000 ** (-2 * jnp.arange(d // 2, dtype=x.dtype) / d)
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1)


def attention(p, name, x, heads, key_heads, turn=lambda x: x):
    b, t, c = x.shape
    q = turn(linear(p, name + ".query", x).reshape(b, t, heads, -1))
    k = turn(linear(p, name + ".key", x).reshape(b, t, key_heads, -1))
    v = linear(p, name + ".value", x).reshape(b, t, key_heads, -1)
    return linear(p, name + ".proj", jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, c))


def gpt(p, states, window, T, L, H, C, V):
    x = p["token"][window[:, :-1]] + p["position"]
    for i in range(L):
        name = f"blocks.{i}"
        x = x + attention(p, name + ".attn", layer_norm(p, name + ".n1", x), H, H)
        up = jax.nn.gelu(linear(p, name + ".mlp.up", layer_norm(p, name + ".n2", x)), approximate=False)
        x = x + linear(p, name + ".mlp.down", up)
    return cross_entropy(layer_norm(p, "norm", x) @ p["token"].T, window[:, 1:]), states


def llama(p, states, window, T, L, H, KV, C, F, V):
    x = p["embed.weight"][window[:, :-1]]
    for i in range(L):
        name = f"blocks.{i}"
        x = x + attention(p, name + ".attn", rms_norm(p, name + ".n1", x), H, KV, rotary)
        h = rms_norm(p, name + ".n2", x)
        gated = jax.nn.silu(linear(p, name + ".mlp.gate", h)) * linear(p, name + ".mlp.up", h)
        x = x + linear(p, name + ".mlp.down", gated)
    return cross_entropy(linear(p, "head", rms_norm(p, "norm", x)), window[:, 1:]), states


def lstm_cell(p, name, x, h, c):
    i, f, g, o = jnp.split(linear(p, name + ".wx", x) + linear(p, name + ".wh", h), 4, -1)
    c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def lstm(p, states, window, T, C, V, unroll=1):
    def step(carry, x):
        one = lstm_cell(p, "one", x, *carry[0])
        two = lstm_cell(p, "two", one[0], *carry[1])
        return (one, two), two[0]

    zero = jnp.zeros((len(window), C))
    x = p["embed.weight"][window[:, :-1]].swapaxes(0, 1)
    _, hs = jax.lax.scan(step, ((zero, zero), (zero, zero)), x, unroll=unroll)
    return cross_entropy(linear(p, "head", hs.swapaxes(0, 1)), window[:, 1:]), states


LOSSES = dict(digits=digits, custom=custom, gpt=gpt, llama=llama, lstm=lstm)
STATES = dict(custom={"mu": jnp.zeros(10), "var": jnp.ones(10)})
