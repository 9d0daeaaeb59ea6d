# frozen_string_literal: true

module Ringspun
  # Waits for readiness with a limit: methods of Stream, which those of IO go on with too. Evaluation#resume! ends them, with its
  # argument.
  module Readiness
    # What `await_readable` goes on with: waits until there is something to read, or the end. When `within` seconds have passed:
    # returns `timeout_result`, or raises an Evaluation::TimeoutError.
    def __await_readable(within: nil, timeout_result: Evaluation::NOT_GIVEN)
      result = __readable(timeout_result, within)
      Evaluation::NOT_GIVEN.equal?(result) ? Evaluation.__timed_out(within) : result
    end

    # What `await_writable` goes on with: waits until there is room for something to be written.
    def __await_writable(within: nil, timeout_result: Evaluation::NOT_GIVEN)
      result = __writable(timeout_result, within)
      Evaluation::NOT_GIVEN.equal?(result) ? Evaluation.__timed_out(within) : result
    end
  end

  # The methods of an IO, where mruby has it: they work on its descriptor, and what the IO has read ahead is not seen.
  module IOMethods
    # What is there, at most so many bytes, after a wait for the first.
    def await_read(maxlen, outbuf = nil)
      bytes = Ringspun.machine.__read(fileno, maxlen) or raise EOFError, "end of file reached"
      outbuf ? outbuf.replace(bytes) : bytes
    rescue ClosedError
      raise IOError, "stream closed in another strand"
    end

    # Writes what there is room for, after a wait for some; returns how many bytes.
    def await_written(string)
      Ringspun.machine.__write(fileno, string)
    rescue ClosedError
      raise IOError, "stream closed in another strand"
    end

    READ_PROC = ConcurrentProc.new { |io, maxlen, outbuf| io.await_read(maxlen, outbuf) }
    WRITE_PROC = ConcurrentProc.new { |io, string| io.await_written(string) }

    # The evaluations of these two.
    def concurrently_read(maxlen, outbuf = nil) = READ_PROC.call_detached(self, maxlen, outbuf)
    def concurrently_write(string) = WRITE_PROC.call_detached(self, string)
  end

  # What an IO does before its own.
  module IOClosing
    # Waits of strands for it end first, by an IOError. May switch strands then.
    def close
      return super if closed?

      descriptor = fileno
      while Ringspun.__closing(descriptor)
        return if closed? # by another strand
      end
      begin
        super
      ensure
        Ringspun.__closed(descriptor)
      end
    end
  end
end
