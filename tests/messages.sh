#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Commands that messages, comments and documents name exist, and so do their flags; so
# do targets of make. Messages of the library are not written twice.
#   messages.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
vyre=$build_dir/vyre
cd "$source_dir" || exit 1

files() { # those whose whole name fits, but what was changed when is history
  find . \( -path ./build -o -path ./.git -o -name CHANGELOG.md \) -prune -o -type f -print | grep -xE "$1"
}

# Every place where a command is written as one: in backticks or quotes, behind a
# prompt, indented as an example, or run by a script. Strings of C that are continued
# on the next line are joined first.
named() {
  files '.*\.(c|h|def|md|vyre|cases)|\./scripts/.*\.sh|\./Makefile' | grep -v '_test\.c$' |
    while IFS= read -r file; do
      # Golden cases are full of wrong commands; their messages count.
      case $file in *.cases) pattern='^[>!] ' ;; *) pattern='' ;; esac
      grep -h "$pattern" "$file" 2>/dev/null |
        sed -e '/^```/d' -e ':a' -e '/"$/{N; s/"\n *"//; ta' -e '}' |
        grep -oE "([\`']|^\\$ |^ +|^[>!] +|\\\\n +|\"  +)vyre [a-z]+( [a-z]+)?( (FILE|[a-z_/]+\.vyre))?( --[a-z-]+)*" |
        sed -E "s|^[^v]*vyre |$file: |"
    done | sort -u
}

# exists WORD [WORD]: succeeds if the command exists, and the member if it is a group. A
# word after a single command is an operand or prose.
commands=$("$vyre" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
exists() {
  grep -qx "$1" <<<"$commands" || [ "$1" = help ] || return 1
  case $1 in
    cache | flow | graph | plan | route) [ -z "${2-}" ] || "$vyre" "$1" --help | grep -qE "^  $2 " ;;
  esac
}

list=$(named)
count=$(wc -l <<<"$list")
if [ "$count" -ge 50 ]; then ok "commands are found"; else fail "commands are found" "$count" "$list"; fi
wrong='' wrong_flags=''
while IFS= read -r line; do
  file=${line%%: *}
  read -r -a words <<<"${line#*: }"
  plain=()
  for word in "${words[@]}"; do
    case $word in [a-z]*) case $word in *.vyre) ;; *) plain+=("$word") ;; esac ;; esac
  done
  # prose about the command itself: 'vyre run has it'
  case ${plain[0]} in cache | flow | graph | plan | route) ;; *) plain=("${plain[0]}") ;; esac
  if ! exists "${plain[@]}"; then
    wrong+="$file: vyre ${plain[*]}"$'\n'
    continue
  fi
  [ "${plain[0]}" != help ] || continue
  help=$("$vyre" "${plain[@]}" --help)
  for word in "${words[@]}"; do
    case $word in
      --help | --json) ;;
      --*) grep -qE -- "$word([ |,.\`']|$)" <<<"$help" || wrong_flags+="$file: vyre ${plain[*]} $word"$'\n' ;;
    esac
  done
done <<<"$list"
expect_nothing "every command that is named exists" "$wrong"
expect_nothing "every flag that is named with it exists" "$wrong_flags"
wrong=''
while read -r target; do
  grep -qE "^([a-z -]+ )?$target( [a-z -]+)?:" Makefile || wrong+="make $target"$'\n'
done < <(files '.*\.(c|h|md|sh)|\./Makefile' | xargs grep -ohE '`make [a-z-]+' | sed 's/^`make //' | sort -u)
expect_nothing "every target of make that is named exists" "$wrong"
expect_nothing "no message is written twice" "$(scripts/list_messages.sh --duplicates)"
finish
