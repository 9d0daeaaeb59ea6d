# frozen_string_literal: true

# Stock Ruby: processes that accept from one socket, one connection after the other.

require "socket"
require "bench/web_servers/answer"

path, processes, ready = ARGV
server = UNIXServer.new(path)
gate, opener = IO.pipe
pids = []
trap(:TERM) { exit }
begin
  Integer(processes).times do
    pids << fork do
      trap(:TERM, :DEFAULT)
      opener.close
      gate.read # until the parent has the number of each child, for who has their answers may end it at once
      IO.for_fd(Integer(ready)).syswrite(".")
      loop do
        socket = server.accept
        socket.write(Bench.answer) if socket.gets("\r\n\r\n")
        socket.close
      end
    end
  end
  opener.close
  Process.waitall
ensure
  pids.each { |pid| Process.kill(:TERM, pid) }
  Process.waitall
end
