"""CSV tables as the scripts read and write them, and the figures that they tell of many ratios."""
import csv
import math


def rows_of(path):
    """Rows of a CSV; each is a dict of texts by column."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path, rows, columns=None):
    """Writes `rows`, which are dicts; without `columns`, those of the first row."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        write = csv.DictWriter(file, columns or list(rows[0]), extrasaction="ignore", lineterminator="\n")
        write.writeheader()
        write.writerows(rows)


def write_lines(path, columns, lines):
    """Writes `lines`, which are lists of cells."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n")
        write.writerow(columns)
        write.writerows(lines)


def quantile(values, share):
    values = sorted(values)
    at = share * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def geometric_mean(ratios):
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def spread_factor(ratios):
    """The spread factor of ratios: exp of the standard deviation of their logarithms; 1 for a single ratio."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = sum(logs) / len(logs)
    return math.exp(math.sqrt(sum((x - mean) ** 2 for x in logs) / max(1, len(logs) - 1)))
