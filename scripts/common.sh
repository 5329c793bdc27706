# Shared by the commands in this folder; sourced, never run.
#
# Knows one thing: how to come from a fresh clone to "$python", an interpreter with everything installed. It finds a Python
# that really works and hands over to harness/environment.py, which owns .venv.
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$root/.venv

# The first versions that the dependencies support, and the last that the constraints were made for.
readonly PYTHON_WANTED="Python 3.12, 3.13 or 3.14"
readonly PYTHON_PROBE='
import sys
version = "%d.%d.%d" % sys.version_info[:3]
if not (3, 12) <= sys.version_info[:2] <= (3, 14):
    sys.exit("is Python " + version)
try:
    import ensurepip, ssl, venv
except ImportError as error:
    sys.exit("is Python %s, but has no %s (on Debian and Ubuntu: apt install python3-venv)" % (version, error.name))
print(sys.executable)
'

say() { printf '%s\n' "$*" >&2; }

# The interpreters worth a try, best first, one a line. A name that exists proves nothing: a pyenv shim for a version that is
# not selected fails only when it is run.
python_candidates() {
  if [[ -n ${PYTHON:-} ]]; then
    printf '%s\n' "$PYTHON"
    return
  fi
  local name
  for name in python3 python3.14 python3.13 python3.12 python; do
    type -aP "$name" || true
  done
  ls -d "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3 2>/dev/null | sort -rV || true
  if type -P uv >/dev/null; then
    uv python find --no-project '>=3.12,<3.15' 2>/dev/null || true
  fi
}

# Sets $found to an interpreter that was run and answered well, or prints why there is none and fails.
find_python() {
  local candidate answer tried="" seen=$'\n'
  while IFS= read -r candidate; do
    [[ $seen == *$'\n'"$candidate"$'\n'* ]] && continue
    seen+=$candidate$'\n'
    if answer=$("$candidate" -I -c "$PYTHON_PROBE" 2>&1 </dev/null) && [[ -x ${answer##*$'\n'} ]]; then
      found=${answer##*$'\n'}
      return 0
    fi
    answer=${answer##*$'\n'}
    tried+="  $candidate ${answer:-does not run}"$'\n'
  done < <(python_candidates)

  if [[ -z ${PYTHON:-} ]] && type -P uv >/dev/null && uv python install 3.13 >&2; then
    found=$(uv python find --no-project 3.13) && return 0
  fi
  say "mcp-wiretap needs $PYTHON_WANTED with venv, and found none that works."
  if [[ -n $tried ]]; then
    say "Tried:"
    say "${tried%$'\n'}"
  fi
  say "Install one (Debian 13: apt install python3 python3-venv; macOS: brew install python; pyenv install 3.13; uv python install 3.13),"
  say "or name one: PYTHON=/path/to/python3 $0"
  return 1
}

# Sets $python to the interpreter of an up-to-date .venv; makes or mends it first where needed. Exits with a reason if it cannot.
prepare() {
  local found=""
  python=$venv/bin/python
  if ! "$python" -I -c "$PYTHON_PROBE" >/dev/null 2>&1 </dev/null; then
    find_python || exit 1
  fi
  "${found:-$python}" -I "$root/scripts/harness/environment.py" "$venv" </dev/null || exit 1
}

# Runs one module of scripts/harness in the prepared environment, in place of this shell. The current folder stays the user's.
run_harness() {
  local module=$1
  shift
  PYTHONPATH=$root/scripts exec "$python" -m "harness.$module" "$@"
}
