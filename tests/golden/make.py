#!/usr/bin/env python3
"""Writes NAME.init.safetensors, NAME.after.safetensors and NAME.json for the models named (all: none named): initial weights, the
first 20 losses of PyTorch in f32, the weights after them in f64, how far f32's are from those, and where low.py has the model the
losses in bf16 and f16. Text models are taken at small
sizes and need $TG_DATA. Needs PyTorch; the tests that read the files do not."""
import dataclasses
import itertools
import json
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peer"))
import low
import tgdata
import torch_models
import torch_ways
from recipes import RECIPES

STEPS = 20
SIZES = dict(
    digits={},
    custom={},
    gpt=dict(T=16, L=2, H=2, C=32, V=256),
    llama=dict(T=16, L=2, H=4, KV=2, C=32, F=48, V=256),
    lstm=dict(T=8, C=24, V=256),
)


def run(recipe, initial, dtype):
    """custom's schedule counts the steps that are asked for, the others are in their first steps for any number."""
    way = torch_ways.Way(recipe, initial, optimizer="plain", dtype=dtype)
    batches = itertools.islice(recipe.data(recipe).training(recipe.seed), STEPS)
    losses = [way.train(torch_ways.batch(arrays), STEPS).item() for arrays in batches]
    return losses, dict(way.net.named_parameters())


def run_low(recipe, initial, dtype):
    models = low.low_models(dtype)
    if recipe.model not in models:
        return None
    plain = torch_models.MODELS[recipe.model]
    torch_models.MODELS[recipe.model] = models[recipe.model]
    way = torch_ways.Way(recipe, initial, optimizer="plain")
    torch_models.MODELS[recipe.model] = plain
    batches = itertools.islice(recipe.data(recipe).training(recipe.seed), STEPS)
    return low.train(way, (torch_ways.batch(arrays) for arrays in batches), STEPS, dtype)


for name in sys.argv[1:] or SIZES:
    recipe = dataclasses.replace(RECIPES[name], sizes=SIZES[name])
    initial = torch_ways.make_initial(recipe)
    losses, single = run(recipe, initial, torch.float32)
    _, double = run(recipe, initial, torch.float64)
    path = os.path.join(HERE, name)
    tgdata.write_safetensors(path + ".init.safetensors", {"net." + k: v for k, v in initial.items()})
    tgdata.write_safetensors(path + ".after.safetensors", {"net." + k: v.detach().numpy() for k, v in double.items()})
    distance = {"net." + k: float((single[k].double() - double[k]).detach().norm()) for k in single}
    golden = {"steps": STEPS, "seed": recipe.seed, "sizes": SIZES[name], "torch": torch.__version__, "losses": losses,
              "distance_f32_to_f64": distance}
    for key, dtype in ("bf16", torch.bfloat16), ("f16", torch.float16):
        losses = run_low(recipe, initial, dtype)
        if losses:
            golden["losses_" + key] = losses
    with open(path + ".json", "w") as file:
        json.dump(golden, file, indent=1)
