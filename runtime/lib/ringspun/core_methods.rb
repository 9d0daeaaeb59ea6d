# frozen_string_literal: true

# The methods that `require "ringspun/core_ext"` adds, in modules that nothing includes before that.
module Ringspun
  # The private methods that `require "ringspun/core_ext"` adds to Kernel: `concurrently`, `concurrent_proc`, `wait`,
  # `await_resume!` and `await_fastest`, the same as those of {Ringspun}.
  module KernelMethods
    private

    def concurrently(*, **, &) = Ringspun.concurrently(*, **, &)

    def concurrent_proc(*, &) = Ringspun.concurrent_proc(*, &)
  end

  # The methods that `require "ringspun/core_ext"` adds to IO.
  module IOMethods
    READ = ConcurrentProc.new { |io, maxlen, outbuf| io.await_read(maxlen, outbuf) }
    WRITE = ConcurrentProc.new { |io, string| io.await_written(string) }
    private_constant :READ, :WRITE

    # Reads the bytes that are there; waits until there are some.
    #
    # May switch strands.
    #
    # @param maxlen [Integer] bytes, at most
    # @param outbuf [String, nil] gets the bytes
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

    # Calls {#await_read} as a concurrent proc.
    #
    # @param maxlen [Integer] bytes, at most
    # @param outbuf [String, nil] gets the bytes
    # @return [Evaluation]
    # @since 0.1.0
    def concurrently_read(maxlen, outbuf = nil) = READ.call_detached(self, maxlen, outbuf)

    # Writes as many bytes as there is room for; waits until there is room.
    #
    # May switch strands.
    #
    # @param string [String]
    # @return [Integer] bytes written
    # @since 0.1.0
    def await_written(string)
      loop do
        Ringspun.__send__(:before_inline)
        written = write_nonblock(string, exception: false)
        return written unless written == :wait_writable

        await_writable
      end
    end

    # Calls {#await_written} as a concurrent proc.
    #
    # @param string [String]
    # @return [Evaluation]
    # @since 0.1.0
    def concurrently_write(string) = WRITE.call_detached(self, string)

    # IO#pwrite without the fiber scheduler. With any scheduler it crashes Ruby 3.3 and 3.4 if another thread makes objects
    # meanwhile.
    #
    # @param object [#to_s]
    # @param offset [Integer] in the file, in bytes
    # @return [Integer] bytes written
    # @since 0.1.0
    def pwrite(object, offset) = Fiber.blocking { super }
  end
end
