#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck disable=SC2016 # backticks and dollars meant as such
# Checks docs/reference/contract.md.  contract.sh SOURCE BUILD [DOCUMENT]
# Rows are | item | C name | header | test or reason | state |.
#  - every item of tests/contract_items.txt has one row, and every row has an item
#  - a `done` row names C identifiers of its header and existing tests: `file.c:case`, or
#    the name of a CTest test
#  - a `not carried over` row gives a reason
#  - every `done` item has a fault in tests/contract_faults.txt; contract_faults.sh plants them
set -uo pipefail
source_dir=$1 build_dir=$2
document=${3:-$source_dir/docs/reference/contract.md}
. "$source_dir/tests/support/cases.sh"
cd "$source_dir" || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -F ' *[|] *' '/^\| `/ { printf "%s\t%s\t%s\t%s\t%s\n", $2, $3, $4, $5, $6 }' \
  "$document" >"$work/rows"

# Lists the declarations of the headers: "queue.h vyre_queue_plan" and
# "queue.h vyre_queue_plan.queue_bytes".
for header in include/vyre/*.h; do
  perl -0777 -e '
    my ($file) = $ARGV[0] =~ m{([^/]+)$}; local @ARGV = @ARGV; my $text = <>;
    $text =~ s{/\*.*?\*/}{ }gs;
    while ($text =~ /typedef struct (\w+) \{(.*?)\n\} \1;/gs) {
      my ($type, $body) = ($1, $2);
      print "$file $type.$_\n" for $body =~ /(\w+)(?:\[[^\]]*\])?\s*[;,]/g;
    }
    my %seen;
    print "$file $_\n" for grep { !$seen{$_}++ } $text =~ /\b(vyre_\w+|VYRE_\w+)\b/g;
  ' "$header"
done >"$work/declared"

# "queue_test.c:case" of every case that is also in its TEST_MAIN list.
find src tools tests -name '*_test.c' -print0 | xargs -0 -r perl -0777 -ne '
  my ($file) = $ARGV =~ m{([^/]+)$};
  for my $case (/\bTEST\((\w+)\)/g) {
    print "$file:$case\n" if /\bTEST_ENTRY\(\s*$case\s*\)/;
  }' >"$work/tests"
ctest --test-dir "$build_dir" -N 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: *//p' >>"$work/tests"
grep -rhoE '"[a-z_]+"' src --include='*.[ch]' | tr -d '"' | sort -u >"$work/words"

ticked() { grep -oE '`[^`]+`' <<<"$1" | tr -d '`'; }

bad_rows=
complain() { bad_rows+="$1: $2"$'\n'; }
while IFS=$'\t' read -r item c_name header test state; do
  case $state in
    done) ;;
    open) continue ;;
    'not carried over')
      [ "${#test}" -gt 10 ] || complain "$item" "gives no reason"
      continue ;;
    *) complain "$item" "state '$state' is not done, open or not carried over"; continue ;;
  esac
  [ -n "$(ticked "$c_name")" ] || complain "$item" "has no C name"
  file=$(ticked "$header")
  while read -r name; do
    [ -n "$name" ] || continue
    if [[ $name == *'["'* ]]; then # a named number: vyre_status.numbers["wave"]
      word=${name#*'["'}
      grep -qxF "${word%'"]'}" "$work/words" || complain "$item" "no source says \"${word%'"]'}\""
      name=${name%%'["'*}
    fi
    grep -qxF "$file $name" "$work/declared" || complain "$item" "$file does not declare $name"
  done <<<"$(ticked "$c_name")"
  tests=$(ticked "$test")
  [ -n "$tests" ] || complain "$item" "has no test"
  while read -r name; do
    [ -z "$name" ] || grep -qxF "$name" "$work/tests" || complain "$item" "there is no test $name"
  done <<<"$tests"
done <"$work/rows"
expect_nothing "every row holds" "${bad_rows%$'\n'}"

# A `done` item, or a part of it (X.part, X::Part), has a planted fault.
grep '^: ' "$source_dir/tests/contract_faults.txt" | cut -c 3- >"$work/faults"
expect_nothing "every promise has a fault that its test finds" "$(
  awk -F '\t' '
    NR == FNR { items[$0]; next }
    $5 == "done" {
      gsub(/`/, "", $1)
      for (item in items) if (item == $1 || index(item, $1 ".") == 1 || index(item, $1 "::") == 1 || index(item, $1 ":") == 1) next
      print $1
    }' "$work/faults" "$work/rows")"
expect_nothing "no fault is of an unknown item" "$(cut -f1 "$work/rows" | tr -d '`' | grep -vxF -f - "$work/faults")"

cut -f1 "$work/rows" | tr -d '`' | LC_ALL=C sort >"$work/have"
grep -vE '^(#|$)' tests/contract_items.txt | LC_ALL=C sort >"$work/want"
expect_nothing "no item has two rows" "$(uniq -d "$work/have")"
expect_nothing "no item is missing" "$(LC_ALL=C comm -13 <(uniq "$work/have") "$work/want")"
expect_nothing "no row is of an unknown item" "$(LC_ALL=C comm -23 <(uniq "$work/have") "$work/want")"

# The check itself: planted faults must be found.
if [ $# -lt 3 ]; then
  sed -E '
    s/`vyre_queue_plan_build`/`vyre_queue_plan_bild`/
    s/`vyre_queue_plan.queue_bytes`/`vyre_queue_plan.bytes`/
    s/`queue_test.c:plans_bytes_and_occupancy`/`queue_test.c:no_such_case`/
    /`DeviceWorkQueueError::ZeroCapacity`/s/ done / ready /
    /^[|] `DeviceWorkQueueProfile` /d
    /^[|] `BindingRole` /p' "$document" >"$work/planted.md"
  bash "$0" "$source_dir" "$build_dir" "$work/planted.md" >"$work/planted.log"
  for complaint in 'queue.h does not declare vyre_queue_plan_bild' \
    'queue.h does not declare vyre_queue_plan.bytes' \
    'there is no test queue_test.c:no_such_case' \
    "ZeroCapacity\`: state 'ready' is not done" '    DeviceWorkQueueProfile' '    BindingRole'; do
    if grep -qF "$complaint" "$work/planted.log"; then
      ok "finds: $complaint"
    else
      fail "finds: $complaint" "$(cat "$work/planted.log")"
    fi
  done
fi
finish
