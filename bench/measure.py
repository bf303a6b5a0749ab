"""Measures one model: tgc's step, memory, compile times and whole runs, and the peers' steps, in interleaved rounds."""
import json
import os
import re
import resource
import statistics
import subprocess
import time
from pathlib import Path

import peers
from models import ROOT
from peers import Failed

# A library's threads spin for a while after their last work: nothing is timed meanwhile.
REST_SECONDS = 0.3
TEXT_BYTES = 32 << 10


def run(command, **options):
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def seconds(command, **options):
    begin = time.perf_counter()
    run(command, **options)
    return time.perf_counter() - begin


class Others:
    """How much of the machine's processors others have used since this began."""

    def __init__(self):
        self.begin = self.busy()

    @staticmethod
    def busy():
        """Seconds of processors in use, in all and of this process and its ended children; and of processors there were."""
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        idle = ticks[3] + ticks[4]
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(ticks) - idle, sum(usage.ru_utime + usage.ru_stime for usage in usages), sum(ticks)

    def share(self):
        busy, ours, all_there = (after - before for before, after in zip(self.begin, self.busy()))
        return max(busy - ours, 0) / all_there if all_there else 0


class Bench:
    def __init__(self, options, model, folder):
        self.options, self.model, self.folder = options, model, Path(folder)
        self.program, self.initial = self.folder / model.name, self.folder / "initial.safetensors"
        self.wide = self.folder / f"{model.name}-f32"  # the same model in f32, of a mixed one
        self.samples = {}
        self.choice = None
        if model.text:
            self.shorten_text()

    def shorten_text(self):
        """Every batch costs the same, and validation after the checked steps is short."""
        text = Path(os.environ["TG_DATA"]) / "data/tinyshakespeare.txt"
        (self.folder / "data").mkdir()
        (self.folder / "data" / text.name).write_bytes(text.read_bytes()[:TEXT_BYTES])
        os.environ["TG_DATA"] = str(self.folder)

    def add(self, figure, value):
        self.samples.setdefault(figure, []).append(value)

    def command(self, precision, to):
        settings = [f"--set={name}={value}" for name, value in self.model.settings.items()]
        return [self.options.tgc, "compile", self.model.file, *settings, "-p", precision, "-o", to]

    def compile(self, cache, to):
        return seconds(self.command(self.model.precision, to), env={**os.environ, "TGC_CACHE": str(self.folder / cache)})

    def activations(self, precision, to):
        """Bytes, from the plan of the program that it writes."""
        report = run([*self.command(precision, to), "--report"])
        return int(re.search(r"^ *activations +(\d+) bytes", report, re.M).group(1))

    def train(self, *options):
        return [self.program, "train", "--out", self.folder / "out", "--json", *options]

    def losses(self):
        return json.loads(run(self.train("--init", self.initial, "--steps", self.model.checked, "--trace")))["trace"]["loss"]

    def round(self, number, timed):
        peers.tell(self.model, f"round {number + 1} of {self.options.rounds}")
        step = json.loads(run([self.program, "bench", "--json", "--steps", self.model.steps]))
        self.add("step_ms", step["step_ms"])
        if self.model.mixed:
            wide = json.loads(run([self.wide, "bench", "--json", "--steps", self.model.steps]))
            self.add("own_speedup", wide["step_ms"] / step["step_ms"])
        self.add("floor_ratio", step["step_ms"] / step["floor_ms"])
        self.add("realistic_ratio", step["step_ms"] / step["realistic_floor_ms"])
        self.add("peak_bytes", step["peak_bytes"])
        self.add("excess_mib", (step["peak_bytes"] - step["plan_bytes"]) / 2**20)
        self.add("cold_s", self.compile(f"cache{number}", self.folder / "again"))
        self.add("warm_s", self.compile(f"cache{number}", self.folder / "again"))
        for candidate, peer in timed.items():
            time.sleep(REST_SECONDS)
            milliseconds = peer.ask("time", self.model.seconds)
            if milliseconds is None:
                raise Failed(f"{candidate.way} of {candidate.library} stopped working")
            self.add((candidate, "ms"), milliseconds)
            self.add((candidate, "ratio"), milliseconds / step["step_ms"])
        if self.model.processes:
            time.sleep(REST_SECONDS)
            self.round_of_processes()

    def round_of_processes(self):
        self.add("process_s", seconds(self.train()))
        self.add("first_step_s", seconds(self.train("--steps", "1")))
        self.add("peer_process_s", seconds(peers.arguments(self.options.peers, self.model, self.initial, "torch", 1, "process"),
                                           env=peers.environment(1, "default malloc", self.folder)))

    def measure(self):
        self.compile("cache", self.program)
        if self.model.mixed:
            wide, low = self.activations("f32", self.wide), self.activations(self.model.precision, self.program)
            self.add("activation_ratio", low / wide)
        run(peers.arguments(self.options.peers, self.model, self.initial, "torch", 1, "write"))
        self.choice = peers.Choice(self.options.peers, self.model, self.initial, self.losses())
        timed = {}
        try:
            for candidate in self.choice.run():
                peer = timed[candidate] = self.choice.peer(candidate.library, candidate.threads, candidate.malloc)
                if not self.choice.open(peer, candidate):
                    raise Failed(f"{candidate.way} of {candidate.library} worked once, and then no more")
            for number in range(self.options.rounds):
                self.round(number, timed)
            for candidate, peer in timed.items():
                self.add((candidate, "peak"), peer.ask("peak"))
        finally:
            for peer in timed.values():
                peer.end()
        for seed in range(1, self.model.seeds + 1):
            self.add("accuracy", json.loads(run(self.train("--seed", seed)))["val"]["accuracy"])
        return self.figures()

    def figures(self):
        """By name; of a candidate by (Candidate, "ms" | "ratio" | "peak")."""
        figures = {name: statistics.median(values) for name, values in self.samples.items()}
        if self.model.seeds:
            figures["accuracy"] = statistics.mean(self.samples["accuracy"])
        figures["loss_error"] = self.choice.loss_error
        opened = self.choice.opened
        for library in self.model.libraries:
            name = {"torch": "speedup", "jax": "jax_speedup"}[library]
            timed = [key[0] for key in figures if isinstance(key, tuple) and key[1] == "ratio" and key[0].library == library]
            best = min(timed, key=lambda candidate: figures[candidate, "ratio"])
            figures[name] = figures[best, "ratio"]
            figures[library] = best
            figures[f"{library}_ms"] = figures[best, "ms"]
        figures["memory_ratio"] = figures["peak_bytes"] / figures[figures["torch"], "peak"]
        compiled = [candidate for candidate in self.choice.fastest("torch") if candidate.compiled]
        for name, candidate in (("compiled_first_step_s", compiled[0] if compiled else None), ("jax_first_step_s", figures.get("jax"))):
            if candidate:
                figures[name] = opened[candidate.library, candidate.way, candidate.threads]
        return figures
