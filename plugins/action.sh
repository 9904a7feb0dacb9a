#!/usr/bin/env bash
# What the GitHub Action runs: one report for programs, one for JUnit, then annotations and the job's summary.
# Inputs are INPUT_… variables. The exit code is that of logscan.
set -euo pipefail

logs=()
while IFS= read -r line; do
  [ -n "$line" ] || continue
  # Unquoted on purpose: a line may be a glob. IFS is empty, so a space stays within its path.
  # shellcheck disable=SC2206
  IFS='' matches=($line)
  logs+=("${matches[@]}")
done <<< "${INPUT_LOG:-}"
if [ ${#logs[@]} -eq 0 ]; then
  echo "::error title=logscan::the input 'log' names no file"
  exit 2
fi

options=()
add() { if [ -n "$2" ]; then options+=("$1" "$2"); fi; }
add --ckpt "${INPUT_CKPT:-}"
add --gpu "${INPUT_GPU:-}"
add --cuda "${INPUT_CUDA:-}"
add --engine "${INPUT_ENGINE:-}"
add --fail-on "${INPUT_FAIL_ON:-}"
add --waivers "${INPUT_WAIVERS:-}"
add --baseline "${INPUT_BASELINE:-}"
while IFS= read -r line; do add --require "$line"; done <<< "${INPUT_REQUIRE:-}"
if [ "${INPUT_STRICT:-false}" = true ]; then options+=(--strict); fi

report=${INPUT_JSON:-logscan.json}
triage() { logscan triage "${logs[@]}" ${options[@]+"${options[@]}"} "$@"; }

code=0
triage --format json -o "$report" || code=$?
if [ -n "${INPUT_JUNIT:-}" ]; then triage --quiet --format junit -o "$INPUT_JUNIT" || true; fi
triage --quiet --format github || true

if [ -f "$report" ]; then
  python - "$report" >> "${GITHUB_OUTPUT:-/dev/null}" <<'PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
print(f"verdict={document['verdict'] or ''}\nworst={document['worst'] or ''}\nreport={sys.argv[1]}")
PYTHON
fi
exit "$code"
