#!/usr/bin/env python3
"""Plants mutants into a copy of the tree, builds it once, and runs each mutant against its layer's tests.

tests/mutants/*.def hold the mutants. `== FILE SUITE` begins those of one file; then one line each:

    NUMBER  TEXT «ORIGINAL» TEXT  =>  REPLACEMENT

TEXT and ORIGINAL must be in the file exactly once (white space is not told apart). An expression becomes
`(tg_mutant(NUMBER) ? REPLACEMENT : ORIGINAL)`, an original that ends with `;` an if. TG_MUTANT chooses at run time.
suites.json has each suite's tests, fastest first: `lit FOLDER...` or a test program, with settings in front of it.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build/mutants"
TREE = WORK / "tree"
BUILD = TREE / "build/release"
RESULTS = WORK / "results.jsonl"
LIT = shutil.which("lit.py") or "/usr/lib/llvm-19/build/utils/lit/lit.py"
LEAST_CAUGHT = 0.95
BASELINE_SECONDS = 900
LINE = re.compile(r"(\d+)\s+(?P<text>[^«»]+|[^«»]*«[^«»]+»[^«»]*)\s+=>(?:\s+(.*))?$")

# The copy's text tests pass the choice on, and each mutant has its own scratch and cache: programs of another must not be found.
LIT_TAIL = """
for name in ("TG_MUTANT", "TGC_CACHE"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.test_exec_root = os.environ["TG_MUTANT_SCRATCH"]
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
"""


class TableError(Exception):
    pass


def read_table():
    mutants = {}
    for path in sorted(HERE.glob("*.def")):
        file = suite = None
        for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{at}"
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("== "):
                file, suite = line[3:].split()
                continue
            match = LINE.match(line)
            if not match or file is None:
                raise TableError(f"{where}: expected `NUMBER ORIGINAL => REPLACEMENT` under `== FILE SUITE`")
            number = int(match[1])
            if number in mutants:
                raise TableError(f"{where}: mutant {number} is in {mutants[number]['where']} too")
            mutants[number] = {"number": number, "file": file, "suite": suite, "layer": path.stem,
                               "text": match["text"].strip(), "replacement": (match[3] or "").strip(), "where": where}
    return mutants


def flexible(text):
    return r"\s+".join(re.escape(word) for word in text.split())


def place(mutant, source):
    """Where the original stands in the source: (begin, end)."""
    text = mutant["text"]
    before, original, after = "", text, ""
    if "«" in text:
        before, rest = text.split("«")
        original, after = rest.split("»")
    gap = [r"\s*" if part != part.strip() else "" for part in (before, after)]
    pattern = flexible(before) + gap[0] + "(" + flexible(original) + ")" + gap[1] + flexible(after)
    found = list(re.finditer(pattern, source))
    if len(found) != 1:
        raise TableError(f"{mutant['where']}: mutant {mutant['number']} is {len(found)} times in {mutant['file']}, "
                         f"not once: {text}")
    return found[0].span(1)


def mutated(file, mutants):
    """The text of a file with all its mutants."""
    source = (ROOT / file).read_text(encoding="utf-8")
    spans = {}
    for mutant in mutants:
        spans.setdefault(place(mutant, source), []).append(mutant)
    end = len(source)
    for span in sorted(spans, reverse=True):
        if span[1] > end:
            raise TableError(f"{spans[span][0]['where']}: its place overlaps another mutant's in {file}")
        original = source[span[0]:span[1]]
        for mutant in spans[span]:
            number, new = mutant["number"], mutant["replacement"]
            if mutant["text"].split("«")[-1].split("»")[0].rstrip().endswith(";"):
                original = f"{{ if (tg_mutant({number})) {{ {new} }} else {{ {original} }} }}"
            else:
                original = f"(tg_mutant({number}) ? ({new}) : ({original}))"
        source = source[:span[0]] + original + source[span[1]:]
        end = span[0]
    return source


def planted(mutants):
    """File -> text with mutants. Every suite must be known too."""
    suites = json.loads((HERE / "suites.json").read_text(encoding="utf-8"))
    by_file = {}
    for mutant in mutants.values():
        if mutant["suite"] not in suites:
            raise TableError(f"{mutant['where']}: no suite '{mutant['suite']}' in suites.json")
        if not (ROOT / mutant["file"]).is_file():
            raise TableError(f"{mutant['where']}: no file {mutant['file']}")
        by_file.setdefault(mutant["file"], []).append(mutant)
    return {file: mutated(file, of_file) for file, of_file in by_file.items()}, suites


def write_if_new(path, data):
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def build_copy(texts, jobs):
    files = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True).splitlines()
    for name in files:
        if not (ROOT / name).is_file():
            continue
        data = (ROOT / name).read_bytes()
        if name in texts:
            data = texts[name].encode()
        elif name == "CMakeLists.txt":
            data += (f'set_source_files_properties({" ".join(sorted(texts))} PROPERTIES COMPILE_OPTIONS '
                     '"-w;-include;${CMAKE_SOURCE_DIR}/tests/mutants/mutant.h")\n').encode()
        elif name == "tests/lit.cfg.py":
            data += LIT_TAIL.encode()
        write_if_new(TREE / name, data)
        shutil.copymode(ROOT / name, TREE / name)
    configure = ["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ccache"):
        configure.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
    with open(WORK / "build.log", "w", encoding="utf-8") as log:
        for command in (configure, ["ninja", "-C", BUILD, "-j", str(jobs)]):
            if subprocess.run(command, stdout=log, stderr=log).returncode:
                sys.exit(f"mutants: the copy does not build: {WORK / 'build.log'}")


def scratch_of(test, number):
    return WORK / "scratch" / str(number) / re.sub(r"[^A-Za-z0-9]+", "-", test)


def log_of(test, number):
    return scratch_of(test, number) / "log"


def run_test(test, number, timeout):
    """(passed, seconds, what happened)"""
    scratch = scratch_of(test, number)
    words = test.split()
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    words = [word for word in words if "=" not in word]
    if words[0] == "lit":
        command = [sys.executable, LIT, "-q", "-j", "1", "--max-failures", "1", "--param", f"build={BUILD}"]
        command += [str(TREE / "tests" / word) for word in words[1:]]
    else:
        command = [str(BUILD / "bin" / words[0])] + words[1:]
    scratch.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, **settings, TG_MUTANT=str(number), TG_MUTANT_SCRATCH=str(scratch), TMPDIR=str(scratch),
                       TGC_CACHE=str(scratch / "tgc-cache"), XDG_CACHE_HOME=str(scratch / "cache"))
    begin = time.monotonic()
    with open(log_of(test, number), "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=scratch, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    seconds = time.monotonic() - begin
    text = "hangs" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"
    return code == 0, seconds, text


def baseline(suites, used, pool):
    """Every test must pass without a mutant; its time bounds that of mutants."""
    tests = sorted({test for suite in used for test in suites[suite]})
    seconds = {}
    for test, (passed, took, text) in zip(tests, pool.map(lambda test: run_test(test, 0, BASELINE_SECONDS), tests)):
        print(f"baseline {took:6.1f} s  {test}", flush=True)
        seconds[test] = took
        if not passed:
            sys.exit(f"mutants: without a mutant '{test}' fails ({text}): {log_of(test, 0)}")
    return seconds


def try_mutant(mutant, tests, seconds):
    begin = time.monotonic()
    result = {"number": mutant["number"], "file": mutant["file"], "layer": mutant["layer"], "suite": mutant["suite"], "caught": None}
    for test in tests:
        passed, _, text = run_test(test, mutant["number"], 30 + 10 * seconds[test])
        if not passed:
            result["caught"], result["how"] = test, text
            break
    shutil.rmtree(WORK / "scratch" / str(mutant["number"]), ignore_errors=True)
    result["seconds"] = round(time.monotonic() - begin, 1)
    return result


def chosen_numbers(text):
    numbers = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise argparse.ArgumentTypeError(f"'{part}' is no number and no range like 10-20")
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return numbers


def report(results, mutants):
    layers = {}
    for result in results:
        row = layers.setdefault(result["layer"], [0, 0])
        row[0] += 1
        row[1] += result["caught"] is not None
    for layer, (run, caught) in sorted(layers.items()):
        print(f"{layer:10} {caught:4} of {run:4} caught")
    survivors = [result["number"] for result in results if result["caught"] is None]
    for number in sorted(survivors):
        mutant = mutants[number]
        print(f"survives: {number} {mutant['file']}: {mutant['text']} => {mutant['replacement']}")
    rate = 1 - len(survivors) / max(1, len(results))
    print(f"{len(results)} of {len(mutants)} mutants run, {100 * rate:.1f} % caught")
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only check that each mutant has one place in the source")
    parser.add_argument("--only", type=chosen_numbers, help="numbers: 3,10-20")
    parser.add_argument("--resume", action="store_true", help="keep results of the last run that ended early")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    try:
        mutants = read_table()
        texts, suites = planted(mutants)
    except TableError as error:
        sys.exit(f"mutants: {error}")
    if options.only and not options.only <= set(mutants):
        sys.exit(f"mutants: there is no mutant {min(options.only - set(mutants))}")
    if options.check:
        print(f"{len(mutants)} mutants, each with one place")
        return 0
    WORK.mkdir(parents=True, exist_ok=True)
    build_copy(texts, options.jobs)
    results = []
    if options.resume and RESULTS.is_file():
        results = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    done = {result["number"] for result in results}
    wanted = options.only or set(mutants)
    left = [mutant for number, mutant in sorted(mutants.items()) if number in wanted - done]
    with open(RESULTS, "a" if options.resume else "w", encoding="utf-8") as out, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seconds = baseline(suites, {mutant["suite"] for mutant in left}, pool)
        tries = [pool.submit(try_mutant, mutant, suites[mutant["suite"]], seconds) for mutant in left]
        for finished in concurrent.futures.as_completed(tries):
            result = finished.result()
            results.append(result)
            out.write(json.dumps(result) + "\n")
            out.flush()
            print(f"{result['number']:4} {result['seconds']:6} s  {result['caught'] or 'SURVIVES'}", flush=True)
    return 0 if report(results, mutants) >= LEAST_CAUGHT else 1


if __name__ == "__main__":
    sys.exit(main())
