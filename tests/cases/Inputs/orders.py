"""The field `mean` of a trace with one record a step: epochs of N records, each a different order of the same ones."""
import json
import sys

values = json.load(open(sys.argv[1]))["trace"]["mean"]
count = int(sys.argv[2])
epochs = [values[i:i + count] for i in range(0, len(values), count)]
assert len(epochs) > 1 and all(sorted(epoch) == sorted(set(values)) for epoch in epochs), epochs
assert all(a != b for a, b in zip(epochs, epochs[1:])), epochs
