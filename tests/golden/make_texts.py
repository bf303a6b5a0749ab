#!/usr/bin/env python3
"""Writes gpt.*, llama.* and lstm.*, at small sizes: initial weights, the first 20 losses of PyTorch in f32, the weights after them in
f64, and how far f32's are from those. Needs PyTorch and $TG_DATA; the tests that read the files need neither PyTorch nor this."""
import json
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peer"))
import texts
import tgdata

STEPS = 20
SIZES = dict(
    gpt=dict(T=16, L=2, H=2, C=32, V=256),
    llama=dict(T=16, L=2, H=4, KV=2, C=32, F=48, V=256),
    lstm=dict(T=8, C=24, V=256),
)


def run(model, sizes, initial, dtype):
    net, recipe = model(**sizes).to(dtype), model.recipe
    net.load_state_dict({name: value.to(dtype) for name, value in initial.items()})
    optimizer, losses = texts.make_optimizer(net, recipe), []
    for step, window in enumerate(texts.batches(recipe, sizes["T"], recipe["seed"]), 1):
        losses.append(texts.train_step(net, optimizer, recipe, step, window))
        if step == STEPS:
            return losses, net.state_dict()


for name, sizes in SIZES.items():
    model = texts.MODELS[name]
    torch.manual_seed(0)
    initial = model(**sizes).state_dict()
    losses, single = run(model, sizes, initial, torch.float32)
    _, double = run(model, sizes, initial, torch.float64)
    path = os.path.join(HERE, name)
    tgdata.write_safetensors(path + ".init.safetensors", {"net." + k: v.numpy() for k, v in initial.items()})
    tgdata.write_safetensors(path + ".after.safetensors", {"net." + k: v.numpy() for k, v in double.items()})
    distance = {"net." + k: float((single[k].double() - double[k]).norm()) for k in single}
    with open(path + ".json", "w") as file:
        json.dump({"steps": STEPS, "seed": model.recipe["seed"], "sizes": sizes, "torch": torch.__version__, "losses": losses,
                   "distance_f32_to_f64": distance}, file, indent=1)
