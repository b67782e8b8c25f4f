"""Prints the rows of a CSV file as JSON, one object for each line."""
import csv
import json
import sys

path = json.load(sys.stdin)["path"]
with open(path, newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        print(json.dumps(row))
