#!/usr/bin/env python3
"""Writes digits.*: initial weights, the first 20 losses of PyTorch in f32, and the weights after them in f32 and f64.
Needs PyTorch; the tests that read the files do not."""
import json
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peer"))
import digits
import tgdata

STEPS, SEED = 20, 1


def run(initial, dtype):
    images, labels, parts = digits.data()
    net = digits.Mlp(dtype)
    net.load_state_dict({name: value.to(dtype) for name, value in initial.items()})
    optimizer = digits.make_optimizer(net)
    total, losses = digits.total_steps(len(parts[0])), []
    for step, (image, label) in enumerate(digits.batches(SEED, images, labels, parts[0]), 1):
        losses.append(digits.train_step(net, optimizer, step, total, image, label))
        if step == STEPS:
            break
    return losses, net.state_dict()


torch.manual_seed(0)
initial = digits.Mlp().state_dict()
losses, single = run(initial, torch.float32)
_, double = run(initial, torch.float64)
tgdata.write_safetensors(os.path.join(HERE, "digits.init.safetensors"), {"net." + k: v.numpy() for k, v in initial.items()})
distance = {"net." + k: float((single[k].double() - double[k]).norm()) for k in single}
tgdata.write_safetensors(os.path.join(HERE, "digits.after.safetensors"),
                         {"net." + k: v.numpy() for k, v in double.items()})
with open(os.path.join(HERE, "digits.json"), "w") as file:
    json.dump({"steps": STEPS, "seed": SEED, "torch": torch.__version__, "losses": losses, "distance_f32_to_f64": distance},
              file, indent=1)
