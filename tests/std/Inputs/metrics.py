"""Fields of an evaluation against their definitions, computed from the logits and labels of a prediction."""

import json
import math
import sys

fields = json.load(open(sys.argv[1]))["val"]
predicted = json.load(open(sys.argv[2]))
logits = predicted["outputs"]["y"]
labels = predicted["fields"]["label"]
said = [max(range(10), key=y.__getitem__) for y in logits]
weight = [i + 1 for i in range(10)]


def scores(pairs):
    """Precision, recall and F1 of (said, true) pairs of truths."""
    both = sum(s and t for s, t in pairs)
    says = sum(s for s, _ in pairs)
    true = sum(t for _, t in pairs)
    return both / max(says, 1), both / max(true, 1), 2 * both / max(says + true, 1), says + true > 0


def loss(y, label):
    top = max(y)
    return math.log(sum(math.exp(v - top) for v in y)) - (y[label] - top)


counted = [i for i in range(len(labels)) if labels[i] != 7]
total = sum(weight[labels[i]] * loss(logits[i], labels[i]) for i in counted)
right = {"loss": total / sum(weight[labels[i]] for i in counted)}
right["perplexity"] = math.exp(right["loss"])
right["accuracy"] = sum(s == t for s, t in zip(said, labels)) / len(labels)
right["known"] = sum(said[i] == labels[i] for i in counted) / len(counted)
right["top_2"] = sum(t in sorted(range(10), key=y.__getitem__)[-2:] for y, t in zip(logits, labels)) / len(labels)
classes = [scores([(s == c, t == c) for s, t in zip(said, labels)]) for c in range(10)]
three = scores([(y[3] > 1, t == 3) for y, t in zip(logits, labels)])
for i, name in enumerate(("precision", "recall", "f1")):
    seen = [c[i] for c in classes if c[3]]
    right[name] = sum(seen) / len(seen)
    right[name + "_3"] = three[i]

assert set(right) == set(fields), (sorted(right), sorted(fields))
wrong = {k: (fields[k], right[k]) for k in right if not math.isclose(fields[k], right[k], rel_tol=2e-6)}
assert len(labels) == 359 and not wrong, wrong
assert 0.3 < right["accuracy"] < 1 and 0 < right["precision_3"] < 1, right
