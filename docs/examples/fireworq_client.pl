#!/usr/bin/env perl
# Defines a queue, routes a category to it, pushes jobs, and follows them to their ends.
#
#     perl fireworq_client.pl http://localhost:8080 http://localhost:3000
#
# The first address is that of Fireworq, the second one that of the program that does the work: it
# has the paths /work, /flaky (fails at the first try) and /broken (fails for good).
use strict;
use warnings;
use HTTP::Request;
use JSON;
use LWP::UserAgent;
use Time::HiRes qw(sleep time);
use URI::Escape;

my ($fireworq, $worker) = @ARGV;
my $agent = LWP::UserAgent->new(timeout => 10);
$| = 1;

sub send_request {
    my ($method, $path, $body) = @_;
    my $request = HTTP::Request->new($method => "$fireworq$path");
    if (defined $body) {
        $request->header('Content-Type' => 'application/json');
        $request->content(encode_json($body));
    }
    return $agent->request($request);
}

sub call {
    my ($method, $path, $body) = @_;
    my $response = send_request($method, $path, $body);
    die "$method $path: " . $response->as_string unless $response->is_success;
    return decode_json($response->content);
}

# All jobs of a list, two at a time.
sub list_jobs {
    my ($path, $key) = @_;
    my ($cursor, @found) = ('');
    do {
        my $page = call(GET => "$path?limit=2&cursor=" . uri_escape($cursor));
        push @found, @{ $page->{$key} };
        $cursor = $page->{next_cursor};
    } while ($cursor ne '');
    return @found;
}

sub push_job {
    my ($path, %options) = @_;
    my $job = call(POST => '/job/crawl', { url => "$worker$path", %options });
    print "pushed to $job->{queue_name}: $path\n";
    return $job->{id};
}

# A job has ended when its queue has it no more.
sub wait_for_end {
    my ($id) = @_;
    my $until = time + 30;
    while (send_request(GET => "/queue/crawler/job/$id")->code != 404) {
        die "job $id has not ended" if time > $until;
        sleep 0.05;
    }
}

my $queue = call(PUT => '/queue/crawler', { polling_interval => 100, max_workers => 10 });
print "queue $queue->{name}: $queue->{max_workers} workers, $queue->{polling_interval} ms\n";
call(PUT => '/queue/slow', { max_dispatches_per_second => 2.5, max_burst_size => 5 });
print 'queues: ', join(', ', map { $_->{name} } @{ call(GET => '/queues') }), "\n";

call(PUT => '/routing/crawl', { queue_name => 'crawler' });
print "routing: $_->{job_category} -> $_->{queue_name}\n" for @{ call(GET => '/routings') };

my @later = map { push_job('/work', payload => { n => $_ }, run_after => 3600) } 1 .. 5;
my @deferred = list_jobs('/queue/crawler/deferred', 'jobs');
print scalar(@deferred), " deferred, the last one $deferred[0]{payload}{n}\n";
call(DELETE => "/queue/crawler/job/$_") for @later;
print scalar(list_jobs('/queue/crawler/deferred', 'jobs')), " deferred\n";

my $done  = push_job('/work', payload => { page => 'index', n => 1 }, timeout => 10);
my $text  = push_job('/work', payload => 'page=index&n=2');
my $flaky = push_job('/flaky', max_retries => 3, retry_delay => 1);
my $broken = push_job('/broken', payload => { n => 4 }, max_retries => 3);
wait_for_end($_) for $done, $text, $flaky, $broken;

for my $failure (list_jobs('/queue/crawler/failed', 'failed_jobs')) {
    my $result = $failure->{result};
    print "$failure->{category} failed $failure->{fail_count} times: ",
        "$result->{status} $result->{code} $result->{message}\n";
    call(DELETE => "/queue/crawler/failed/$failure->{id}");
}
print scalar(list_jobs('/queue/crawler/failed', 'failed_jobs')), " failures\n";

my $stats = call(GET => '/queue/crawler/stats');
print "$stats->{total_pushes} pushes, $stats->{outstanding_jobs} outstanding, ",
    "$stats->{idle_workers} of $stats->{total_workers} workers idle\n";
my $node = call(GET => '/queue/crawler/node');
print "served by node $node->{id} on $node->{host}\n";

call(DELETE => '/routing/crawl');
call(DELETE => "/queue/$_") for 'crawler', 'slow';
print scalar(@{ call(GET => '/queues') }), " queues\n";
