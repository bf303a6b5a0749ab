"""Ways of running a training step in PyTorch."""
import sys

import torch

from torch_models import MODELS


class Lion(torch.optim.Optimizer):
    """fused: by PyTorch's operations over lists of tensors, the nearest thing that there is for an optimizer of one's own."""

    def __init__(self, params, lr, betas, fused):
        super().__init__(params, dict(lr=lr, betas=betas))
        self.fused = fused

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = group["params"]
            moments = [self.state[p].setdefault("moment", torch.zeros_like(p)) for p in params]
            self.update(params, [p.grad for p in params], moments, group["lr"], group["weight_decay"], *group["betas"])

    def update(self, params, gradients, moments, rate, decay, beta1, beta2):
        if self.fused:
            directions = torch._foreach_mul(moments, beta1)
            torch._foreach_add_(directions, gradients, alpha=1 - beta1)
            torch._foreach_sign_(directions)
            torch._foreach_add_(directions, params, alpha=decay)
            torch._foreach_add_(params, directions, alpha=-rate)
            torch._foreach_mul_(moments, beta2)
            torch._foreach_add_(moments, gradients, alpha=1 - beta2)
            return
        for p, gradient, m in zip(params, gradients, moments):
            p.copy_(p - rate * (torch.sign(beta1 * m + (1 - beta1) * gradient) + decay * p))
            m.copy_(beta2 * m + (1 - beta2) * gradient)


def make_optimizer(net, recipe, rate, fused=False):
    groups = [dict(params=[p for p in net.parameters() if (p.dim() >= recipe.decayed_rank) == decayed],
                   weight_decay=recipe.decay if decayed else 0.0) for decayed in (True, False)]
    kind = {"adamw": torch.optim.AdamW, "lion": Lion}[recipe.optimizer]
    return kind([group for group in groups if group["params"]], lr=rate, betas=recipe.betas, fused=fused)


def make_initial(recipe):
    """Weights by name, from PyTorch's own initialisers."""
    torch.manual_seed(0)
    return {name: value.numpy() for name, value in MODELS[recipe.model](**recipe.sizes).state_dict().items()}


class Way:
    """compiled: options of torch.compile for the loss; optimizer: "plain", "fused" or "compiled", with the clipping; precision: of
    autocast."""

    def __init__(self, recipe, initial, compiled=None, optimizer="fused", dtype=torch.float32, precision=None):
        self.recipe, self.steps = recipe, 0
        self.net = MODELS[recipe.model](**recipe.sizes).to(dtype)
        self.load(initial)
        rate = recipe.rate_at(1, recipe.steps)
        self.rate = torch.tensor(rate) if optimizer == "compiled" else rate
        self.optimizer = make_optimizer(self.net, recipe, self.rate, fused=optimizer == "fused")
        loss = torch.compile(self.net.loss, **compiled) if compiled is not None else self.net.loss
        self.loss = self.autocast(loss) if precision == "bf16" else loss
        self.update = torch.compile(self.clip_and_step) if optimizer == "compiled" else self.clip_and_step

    @staticmethod
    def autocast(loss):
        def mixed(*batch):
            with torch.autocast("cpu", torch.bfloat16):
                return loss(*batch)
        return mixed

    @torch.no_grad()
    def load(self, initial):
        for name, parameter in self.net.named_parameters():
            parameter.copy_(torch.tensor(initial[name]))

    def clip_and_step(self):
        if self.recipe.clip:
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.recipe.clip, foreach=True)
        self.optimizer.step()

    def set_rate(self, total):
        rate = self.recipe.rate_at(self.steps, total)
        if torch.is_tensor(self.rate):
            self.rate.fill_(rate)
            return
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def train(self, batch, total):
        """One step; the loss, when all is done."""
        self.steps += 1
        self.set_rate(total)
        self.optimizer.zero_grad()
        loss = self.loss(*batch)
        loss.backward()
        self.update()
        return loss.detach()

    def measure(self, batch):
        self.net.eval()
        with torch.no_grad():
            values = self.net.measure(*batch)
        self.net.train()
        return values


def batch(arrays):
    return tuple(torch.from_numpy(array) for array in arrays)


WAYS = {
    "eager": dict(optimizer="plain"),
    "eager, fused optimizer": dict(),
    "compiled, fused optimizer": dict(compiled={}),
    "compiled, compiled optimizer": dict(compiled={}, optimizer="compiled"),
    "max-autotune, fused optimizer": dict(compiled={"mode": "max-autotune"}),
}


def ways(recipe):
    return WAYS


def set_threads(count):
    torch.set_num_threads(count)


def forget():
    """What torch.compile keeps of a way that is no longer there. Loading it would take memory that eager ways do without."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


VERSION = f"PyTorch {torch.__version__}"
