"""One process of a peer for bench/run, with one number of threads.

    worker.py LIBRARY MODEL SETTINGS THREADS INITIAL PRECISION [process | write]

LIBRARY is torch or jax, SETTINGS a JSON object of sizes and `batch` that replace the recipe's, INITIAL a safetensors file, PRECISION f32, or bf16 for PyTorch's CPU autocast. For each line on
standard input it prints one line of JSON:
    version          of the library
    ways             what `open` can take
    open STEPS WAY   makes it the way to train in, from the initial weights: seconds of its first step, and the losses of so many
    time SECONDS     the median milliseconds of its further steps for about so long
    close            drops it
    peak             the most memory that this process has had, in bytes
process: a training run as a script would have it, instead, and what validation said at the end. write: makes INITIAL.
"""
import dataclasses
import gc
import importlib
import itertools
import json
import statistics
import sys
import time

import recipes
import tgdata

BATCHES, LEAST_STEPS = 50, 3


def recipe_of(name, settings):
    recipe = recipes.RECIPES[name]
    sizes = {key: value for key, value in settings.items() if key in recipe.sizes}
    return dataclasses.replace(recipe, sizes=recipe.sizes | sizes, batch=settings.get("batch", recipe.batch))


def initial_of(path):
    return {name.removeprefix("net."): value for name, value in tgdata.read_safetensors(path).items()}


def peak_bytes():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


class Server:
    def __init__(self, library, recipe, initial, precision):
        self.library, self.recipe, self.initial, self.way = library, recipe, initial, None
        self.precision = {} if precision == "f32" else {"precision": precision}
        # Full batches that are ready tensors: what gathers and converts them is not in the times.
        training = itertools.islice(recipe.data(recipe).training(recipe.seed), BATCHES)
        full = [library.batch(arrays) for arrays in training if len(arrays[0]) == recipe.batch]
        self.first, self.batches = full, itertools.cycle(full)

    def version(self):
        return self.library.VERSION

    def ways(self):
        return list(self.library.ways(self.recipe))

    def open(self, steps, name):
        self.close()
        steps, how = int(steps), self.library.ways(self.recipe)[name]
        begin = time.perf_counter()
        self.way = self.library.Way(self.recipe, initial_of(self.initial), **how, **self.precision)
        losses = [float(self.way.train(self.first[0], steps))]
        first_step_s = time.perf_counter() - begin
        losses += [float(self.way.train(batch, steps)) for batch in self.first[1:steps]]
        return {"first_step_s": first_step_s, "losses": losses}

    def time(self, seconds):
        self.way.train(next(self.batches), self.recipe.steps)  # what others left in the caches
        times, end = [], time.perf_counter() + float(seconds)
        while len(times) < LEAST_STEPS or time.perf_counter() < end:
            batch, begin = next(self.batches), time.perf_counter()
            self.way.train(batch, self.recipe.steps)
            times.append(time.perf_counter() - begin)
        return 1e3 * statistics.median(times)

    def close(self):
        self.way = None
        self.library.forget()
        gc.collect()

    def peak(self):
        return peak_bytes()


def serve(server):
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split(" ", 2)
        try:
            answer = {"answer": getattr(server, command)(*words)}
        except Exception as error:  # of whatever library: the way does not work here
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def process(library, recipe, initial):
    data = recipe.data(recipe)
    way = library.Way(recipe, initial_of(initial))
    held_out = library.batch(data.held_out)
    for i, arrays in enumerate(itertools.islice(data.training(recipe.seed), recipe.steps), 1):
        way.train(library.batch(arrays), recipe.steps)
        if i % data.steps_per_epoch == 0:
            measured = way.measure(held_out)
    print(json.dumps(measured))


def main():
    name, model, settings, threads, initial, precision, *what = sys.argv[1:]
    library = importlib.import_module(f"{name}_ways")
    library.set_threads(int(threads))
    recipe = recipe_of(model, json.loads(settings))
    if what == ["write"]:
        tgdata.write_safetensors(initial, {f"net.{name}": value for name, value in library.make_initial(recipe).items()})
    elif what == ["process"]:
        process(library, recipe, initial)
    else:
        serve(Server(library, recipe, initial, precision))


main()
