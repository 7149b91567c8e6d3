#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck disable=SC1003,SC2016 # backslashes and dollars meant as such
# The documents say what is so.  docs.sh SOURCE BUILD
#  - a ```c block with a main() is built against the build tree and run; a ```text
#    block right after it is what it must print
#  - a ```console block is a transcript: "$ command", then exactly its output
#  - a ```vyre block is a kernel file that `vyre check` must accept; with a rule
#    behind the word (```vyre V071) it must break that rule and no other; with
#    "body" it is the body of the page's kernel named "example"
#  - docs/vyre.1 is what the build makes
#  - docs/explanation/cpu-vectorisation.md explains every pass of src/spmd/schedule.h
#  - relative links lead to files, and their anchors to headings
#  - docs/reference/errors.md lists the codes and kinds of vyre/status.h, all of them
#  - docs/reference/messages.md is what scripts/list_messages.sh prints
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
export VYRE_VULKAN=none # devices differ from machine to machine

# A repository root that commands may write to.
root=$work/root
mkdir "$root"
for entry in "$source_dir"/*; do
  case ${entry##*/} in build) ;; *) ln -s "$entry" "$root/" ;; esac
done
ln -s "$build_dir" "$root/build"

# Block n of a document goes to n.<language>, with the line it starts at in
# n.line. Language "next" marks the text block that belongs to block n.
split_blocks() { # document, folder
  awk -v out="$2" '
    /^ *```/ && !inside {
      language = $0; sub(/^ *```/, "", language)
      rest = language; if (!sub(/^[^ \t]*[ \t]+/, "", rest)) rest = ""
      sub(/[ \t].*/, "", language)
      inside = 1; n++
      if (language == "text" && kind == "c" && !gap) file = out "/" (n - 1) ".expected"
      else file = out "/" n "." (language == "" ? "plain" : language)
      kind = language; gap = 0
      print FNR > (out "/" n ".line"); close(out "/" n ".line")
      print rest > (out "/" n ".rest"); close(out "/" n ".rest")
      printf "" > file
      next
    }
    /^ *```/ { inside = 0; close(file); next }
    inside { print > file; next }
    /[^ \t]/ && kind == "c" && !/:$/ { gap = 1 }
  ' "$1"
}

run_c_block() { # name, source, expected or nothing
  local program=$work/program output
  if ! output=$("$cc" -std=c11 -Wall -Wextra -Werror -x c "$2" -o "$program" \
    -I "$source_dir/include" -L "$build_dir" -lvyre "-Wl,-rpath,$build_dir" 2>&1); then
    fail "$1" "$output"
    return
  fi
  if ! output=$(cd "$root" && "$program" 2>&1 </dev/null); then
    fail "$1" "exit status $?" "$output"
  elif [ -f "$3" ]; then
    expect_same "$1" "$output" "$(cat "$3")"
  else
    ok "$1"
  fi
}

run_console_block() { # name, transcript
  local command='' wanted='' line got number=0
  check() {
    [ -n "$command" ] || return 0
    number=$((number + 1))
    got=$(cd "$root" && PATH=$build_dir:$PATH bash -c "$command" 2>&1 </dev/null)
    expect_same "$1.$number" "$got" "${wanted%$'\n'}"
    command='' wanted=''
  }
  while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line == '$ '* ]]; then
      check "$1"
      command=${line#'$ '}
      while [[ $command == *'\' ]]; do
        IFS= read -r line || break
        command=${command%'\'}$line
      done
    else
      wanted+=$line$'\n'
    fi
  done <"$2"
  check "$1"
}

# Prints the links of a document whose #anchor is not a heading of its target.
broken_anchors() { # document
  perl -e '
    use File::Basename;
    sub text { open my $in, "<", $_[0] or return ""; local $/; my $t = <$in>;
               $t =~ s/^```.*?^```$//gms; $t }
    sub slug { my $h = lc $_[0]; $h =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
               $h =~ s/[^\w\- ]//g; $h =~ s/ /-/g; $h }
    my $document = $ARGV[0];
    my $text = text($document);
    while ($text =~ /\]\(([^)#\s]*)#([^)\s]*)\)/g) {
      my ($link, $anchor) = ($1, $2);
      next if $link =~ m{://};
      my $target = $link eq "" ? $document : dirname($document) . "/$link";
      next if $target !~ /\.md$/;
      my %known = map { slug($_) => 1 } text($target) =~ /^#+ (.*)$/gm;
      print "$link#$anchor is missing\n" unless $known{$anchor};
    }' "$1"
}

# The kernel that fragments of a page stand in: all of it but the last line, "}".
example_head() { # folder of blocks
  local block
  for block in "$1"/*.vyre; do
    if grep -q '^kernel example' "$block"; then
      sed '$d' "$block"
      return
    fi
  done
}

check_vyre_block() { # name, file, what stands behind the word, folder of blocks
  local output rules file=$work/kernel.vyre
  case $3 in
    body) { example_head "$4" && cat "$2" && echo '}'; } >"$file" ;;
    *) cp "$2" "$file" ;;
  esac
  case $3 in
    V[0-9]*)
      rules=$("$build_dir/vyre" check --json "$file" 2>&1 |
        grep -oE '"rule":"[^"]*"' | sort -u | cut -d'"' -f4 | tr '\n' ' ')
      expect_same "$1" "$rules" "$3 "
      ;;
    '' | body)
      if output=$("$build_dir/vyre" check "$file" 2>&1); then
        ok "$1"
      else
        fail "$1" "$output"
      fi
      ;;
    *) fail "$1" "nobody knows what '$3' means" ;;
  esac
}

documents=()
while IFS= read -r document; do
  documents+=("$document")
done < <(find "$source_dir"/*.md "$source_dir/docs" -name '*.md' | LC_ALL=C sort)
for document in "${documents[@]}"; do
  short=${document#"$source_dir"/}
  blocks=$work/blocks
  rm -rf "$blocks"
  mkdir "$blocks"
  split_blocks "$document" "$blocks"
  for block in "$blocks"/*.c "$blocks"/*.console "$blocks"/*.vyre; do
    [ -f "$block" ] || continue
    base=${block%.*}
    name=$short:$(cat "$base.line")
    case $block in
      *.c) if grep -q 'int main' "$block"; then run_c_block "$name" "$block" "$base.expected"; fi ;;
      *.console) run_console_block "$name" "$block" ;;
      *.vyre) check_vyre_block "$name" "$block" "$(cat "$base.rest")" "$blocks" ;;
    esac
  done

  broken=$(awk '/^ *```/ { inside = !inside } !inside' "$document" |
    grep -oE '\]\([^)]+\)' | sed -E 's/^\]\(([^) ]+).*\)$/\1/; s/#.*//' | sort -u |
    while read -r link; do
      case $link in '' | *://* | mailto:*) continue ;; esac
      [ -e "$(dirname "$document")/$link" ] || echo "$link is not there"
    done)
  broken+=$(broken_anchors "$document")
  expect_nothing "$short: links" "$broken"
  expect_nothing "$short: nothing left to fill in" "$(grep -noE '@[A-Z]{3,}@' "$document")"
done

# docs/reference/errors.md against the X-macros.
cat >"$work/errors.c" <<'END'
#include <stdio.h>
#include <vyre/status.h>
#define ROW(name, number, text) printf("| %d | `%s` | `%s` |\n", number, #name, text);
int main(void) { VYRE_CODE_MAP(ROW) VYRE_KIND_MAP(ROW) }
END
if "$cc" -I "$source_dir/include" "$work/errors.c" -o "$work/errors" 2>"$work/log"; then
  expect_same "docs/reference/errors.md lists every code and kind" \
    "$(grep -oE '^\| [0-9]+ \| `VYRE_[A-Z_]+` \| `[a-z_]+` \|' "$source_dir/docs/reference/errors.md")" \
    "$("$work/errors")"
else
  fail "docs/reference/errors.md lists every code and kind" "$(cat "$work/log")"
fi
expect_same "docs/reference/messages.md is what scripts/list_messages.sh prints" \
  "$(cat "$source_dir/docs/reference/messages.md")" "$("$source_dir/scripts/list_messages.sh")"
# Every pass of the vectoriser is explained, schedule passes by a section with a dump.
vectoriser=$source_dir/docs/explanation/cpu-vectorisation.md
passes_of() { sed -n "/define $1(/,/^\$/p" "$source_dir/src/spmd/schedule.h" | grep -o 'X([A-Z_]*, "[a-z-]*"' | cut -d'"' -f2; }
missing=$(for pass in $(passes_of VYRE__SCHEDULE_PASS_MAP); do
  sed -n "/^### $pass\$/,/^##/p" "$vectoriser" | grep -q -- "--dump-after $pass" || echo "$pass"
done
for pass in $(passes_of VYRE__PREPARE_PASS_MAP); do grep -q "\`$pass\`" "$vectoriser" || echo "$pass"; done)
expect_same "docs/explanation/cpu-vectorisation.md explains $(passes_of 'VYRE__[A-Z]*_PASS_MAP' | wc -l) passes" "$missing" ""
expect_same "docs/vyre.1 is what the build makes" \
  "$(cat "$source_dir/docs/vyre.1")" "$(cat "$build_dir/manual/vyre.1")"
finish
