"""Processes of the libraries that tgc is compared with, and the choice of the fastest among their ways."""
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from models import ROOT

MALLOCS = {"huge pages": "glibc.malloc.hugetlb=1", "default malloc": ""}
MOST_THREADS = 2
# How many candidates of a library are timed at last.
TIMED = {"torch": 2, "jax": 1}


class Failed(Exception):
    pass


def tell(model, text):
    """How far the measurement is."""
    print(f"bench/run: {time.strftime('%H:%M:%S')} {model.name}: {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Candidate:
    library: str
    way: str
    threads: int
    malloc: str

    @property
    def environment(self):
        return f"{self.threads} thread{'s' if self.threads > 1 else ''}, {self.malloc}"

    @property
    def compiled(self):
        return "eager" not in self.way


def arguments(python, model, initial, library, threads, *what):
    return [python, "-B", str(ROOT / "bench/peer/worker.py"), library, model.peer, json.dumps(model.settings), str(threads),
            str(initial), model.precision, *what]


def environment(threads, malloc, cache):
    """torch.compile's code depends on the number of threads, its cache does not say so everywhere."""
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "GLIBC_TUNABLES": MALLOCS[malloc],
            "TORCHINDUCTOR_CACHE_DIR": f"{cache}/{threads}", "JAX_PLATFORMS": "cpu"}


class Peer:
    """A process that stays; see bench/peer/worker.py."""

    def __init__(self, python, model, initial, library, threads, malloc):
        self.name = f"{library}, {model.name}, {threads} threads, {malloc}"
        self.process = subprocess.Popen(
            arguments(python, model, initial, library, threads), cwd=ROOT, text=True, stdin=subprocess.PIPE,
            env=environment(threads, malloc, initial.parent / "inductor"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def ask(self, *words):
        """None: it cannot do that; the reason is told."""
        line = " ".join(str(word) for word in words)
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise Failed(f"the process of a peer ({self.name}) ended at '{line}'; run bench/peer/worker.py by hand to see why")
        answer = json.loads(answer)
        if "error" in answer:
            print(f"bench/run: {self.name}: '{line}': {answer['error'].splitlines()[0]}", file=sys.stderr)
        return answer.get("answer")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Choice:
    """The first pass: how fast each way seems to be. `first` has milliseconds a step by Candidate, `opened` seconds of the first step in
    an environment where nothing of the way was compiled yet."""

    def __init__(self, python, model, initial, losses):
        self.python, self.model, self.initial, self.losses = python, model, initial, losses
        self.first, self.opened, self.versions = {}, {}, {}
        self.loss_error = 0.0

    def open(self, peer, candidate):
        """Whether the peer trains as the candidate says from now on."""
        opened = peer.ask("open", self.model.checked, candidate.way)
        if opened is None:
            return False
        self.opened.setdefault((candidate.library, candidate.way, candidate.threads), opened["first_step_s"])
        pairs = zip(self.losses, opened["losses"], strict=True)
        self.loss_error = max(self.loss_error, *(abs(a - b) / abs(b) for a, b in pairs))
        return True

    def peer(self, library, threads, malloc):
        return Peer(self.python, self.model, self.initial, library, threads, malloc)

    def try_ways(self, library, threads, malloc, wanted):
        with self.peer(library, threads, malloc) as peer:
            self.versions[library] = peer.ask("version")
            for way in wanted or peer.ask("ways"):
                if "autotune" in way and not self.model.autotune:
                    continue
                candidate = Candidate(library, way, threads, malloc)
                tell(self.model, f"{library}, {way}, {candidate.environment}")
                if self.open(peer, candidate):
                    milliseconds = peer.ask("time", self.model.seconds)
                    if milliseconds is not None:
                        self.first[candidate] = milliseconds
                peer.ask("close")

    def fastest(self, library):
        return sorted((candidate for candidate in self.first if candidate.library == library), key=self.first.get)

    def run(self):
        """The candidates to time. All ways are tried in one environment, the fastest of them in the others too."""
        chosen = []
        threads = [self.model.threads] + [count for count in range(1, MOST_THREADS + 1) if count != self.model.threads]
        first, *others = [(count, malloc) for count in threads for malloc in MALLOCS]
        for library in self.model.libraries:
            timed = TIMED[library]
            self.try_ways(library, *first, wanted=None)
            if not self.fastest(library):
                raise Failed(f"no way of {library} works for {self.model.name}")
            for place in others:
                self.try_ways(library, *place, [self.fastest(library)[0].way])
            chosen += self.fastest(library)[:timed]
        return chosen
