"""Follows the worked examples of docs/passes.md in a copy of the layers that they touch, builds it, and runs their tests.

A block's first line says what to do with it: file=PATH writes it, append=PATH adds it at the end, insert=PATH before=TEXT adds it
before the first line that begins with TEXT, test=NAME is a graph with a RUN line of `%tgc opt ... | FileCheck`.

usage: examples.py ROOT PAGE FOLDER"""
import concurrent.futures
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

root, page, folder = sys.argv[1:4]
shutil.rmtree(folder, ignore_errors=True)
for layer in ("ir", "passes", "codegen"):
    shutil.copytree(os.path.join(root, layer), os.path.join(folder, layer), ignore=shutil.ignore_patterns("llvm"))
shutil.copy(os.path.join(root, "tests/docs/opt_main.c"), os.path.join(folder, "opt_main.c"))


def insert(path, before, body):
    lines = open(path).read().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if line.startswith(before))
    lines.insert(at, body)
    open(path, "w").write("".join(lines))


tests = []
for match in re.finditer(r"^```\w+ (\w+)=(\S+)(?: before=([^\n]+))?\n(.*?)^```$", open(page).read(), re.M | re.S):
    action, name, before, body = match.groups()
    path = os.path.join(folder, name)
    if action == "insert":
        insert(path, before, body)
    elif action == "test":
        path += ".tgir"
        tests.append(path)
        open(path, "w").write(body)
    else:
        open(path, "w" if action == "file" else "a").write(body)

sources = [file for pattern in ("opt_main.c", "ir/*.c", "ir/base/*.c", "ir/plan/*.c", "passes/*.c", "codegen/scalar*.c", "codegen/lower.c")
           for file in glob.glob(pattern, root_dir=folder)]
compiler = shlex.split(os.environ.get("CC", "cc")) + ["-std=c17", "-D_GNU_SOURCE", "-O0", "-Wall", "-Wextra", "-Werror", "-I."]


def build(source):
    output = source.replace("/", "_") + ".o"
    done = subprocess.run([*compiler, "-c", source, "-o", output], cwd=folder, capture_output=True, text=True)
    return output, done.stderr


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    objects = list(pool.map(build, sources))
for _, complaint in objects:
    if complaint:
        sys.exit(complaint)
linked = [output for output, _ in objects if not output.startswith("codegen_")]
subprocess.run([*compiler, *linked, "-o", "opt", "-lm"], cwd=folder, check=True)
for path in tests:
    command = re.search(r"RUN: (.*)", open(path).read())[1]
    command = command.replace("%tgc", os.path.join(folder, "opt")).replace("%s", path)
    subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True)
print(f"{len(tests)} examples followed")
sys.exit(len(tests) == 0)
