#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Finds phrases that make prose hard to read, in comments, string literals, Markdown and
# commit subjects. CONTRIBUTING.md explains the rules.
#   scripts/lint_english.sh [PATH...]   prints every line found; fails if there is one
#   scripts/lint_english.sh --count     prints the number of lines for each folder
# A line that must stay carries "lint: english-ok" and a reason.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=list
if [ "${1:-}" = --count ]; then mode=count && shift; fi

if git rev-parse --git-dir >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files -co --exclude-standard -- "$@")
else
  mapfile -t files < <(find "${@:-.}" -type f -not -path './build/*' | sed 's,^\./,,')
fi
checked=()
for file in "${files[@]}"; do
  [ -f "$file" ] || continue
  case $file in
    tests/corpus/* | scripts/lint_english.sh | LICENSE*) ;;
    *.c | *.h | *.def | *.md | *.vyre | *.cl | *.sh | *.py | *.cases | *.in | *.cmake | *CMakeLists.txt | Makefile | .ci/run) checked+=("$file") ;;
  esac
done
if [ ${#checked[@]} -eq 0 ]; then exit 0; fi

found=$(perl - "${checked[@]}" <<'PERL'
use strict;
use warnings;
my @rules = (
  [headless => qr{^\s*(?:/\*\*?|\*|//|\#)\s*(?:What|Who|Whoever|Whether|Where|Which|How)\b(?![^.]*\?)}],
  [none => qr{\b(?:is|are|was) none\b(?! of)|\bwhich is none\b}i],
  ['not-after' => qr{\b(?:knows?|has|have|had) not\b(?! been| yet)}i],
  [lets => qr{\blets? (?:there|be|it be|go of|\w+ (?:fail|be))\b}i],
  [people => qr{\b(?:who|whoever|whom|whose turn|nobody|somebody|anybody|everybody|people)\b}i],
  [told => qr{\b(?:is|are|was|be|been) told\b|\btells? (?:of|how|what|whether)\b}i],
  [mend => qr{\bmend(?:s|ed|ing)?\b}i],
  [brought => qr{\bbrought\b|\bof (?:the )?(?:caller|host|device)'s own\b}i],
  [archaic => qr{\b(?:anew|likewise|wholly|beside|thereof|meanwhile|ere)\b}i],
  ['inside-of' => qr{\b(?:in|out)side of\b}i],
  ['one-a' => qr{\bone an? (?:invocation|binding|buffer|element|phase|item|input|output|instruction|interval|lane)\b}i],
  [over => qr{\b(?:is|are) over\b|\bis (?:not )?there\b|\bthere (?:is|are) no such\b}i],
  ['as-it-is' => qr{\bas (?:it|they|what) (?:is|are|was|were)\b}i],
  ['is-no' => qr{\b(?:is|are) no (?!longer|more than|less than|op\b)[a-z]+}i],
  [chains => qr{(?:\bthat\b[^.;]*){3,}}i],
);
for my $file (@ARGV) {
  open my $in, '<', $file or die "$file: $!";
  local $/;
  my $text = <$in>;
  my @raw = split /\n/, $text, -1;
  if ($file =~ /\.(?:c|h|def)$/) { # keep comments and strings only, in their places
    my $kept = '';
    while ($text =~ m{\G(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|.)}gs) {
      my $part = $1;
      $part =~ s/[^\n]/ /g unless $part =~ m{^(?:/\*|//|")};
      $kept .= $part;
    }
    $text = $kept;
  } elsif ($file =~ /\.md$/) { # code is not prose
    $text =~ s{^(```.*?^```)}{my $c = $1; $c =~ s/[^\n]/ /g; $c}gmse;
    $text =~ s{(`[^`\n]*`)}{' ' x length $1}ge;
  } elsif ($file =~ /\.(?:vyre|cl)$/) {
    $text =~ s{^((?:(?!//).)*)}{' ' x length $1}gme;
  } else { # scripts: comments only
    $text =~ s{^(?!\s*#)(.*)$}{' ' x length $1}gme;
  }
  my $at = 0;
  for my $line (split /\n/, $text, -1) {
    $at++;
    next if ($raw[$at - 1] // '') =~ /lint: english-ok/;
    for my $rule (@rules) {
      next unless $line =~ $rule->[1];
      (my $shown = $raw[$at - 1]) =~ s/^\s+//;
      print "$file:$at: $rule->[0]: $shown\n";
      last;
    }
  }
}
PERL
)
# Subjects of commits that are not on the main branch yet.
if [ $# -eq 0 ] && git rev-parse -q --verify origin/main >/dev/null 2>&1; then
  subjects=$(git log --format='%h: subject: %s' origin/main..HEAD |
    grep -E '^[0-9a-f]+: subject: (.{66,}|[a-z/, ]+: (what|who|how|whether|where|which) )' || true)
  if [ -n "$subjects" ]; then found+=${found:+$'\n'}$subjects; fi
fi
if [ "$mode" = count ]; then
  printf '%s\n' "$found" | sed -n 's,^\([^:]*\)/[^/:]*:.*,\1,p' | sort | uniq -c
  exit 0
fi
[ -n "$found" ] || exit 0
printf '%s\n' "$found"
exit 1
