"""What is measured, and the bounds that it must keep."""
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Bound:
    figure: str
    text: str
    limit: float
    unit: str = ""
    at_least: bool = False

    def excess(self, value):
        """How far the value is beyond the limit, as a share of it; negative within."""
        return (self.limit - value if self.at_least else value - self.limit) / self.limit


@dataclass(frozen=True)
class Model:
    name: str
    bounds: tuple
    steps: int  # of one measurement of tgc's step
    seconds: float  # of one measurement of a peer's step
    checked: int  # first losses that must agree
    source: str = ""  # models/SOURCE.tg; "": its name
    settings: dict = field(default_factory=dict)
    text: bool = False  # reads $TG_DATA's text
    autotune: bool = False  # torch.compile's max-autotune is tried: it takes minutes for a large model
    precision: str = "f32"  # of tgc; bf16: PyTorch runs under its CPU autocast, JAX, which has none, is left out
    threads: int = 2  # with which all ways of the peers are tried
    processes: bool = False  # whole runs are timed too
    seeds: int = 0  # whole training runs of tgc for the mean accuracy

    @property
    def mixed(self):
        return self.precision != "f32"

    @property
    def libraries(self):
        return ("torch",) if self.mixed else ("torch", "jax")

    @property
    def peer(self):
        return self.source or self.name

    @property
    def file(self):
        return f"models/{self.peer}.tg"


# Figures without a bound: shown where no bound of the model says them.
SHOWN = {
    "floor_ratio": ("step: tgc over its dots alone", "x"),
    "memory_ratio": ("most memory: tgc over the best of PyTorch", "x"),
    "cold_s": ("compiling, cold", "s"),
    "warm_s": ("compiling, with a hit in the cache", "s"),
    "compiled_first_step_s": ("first step of PyTorch, compiled, cold", "s"),
    "jax_first_step_s": ("first step of JAX, compiled", "s"),
    "process_s": ("whole process of a training run", "s"),
    "peer_process_s": ("the same training run in PyTorch, whole process, eager, 1 thread", "s"),
    "step_ms": ("step of tgc", "ms"),
}
# What every model has.
COMMON = (Bound("loss_error", "first losses: largest relative distance from a peer's", 1e-4),
          Bound("excess_mib", "most memory beyond the plan's bytes", 64e6 / 2**20, "MiB"))


MIXED = (Bound("loss_error", "first losses: largest relative distance from PyTorch's under autocast", 2e-2), COMMON[1],
         Bound("own_speedup", "step: our f32 over it", 1.5, "x", at_least=True),
         Bound("speedup", "step: the best of PyTorch under autocast over tgc", 1.2, "x", at_least=True),
         Bound("activation_ratio", "activations of the plan: over f32's", 0.55, "x"))


def speedup(limit):
    return tuple(Bound(figure, f"step: the best of {library} over tgc", limit, "x", at_least=True)
                 for figure, library in (("speedup", "PyTorch"), ("jax_speedup", "JAX")))


def floor(limit):
    return Bound("floor_ratio", SHOWN["floor_ratio"][0], limit, "x")


def cold(limit):
    return Bound("cold_s", SHOWN["cold_s"][0], limit, "s")


MODELS = (
    Model("digits", steps=2000, seconds=0.4, checked=20, autotune=True, threads=1, processes=True, seeds=5, bounds=(
        *speedup(8), floor(1.6), *COMMON,
        Bound("accuracy", "accuracy on the test split, mean of 5 seeds", 0.97, at_least=True),
        Bound("process_s", SHOWN["process_s"][0], 0.3, "s"),
        Bound("first_step_s", "whole process of a run of one step", 0.1, "s"),
        cold(0.6), Bound("warm_s", SHOWN["warm_s"][0], 0.05, "s"))),
    Model("custom", steps=2000, seconds=0.4, checked=11, autotune=True, threads=1, processes=True, bounds=(*speedup(8), *COMMON)),
    Model("lstm", steps=20, seconds=0.5, checked=5, text=True, bounds=(*speedup(3), floor(1.8), *COMMON)),
    Model("gpt", steps=20, seconds=0.5, checked=5, text=True, bounds=(*speedup(2), floor(1.35), *COMMON, cold(1.0))),
    Model("llama", steps=10, seconds=1.5, checked=5, text=True, bounds=(*speedup(1.3), floor(1.8), *COMMON)),
    Model("gpt2", source="gpt", settings=dict(L=12, H=12, C=768, V=50304, batch=4), steps=4, seconds=4, checked=3, text=True,
          bounds=(
              *speedup(1.15),
              Bound("realistic_ratio", "step: tgc over its dots and its other kernels at copy speed", 1.15, "x"), *COMMON,
              Bound("memory_ratio", SHOWN["memory_ratio"][0], 0.75, "x"), cold(1.5))),
    Model("gpt2-bf16", source="gpt", precision="bf16", settings=dict(L=12, H=12, C=768, V=50304, batch=4), steps=4, seconds=4, checked=3,
          text=True, bounds=(
              *MIXED, Bound("realistic_ratio", "step: tgc over its dots and its other kernels at copy speed", 1.15, "x"))),
    Model("gpt384-bf16", source="gpt", precision="bf16", settings=dict(C=384, T=256, H=6), steps=4, seconds=2, checked=3, text=True,
          bounds=MIXED),
    Model("llama-bf16", source="llama", precision="bf16", steps=10, seconds=1.5, checked=5, text=True, bounds=MIXED),
)
