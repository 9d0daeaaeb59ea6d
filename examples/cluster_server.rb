# frozen_string_literal: true

# A server on all processors. Each line is answered by one of the workers.
#
#   bin/bundle exec ruby examples/cluster_server.rb          # shows a reload
#   bin/bundle exec ruby examples/cluster_server.rb 4000     # serves on that port; `kill -HUP` reloads it, Ctrl-C ends it
#
# Prints:
#   generation 0 answers: OLLEH
#   generation 1 answers: OLLEH
#   not a connection was refused

require "ringspun"

def ask(worker)
  Ringspun.connect_tcp("127.0.0.1", worker.address.ip_port, timeout: 10) do |stream|
    stream.write_line("hello")
    stream.read_line
  end
end

# Has the first worker play the client as well: it asks, has the cluster reloaded, and goes on until a new worker answers.
def show_reload(worker)
  puts ask(worker)
  Process.kill(:HUP, Process.ppid)
  answer = ask(worker) until answer&.start_with?("generation 1")
  puts answer, "not a connection was refused"
  Process.kill(:TERM, Process.ppid)
end

$stdout.sync = true
show = ARGV.empty?
Ringspun::Cluster.run(workers: :cores, listen: ["127.0.0.1", Integer(ARGV.first || 0)], logger: ($stderr unless show)) do |worker|
  worker.serve do |stream|
    stream.each_line { |line| stream.write_line("generation #{worker.restarts} answers: #{line.reverse.upcase}") }
  end
  show_reload(worker) if show && worker.index.zero? && worker.restarts.zero?
end
