# frozen_string_literal: true

module Ringspun
  module Jobs
    class Log
      # The device of a Logger. In a strand a line only goes to a buffer. The first line spins a strand that writes them all after
      # the other ready strands have run: one system call for the lines of all of them. Elsewhere, as on a thread without a
      # machine, a line is written at once. Lines of one process are in order, and never torn.
      #
      # @api private
      class Device
        # From so many bytes on a writer waits until the buffer is written.
        FULL_BYTES = 256 * 1024

        # The kernel does not tear a write of up to so many bytes into a pipe, PIPE_BUF:
        # https://man7.org/linux/man-pages/man7/pipe.7.html
        PIPE_BYTES = 4096

        def initialize(path)
          @path = path
          @io = path == "-" ? $stdout : open_file
          @shared = @io.is_a?(IO) && @io.stat.then { |stat| stat.pipe? || stat.socket? }
          @buffer = +""
          @pid = Process.pid
          @lock = ::Mutex.new
        end

        def write(line)
          forget_parents unless @pid == Process.pid
          @buffer << line
          if @buffer.bytesize >= FULL_BYTES || !(machine = machine_here) then flush
          elsif !@flusher&.alive? then @flusher = machine.__send__(:spin_shared) { flush }
          end
          line.bytesize
        end

        # May switch strands.
        def flush
          forget_parents unless @pid == Process.pid
          @lock.synchronize { write_out }
        end

        def reopen
          flush
          return if @path == "-"

          fresh = open_file
          @lock.synchronize { @io.reopen(fresh) }
        ensure
          fresh&.close
        end

        def close
          flush
          @io.close unless @path == "-"
        end

        private

        # The buffer may be empty: another strand has written it while this one waited for the lock.
        def write_out
          until @buffer.empty?
            lines, @buffer = @buffer, +""
            next write_whole(lines) unless @shared

            lines.each_line.slice_when(&longer_than(PIPE_BYTES)).each { |some| write_whole(some.join) }
          end
        rescue SystemCallError, IOError => error
          # A log that cannot be written must end no job.
          warn_once("ringspun-jobs: the log cannot be written: #{error.message}")
        end

        def write_whole(lines)
          @io.write(lines)
          @io.flush
        end

        # A block that is true where a piece of at most so many bytes has to end.
        def longer_than(bytes)
          size = 0
          lambda do |line, following|
            size += line.bytesize
            next false if size + following.bytesize <= bytes

            size = 0
            true
          end
        end

        def warn_once(text)
          return if @warned

          @warned = true
          warn text
        end

        # The machine of this thread, if it runs and can take another strand.
        def machine_here
          return unless Thread.current.thread_variable_get(:ringspun_run)

          machine = Machine.current
          machine unless machine.closed?
        end

        # In a forked child: the parent writes what is in its buffer.
        def forget_parents
          @pid = Process.pid
          @buffer = +""
          @lock = ::Mutex.new
          @flusher = nil
        end

        def open_file
          File.open(@path, "a").tap { |file| file.sync = true }
        rescue SystemCallError => error
          raise ConfigError, "the log #{@path} cannot be opened: #{error.message}"
        end
      end
      private_constant :Device
    end
  end
end
