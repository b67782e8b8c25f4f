#!/bin/bash
# Says which rows of a simple CSV file (no line breaks in fields) have another number of fields than the first.
path=$(jq -r '.path // empty' /input.json)
if [ -z "$path" ]; then
  echo 'Give { "path": "/workspace/file.csv" }.' >&2
  exit 2
fi
if [ ! -f "$path" ]; then
  echo "There is no file $path." >&2
  exit 2
fi

awk -F, '
  { gsub(/"[^"]*"/, "q") }
  NR == 1 { want = NF }
  NF != want { print "line " NR ": " NF " fields, not " want; broken = 1 }
  END { print NR " lines, " want " columns"; exit broken }
' "$path" | tee /output/check.txt
exit "${PIPESTATUS[0]}"
