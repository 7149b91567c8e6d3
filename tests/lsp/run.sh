#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests `vyre lsp` with a client of its own and with Neovim, and `vyre grammar` against the
# files in editors/ and the grammar in docs/reference/language.md.   run.sh SOURCE BUILD
set -uo pipefail
source_dir=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vyre=$build/vyre

expect "the client's cases pass" python3 "$source_dir/tests/lsp/client.py" "$vyre" "$source_dir"

# --- generated syntax ---------------------------------------------------------
"$vyre" grammar >"$work/textmate" && "$vyre" grammar --to vim >"$work/vim"
expect "editors/vscode has the output of vyre grammar" \
  diff "$work/textmate" "$source_dir/editors/vscode/syntaxes/vyre.tmLanguage.json"
expect "editors/vim has the output of vyre grammar" diff "$work/vim" "$source_dir/editors/vim/syntax/vyre.vim"

# Every word in quotes of the grammar is highlighted, and every keyword and word of a
# context is in the grammar. Words with components, such as x2, are parts of words.
sed -n '/^## Grammar/,/^```$/p' "$source_dir/docs/reference/language.md" |
  grep -o '"[a-z_][a-z0-9_]*"' | tr -d '"' | grep -vxE 'x[234]|[xyz]' | sort -u >"$work/grammar"
grep '^syn keyword' "$work/vim" | cut -d ' ' -f 4- | tr ' ' '\n' | sort -u >"$work/words"
grep -E '^syn keyword vyre(0|6) ' "$work/vim" | cut -d ' ' -f 4- | tr ' ' '\n' | sort -u >"$work/reserved"
expect "every word of the grammar is highlighted" test -z "$(comm -23 "$work/grammar" "$work/words" | tee /dev/stderr)"
expect "every keyword is in the grammar" test -z "$(comm -13 "$work/grammar" "$work/reserved" | tee /dev/stderr)"

# --- Neovim ------------------------------------------------------------------
if command -v nvim >/dev/null; then
  cat >"$work/a.vyre" <<'KERNEL'
kernel k workgroup(64)
buffer y : read_write f32[] @0;
{
    // Ä
    if (global_id.x > 0) return;
    /* ä𝄞 */ int total = 0;
  y[0]   = f32(total);
}
KERNEL
  said=$(cd "$work" && VYRE=$vyre VYRE_FILE=$work/a.vyre XDG_STATE_HOME=$work XDG_DATA_HOME=$work \
    timeout 100 nvim --headless -u NONE -i NONE -S "$source_dir/tests/lsp/nvim.lua" 2>"$work/errors")
  expect "Neovim works: $said $(cat "$work/errors")" test "$said" = fine
else
  echo "skipped: nvim is not installed"
fi
finish
