# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Faults for tests of tests. A list has, for each fault, "@ name file ...", lines that start
# with ": ", which are items, and the lines to replace (-) and their replacement (+).

# Prints the file $3 with fault $2 of the list $1. The text to replace must occur once.
plant() {
  NAME=$2 perl -e '
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
    print $text;' "$1" "$3"
}

# Prints the items of fault $2 of the list $1.
items_of_fault() {
  awk -v name="$2" '/^@ / { on = $2 == name } on && /^: / { print substr($0, 3) }' "$1"
}
