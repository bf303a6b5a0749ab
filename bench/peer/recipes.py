"""How the models of models/ are trained, in numbers that every peer takes: sizes, batches, schedules, optimizers."""
import csv
import itertools
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np

import tgdata

DATA = Path(__file__).resolve().parent.parent.parent / "models/data"
TEXT_SHARES = [0.9, 0.1]


@dataclass(frozen=True)
class Recipe:
    model: str  # of torch_models.py and jax_models.py
    batch: int
    steps: int  # of a whole run
    seed: int
    rate: Callable[[int, int], float]  # of a step (from 1) of a run of so many
    data: Callable[["Recipe"], object]  # has `training(seed)`: batches as tuples of arrays, without end; perhaps `held_out`
    sizes: dict = field(default_factory=dict)
    optimizer: str = "adamw"
    betas: tuple = (0.9, 0.999)
    decay: float = 0.0
    decayed_rank: int = 0  # parameters of fewer dimensions are not decayed
    clip: float = 0.0  # the largest norm of all gradients; 0: any

    def rate_at(self, step, total):
        """Goes on after the end as if the run began again: a timing has as many steps as it wants."""
        return self.rate((step - 1) % total + 1, total)


def warmup_cosine(peak, warmup, floor=0.0):
    def rate(step, total):
        if step <= warmup:
            return peak * step / warmup
        return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    return rate


def triangle(peak):
    return lambda step, total: peak * (1 - abs(step - 0.5 - total / 2) / (total / 2))


class Records:
    """Arrays of records, four fifths of them for training."""

    def __init__(self, recipe, *fields):
        self.batch, self.fields = recipe.batch, fields
        self.train, self.test = (tgdata.split(len(fields[0]), [0.8, 0.2], i) for i in range(2))

    def of(self, rows):
        return tuple(values[rows] for values in self.fields)

    @property
    def held_out(self):
        return self.of(self.test)

    @property
    def steps_per_epoch(self):
        return math.ceil(len(self.train) / self.batch)

    def training(self, seed):
        for epoch in itertools.count():
            order = tgdata.epoch_order(self.train, seed, epoch)
            for at in range(0, len(order), self.batch):
                yield self.of(order[at:at + self.batch])


def digits(recipe):
    labels = tgdata.idx(str(DATA / "digits-labels.idx.gz"))
    return Records(recipe, tgdata.idx(str(DATA / "digits-images.idx.gz")), labels.astype(np.int64))


def patients(recipe):
    names = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]
    with open(DATA / "diabetes.csv") as file:
        rows = list(csv.DictReader(file))
    features = np.array([[float(row[name]) for name in names] for row in rows], np.float32)
    return Records(recipe, features, np.array([float(row["progression"]) for row in rows], np.float32))


class Text:
    """Windows of T + 1 tokens of $TG_DATA/data/tinyshakespeare.txt."""

    def __init__(self, recipe):
        self.batch, self.length = recipe.batch, recipe.sizes["T"]
        path = os.path.join(os.environ.get("TG_DATA", "../shared"), "data", "tinyshakespeare.txt")
        self.tokens = tgdata.text_tokens(path, TEXT_SHARES, 0)

    def training(self, seed):
        for epoch in itertools.count():
            order = tgdata.text_epoch(len(self.tokens), self.length, seed, epoch)
            for at in range(0, len(order), self.batch):
                rows = order[at:at + self.batch]
                yield (np.stack([self.tokens[i:i + self.length + 1] for i in rows]).astype(np.int64),)


GPT = Recipe("gpt", batch=12, steps=2000, seed=1337, data=Text, sizes=dict(T=64, L=4, H=4, C=128, V=256),
             rate=warmup_cosine(1e-3, 100, 1e-4), betas=(0.9, 0.99), decay=0.1, decayed_rank=2, clip=1.0)

RECIPES = {
    "digits": Recipe("digits", batch=32, steps=30 * 45, seed=1, data=digits, rate=warmup_cosine(1e-2, 50), decay=0.01),
    "custom": Recipe("custom", batch=32, steps=40 * 12, seed=1, data=patients, rate=triangle(1e-3), optimizer="lion",
                     betas=(0.9, 0.99), decay=0.01),
    "gpt": GPT,
    "llama": Recipe("llama", batch=16, steps=1000, seed=1, data=Text, sizes=dict(T=128, L=4, H=8, KV=2, C=256, F=704, V=256),
                    rate=warmup_cosine(1e-3, 100, 1e-4), betas=(0.9, 0.95), decay=0.1, decayed_rank=2, clip=1.0),
    "lstm": Recipe("lstm", batch=32, steps=500, seed=1, data=Text, sizes=dict(T=32, C=128, V=256),
                   rate=lambda step, total: 2e-3, clip=1.0),
}
