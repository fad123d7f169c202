# Sourced by the scripts quickstart, test, mutation, fuzz, soak and torture: creates the virtual environment of each.
#
#   begin SCRIPT "$@"            strict mode, the repository root, the message if a step fails; handles --help
#   environment FOLDER EXTRAS    creates or updates FOLDER with this package and its EXTRAS ("", "[test]");
#                                does nothing if FOLDER is up to date
#   step "NAME: NOTE" REMEDY     prints the next step; if it fails, prints its name and REMEDY
#   run COMMAND...               prints a command as you would type it, and runs it
#
# Variables: PYTHON (the Python for the environment), TMT_TORCH_INDEX (a package index for torch).
# Works with bash 3.2 and later (macOS).

begin() {
  set -Eeuo pipefail
  script=$1
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  cd "$root"
  unset PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX
  export PIP_DISABLE_PIP_VERSION_CHECK=1
  doing="starting"
  remedy=""
  trap 'stopped $?' ERR
  trap 'trap - ERR; interrupted' INT
  case ${2:-} in -h | --help) usage && exit 0 ;; esac
}

usage() { sed -n '2,/^source/{/^source/d;s/^# \{0,1\}//;p;}' "scripts/$script"; }

step() {
  doing=${1%%:*}
  remedy=${2:-}
  printf '\n== %s\n' "$1"
}

run() {
  local word
  printf '$'
  for word; do
    case $word in *[[:space:]]*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac
  done
  printf '\n'
  "$@"
}

stopped() {
  trap - ERR
  [ "$1" -ne 130 ] || interrupted
  printf '\n%s stopped at: %s (exit code %s). See the message above.\n' "$script" "$doing" "$1" >&2
  [ -z "$remedy" ] || printf '%s\n' "$remedy" >&2
  exit "$1"
}

interrupted() {
  printf '\n%s: interrupted at: %s. Run the same command again to continue.\n' "$script" "$doing" >&2
  exit 130
}

refuse() { # message, remedy: for problems with a known cause
  trap - ERR
  printf '\n%s: %s\n  %s\n' "$script" "$1" "$2" >&2
  exit 2
}

environment() {
  venv=$1
  extras=$2
  if ! usable; then
    create
  elif [ "$(fingerprint)" = "$(cat "$venv/.installed" 2>/dev/null)" ] && [ -x "$venv/bin/tmt" ]; then
    step "The environment $venv is up to date"
    return
  fi
  install
}

# What the environment was made from; empty if it is missing, incomplete or broken.
fingerprint() {
  "$venv/bin/python" -c '
import hashlib, pathlib, sys
contents = b"".join(pathlib.Path(name).read_bytes() for name in ("pyproject.toml", "scripts/constraints.txt"))
print(sys.version.split()[0], hashlib.sha256(contents).hexdigest(), *sys.argv[1:])
' "$root/$venv" "package$extras" 2>/dev/null || true
}

usable() { # complete, not moved, and with the Python in PYTHON
  [ ! -e "$venv/.unfinished" ] || return 1
  "$venv/bin/python" -c 'import pip' 2>/dev/null || return 1
  case $(made_in) in "" | "$root") ;; *) return 1 ;; esac
  [ -z "${PYTHON:-}" ] || [ "$(version_of "$PYTHON")" = "$(version_of "$venv/bin/python")" ]
}

made_in() { sed -n 's/^# made in //p' "$venv/pyvenv.cfg" 2>/dev/null || true; }

create() {
  find_python
  if [ ! -e "$venv" ]; then
    step "Creating the environment $venv with $python: $("$python" --version 2>&1)"
  elif [ -z "$(made_in)" ] && [ -n "$(version_of "$venv/bin/python")" ] && [ ! -e "$venv/.unfinished" ]; then
    refuse "$venv was not created by this script, and not with $python" "Move it away, or unset PYTHON to use it."
  else
    step "Creating the environment $venv again with $python: it was incomplete, was moved, or has another Python"
  fi
  "$python" -m venv --clear "$venv"
  touch "$venv/.unfinished"
  printf '# made in %s\n' "$root" >>"$venv/pyvenv.cfg"
}

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

find_python() {
  local candidate short_of=""
  set -- python3.11 python3.12 python3.13 python3.10 python3.14 python3 python
  [ -z "${PYTHON:-}" ] || set -- "$PYTHON"
  for candidate; do
    case $(version_of "$candidate") in
      3.10 | 3.11 | 3.12 | 3.13 | 3.14)
        python=$candidate
        "$candidate" -c 'import ensurepip, venv' 2>/dev/null && return
        short_of=$candidate
        ;;
    esac
  done
  [ -z "$short_of" ] || refuse "$short_of cannot make virtual environments" \
    "Install its venv module (Debian, Ubuntu: sudo apt install python$(version_of "$short_of")-venv)."
  [ -z "${PYTHON:-}" ] ||
    refuse "PYTHON=$PYTHON is not Python 3.10, 3.11, 3.12, 3.13 or 3.14" "Set PYTHON to one of these, or unset it."
  refuse "no Python 3.10, 3.11, 3.12, 3.13 or 3.14 was found" \
    "Install one (python.org, your package manager, pyenv or conda), or set its path: PYTHON=/path/to/python scripts/$script"
}

install() {
  step "Installing transformer_mt$extras: about 100 packages, a few minutes the first time"
  touch "$venv/.unfinished"
  rm -f "$venv/.installed"
  if [ -n "${TMT_TORCH_INDEX:-}" ]; then
    echo "   torch comes from $TMT_TORCH_INDEX"
    pip_install --no-deps --index-url "$TMT_TORCH_INDEX" torch
  elif [ "$(uname -s)" = Linux ] && ! command -v nvidia-smi >/dev/null; then
    echo "   No NVIDIA GPU found. The default torch includes several GB of CUDA. For the small build, stop this and run"
    echo "   TMT_TORCH_INDEX=https://download.pytorch.org/whl/cpu scripts/$script"
  fi
  pip_install --editable ".$extras"
  fingerprint >"$venv/.installed"
  rm "$venv/.unfinished"
}

pip_install() {
  local log="$venv/install.log" status=0
  "$venv/bin/python" -m pip install --progress-bar off --constraint scripts/constraints.txt "$@" 2>&1 |
    tee "$log" | milestones || status=$?
  [ "$status" -ne 0 ] || return 0
  explain "$log" "$status"
}

milestones() { # the important lines of pip: large downloads, installing, errors
  local line name
  while IFS= read -r line; do
    case $line in
      *Downloading*"("[0-9][0-9]*" MB)" | *Downloading*" GB)")
        name=${line##*Downloading }
        name=${name##*/}
        echo "   downloading ${name%%-*} (${line##*(}"
        ;;
      "Installing collected packages:"*) echo "   packages to install: $(($(wc -w <<<"$line") - 3))" ;;
      *"Retrying ("*) echo "   no answer from the package index; trying again" ;;
      ERROR*) echo "   $line" ;;
    esac
  done
}

explain() {
  local log=$1 status=$2
  trap - ERR
  if [ "$status" -eq 130 ]; then
    interrupted
  elif grep -qiE 'No space left' "$log"; then
    refuse "the disk is full" "Free a few GB and run the same command again."
  elif grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|Connection (broken|reset|refused)|ProxyError|SSLError|Max retries|Network is unreachable|IncompleteRead' "$log"; then
    refuse "the packages could not be downloaded: no connection to the package index, or it was interrupted" \
      "Check the network (and HTTPS_PROXY behind a proxy), and run the same command again; finished downloads are kept."
  elif grep -qE 'No matching distribution found for torch' "$log"; then
    refuse "the tested version of torch does not exist for this Python on this kind of machine" \
      "Try another Python (PYTHON=python3.11 scripts/$script), 64-bit Linux, or a Mac with Apple silicon and macOS 14 or later."
  fi
  refuse "pip could not install the packages" "$(grep -E '[Ee]rror:' "$log" | tail -n 2)
  The complete output is in $log."
}
