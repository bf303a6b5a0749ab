#!/usr/bin/env python3
"""Writes custom.*: as make_digits.py. Needs PyTorch; the tests that read the files do not."""
import json
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "peer"))
import custom
import tgdata

STEPS, SEED = 20, 1


def run(initial, dtype):
    features, target, parts = custom.data()
    net, moments = custom.Net().to(dtype), {}
    net.load_state_dict({name: value.to(dtype) for name, value in initial.items()})
    losses = []  # the program is told to run STEPS steps, which is what its schedule then counts
    for step, (x, y) in enumerate(custom.batches(SEED, features, target, parts[0]), 1):
        losses.append(custom.train_step(net, moments, step, STEPS, x, y))
        if step == STEPS:
            return losses, net.state_dict()


torch.manual_seed(0)
initial = custom.Net().state_dict()
losses, single = run(initial, torch.float32)
_, double = run(initial, torch.float64)
tgdata.write_safetensors(os.path.join(HERE, "custom.init.safetensors"), {"net." + k: v.numpy() for k, v in initial.items()})
tgdata.write_safetensors(os.path.join(HERE, "custom.after.safetensors"), {"net." + k: v.numpy() for k, v in double.items()})
distance = {"net." + k: float((single[k].double() - double[k]).norm()) for k in single}
with open(os.path.join(HERE, "custom.json"), "w") as file:
    json.dump({"steps": STEPS, "seed": SEED, "sizes": {}, "torch": torch.__version__, "losses": losses, "distance_f32_to_f64": distance},
              file, indent=1)
