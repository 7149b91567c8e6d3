#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plants control-flow faults in a copy of the vectoriser, one at a time, and checks that
# the control-flow programs of `make check` find each of them.
#   planted_faults.sh SOURCE WORK [NAME...]
# WORK is a folder for the copy and its build. planted_faults.txt has the faults. The
# last line counts those that were found.
set -uo pipefail
source_dir=$(cd "$1" && pwd) work=$2
shift 2
. "$source_dir/tests/support/cases.sh"
list=$source_dir/tests/control_flow/planted_faults.txt
mkdir -p "$work"
work=$(cd "$work" && pwd)
copy=$work/source

mkdir -p "$copy"
(cd "$source_dir" && git ls-files -z | xargs -0 tar cf -) | tar xf - -C "$copy" --overwrite
build() { cmake --build "$work/build" --target control_flow >"$work/build.log" 2>&1; }
echo "building a copy of the sources in $copy"
if ! cmake -S "$copy" -B "$work/build" -G Ninja -DVYRE_BENCH=OFF -DCMAKE_BUILD_TYPE=Release >"$work/build.log" 2>&1 || ! build; then
  cat "$work/build.log"
  exit 1
fi
run() {
  "$work/build/tests/control_flow" --check programs --failures 1 >"$work/$1.log" 2>&1 &&
    "$work/build/tests/control_flow" --check shapes --failures 1 >>"$work/$1.log" 2>&1
}

# Prints what replaces the file $2 with the fault $1 planted.
plant() {
  NAME=$1 perl -e '
    my ($list, $file) = @ARGV;
    open my $in, "<", $list or die; my ($on, @old, @new);
    while (<$in>) {
      chomp;
      if (/^@ (\S+)/) { $on = $1 eq $ENV{NAME} }
      elsif ($on && /^-(.*)/) { push @old, $1 }
      elsif ($on && /^\+(.*)/) { push @new, $1 }
    }
    open $in, "<", $file or die; local $/; my $text = <$in>;
    my $pattern = join "\\s*\n\\s*", map { quotemeta } @old;
    my $count = () = $text =~ /$pattern/g;
    die "its text occurs $count times in $file\n" if $count != 1;
    my $new = join "\n", @new;
    $text =~ s/$pattern/$new/;
    print $text;' "$list" "$2"
}

if run none; then
  ok "without a fault, all programs agree"
else
  fail "without a fault, all programs agree" "$(tail -n 20 "$work/none.log")"
fi
while read -r _ name file; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  if ! plant "$name" "$source_dir/$file" >"$work/planted" 2>"$work/why"; then
    fail "finds $name" "$(cat "$work/why")"
    continue
  fi
  cp "$work/planted" "$copy/$file"
  if ! build; then
    fail "finds $name" "$(tail -n 5 "$work/build.log")"
  elif run "$name"; then
    fail "finds $name" "all programs agree"
  else
    ok "finds $name"
  fi
  cp "$source_dir/$file" "$copy/$file"
done < <(grep '^@ ' "$list")
finish
