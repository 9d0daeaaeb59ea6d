# frozen_string_literal: true

# Runs a command and says at its end how it has ended and what it has cost, its children and theirs included, also those that have
# lost their parents, as servers do that detach themselves. What it has left running is ended.
#
# usage: ruby metered.rb FD COMMAND...    writes "STATUS CPU" to that descriptor: wait(2)'s number, and seconds
#
# METERED_RUBYOPT and METERED_BUNDLER_SETUP are what the command has as RUBYOPT and BUNDLER_SETUP.

require "rbconfig"

out = IO.for_fd(Integer(ARGV.shift))

# PR_SET_CHILD_SUBREAPER of prctl(2): such children become ours. Where the number of the call is not known, they are not counted.
prctl = { "x86_64" => 157, "aarch64" => 167 }[RbConfig::CONFIG["host_cpu"]]
syscall(prctl, 36, 1, 0, 0, 0) if prctl

pid = asked = nil
%w[INT TERM].each { |signal| trap(signal) { pid ? Process.kill(signal, pid) : asked = signal } }
pid = spawn(%w[RUBYOPT BUNDLER_SETUP].to_h { |name| [name, ENV.delete("METERED_#{name}")] }, *ARGV)
Process.kill(asked, pid) if asked
status = nil
until status # others are children that have lost their parents
  ended, how = Process.wait2
  status = how if ended == pid
end

# What it has left running has a moment to end by itself, as helpers do that hear of its end. It would weigh on what comes after.
LEFT_SECONDS = 3
clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
give_up = clock.call + LEFT_SECONDS
begin
  sleep 0.01 until Process.wait(-1, Process::WNOHANG).nil? && clock.call > give_up
  Dir.glob("/proc/self/task/*/children").flat_map { |path| File.read(path).split.map(&:to_i) }.each do |left|
    warn "left running, and ended: #{File.read("/proc/#{left}/cmdline").tr("\0", " ")}"
    Process.kill(:KILL, left)
  end
  loop { Process.wait }
rescue Errno::ECHILD
  nil
end
used = Process.times
out.puts "#{status.to_i} #{used.cutime + used.cstime}"
