#!/usr/bin/env python3
"""Makes each call for memory and each call on files fail, one at a time, over what tgc and its programs do, and looks at what
is left: tests/preload/fault.c says which calls these are.

usage: run.py [--build DIR] [--every K] [--jobs N] [SCENARIO]...

After a call has failed the command gives its usual result (code 0), or an error on stderr with the code for memory or for
files; it does not crash or run on; what it has taken it has given back; each file is as before or as it should become; nothing
temporary is left. --every K takes one call in K of each kind (and always the first and the last)."""
import argparse
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MEMORY, FILES = 5, 4
SECONDS = 60

# scenario: the program that calls fail in, and the command, in a folder that the preparation has filled
SCENARIOS = {
    "check": ("tgc", "{tgc} check digits.tg"),
    "compile": ("tgc", "{tgc} compile digits.tg -o new"),
    "compile-cached": ("tgc", "TGC_CACHE=$PWD/full {tgc} compile digits.tg -o new"),
    "emit": ("tgc", "{tgc} compile --emit=step digits.tg -o new.tgir"),
    "bundle": ("tgc", "TGC_CACHE=$PWD/full {tgc} compile digits.tg --bundle=box --bundle-data"),
    "train": ("digits", "./digits train --steps 3 --save-every 3 --out run"),
    "train-again": ("digits", "./digits train --steps 3 --save-every 3 --out kept"),
    "train-json": ("digits", "./digits train --steps 3 --json --out run >answer.json"),
    "resume": ("digits", "./digits train --steps 3 --save-every 1 --resume kept --seed 5 --out run"),
    "eval": ("digits", "./digits eval --weights kept/weights.safetensors --json >answer.json"),
    "predict": ("digits", "./digits predict classify images.npy --weights kept/weights.safetensors --out new.npy"),
    "csv": ("flowers", "./flowers train --steps 3 --out run"),
}
PREPARATION = """set -e
cp {root}/models/digits.tg {root}/tests/driver/Inputs/flowers.* .
mkdir data full temporary
cp {root}/models/data/digits-* data
export TGC_CACHE=$PWD/full
{tgc} compile digits.tg
{tgc} compile flowers.tg
./digits train --steps 2 --save-every 1 --seed 5 --out kept
rm -r kept/checkpoints/step-000001.safetensors
{python} -c 'import struct
head = "{{\\"descr\\": \\"|u1\\", \\"fortran_order\\": False, \\"shape\\": (2, 8, 8), }}".replace("\\"", chr(39)).encode()
open("images.npy", "wb").write(bytes([147]) + b"NUMPY" + bytes([1, 0]) + struct.pack("<H", len(head)) + head + bytes(128))'
for old in new new.tgir new.npy; do echo old >$old; done
"""


def contents(folder):
    """Every file of the folder, by its path."""
    found = {}
    for at, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Slot:
    """A folder that commands run in one after another, always under one name: programs and cache keys hold paths."""

    def __init__(self, build, folder):
        self.build, self.log = build, os.path.join(folder, "log")
        self.work, self.prepared = os.path.join(folder, "work"), os.path.join(folder, "prepared")
        os.makedirs(self.work)
        text = PREPARATION.format(root=ROOT, tgc=os.path.join(build, "bin", "tgc"), python=sys.executable)
        done = subprocess.run(["/bin/sh", "-c", text], cwd=self.work, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"the preparation fails:\n{done.stderr}")
        os.rename(self.work, self.prepared)
        self.before, self.complete = contents(self.prepared), {}

    def run(self, name, fault):
        """Outcome, files afterwards, and the log of the calls."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.prepared, self.work)
        if os.path.exists(self.log):
            os.remove(self.log)
        program, command = SCENARIOS[name]
        tgc = os.path.join(self.build, "bin", "tgc")
        environment = dict(os.environ, TGC_CACHE=os.path.join(self.work, "cache"), TMPDIR=os.path.join(self.work, "temporary"),
                           LD_PRELOAD=os.path.join(self.build, "lib", "libfault.so"), TG_FAULT=fault, TG_FAULT_LOG=self.log,
                           TG_FAULT_PROGRAM=tgc if program == "tgc" else os.path.join(self.work, program), NO_COLOR="1")
        environment.pop("TG_DATA", None)  # the scenarios' data lies beside their models
        result = subprocess.run(["/bin/sh", "-c", command.format(tgc=tgc)], cwd=self.work, env=environment,
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS)
        text = open(self.log).read() if os.path.exists(self.log) else ""
        return result, contents(self.work), text

    def reference(self, name):
        """The log of the scenario without a fault."""
        result, self.complete[name], log = self.run(name, "none:0")
        if result.returncode != 0 or "live 0\n" not in log:
            sys.exit(f"{name} fails without a fault: {result.returncode}\n{result.stderr}{log}")
        return log


def same(name, left, right):
    """Times differ from run to run: what is compared of a document is its form."""
    if left is None or right is None or not name.endswith(".json"):
        return left == right
    numbers = re.compile(rb"-?[0-9][0-9.e+-]*")
    return numbers.sub(b"0", left) == numbers.sub(b"0", right)


def wrong_files(before, after, complete, whole):
    """What is neither as it was nor, after success, as it becomes. A cache need not be written."""
    for name in sorted(set(after) | set(before) | set(complete)):
        old, now, new = before.get(name), after.get(name), complete.get(name)
        may_stay = not whole or name.startswith(("cache/", "full/"))
        partial = name == "answer.json" and not whole  # the shell's: standard output
        if not (same(name, now, new) or may_stay and now == old or partial):
            yield f"{name} {'is missing' if now is None else f'has {len(now)} bytes'}, not as before nor as it becomes"


def judge(slot, name, fault):
    try:
        result, after, log = slot.run(name, fault)
    except subprocess.TimeoutExpired:
        return [f"does not end within {SECONDS} s"]
    if log and "failed\n" not in log:
        return []  # threads may be in another order, and come to fewer calls
    wrong = []
    code = MEMORY if fault.startswith("memory") else FILES
    if not log:
        wrong.append("is killed")
    if result.returncode not in (0, code):
        wrong.append(f"exit code {result.returncode}, not {code}")
    if result.returncode != 0 and not re.search(r"error: .*\S", result.stderr):
        wrong.append("no error is said")
    if "internal error" in result.stderr:
        wrong.append("an internal error")
    live = re.search(r"^live (.*)$", log, re.M)
    if live and live[1] != "0":
        wrong.append("not given back: " + live[1])
    wrong += wrong_files(slot.before, after, slot.complete[name], result.returncode == 0)
    return wrong + [f"code {result.returncode}", *result.stderr.splitlines()[-6:]] if wrong else []


def faults(log, every):
    for kind, count in re.findall(r"^(\w+) (\d+)$", log, re.M):
        if kind != "live" and int(count) > 0:
            yield from (f"{kind}:{n}" for n in sorted({int(count), *range(1, int(count) + 1, every)}))


def check(name, slots, every):
    logs = [slot.reference(name) for slot in slots]
    tries = list(faults(logs[0], every))
    free = queue.SimpleQueue()
    for slot in slots:
        free.put(slot)

    def one(fault):
        slot = free.get()
        try:
            return judge(slot, name, fault)
        finally:
            free.put(slot)

    failures = 0
    with concurrent.futures.ThreadPoolExecutor(len(slots)) as pool:
        for fault, wrong in zip(tries, pool.map(one, tries)):
            if wrong:
                failures += 1
                print(f"{name}, {fault}:\n  " + "\n  ".join(wrong))
    print(f"{name:15} {len(tries):4} calls fail, {failures} of them wrongly", flush=True)
    return failures == 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: run.py ")[1].split("\n")[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    options = parser.parse_args()
    for name in options.scenarios:
        if name not in SCENARIOS:
            parser.error(f"there is no scenario {name}; there are {' '.join(SCENARIOS)}")
    with tempfile.TemporaryDirectory() as folder:
        slots = [Slot(os.path.realpath(options.build), os.path.join(os.path.realpath(folder), f"slot{i}"))
                 for i in range(options.jobs)]
        good = [check(name, slots, options.every) for name in options.scenarios or SCENARIOS]
    return 0 if all(good) else 1


sys.exit(main())
