# frozen_string_literal: true

# The process of support/zygote.rb, which loads this file by -r. For each child that is asked for it forks a keeper, and the
# keeper forks the child. The child alone comes back from here: it goes on as a Ruby that has read its options, and runs its main
# program.

# Ruby comes to these later than to the -r of its command.
ENV.fetch("RUBYOPT", "").scan(/-r(\S+)/) { |feature,| require feature }
require "socket"
require "ringspun"

module ZygoteProcess
  # The text of the main program, which Ruby parses when all -r are loaded.
  SCRIPT = ObjectSpace.each_object(String).find { |text| !text.frozen? && text == "# the program of a child\n" }

  class << self
    # Returns in a child, and in no other process.
    def serve(control)
      exit!(true) if fork # the tests wait for this one, which tells them that the other is ready and no child of theirs
      control.write([Process.pid].pack("N"))
      while (connection = receive(control))
        break unless fork

        connection.close
        reap
      end
      control.close
      connection ? keep(connection) : exit!(true)
    rescue Interrupt # Ctrl-C, which the tests have got as well
      exit!(false)
    end

    private

    # Returns nil when the tests have ended.
    def receive(control)
      control.recv_io(UNIXSocket)
    rescue SocketError, SystemCallError
      nil
    end

    # Forgets the keepers that have ended.
    def reap
      nil while Process.wait(-1, Process::WNOHANG)
    rescue Errno::ECHILD
      nil
    end

    # A process of its own for each child waits for it, so that the zygote needs no signal handler and no thread.
    def keep(connection)
      out, err = Array.new(2) { connection.recv_io }
      request = Marshal.load(connection)
      pid = fork or return become_child(request, out, err, connection)
      [out, err].each(&:close)
      lead_group(pid) if request[:pgroup]
      Marshal.dump(pid, connection)
      Thread.new { connection.wait_readable && Process.kill(:KILL, pid) } # the tests say no more: they have ended
      status = Process.wait2(pid).last
      cpu = Process.times.then { |used| used.cutime + used.cstime }
      Marshal.dump({ pid:, exitstatus: status.exitstatus, termsig: status.termsig, text: status.to_s, cpu: }, connection)
      exit!(true)
    rescue SystemCallError # the tests have ended
      exit!(false)
    end

    # Called on both sides of the fork: whoever comes first. A child that has ended is none to ask.
    def lead_group(pid)
      Process.setpgid(pid, 0)
    rescue Errno::ESRCH, Errno::EACCES
      nil
    end

    def become_child(request, out, err, connection)
      connection.close
      { $stdout => out, $stderr => err }.each do |standard, given|
        sync = standard.sync
        standard.reopen(given)
        standard.sync = sync
        given.close
      end
      lead_group(0) if request[:pgroup]
      Dir.chdir(request[:folder])
      request[:env].each { |name, value| ENV[name] = value }
      require_relative "held_up" if ENV["RINGSPUN_HELD_UP_CHILD"]
      ARGV.replace(request[:arguments].each(&:freeze))
      SCRIPT.replace("#{request[:code]}\n".force_encoding(SCRIPT.encoding))
    end
  end
end

TOPLEVEL_BINDING.dup.eval(ENV.delete("RINGSPUN_ZYGOTE_PRELUDE"))
ZygoteProcess.serve(UNIXSocket.for_fd(Integer(ENV.delete("RINGSPUN_ZYGOTE"))))
