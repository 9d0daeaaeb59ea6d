# frozen_string_literal: true

module Ringspun
  # A file, pipe or socket. One strand at a time reads, any number may write. Every wait ends by a ClosedError when another
  # strand closes it, and by its scope's deadline or cancellation; what was read by then stays for the next read. A stream that
  # nobody has any more is closed.
  class Stream
    include Readiness

    CHUNK = 16_384

    # What is there, at most so many bytes, after a wait for the first; nil at the end.
    def read_partial(max = CHUNK)
      @ahead ? take(length(max, "read_partial")) : __read(max)
    end

    # Exactly so many bytes, or nil at the end; an EndOfStreamError when it comes among them. Without a number: all up to the end.
    def read(count = nil)
      return read_all unless count
      return +"" if length(count, "read") == 0

      while ahead < count
        next if fill(count - ahead)
        return nil unless @ahead

        raise __blame(EndOfStreamError.new("read: the stream ended after #{ahead} of #{count} bytes"))
      end
      take(count)
    end

    # The line up to LF or CRLF, which are left out; the rest counts as a line, then nil. A LimitError when it has more bytes.
    def read_line(limit: 65_536, chomp: true)
      seen = 0
      until (at = @ahead&.byteindex("\n", seen))
        seen = ahead
        raise too_long(limit) if seen > limit
        return @ahead && take(seen) unless fill
      end
      raise too_long(limit) if at > limit

      line = take(at + 1)
      chomp ? without_end(line) : line
    end

    def each_line(limit: 65_536, chomp: true)
      raise UsageError, "each_line needs a block" unless block_given?

      while (line = read_line(limit: limit, chomp: chomp))
        yield line
      end
      self
    end

    def eof? = @ahead || fill ? false : true

    # All bytes, which those of other strands do not break up. Returns how many were written: fewer only when an error or a
    # cancellation has come after the first, which the next call or wait raises.
    def write(*strings) = write_all(strings.size == 1 ? strings[0] : joined(strings))

    # The same, with a LF after the last.
    def write_line(*strings) = write_all(joined(strings) << "\n")

    def <<(string)
      write_all(string)
      self
    end

    # So many bytes from there in the file, fewer at its end, nil behind it. The place of `read` and `write` stays.
    def pread(count, offset)
      bytes = +""
      while bytes.bytesize < length(count, "pread")
        part = __pread(count - bytes.bytesize, offset + bytes.bytesize) or return bytes.empty? ? nil : bytes
        bytes << part
      end
      bytes
    end

    def pwrite(string, offset) = __pwrite(string, offset)

    # Waits of other strands end by a ClosedError. Returns nil, also when it is closed already.
    def close
      nil while __close
      @ahead = nil
    end

    # Closed after the block, whose value it returns.
    def __lend
      yield self
    ensure
      close
    end

    def inspect = closed? ? "#<Ringspun::Stream (closed)>" : "#<Ringspun::Stream over #{fileno}>"

    private

    def ahead = @ahead ? @ahead.bytesize : 0

    def length(count, what)
      return count if count.is_a?(Integer) && count >= 0

      raise UsageError, "#{what}: expected a number of bytes, an Integer that is not negative, got #{count.inspect}"
    end

    # False at the end.
    def fill(least = 0)
      bytes = __read(least > CHUNK ? least : CHUNK) or return false
      @ahead ? @ahead << bytes : @ahead = bytes
      true
    end

    def take(count)
      bytes = @ahead
      rest = bytes.bytesize - count
      @ahead = rest > 0 ? bytes.byteslice(count, rest) : nil
      rest > 0 ? bytes.byteslice(0, count) : bytes
    end

    def too_long(limit) = __blame(LimitError.new("read_line: no end of a line within the limit of #{limit} bytes"))

    def write_all(string)
      nil until (written = __write(string))
      written
    end

    def read_all
      nil while fill
      @ahead ? take(ahead) : +""
    end

    def without_end(line)
      size = line.bytesize - 1
      size -= 1 if size > 0 && line.getbyte(size - 1) == 13
      line.byteslice(0, size)
    end

    def joined(strings)
      strings.each { |one| raise UsageError, "write: expected a String, got #{one.inspect}" unless one.is_a?(String) }
      strings.join
    end
  end

  class Machine
    # Opens a file, in one of the modes r, r+, w, w+, a, a+ and wx. With a block it is closed after that.
    def open(path, mode = "r", permissions = 0o666, &block)
      stream = __open(path, mode, permissions)
      block ? stream.__lend(&block) : stream
    end
  end
end
