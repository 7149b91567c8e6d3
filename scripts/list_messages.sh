#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints docs/reference/messages.md: every failure in src/, by kind, with its fix.
#   scripts/list_messages.sh [--duplicates]
# With --duplicates, prints the messages that two places in src/ spell out instead.
# Reads VYRE_FAIL and VYRE_FAIL_WITH, macros that wrap them, and macros that hold texts.
set -euo pipefail
cd "$(dirname "$0")/.."
find src \( -name '*.c' -o -name '*.h' \) -not -path 'src/testing/*' \
  -not -name '*_test.c' -not -name '*_testing.h' -not -name '*_fuzz.c' -print0 |
  sort -z | xargs -0 perl -e '
use strict;
use warnings;
my $duplicates = 0;
if ($ARGV[0] eq "--duplicates") { $duplicates = 1; shift }
my $string = qr/"(?:\\.|[^"\\])*"/;
my (%text, %wrappers, %macros, %places, %rows);

# Returns the arguments of the call whose "(" ends before $at, and the end of the call.
sub arguments {
  my ($source, $at) = @_;
  my ($depth, $argument, @list) = (1, "");
  pos($$source) = $at;
  while ($$source =~ /\G($string|[^"])/gcs) {
    my $piece = $1;
    if ($piece =~ /^[(\[{]$/) { $depth++ }
    if ($piece =~ /^[)\]}]$/ && --$depth == 0) { last }
    if ($piece eq "," && $depth == 1) { push @list, $argument; $argument = "" }
    else { $argument .= $piece }
  }
  push @list, $argument;
  s/^\s+|\s+$//g, s/\s+/ /g for @list;
  return (\@list, pos($$source));
}

# Returns the text of adjacent literals and of macros that hold text, or undef.
sub literal {
  my ($file, $expression) = @_;
  my $all = "";
  while ($expression =~ /\G\s*(?:($string)|([A-Z_0-9]+)(\([^)]*\))?)/gc) {
    my ($quoted, $macro, $call) = ($1, $2, $3);
    if ($quoted) { $all .= substr $quoted, 1, -1; next }
    my $value = $macros{"$file $macro"} // $macros{" $macro"};
    $all .= defined $value && !$call ? $value : " …";
  }
  return undef if $expression =~ /\G\s*\S/gc || $all eq "";
  $all =~ s/\\(["\\])/$1/g;
  return $all;
}

# Replaces conversions: {name} for a number of the status, N for others, … for text.
sub readable {
  my ($format, $values, $numbers) = @_;
  my %name;
  while ($numbers =~ /\{("[a-z_0-9]+"), ((?:[^{}]|\{[^}]*\})+)\}/g) {
    my ($quoted, $value) = ($1, $2);
    $value =~ s/^\((?:u?int\w*_t|int|unsigned(?: long long)?|long long)\)//g;
    $name{$value} = substr $quoted, 1, -1;
  }
  my @values = map { /^FROM\(/ ? ("", "") : $_ } @$values;
  my $next = sub {
    my ($conversion) = @_;
    return "%" if $conversion =~ /%$/;
    shift @values if $conversion =~ /\*/;
    my $value = shift @values // "";
    $value =~ s/^\((?:u?int\w*_t|int|unsigned(?: long long)?|long long)\)//;
    $value =~ s/^\((.*)\)$/$1/;
    return "…" if $conversion =~ /[sc]$/;
    return defined $name{$value} ? "{$name{$value}}" : "N";
  };
  $format =~ s/(%(?:\.(?:\d+|\*))?(?:ll|l|z)?[a-zA-Z%])/$next->($1)/ge;
  return $format;
}

sub enumerator { return $_[0] =~ /^VYRE_(?:KIND_)?([A-Z_]+)$/ ? lc $1 : "various" }

sub add {
  my ($file, $is_with, @a) = @_;
  splice @a, 3, 0, "NULL", "NULL" unless $is_with;
  my (undef, $code, $kind, undef, $numbers, $fix, $format, @values) = @a;
  my $message = literal($file, $format // "");
  $fix = literal($file, $fix);
  return unless defined $message && defined $fix;
  my $shown = readable($message, \@values, $numbers);
  s/(?:…)+/…/g, s/\|/\\|/g for $shown, $fix;
  push @{$places{"$message\n$fix"}}, $file;
  $rows{enumerator($kind)}{"| $shown | `" . enumerator($code) . "` | $fix |"} = 1;
}

for my $file (@ARGV) {
  open my $in, "<", $file or die "$file: $!\n";
  local $/;
  my $source = <$in>;
  $source =~ s{($string)|/\*.*?\*/|//[^\n]*}{defined $1 ? $1 : " "}gse;
  $source =~ s/\\\n/ /g;
  while ($source =~ /^#define (\w+)(\([^)]*\))?[ ]+(.*)$/mg) {
    my ($name, $parameters, $body) = ($1, $2, $3);
    if ($body =~ /^VYRE_FAIL(_WITH)?\(/ && $name !~ /^VYRE_FAIL/) {
      my ($list) = arguments(\$body, $+[0]);
      $wrappers{$name} = [$parameters, $1, @$list];
    } elsif (!$parameters && $body =~ /^(?:$string\s*)+$/) {
      my $value = join "", map { substr $_, 1, -1 } $body =~ /$string/g;
      $macros{($file =~ /\.h$/ ? "" : $file) . " $name"} = $value;
    }
  }
  $source =~ s/^#define .*$//mg;
  $text{$file} = $source;
}
my $calls = join "|", "VYRE_FAIL_WITH", "VYRE_FAIL", sort keys %wrappers;
for my $file (@ARGV) {
  my $source = $text{$file};
  while ($source =~ /\b($calls)\(/g) {
    my ($name, $start) = ($1, $+[0]);
    my ($list, $end) = arguments(\$source, $start);
    pos($source) = $start;
    my @a = @$list;
    my $is_with = $name eq "VYRE_FAIL_WITH";
    if ($wrappers{$name}) {
      my ($parameters, $with, @body) = @{$wrappers{$name}};
      my @names = grep { $_ ne "..." } $parameters =~ /[\w.]+/g;
      my %value;
      @value{@names} = splice @a, 0, scalar @names;
      $is_with = $with;
      @a = map { $_ eq "__VA_ARGS__" ? @a : $value{$_} // $_ } @body;
    }
    add($file, $is_with, @a);
  }
}
if ($duplicates) {
  for my $key (sort keys %places) {
    my @files = @{$places{$key}};
    print join(" ", @files), ": $key\n" if @files > 1;
  }
  exit;
}
print <<"END";
# Messages

Every failure that the library reports, by [kind](errors.md#kinds). `scripts/list_messages.sh` writes this page from the sources.

`{name}` is a number that the status also holds under this name. `N` is another number, and `…` is a name or a reason. Texts may change with any release; branch on the code or the kind.
END
my %title = (none => "No kind", various => "Several kinds");
for my $kind (sort { exists $title{$a} <=> exists $title{$b} or $a cmp $b } keys %rows) {
  print "\n## ", $title{$kind} // "`$kind`",
    "\n\n| message | code | fix |\n|---|---|---|\n";
  print "$_\n" for sort keys %{$rows{$kind}};
}
' -- "$@"
