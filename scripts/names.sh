# Sourced by the reproduce scripts. Their arguments are [NAME...] [-- OPTION...]: the NAMEs go to `names`, and the OPTIONs,
# which are for tmt, stay in "$@". Sets strict mode and changes to the repository root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  names="$names $1"
  shift
done
[ $# -eq 0 ] || shift
