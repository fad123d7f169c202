# Sourced by the reproduce scripts, whose arguments are [NAME...] [-- OPTION...]: leaves the NAMEs in `names` and the
# OPTIONs, which are `tmt train`'s, in "$@". Strict mode, the repository root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  names="$names $1"
  shift
done
[ $# -eq 0 ] || shift
