#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# clang-tidy on every source, then the house rules that no tool knows:
#   scripts/lint.sh build [--deep]   (a configured build folder)
#   scripts/lint.sh --rules [ROOT]   (the house rules alone)
set -euo pipefail
shopt -s lastpipe # complain() sets status in this shell
mode=$1
cd "$(dirname "$0")/.."
[ "$mode" != --rules ] || cd "${2:-.}"
status=0

complain() { # title, then lines on standard input; silent if there are none
  local lines
  lines=$(cat)
  [ -n "$lines" ] || return 0
  printf '%s\n%s\n\n' "lint: $1" "$lines"
  status=1
}

if command -v git >/dev/null && git rev-parse --git-dir >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files -co --exclude-standard)
else
  mapfile -t files < <(find . -type f -not -path './build/*' -not -path './.git/*' | sed 's,^\./,,')
fi
existing=()
for file in "${files[@]}"; do if [ -f "$file" ]; then existing+=("$file"); fi; done
files=("${existing[@]}")

pick() { printf '%s\n' "${files[@]}" | grep -E "$1" || true; }
mapfile -t c_files < <(pick '\.[ch]$')
mapfile -t library < <(pick '^(src|include)/.*\.[ch]$' | grep -vE '_(test|fuzz)\.c$|_testing\.h$|^src/testing/random_programs\.' || true)
mapfile -t outside_base < <(printf '%s\n' "${library[@]}" | grep -v '^src/base/' || true)

# Prints file:line: text where the code (not comments or strings) matches.
code_grep() {
  local pattern=$1
  shift
  [ $# -gt 0 ] || return 0
  PATTERN=$pattern perl -0777 -e '
    for my $file (@ARGV) {
      open my $in, "<", $file or die "$file: $!"; my $text = <$in>;
      my @raw = split /\n/, $text;
      $text =~ s{(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*")}
                {my $gone = $1; $gone =~ s/[^\n]/ /g; $gone}gse;
      my $line = 0;
      for (split /\n/, $text) {
        $line++;
        print "$file:$line: $raw[$line - 1]\n" if /$ENV{PATTERN}/;
      }
    }' "$@"
}

code_grep '\b(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign|v?asprintf)\s*\(' \
  "${outside_base[@]}" | complain "memory comes from the caller's allocator (src/base)"
code_grep '\b(v?f?printf|puts|fputs|putchar|putc|fputc|fwrite|perror|abort|exit|_exit|_Exit|quick_exit|longjmp)\s*\(' \
  "${library[@]}" | { grep -v '^src/backend/cpu/jit/llvm_compile\.c:.*longjmp' || true; } | # LLVM would exit
  complain "the library never prints, exits or aborts"
code_grep '\b(secure_)?getenv\s*\(' "${library[@]}" | { grep -v '^src/runtime/core/context\.c:' || true; } |
  complain "only contexts ask the environment"

for file in "${c_files[@]}"; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt 1000 ]; then echo "$file: $lines lines"; fi
done | complain "a file has at most 1000 lines"

lines=$(pick '(CMakeLists\.txt|\.cmake(\.in)?)$' | xargs -r cat | wc -l)
if [ "$lines" -gt 900 ]; then echo "$lines lines"; fi |
  complain "all CMake files together have at most 900 lines"

# Formatted sources open a function in the first column and close it there.
awk 'FNR == 1 { start = 0 }
  /^[A-Za-z_].*[{]$/ || (/^ .*\) [{]$/ && !start) {
    if ($0 !~ /^(struct|union|enum|typedef|extern)|= [{]$/) start = FNR }
  /^}/ { if (start && FNR - start + 1 > 100)
           printf "%s:%d: %d lines\n", FILENAME, start, FNR - start + 1
         start = 0 }' "${c_files[@]}" | complain "a function has at most 100 lines"

{ grep -nE '\b(TODO|FIXME|XXX)\b' "${c_files[@]}" || true; } |
  { grep -vE '(TODO|FIXME)\(#[0-9]+\)' || true; } | complain "a TODO carries its issue: TODO(#12)"

# Code and tables are not paragraphs; each item of a list is one.
pick '\.md$' | xargs -r awk 'FNR == 1 { code = length_now = 0 }
  /^ *```/ { code = !code; length_now = 0; next }
  code || /^[|#]/ || /^ *$/ { length_now = 0; next }
  /^ *([-*]|[0-9]+\.) / { length_now = 0 }
  { length_now += length($0) + 1
    if (length_now > 600) { print FILENAME ":" FNR ": " length_now " characters"; length_now = 0 } }' |
  complain "a paragraph has at most 600 characters: six lines of 100 columns"

pick '(\.(c|h|sh|cmake)|CMakeLists\.txt|Makefile|^\.ci/run)$' | while read -r file; do
  if ! head -n 2 "$file" | grep -q 'SPDX-License-Identifier: MIT OR Apache-2.0'; then
    echo "$file"
  fi
done | complain "the first line names the licence"

{ grep -nIE '(^|[^A-Za-z0-9_.])/(home|Users|root|work)/[A-Za-z0-9]' "${files[@]}" || true; } |
  complain "no path of somebody's machine"

pick '(\.sh|^\.ci/run)$' | while read -r file; do
  bash -n "$file" 2>&1 || true
  [ -x "$file" ] || case $file in tests/support/*) ;; *) echo "$file: not executable" ;; esac
done | complain "scripts are sound and can be run"
if command -v shellcheck >/dev/null; then
  { pick '(\.sh|^\.ci/run)$' | xargs -r shellcheck -x -S warning 2>&1 || true; } | complain "shellcheck"
fi

# Nearly all the time goes to the static analyzer, most of it to the few functions in which
# it reaches its limit on states. The default limit is 225000; `make lint-deep` uses it for
# all files. A lower limit leaves more blocks unvisited: of 1,700 in a sample, 175 with
# 10000 states and 141 with 25000. Shipped code is analyzed with 25000 states. Tests and
# benchmarks run under sanitizers instead, and are analyzed by lint-deep only.
# A file that belongs to several programs is checked once, generated files are not. Large
# files come first, so that all processors finish at about the same time.
tidy() {
  mkdir -p "$mode/lint"
  perl -0777 -ne 'my %seen; print "[\n", join(",\n", grep { /"file": "(.*?)"/ && !$seen{$1}++ }
    /\{.*?\}/gs), "\n]\n"' "$mode/compile_commands.json" >"$mode/lint/compile_commands.json"
  # shellcheck disable=SC2016 # for the shell that is started
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$mode/lint/compile_commands.json" |
    { grep -v "^$PWD/$mode/" || true; } | xargs -d '\n' ls -S |
    DEEP=${1:-} xargs -d '\n' -P "$(nproc)" -n 1 bash -c '
    checks="" states=25000
    case $DEEP${2#"$PWD"/} in
      --deep*) states=225000 ;;
      *_test.c | *_bench.c | *_fuzz.c | bench/* | cts/* | tests/*) checks="-clang-analyzer-*" ;;
    esac
    exec clang-tidy-19 -p "$1" --quiet --checks="$checks" --extra-arg=-Xclang \
      --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg="max-nodes=$states" \
      "$2" 2>/dev/null' - "$mode/lint" ||
    echo "(clang-tidy failed)"
}
if [ "$mode" != --rules ] || [ -z "${2:-}" ]; then
  { scripts/lint_english.sh || true; } | complain "plain English (CONTRIBUTING.md)"
fi
if [ "$mode" != --rules ]; then
  echo "clang-tidy on all sources, which takes minutes ..."
  tidy "${2:-}" | complain "clang-tidy"
fi
[ "$status" -ne 0 ] || echo "lint: clean"
exit "$status"
