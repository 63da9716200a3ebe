# chains.py once more, for machines that have perl: its links are there for a shorter while.
use strict;
use POSIX ();
use Time::HiRes qw(time);

my ($many, $late, $file) = @ARGV;
my $start = time;
for (1 .. $many) {
    next if fork;
    POSIX::setsid();
    while (time < $start + 25) {
        POSIX::_exit(0) if fork;
        POSIX::setsid();
        next if time < $start + $late;
        open my $words, '>>', $file or POSIX::_exit(1);
        print $words "late\n";
        close $words;
    }
    POSIX::_exit(0);
}
