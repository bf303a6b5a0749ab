"""The rules of the layers: who includes whom, how long a file is, that no library ends the process, that none has mutable globals.

check.py SOURCE BUILD: prints each violation; exit status 1 if there is one.
"""
import os
import re
import subprocess
import sys

LONGEST = 700  # lines of a file

# A folder, and the folders that its files may include from. The driver links everything, so it may see everything.
LAYERS = {
    "ir/base": {"ir/base"},
    "ir/plan": {"ir/base", "ir/plan"},
    "ir": {"ir", "ir/base", "ir/plan"},
    "frontend": {"frontend", "ir", "ir/base"},
    "passes": {"passes", "ir", "ir/base"},
    "codegen": {"codegen", "ir", "ir/base", "ir/plan"},
    "codegen/llvm": {"codegen/llvm", "codegen", "ir", "ir/base", "ir/plan"},
    "codegen/cuda": {"codegen/cuda", "codegen", "ir", "ir/base", "ir/plan"},
    "runtime": {"runtime", "runtime/cpu", "ir/base", "ir/plan"},
    "runtime/cpu": {"runtime", "runtime/cpu", "ir/base", "ir/plan"},
    "runtime/dnn": {"runtime/dnn", "runtime/cpu", "ir/base", "ir/plan"},
    "driver": {"driver", "frontend", "passes", "codegen", "codegen/cuda", "runtime", "ir", "ir/base", "ir/plan"},
}
GENERATED = {"grammar.h": "frontend", "lexer.h": "frontend"}  # lie in the build folder
LIBRARIES = ["tgbase", "tgir", "tgfrontend", "tgpasses", "tgcodegen", "tgrt"]
GLOBALS = {"json_arena"}  # jansson's hooks for memory know no context
# Sections that a program can write to. .data.rel.ro is constant once it is loaded.
MUTABLE = re.compile(r"^[0-9a-f]+ ......O (\.data|\.bss|\.tdata|\.tbss|\*COM\*)(?!\.rel\.ro)\S*\s+\S+\s+(\S+)$")

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
ENDS = re.compile(r"\b(exit|abort|quick_exit)\s*\(")


def check_file(source, folder, name):
    path = os.path.join(folder, name)
    text = open(os.path.join(source, path)).read()
    for included in INCLUDE.findall(text):
        owner = GENERATED.get(included) or os.path.dirname(included)
        if owner not in LAYERS[folder]:
            yield f"{path}: includes {included}, which {folder} must not see"
    lines = text.count("\n")
    if lines > LONGEST:
        yield f"{path}: {lines} lines are more than {LONGEST}"
    if folder != "driver":
        for end in ENDS.findall(text):
            yield f"{path}: calls {end}: a library never ends the process"


def check_sources(source):
    for folder in LAYERS:
        names = sorted(os.listdir(os.path.join(source, folder)))
        for name in names:
            if re.search(r"\.([chly]|def)$", name):
                yield from check_file(source, folder, name)


def check_globals(build):
    for library in LIBRARIES:
        archive = os.path.join(build, "lib", f"lib{library}.a")
        listing = subprocess.run(["objdump", "-t", archive], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            found = MUTABLE.match(line)
            if found and found.group(2) not in GLOBALS and not found.group(2).startswith((".L", "__")):
                yield f"{archive}: {found.group(2)} in {found.group(1)} is a mutable global"


source, build = sys.argv[1:]
found = [*check_sources(source), *check_globals(build)]
print("\n".join(found))
sys.exit(bool(found))
