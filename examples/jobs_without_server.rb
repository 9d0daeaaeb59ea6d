# frozen_string_literal: true

# Background jobs without a server: they are kept in a file. Enqueues a hundred mails, has a worker send them in a process of its
# own, and asks the file what has become of them.
#
#   bin/bundle exec ruby examples/jobs_without_server.rb
#
# The worker is the command
#   bin/bundle exec ringspun-jobs -r examples/jobs_without_server.rb --storage sqlite:PATH
#
# Prints:
#   enqueued 100 jobs
#   done: 100 mails of 100 ms each
#   the worker has ended with status 0
#   processed 100, waiting 0, dead 0

require "ringspun/jobs"
require "tmpdir"

class Mailer
  include Ringspun::Jobs::Job

  def perform(_address)
    sleep 0.1 # a mail server that takes its time: meanwhile the other jobs go on
  end
end

def with_worker(folder, storage)
  command = [Gem.ruby, Gem.bin_path("ringspun-jobs", "ringspun-jobs")]
  pid = spawn(*command, "-r", __FILE__, "--storage", storage, "--log", File.join(folder, "jobs.log"))
  yield
ensure
  Process.kill(:TERM, pid)
  puts "the worker has ended with status #{Process.wait2(pid).last.exitstatus}"
end

def stats = Ringspun::Jobs.storage.stats

def send_mails(folder)
  storage = "sqlite:#{File.join(folder, "jobs.sqlite3")}"
  Ringspun::Jobs.configure { |config| config.storage = storage }
  jids = Mailer.perform_bulk(Array.new(100) { |number| ["#{number}@example.org"] })
  puts "enqueued #{jids.size} jobs"
  with_worker(folder, storage) do
    sleep 0.01 until stats[:processed] == jids.size
    puts "done: #{jids.size} mails of 100 ms each"
  end
  puts "processed #{stats[:processed]}, waiting #{stats[:enqueued]}, dead #{stats[:dead]}"
  Ringspun::Jobs.close
end

# The worker loads this file as well, for the class above.
Dir.mktmpdir("ringspun-mailer-") { |folder| send_mails(folder) } if $PROGRAM_NAME == __FILE__
