"""Sums up the columns of a CSV file."""
import csv
from collections import Counter

from numbers_of import number


def run(input, ctx):
    path = input.get("path") if isinstance(input, dict) else None
    if not path:
        raise ValueError('Give { "path": "/workspace/file.csv" }.')
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = [summary(name, [row.get(name) or "" for row in rows]) for name in (rows[0] if rows else [])]
    with open("/skill/assets/template.md", encoding="utf-8") as file:
        template = file.read()
    table = "\n".join("| " + " | ".join(str(value) for value in column.values()) + " |" for column in columns)
    report = template.format(name=path.split("/")[-1], rows=len(rows), columns=len(columns), table=table)
    with open(f"{ctx.output}/report.md", "w", encoding="utf-8") as file:
        file.write(report)
    return {"rows": len(rows), "columns": columns}


def summary(name, values):
    filled = [value for value in values if value.strip()]
    numbers = [number(value) for value in filled]
    is_number = bool(filled) and all(value is not None for value in numbers)
    ordered = sorted(numbers if is_number else filled)
    return {
        "column": name,
        "type": "number" if is_number else "text",
        "filled": f"{len(filled)}/{len(values)}",
        "smallest": ordered[0] if ordered else "",
        "largest": ordered[-1] if ordered else "",
        "average": round(sum(numbers) / len(numbers), 2) if is_number else "",
        "frequent": Counter(filled).most_common(1)[0][0] if filled else "",
    }
