# Text tests. The build folder: `lit --param build=DIR tests`, or $TGC_BUILD, or build/release.
import os
import shutil
import subprocess
import sys

import lit.formats

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.path.abspath(lit_config.params.get("build") or os.environ.get("TGC_BUILD") or os.path.join(root, "build/release"))


def llvm_tools():
    for name in ("llvm-config-19", "/usr/lib/llvm-19/bin/llvm-config"):
        if shutil.which(name):
            return subprocess.check_output([name, "--bindir"], text=True).strip()
    lit_config.fatal("LLVM 19 is not installed")


config.name = "tgc"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".test", ".tgir", ".tg"]
config.excludes = ["Inputs", "golden", "Output"]
config.test_source_root = os.path.join(root, "tests")
config.test_exec_root = os.path.join(build, "lit")
os.makedirs(config.test_exec_root, exist_ok=True)

config.environment["PATH"] = llvm_tools() + os.pathsep + os.environ.get("PATH", "")
config.substitutions += [
    ("%tgc", os.path.join(build, "bin", "tgc")),
    ("%build", build),
    ("%python", sys.executable),
    ("%models", os.path.join(root, "models")),
]
with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as cache:
    if "\nTGC_SANITIZE:BOOL=ON" in cache.read():
        config.available_features.add("asan")
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TGC_LIB", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
config.environment["NO_COLOR"] = "1"
