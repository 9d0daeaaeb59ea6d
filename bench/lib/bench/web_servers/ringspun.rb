# frozen_string_literal: true

require "ringspun"
require "bench/web_servers/answer"

path, processes, ready = ARGV
Ringspun::Cluster.run(workers: Integer(processes), listen: path) do |worker|
  worker.serve { |stream| stream.write(Bench.answer) if stream.read_until("\r\n\r\n") }
  IO.for_fd(Integer(ready)).syswrite(".")
  worker.wait
end
