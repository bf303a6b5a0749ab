#!/usr/bin/env python3
"""Writes NAME.init.safetensors, NAME.after.safetensors and NAME.json for the models named (all: none named): initial weights, the
first 20 losses of PyTorch in f32, the weights after them in f64, and how far f32's are from those. Text models are taken at small
sizes and need $TG_DATA. Needs PyTorch; the tests that read the files do not."""
import json
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peer"))
import custom
import digits
import texts
import tgdata

STEPS = 20
SIZES = dict(
    digits={},
    custom={},
    gpt=dict(T=16, L=2, H=2, C=32, V=256),
    llama=dict(T=16, L=2, H=4, KV=2, C=32, F=48, V=256),
    lstm=dict(T=8, C=24, V=256),
)


def digits_steps(net):
    images, labels, parts = digits.data()
    optimizer, total = digits.make_optimizer(net), digits.total_steps(len(parts[0]))
    for step, (image, label) in enumerate(digits.batches(1, images, labels, parts[0]), 1):
        yield digits.train_step(net, optimizer, step, total, image, label)


def custom_steps(net):
    features, target, parts = custom.data()
    moments = {}
    for step, (x, y) in enumerate(custom.batches(1, features, target, parts[0]), 1):
        yield custom.train_step(net, moments, step, STEPS, x, y)  # its schedule counts the steps that are asked for


def text_steps(net):
    recipe, length = net.recipe, SIZES[net.name]["T"]
    optimizer = texts.make_optimizer(net, recipe)
    for step, window in enumerate(texts.batches(recipe, length, recipe["seed"]), 1):
        yield texts.train_step(net, optimizer, recipe, step, window)


def model_of(name):
    """A maker of the model, its steps, its seed."""
    if name == "digits":
        return digits.Mlp, digits_steps, 1
    if name == "custom":
        return custom.Net, custom_steps, 1
    model = texts.MODELS[name]
    model.name = name
    return lambda: model(**SIZES[name]), text_steps, model.recipe["seed"]


def run(make, steps, initial, dtype):
    net = make().to(dtype)
    net.load_state_dict({name: value.to(dtype) for name, value in initial.items()})
    losses = [loss for _, loss in zip(range(STEPS), steps(net))]
    return losses, net.state_dict()


for name in sys.argv[1:] or SIZES:
    make, steps, seed = model_of(name)
    torch.manual_seed(0)
    initial = make().state_dict()
    losses, single = run(make, steps, initial, torch.float32)
    _, double = run(make, steps, initial, torch.float64)
    path = os.path.join(HERE, name)
    tgdata.write_safetensors(path + ".init.safetensors", {"net." + k: v.numpy() for k, v in initial.items()})
    tgdata.write_safetensors(path + ".after.safetensors", {"net." + k: v.numpy() for k, v in double.items()})
    distance = {"net." + k: float((single[k].double() - double[k]).norm()) for k in single}
    with open(path + ".json", "w") as file:
        json.dump({"steps": STEPS, "seed": seed, "sizes": SIZES[name], "torch": torch.__version__, "losses": losses,
                   "distance_f32_to_f64": distance}, file, indent=1)
