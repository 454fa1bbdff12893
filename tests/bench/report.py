# SPDX-License-Identifier: Apache-2.0
"""Rows of the table and of bench.json."""
import json
import math
import statistics


def percentile(samples, percent):
    """The nearest-rank percentile: a sample that was really seen."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


class Report:
    """@prefix: of each row's name in the file, for what is added to another report's."""

    def __init__(self, prefix=""):
        self.rows, self.prefix = [], prefix

    def add(self, name, unit, value, budget=None, better="lower", raw=()):
        """A budget of None: nothing was promised."""
        self.rows.append({"name": name, "unit": unit, "value": value, "budget": budget, "better": better, "raw": list(raw)})
        print(self.line(self.rows[-1]), flush=True)

    def add_percentiles(self, name, unit, samples, **budgets):
        """budgets: p50=200, p99=1000."""
        for which, budget in budgets.items():
            self.add(f"{name}, {which}", unit, percentile(samples, int(which[1:])), budget, raw=samples)

    def add_ratio(self, name, ours, theirs, budget, better="lower"):
        """Of paired rounds: the median of the ratios, so that what disturbs a pair disturbs both its halves."""
        ratios = [our / their for our, their in zip(ours, theirs)]
        self.add(name, "ratio", statistics.median(ratios), budget, better, raw=ratios)

    @staticmethod
    def met(row):
        if row["budget"] is None:
            return None
        return row["value"] <= row["budget"] if row["better"] == "lower" else row["value"] >= row["budget"]

    def line(self, row):
        sign = "≤" if row["better"] == "lower" else "≥"
        budget = "" if row["budget"] is None else f"{sign} {row['budget']:g}"
        verdict = {None: "", True: "met", False: "MISSED"}[self.met(row)]
        return f"  {row['name']:72} {row['value']:>12.4g} {row['unit']:8} {budget:>10}  {verdict}"

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")

    def add_to(self, path):
        """Replaces what was measured again, and leaves the rest."""
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        added = [{**row, "name": self.prefix + row["name"]} for row in self.rows]
        names = {row["name"] for row in added}
        kept = [row for row in known if row["name"] not in names]
        path.write_text(json.dumps(kept + added, indent=1) + "\n", encoding="utf-8")

    def summary(self):
        judged = [row for row in self.rows if row["budget"] is not None]
        missed = [row["name"] for row in judged if not self.met(row)]
        return f"{len(judged) - len(missed)} of {len(judged)} budgets met" + (f"; missed: {'; '.join(missed)}" if missed else "")
