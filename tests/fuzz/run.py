#!/usr/bin/env python3
"""Runs the libFuzzer targets of a build with the preset `fuzz`, each from its committed corpus.

usage: run.py [--build DIR] [--seconds N | --runs N] [--jobs N] [TARGET]...

A crash, a leak, an input of more than 10 s or 2 GB fails; the input is kept and the command that replays it is printed.
What --runs finds stays in DIR/found/TARGET and is where the next run begins; --seconds always begins with the corpus alone."""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# target: its layer, the longest input, and the files (or words) whose words its inputs are made of
TARGETS = {
    "language": ("lower", 2048, ["frontend/std", "frontend/builtins.def", "models"]),
    "graph": ("ir", 4096, ["ir/ops.def", "tests/ir/corpus/graph"]),
    "plan": ("plan", 4096, []),
    "idx": ("runtime", 1024, []),
    "csv": ("runtime", 1024, ['"NA"', '"nan"', '","', r'"\"\""', r'"\x0d\x0a"', '"1e300"']),
    "npy": ("runtime", 1024, ["\"'descr': '<f4'\"", "\"'fortran_order': True\"", "\"'shape': (2, 3)\""]),
    "safetensors": ("runtime", 1024, [r'"\"dtype\":\"BF16\""', r'"\"shape\":[1]"', r'"\"data_offsets\":[0,2]"',
                                      r'"\"__metadata__\":{"', r'"\"words.f\":\"[\\\"a\\\"]\""']),
    "text": ("runtime", 256, []),
}
SLOW = {"text": 50}  # takes that part of --runs: a character may mean a table of megabytes
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]


def words_of(path):
    """Words and signs of a file, or of those in a folder."""
    if os.path.isdir(path):
        return set().union(*(words_of(os.path.join(path, name)) for name in os.listdir(path)))
    with open(path, errors="ignore") as file:
        text = re.sub(r"//.*", "", file.read())
    words = re.findall(r"[A-Za-z_][A-Za-z_0-9.]+=?|[^\sA-Za-z0-9\"\\]{1,2}", text)
    return {f'"{word}"' for word in words if word.isascii() and word.isprintable() and len(word) <= 24}


def dictionary(name, sources, folder):
    words = set()
    for source in sources:
        words |= {source} if source.startswith('"') else words_of(os.path.join(ROOT, source))
    path = os.path.join(folder, name + ".dict")
    with open(path, "w") as file:
        file.write("".join(word + "\n" for word in sorted(words)))
    return path


def run(name, options):
    layer, longest, sources = TARGETS[name]
    corpus = os.path.join(ROOT, "tests", layer, "corpus", name)
    found, failed = (os.path.join(options.build, folder) for folder in (f"found/{name}", f"failed/{name}-"))
    if options.runs is None:
        shutil.rmtree(found, ignore_errors=True)
    os.makedirs(found, exist_ok=True)
    program = os.path.join(options.build, "bin", "fuzz_" + name)
    amount = f"-runs={options.runs // SLOW.get(name, 1)}" if options.runs is not None else f"-max_total_time={options.seconds}"
    command = [program, amount, f"-max_len={longest}", f"-artifact_prefix={failed}", *LIMITS]
    if sources:
        command.append("-dict=" + dictionary(name, sources, os.path.join(options.build, "failed")))
    result = subprocess.run([*command, found, corpus], capture_output=True, text=True, errors="replace")
    done = re.findall(r"DONE +cov: (\d+) ft: (\d+)", result.stderr)
    count = re.search(r"number_of_executed_units: (\d+)", result.stderr)
    if result.returncode == 0 and done and count:
        return True, f"{name:12} {int(count[1]):9,} inputs, {done[-1][0]} edges, {done[-1][1]} features"
    kept = re.findall(r"Test unit written to (\S+)", result.stderr)
    replay = f"replay it with: {program} {kept[-1]}" if kept else " ".join(command + [found, corpus])
    about = [line for line in result.stderr.splitlines() if not re.match(r"#\d+\s|INFO|stat::|0x|Base64", line)]
    return False, "\n".join([f"{name}: exit code {result.returncode}", *about[-60:], replay])


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: run.py ")[1].split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "fuzz"))
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args()
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"there is no target {name}; there are {' '.join(TARGETS)}")
    os.makedirs(os.path.join(options.build, "failed"), exist_ok=True)
    good = True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for ok, text in pool.map(lambda name: run(name, options), options.targets or TARGETS):
            print(text, flush=True)
            good &= ok
    return 0 if good else 1


sys.exit(main())
