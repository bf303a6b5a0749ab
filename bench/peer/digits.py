"""models/digits.tg in PyTorch: the same model, recipe, initial weights and batches."""
import math
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(__file__))
import tgdata

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "models", "data")
BATCH, EPOCHS, PEAK, WARMUP = 32, 30, 1e-2, 50


def data():
    images = tgdata.idx(os.path.join(ROOT, "digits-images.idx.gz"))
    labels = tgdata.idx(os.path.join(ROOT, "digits-labels.idx.gz"))
    parts = [tgdata.split(len(labels), [0.8, 0.2], i) for i in range(2)]
    return images, labels, parts


class Mlp(torch.nn.Module):
    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.fc1 = torch.nn.Linear(64, 128, dtype=dtype)
        self.fc2 = torch.nn.Linear(128, 10, dtype=dtype)

    def forward(self, image):
        x = image.to(self.fc1.weight.dtype) / 16
        return self.fc2(torch.relu(self.fc1(x.reshape(-1, 64))))


def learning_rate(step, total):
    """warmup_cosine: step counts from 1."""
    if step <= WARMUP:
        return PEAK * step / WARMUP
    return PEAK * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (total - WARMUP)))


def make_net():
    return Mlp()


def make_optimizer(net, lr=PEAK, fused=False):
    return torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.01, fused=fused)


def total_steps(records):
    return EPOCHS * math.ceil(records / BATCH)


def batch_of(images, labels, rows):
    return torch.from_numpy(images[rows]), torch.from_numpy(labels[rows].astype(np.int64))


def batches(seed, images, labels, records):
    """(image, label) tensors, epoch after epoch."""
    for epoch in range(EPOCHS):
        order = tgdata.epoch_order(records, seed, epoch)
        for at in range(0, len(order), BATCH):
            yield batch_of(images, labels, order[at:at + BATCH])


def loss(net, image, label):
    return torch.nn.functional.cross_entropy(net(image), label)


@torch.no_grad()
def accuracy(net, image, label):
    return (net(image).argmax(1) == label).float().mean().item()


def train_step(net, optimizer, step, total, image, label):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, total)
    optimizer.zero_grad()
    value = loss(net, image, label)
    value.backward()
    optimizer.step()
    return value.item()
