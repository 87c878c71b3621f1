# Owns: Sidekiq with workers of its own: jobs, times, failures and retries, a worker that is stopped. Does not own: the server.

require_relative "jobs"
require "sidekiq/api"

JOBS = Integer(ENV.fetch("APPS_JOBS", "500"))
WAIT_SECONDS = 240
HERE = File.dirname(File.expand_path(__FILE__))

def check(what, expected, got)
  raise "#{what}: expected #{expected.inspect}, got #{got.inspect}" unless expected == got

  puts "  #{what}: #{got.inspect}"
end

# Its threads wait for jobs two seconds at a time; while one still waits it takes what is given back when the time is over.
TIMEOUT_SECONDS = 4

def begin_worker(threads)
  words = ["sidekiq", "--require", "#{HERE}/jobs.rb", "--concurrency", threads.to_s, "--queue", "work", "--timeout", TIMEOUT_SECONDS.to_s]
  Process.spawn(*words, out: File::NULL)
end

def end_worker(pid)
  Process.kill("TERM", pid)
  Process.wait(pid)
end

# A worker for as long as the block takes.
def with_worker(threads = 25)
  pid = begin_worker(threads)
  yield
ensure
  end_worker(pid)
end

def wait_until(what)
  began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  until yield
    raise "#{what}: not within #{WAIT_SECONDS} s" if Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > WAIT_SECONDS

    sleep 0.02
  end
end

def jobs_run_once_each
  (0...JOBS).each_slice(1000) { |some| Sidekiq::Client.push_bulk("class" => Once, "args" => some.map { |at| [at] }) }
  queue = Sidekiq::Queue.new("work")
  check("jobs that wait", JOBS, queue.size)
  pids = [begin_worker(25), begin_worker(25)]
  wait_until("all jobs") { queue.size.zero? && redis { |connection| connection.hlen("times") } == JOBS }
  pids.each { |pid| end_worker(pid) }
  times = redis { |connection| connection.hvals("times") }
  check("how often each has run", { "1" => JOBS }, times.tally)
  check("what the statistics say", [JOBS, 0], [Sidekiq::Stats.new.processed, Sidekiq::Stats.new.failed])
end

def jobs_with_a_time_run_in_order
  now = Time.now.to_f
  [3, 1, 2].each { |at| Later.perform_at(now + at, at, now + at) }
  Later.perform_in(3600, 4, now + 3600)
  check("scheduled jobs", 4, Sidekiq::ScheduledSet.new.size)
  with_worker(1) do
    wait_until("three of them") { redis { |connection| connection.llen("later") } == 3 }
  end
  check("their order", %w[1 2 3], redis { |connection| connection.lrange("later", 0, -1) })
  check("the one that is left", [[4, now + 3600]], Sidekiq::ScheduledSet.new.map(&:args))
  Sidekiq::ScheduledSet.new.clear
end

def a_failed_job_is_tried_again_and_one_that_must_not_be_is_dead
  FailsTwice.perform_async
  refused = Refuses.perform_async
  with_worker do
    wait_until("the third try") { redis { |connection| connection.get("at last") } == "3" }
    wait_until("the dead job") { Sidekiq::DeadSet.new.size == 1 }
  end
  check("jobs to be tried again", 0, Sidekiq::RetrySet.new.size)
  check("the dead job", [refused, "no way"], Sidekiq::DeadSet.new.map { |job| [job.jid, job["error_message"]] }.first)
  Sidekiq::DeadSet.new.first.retry
  check("it waits again", [refused], Sidekiq::Queue.new("work").map(&:jid))
  Sidekiq::Queue.new("work").clear
end

def what_a_stopped_worker_has_not_done_is_in_the_queue_again
  job = Slow.perform_async
  with_worker do
    wait_until("it runs") { redis { |connection| connection.get("slow") } == "1" }
    check("while it runs none wait", 0, Sidekiq::Queue.new("work").size)
  end
  check("the job is back", [job], Sidekiq::Queue.new("work").map(&:jid))
end

cases = %i[
  jobs_run_once_each jobs_with_a_time_run_in_order a_failed_job_is_tried_again_and_one_that_must_not_be_is_dead
  what_a_stopped_worker_has_not_done_is_in_the_queue_again
]
cases.each do |name|
  redis(&:flushall)
  puts name
  send(name)
end
puts "Sidekiq #{Sidekiq::VERSION}: #{cases.size} cases hold"
