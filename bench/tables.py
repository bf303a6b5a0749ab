"""Writes what was measured into docs/performance.md: a row of the summary and a section of its own for each model."""
import datetime
import os
import re
from pathlib import Path

from measure import run
from models import MODELS, SHOWN

BUSY = 0.1
HEADS = ("", "tgc, ms", "best of PyTorch, ms", "PyTorch over tgc", "best of JAX, ms", "JAX over tgc", "tgc over its dots",
         "most memory, MiB: tgc, PyTorch", "compiling cold, s: tgc, PyTorch, JAX")


def row(cells):
    return "| " + " | ".join(cells) + " |"


SUMMARY = f"{row(HEADS)}\n|{'---|' * len(HEADS)}\n"


def number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def mebibytes(value):
    return f"{value / 2**20:.0f}"


def verdict(bound, value):
    excess = bound.excess(value)
    return "met" if excess <= 0 else f"**missed by {100 * excess:.0f} %**"


def machine():
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{cpu.group(1) if cpu else 'unknown CPU'}, {len(os.sched_getaffinity(0))} cores"


def heading(options, versions, others):
    tgc = run([options.tgc, "--version"]).splitlines()[0]
    commit = run(["git", "describe", "--always", "--dirty"]).strip()
    loaded = " **Measured under load: not to be relied on.**" if others > BUSY else ""
    return (f"{datetime.date.today()}, {machine()}; {tgc} ({commit}), {', '.join(versions)}; medians of {options.rounds} rounds. Meanwhile "
            f"others used {100 * others:.0f} % of the processors.{loaded}")


def section(options, model, bench, figures, others):
    yield f"### {model.name}"
    yield ""
    yield heading(options, bench.choice.versions.values(), others)
    yield ""
    yield "| | measured | bound | |"
    yield "|---|---|---|---|"
    for bound in model.bounds:
        relation = "at least" if bound.at_least else "at most"
        measured, limit = (f"{number(value)} {bound.unit}".rstrip() for value in (figures[bound.figure], bound.limit))
        yield f"| {bound.text} | {measured} | {relation} {limit} | {verdict(bound, figures[bound.figure])} |"
    bounded = {bound.figure for bound in model.bounds}
    for figure, (text, unit) in SHOWN.items():
        if figure in figures and figure not in bounded:
            yield f"| {text} | {number(figures[figure])} {unit} | | |"
    yield f"| most memory, tgc | {mebibytes(figures['peak_bytes'])} MiB | | |"
    yield ""
    yield from ways(bench, figures)


def ways(bench, figures):
    """What was timed in all rounds first, then by the first pass."""
    yield row(("", "threads, malloc", "first pass, ms", "rounds, ms", "over tgc", "most memory, MiB", "first step, s"))
    yield "|---|---|---|---|---|---|---|"
    choice = bench.choice
    for candidate in sorted(choice.first, key=lambda each: (figures.get((each, "ms"), float("inf")), choice.first[each])):
        timed = ["", "", ""]
        if (candidate, "ms") in figures:
            timed = [number(figures[candidate, "ms"]), f"{figures[candidate, 'ratio']:.2f}x", mebibytes(figures[candidate, "peak"])]
        library = choice.versions[candidate.library].split()[0]
        yield row([f"{library}, {candidate.way}", candidate.environment, number(choice.first[candidate]), *timed,
                   number(choice.opened[candidate.library, candidate.way, candidate.threads])])


def summary_row(model, figures):
    torch, compiling = figures["torch"], ("cold_s", "compiled_first_step_s", "jax_first_step_s")
    jax = (number(figures["jax_ms"]), f"{figures['jax_speedup']:.2f}x") if "jax" in figures else ("", "")
    return row([
        model.name, number(figures["step_ms"]), f"{number(figures['torch_ms'])} ({torch.way}, {torch.environment})",
        f"{figures['speedup']:.2f}x", *jax, f"{figures['floor_ratio']:.2f}x",
        f"{mebibytes(figures['peak_bytes'])}, {mebibytes(figures[torch, 'peak'])}",
        ", ".join(number(figures[name]) for name in compiling if name in figures)])


def write(path, name, summary_line, measured):
    """Replaces the row and the section of the model `name`; the others stay."""
    begin, end = "<!-- measured: bench/run writes from here -->\n", "<!-- measured: to here -->\n"
    before, rest = path.read_text().split(begin)
    old, after = rest.split(end)
    top, *parts = old.split("### ")
    sections = {part.split("\n", 1)[0]: "### " + part for part in parts} | {name: measured}
    rows = {line.split("|")[1].strip(): line for line in top.splitlines() if line.startswith("| ")} | {name: summary_line}
    names = [model.name for model in MODELS]
    summary = SUMMARY + "".join(rows[each] + "\n" for each in names if each in rows)
    kept = (sections[each].rstrip("\n") + "\n" for each in names if each in sections)
    path.write_text(before + begin + "\n" + summary + "\n" + "\n".join(kept) + "\n" + end + after)


def misses(model, figures):
    for bound in model.bounds:
        if bound.excess(figures[bound.figure]) > 0:
            yield (f"{model.name}: {bound.text}: {number(figures[bound.figure])} {bound.unit}, bound {number(bound.limit)}: "
                   f"{100 * bound.excess(figures[bound.figure]):.1f} % beyond it")
