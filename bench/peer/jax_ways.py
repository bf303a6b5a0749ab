"""Ways of running a training step in JAX: jit of the whole step, buffers donated."""
import functools
import os

import jax
import jax.numpy as jnp

from jax_models import LOSSES, STATES


def clipped(gradients, most):
    norm = jnp.sqrt(sum((g * g).sum() for g in gradients.values()))
    return {name: g * jnp.minimum(1.0, most / (norm + 1e-6)) for name, g in gradients.items()}


def adamw(p, gradient, state, rate, decay, betas, step):
    m = betas[0] * state[0] + (1 - betas[0]) * gradient
    v = betas[1] * state[1] + (1 - betas[1]) * gradient * gradient
    root = jnp.sqrt(v / (1 - betas[1] ** step)) + 1e-8
    return p * (1 - rate * decay) - rate * (m / (1 - betas[0] ** step)) / root, (m, v)


def lion(p, gradient, state, rate, decay, betas, step):
    direction = jnp.sign(betas[0] * state[0] + (1 - betas[0]) * gradient) + decay * p
    return p - rate * direction, (betas[1] * state[0] + (1 - betas[1]) * gradient,)


OPTIMIZERS = dict(adamw=(adamw, 2), lion=(lion, 1))  # and how many states a parameter has


def one_step(recipe, options, p, optimizer, states, rate, step, batch):
    loss = functools.partial(LOSSES[recipe.model], **recipe.sizes, **options)
    (value, states), gradients = jax.value_and_grad(loss, has_aux=True)(p, states, *batch)
    if recipe.clip:
        gradients = clipped(gradients, recipe.clip)
    update = OPTIMIZERS[recipe.optimizer][0]
    new = {name: update(p[name], gradients[name], optimizer[name], rate,
                        recipe.decay if p[name].ndim >= recipe.decayed_rank else 0.0, recipe.betas, step) for name in p}
    return {name: pair[0] for name, pair in new.items()}, {name: pair[1] for name, pair in new.items()}, states, value


class Way:
    def __init__(self, recipe, initial, **options):
        self.recipe, self.steps = recipe, 0
        self.p = {name: jnp.array(value) for name, value in initial.items()}
        states = OPTIMIZERS[recipe.optimizer][1]
        self.optimizer = {name: tuple(jnp.zeros_like(value) for _ in range(states)) for name, value in self.p.items()}
        self.states = jax.tree.map(jnp.array, STATES.get(recipe.model, {}))
        self.step = jax.jit(functools.partial(one_step, recipe, options), donate_argnums=(0, 1, 2))

    def train(self, batch, total):
        """One step; the loss, when all is done."""
        self.steps += 1
        rate = self.recipe.rate_at(self.steps, total)
        self.p, self.optimizer, self.states, loss = self.step(self.p, self.optimizer, self.states, rate, float(self.steps), batch)
        jax.block_until_ready((self.p, self.optimizer, self.states))
        return loss


def batch(arrays):
    return tuple(jnp.asarray(array) for array in arrays)


def ways(recipe):
    if recipe.model == "lstm":
        return {"jit, the time loop rolled": dict(), "jit, the time loop unrolled": dict(unroll=True)}
    return {"jit": dict()}


def set_threads(count):
    """XLA has a thread for each core that the process may use."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def forget():
    jax.clear_caches()


VERSION = f"JAX {jax.__version__}"
