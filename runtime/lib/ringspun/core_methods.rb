# frozen_string_literal: true

# The methods that `require "ringspun/core_ext"` adds, in modules that nothing includes before that.
module Ringspun
  # What `require "ringspun/core_ext"` adds to Kernel, privately: `concurrently`, `concurrent_proc`, `wait`, `await_resume!` and
  # `await_fastest`, the same as those of {Ringspun}.
  module KernelMethods
    private

    def concurrently(*, **, &) = Ringspun.concurrently(*, **, &)

    def concurrent_proc(*, &) = Ringspun.concurrent_proc(*, &)
  end

  # What `require "ringspun/core_ext"` adds to IO.
  module IOMethods
    READ = ConcurrentProc.new { |io, maxlen, outbuf| io.await_read(maxlen, outbuf) }
    WRITE = ConcurrentProc.new { |io, string| io.await_written(string) }
    private_constant :READ, :WRITE

    # Reads what there is, and waits for it where nothing is.
    #
    # May switch strands.
    #
    # @param maxlen [Integer] bytes, at most
    # @param outbuf [String, nil] takes what is read
    # @return [String]
    # @raise [EOFError] at the end
    # @since 0.1.0
    def await_read(maxlen, outbuf = nil)
      loop do
        Ringspun.__send__(:before_inline)
        read = read_nonblock(maxlen, *outbuf, exception: false)
        return read || raise(EOFError, "end of file reached") unless read == :wait_readable

        await_readable
      end
    end

    # {#await_read} in a run of its own.
    #
    # @return [Evaluation]
    # @since 0.1.0
    def concurrently_read(maxlen, outbuf = nil) = READ.call_detached(self, maxlen, outbuf)

    # Writes as much as there is room for, and waits for that where there is none.
    #
    # May switch strands.
    #
    # @param string [String]
    # @return [Integer] bytes that this one write has taken
    # @since 0.1.0
    def await_written(string)
      loop do
        Ringspun.__send__(:before_inline)
        written = write_nonblock(string, exception: false)
        return written unless written == :wait_writable

        await_writable
      end
    end

    # {#await_written} in a run of its own.
    #
    # @return [Evaluation]
    # @since 0.1.0
    def concurrently_write(string) = WRITE.call_detached(self, string)

    # Ruby's own, past the fiber scheduler: with any, it crashes Ruby 3.3 and 3.4 when another thread makes objects meanwhile.
    #
    # @param object [#to_s]
    # @param offset [Integer] in the file, in bytes
    # @return [Integer] bytes written
    # @since 0.1.0
    def pwrite(object, offset) = Fiber.blocking { super }
  end
end
