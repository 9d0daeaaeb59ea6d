# frozen_string_literal: true

module Ringspun
  # A file to which many strands append lines. A Logger can write to it.
  #
  #   logger = Logger.new(Ringspun::LogFile.new("log/app.log"))
  #
  # In a strand a line only goes to a buffer. The first one spins a strand that writes them all once the other ready strands have
  # run: one system call for the lines of all of them. Elsewhere, as on a thread without a machine, a line is written at once.
  # Lines of one process are in order, and into a pipe that several processes share they go whole, up to 4096 bytes.
  #
  # A file that was moved away is noticed by the first line after a second, and made anew; {#reopen} has the next one do so.
  # What cannot be written is lost. The standard error is told, once for each reason.
  #
  # @since 0.1.0
  class LogFile
    # The size of the buffer, in bytes, from which on a writer waits until it is written.
    FULL_BYTES = 256 * 1024

    # The longest write into a pipe that the kernel does not tear, in bytes, PIPE_BUF:
    # https://man7.org/linux/man-pages/man7/pipe.7.html
    PIPE_BYTES = 4096

    # How often it is looked at most whether the path still names the file.
    LOOK_SECONDS = 1
    private_constant :FULL_BYTES, :PIPE_BYTES, :LOOK_SECONDS

    # @param target [String, Pathname, #write] the path of a file, which is made where there is none, or an IO
    # @param name [String] what messages call it
    # @param look_seconds [Numeric] how often it is looked at most whether the path still names the file
    # @raise [UsageError] that is neither, or the file cannot be opened, or a number of seconds is none
    # @since 0.1.0
    def initialize(target, name: "the log", look_seconds: LOOK_SECONDS)
      @look_seconds = Seconds.limit("look_seconds", look_seconds, "a number of seconds")
      @path = File.absolute_path(target) if target.is_a?(String) || (target.respond_to?(:to_path) && !target.is_a?(IO))
      @name = [name, *@path].join(" ")
      @io = @path ? open_file : target
      raise UsageError, "#{name} goes to a path or an IO, got #{target.inspect}" unless @io.respond_to?(:write)

      @tears = @io.is_a?(IO) && @io.stat.then { |stat| stat.pipe? || stat.socket? }
      @look_at = now + @look_seconds
      @told = []
      own
    end

    # May switch strands, when 256 KB are not yet written, where there is no place for a strand, or outside of strands.
    #
    # @param line [String] with the end of a line
    # @return [Integer] its bytes
    # @since 0.1.0
    def write(line)
      own unless @pid == Process.pid
      append(line)
      if @buffer.bytesize >= FULL_BYTES || !(machine = machine_here) then flush
      elsif !@flusher&.alive? then spin_flusher(machine)
      end
      line.bytesize
    end

    # All lines so far are with the kernel when this returns, or are lost.
    #
    # May switch strands.
    #
    # @return [nil]
    # @since 0.1.0
    def flush
      own unless @pid == Process.pid
      @lock.synchronize { write_out }
      nil
    end

    # The next line or {#flush} opens the file anew. A handler of a signal may call it.
    #
    # @return [nil]
    # @since 0.1.0
    def reopen
      @moved = true
      nil
    end

    # Writes what there is, and closes the file. An IO that was given stays open.
    #
    # May switch strands.
    #
    # @return [nil]
    # @since 0.1.0
    def close
      flush
      @io.close if @path
      nil
    end

    private

    # In a forked child what is in the buffer is the parent's.
    def own
      @pid = Process.pid
      @buffer = +""
      @lock = ::Mutex.new
      @flusher = nil
    end

    def append(line)
      @buffer << line
    rescue Encoding::CompatibilityError # one file takes the bytes of both
      @buffer = @buffer.b << line.b
    end

    def spin_flusher(machine)
      @flusher = machine.__send__(:spin_shared) { flush }
    rescue LimitError
      flush
    end

    # The buffer may be empty: another strand has written it while this one waited for the lock. It may have lines again: others
    # have come during a write, also during one that fails.
    def write_out
      telling { follow if @path && (@moved || !@buffer.empty?) }
      telling { write_buffer } until @buffer.empty?
    end

    # A piece whose write is cut short, as by a cancellation, stays with those behind it. It is not in the pipe, or in part if it
    # is longer than what goes whole. What a flush leaves is in the IO's own buffer.
    def write_buffer
      lines, @buffer = @buffer, +""
      return write_whole(lines) unless @tears

      written = 0
      pieces(lines) { |piece| write_whole(piece) { written += piece.bytesize } }
    rescue SystemCallError, IOError
      raise # they are lost, and that is told
    rescue Exception
      put_back(lines.byteslice(written..)) if written
      raise
    end

    def put_back(lines)
      come_since = @buffer
      @buffer = lines
      append(come_since)
    end

    # What fails must end no request and no job.
    def telling
      yield
    rescue SystemCallError, IOError => error
      tell("#{@name} cannot be written: #{error.message}")
    end

    def write_whole(lines)
      @io.write(lines)
      yield if block_given?
      @io.flush if @io.respond_to?(:flush)
    end

    # Whole lines, as many as the kernel does not tear.
    def pieces(lines)
      piece = +""
      lines.each_line do |line|
        if !piece.empty? && piece.bytesize + line.bytesize > PIPE_BYTES
          yield piece
          piece = +""
        end
        piece << line
      end
      yield piece
    end

    # Writes on to the file of that name, wherever the one before was moved.
    def follow
      return unless @moved || now >= @look_at

      @look_at = now + @look_seconds
      @told.clear if (moved = @moved)
      @moved = false
      return unless moved || elsewhere?

      before, @io = @io, open_file
      before.close
    rescue UsageError, SystemCallError => error
      tell("#{error.message}; what is open is written on")
    end

    # Where it cannot be looked at, the attempt to open it says why.
    def elsewhere?
      named = File.stat(@path)
      named.ino != (open = @io.stat).ino || named.dev != open.dev
    rescue SystemCallError
      true
    end

    def open_file
      File.open(@path, "a").tap { |file| file.sync = true }
    rescue SystemCallError => error
      raise UsageError, "#{@name} cannot be opened: #{error.message}"
    end

    def tell(text)
      return if @told.include?(text)

      @told << text
      Warnings.tell("ringspun: #{text}")
    end

    # The machine of this thread, if it runs and can take another strand.
    def machine_here
      return unless Thread.current.thread_variable_get(:ringspun_run)

      machine = Machine.current
      machine unless machine.closed?
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
