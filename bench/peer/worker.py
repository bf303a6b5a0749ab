"""One PyTorch process for bench/run: every way of running a model's training step, with one number of threads.

    worker.py MODEL THREADS INITIAL     then, for each line on standard input, one line of JSON on standard output:
        check N    the losses of each way's first N steps from the initial weights (compiles: slow)
        time N     for each way the median milliseconds of N further steps
        peak       the most memory that this process has had, in bytes
    worker.py MODEL THREADS INITIAL process     a training run as a script would have it, and its accuracy at the end
"""
import importlib
import itertools
import json
import statistics
import sys
import time

import torch

import tgdata


class Way:
    """A network, an optimizer, and how they are run."""

    def __init__(self, model, initial, total, compiled=None, optimizer="fused"):
        self.model, self.total, self.step, self.optimizer_kind = model, total, 0, optimizer
        self.net = model.make_net()
        self.net.load_state_dict(initial)
        self.rate = torch.tensor(model.learning_rate(1, total)) if optimizer == "compiled" else model.learning_rate(1, total)
        self.optimizer = model.make_optimizer(self.net, lr=self.rate, fused=optimizer == "fused")
        self.loss = torch.compile(self.compute_loss, **compiled) if compiled is not None else self.compute_loss
        self.update = torch.compile(self.optimizer.step) if optimizer == "compiled" else self.optimizer.step

    def compute_loss(self, *batch):
        return self.model.loss(self.net, *batch)

    def set_rate(self):
        rate = self.model.learning_rate(self.step, self.total)
        if torch.is_tensor(self.rate):
            self.rate.fill_(rate)
            return
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def train(self, batch):
        self.step += 1
        self.set_rate()
        self.optimizer.zero_grad()
        loss = self.loss(*batch)
        loss.backward()
        self.update()
        return loss


WAYS = {
    "eager": dict(optimizer="plain"),
    "eager, fused AdamW": dict(),
    "compiled, fused AdamW": dict(compiled={}),
    "compiled, compiled AdamW": dict(compiled={}, optimizer="compiled"),
    "compiled with max-autotune, fused AdamW": dict(compiled={"mode": "max-autotune"}),
}


def milliseconds(way, batches, steps):
    times = []
    for batch in itertools.islice(batches, steps):
        begin = time.perf_counter()
        way.train(batch)
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def peak_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def serve(model, initial):
    data = model.data()
    total = model.total_steps(len(data[2][0]))
    ways = {name: Way(model, initial, total, **how) for name, how in WAYS.items()}
    # Full batches that are ready tensors: what gathers and converts them is not in the times.
    full = [batch for batch in itertools.islice(model.batches(1, *data[:2], data[2][0]), 100) if len(batch[0]) == model.BATCH]
    batches = itertools.cycle(full)
    for line in sys.stdin:
        command, *argument = line.split()
        if command == "check":
            answer = {name: [way.train(batch).item() for batch in full[:int(argument[0])]] for name, way in ways.items()}
        elif command == "time":
            answer = {name: milliseconds(way, batches, int(argument[0])) for name, way in ways.items()}
        else:
            answer = peak_bytes()
        print(json.dumps(answer), flush=True)


def process(model, initial):
    images, labels, parts = model.data()
    way = Way(model, initial, model.total_steps(len(parts[0])))
    per_epoch = way.total // model.EPOCHS
    held_out = model.batch_of(images, labels, parts[1])
    for i, batch in enumerate(model.batches(1, images, labels, parts[0]), 1):
        way.train(batch)
        if i % per_epoch == 0:
            accuracy = model.accuracy(way.net, *held_out)
    print(json.dumps({"accuracy": accuracy, "peak_bytes": peak_bytes()}))


def main():
    name, threads, initial = sys.argv[1:4]
    torch.set_num_threads(int(threads))
    values = {key.split(".", 1)[1]: torch.from_numpy(value.copy()) for key, value in tgdata.read_safetensors(initial).items()}
    (process if "process" in sys.argv[4:] else serve)(importlib.import_module(name), values)


main()
