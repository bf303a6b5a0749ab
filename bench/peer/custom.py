"""models/custom.tg in PyTorch: a table, a standardising layer with running statistics, Huber loss, Lion, a triangle schedule."""
import csv
import math
import os

import numpy as np
import torch

import tgdata

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "models", "data", "diabetes.csv")
NAMES = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]
BATCH, EPOCHS, PEAK, DECAY = 32, 40, 1e-3, 0.01


def data():
    rows = list(csv.DictReader(open(PATH)))
    features = np.array([[float(row[name]) for name in NAMES] for row in rows], np.float32)
    target = np.array([float(row["progression"]) for row in rows], np.float32)
    return features, target, [tgdata.split(len(rows), [0.8, 0.2], i) for i in range(2)]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(10, 64), torch.nn.Linear(64, 1)
        self.mu, self.var = torch.zeros(10), torch.ones(10)

    def forward(self, x):
        mu, var = self.mu.to(x), self.var.to(x)
        if self.training:
            with torch.no_grad():
                m = x.mean(0)
                mu = 0.9 * mu + 0.1 * m
                var = 0.9 * var + 0.1 * ((x - m) ** 2).mean(0)
                self.mu, self.var = mu, var
        return self.fc2(torch.tanh(self.fc1((x - mu) * torch.rsqrt(var + 1e-6))))[:, 0]


def huber(y, target, delta):
    e = (y - target).abs()
    return torch.where(e < delta, 0.5 * e ** 2, delta * (e - 0.5 * delta)).mean()


def lion(net, moments, rate):
    with torch.no_grad():
        for name, p in net.named_parameters():
            m = moments.setdefault(name, torch.zeros_like(p))
            p.copy_(p - rate * (torch.sign(0.9 * m + 0.1 * p.grad) + DECAY * p))
            m.copy_(0.99 * m + 0.01 * p.grad)


def total_steps(records):
    return EPOCHS * math.ceil(records / BATCH)


def batches(seed, features, target, records):
    for epoch in range(EPOCHS):
        order = tgdata.epoch_order(records, seed, epoch)
        for at in range(0, len(order), BATCH):
            rows = order[at:at + BATCH]
            yield torch.from_numpy(features[rows]), torch.from_numpy(target[rows])


def train_step(net, moments, step, total, x, target):
    half = total / 2
    rate = PEAK * (1 - abs(step - 0.5 - half) / half)
    net.zero_grad()
    dtype = net.fc1.weight.dtype
    loss = huber(150 + 75 * net(x.to(dtype)), target.to(dtype), 30)
    loss.backward()
    lion(net, moments, rate)
    return loss.item()


def rmse(net, x, target):
    net.eval()
    with torch.no_grad():
        error = 150 + 75 * net(x) - target
    net.train()
    return float((error ** 2).mean().sqrt())
