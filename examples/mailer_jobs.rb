# frozen_string_literal: true

# Background jobs from end to end: enqueues a thousand mails, has a worker send them all at once, and ends the worker.
#
#   bin/bundle exec ruby examples/mailer_jobs.rb
#
# It uses the Redis of REDIS_URL, or else one of its own. The worker is the command
#   bin/bundle exec ringspun-jobs -r examples/mailer_jobs.rb
# With a Redis of yours in REDIS_URL the web pages show what has become of the mails, also while they are sent:
#   bin/bundle exec ringspun-jobs web -r examples/mailer_jobs.rb
#
# Prints:
#   enqueued 1000 jobs
#   done: 1000 mails of 100 ms each, ... s after the worker was started
#   the worker has ended with status 0

require "ringspun/jobs"
require "tmpdir"

Ringspun::Jobs.configure { |config| config.namespace = "mailer-example" }

class Mailer
  include Ringspun::Jobs::Job

  def perform(_address)
    sleep 0.1 # a mail server that takes its time: meanwhile the other jobs go on
  end
end

# One of its own, unless there is one.
def with_redis(folder)
  return yield if ENV["REDIS_URL"]

  folders = ENV["PATH"].split(":")
  server = %w[redis-server valkey-server].find { |name| folders.any? { |path| File.executable?(File.join(path, name)) } }
  abort "There is no Redis on PATH: run bin/setup first, or name one in REDIS_URL." unless server

  socket = File.join(folder, "redis.sock")
  pid = spawn(server, "--port", "0", "--unixsocket", socket, "--save", "", out: File::NULL)
  sleep 0.01 until answers?(socket)
  ENV["REDIS_URL"] = "unix://#{socket}"
  begin
    yield
  ensure
    Ringspun::Jobs.close
    Process.kill(:TERM, pid)
    Process.wait(pid)
  end
end

def answers?(socket)
  UNIXSocket.open(socket) { true }
rescue Errno::ENOENT, Errno::ECONNREFUSED # it has only just begun
  false
end

def with_worker(folder)
  command = [Gem.ruby, Gem.bin_path("ringspun-jobs", "ringspun-jobs")]
  pid = spawn(*command, "-r", __FILE__, "--log", File.join(folder, "jobs.log"))
  yield
ensure
  Process.kill(:TERM, pid)
  puts "the worker has ended with status #{Process.wait2(pid).last.exitstatus}"
end

def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC)

def send_mails(folder)
  before = Ringspun::Jobs.storage.stats[:processed]
  jids = Mailer.perform_bulk(Array.new(1000) { |number| ["#{number}@example.org"] })
  puts "enqueued #{jids.size} jobs"
  started = seconds
  with_worker(folder) do
    sleep 0.01 until Ringspun::Jobs.storage.stats[:processed] - before >= jids.size
    puts "done: #{jids.size} mails of 100 ms each, #{(seconds - started).round(2)} s after the worker was started"
  end
end

# The worker loads this file as well, for the class above.
if $PROGRAM_NAME == __FILE__
  Dir.mktmpdir("ringspun-mailer-") { |folder| with_redis(folder) { send_mails(folder) } }
end
