# frozen_string_literal: true

class StreamPrograms
  # What a reader must get: a String with all that was written, and how much of it has been taken.
  class Model
    # Nothing more will be written.
    attr_writer :whole

    def initialize
      @bytes = +"".b
      @taken = 0
      @owed = 0 # what a skip that was cut short has left to the next call, counted from where it began
      @whole = false
    end

    def written(bytes) = @bytes << bytes
    def owes? = @owed.positive?

    def read(size, got)
      return assert_nothing_left("read") if got.nil?

      take("read", got, size)
    end

    def read_all(got)
      settle
      assert_end("read")
      take("read", got, left)
    end

    def read_partial(most, got)
      return assert_nothing_left("read_partial") if got.nil?

      check("read_partial", "1 to #{most || "all"} bytes", got.bytesize) { |size| size.between?(1, most || size) }
      take("read_partial", got, got.bytesize)
    end

    def peek(size, got)
      settle
      assert_end("peek") if got.bytesize < size
      same("peek", got, [size, left].min)
    end

    def skipped(size)
      settle
      check("skip", "at most #{left} bytes", size) { size <= left }
      @taken += size
    end

    def eof(ended)
      settle
      ended ? assert_nothing_left("eof?") : check("eof?", "more bytes", left, &:positive?)
    end

    def read_line(with, got)
      return assert_nothing_left("read_line") if got.nil?

      settle
      found = @bytes.byteindex("\n", @taken)
      assert_end("read_line") unless found
      size = found ? found - @taken : left
      check("read_line", "a limit of #{with[:max]}", size) { size <= with[:max] }
      kept = with[:chomp] || !found ? size : size + 1
      kept -= 1 if with[:chomp] && found && size.positive? && @bytes.getbyte(found - 1) == 13
      same("read_line", got, kept)
      @taken += found ? size + 1 : size
    end

    def read_until(with, got)
      return assert_nothing_left("read_until") if got.nil?

      settle
      found = @bytes.byteindex(with[:mark], @taken) or raise Broken, "read_until found a mark that was not written"
      check("read_until", "a limit of #{with[:max]}", found - @taken) { |size| size <= with[:max] }
      same("read_until", got, found - @taken)
      @taken = found + with[:mark].bytesize
    end

    # `got` has reached the other end.
    def copied(length, count, got)
      settle unless got.empty? && (count == :cut || length == 0) # it may not have begun
      check("copy_to", "at most #{length} bytes", got.bytesize) { |size| length.nil? || size <= length }
      check("copy_to", "as many bytes as have come (#{got.bytesize})", count) { count == :cut || count == got.bytesize }
      same("copy_to", got, got.bytesize)
      @taken += got.bytesize
      assert_nothing_left("copy_to") if count != :cut && (length.nil? || got.bytesize < length)
    end

    # A timeout or a cancellation has taken nothing; but who reads next finishes a skip.
    def cut(name, with)
      @owed += with[:size] if name == :skip
    end

    # A limit or the end has taken nothing, but all that there was to skip.
    def refused(name, with, error)
      if error.is_a?(Ringspun::LimitError) then refused_by_limit(name, with)
      else refused_by_end(name, with)
      end
      nil
    end

    private

    def left = @bytes.bytesize - @taken

    def settle
      check("skip", "at most #{left} bytes", @owed) { @owed <= left }
      @taken += @owed
      @owed = 0
    end

    def refused_by_end(name, with)
      assert_end(name)
      if @owed > left || (name == :skip && @owed + with[:size] > left)
        @taken = @bytes.bytesize
        @owed = 0
        return
      end
      settle
      case name
      when :read then check(name, "fewer than #{with[:size]} bytes, and some", left) { left.between?(1, with[:size] - 1) }
      when :read_until then check(name, "no mark", left) { left.positive? && !@bytes.byteindex(with[:mark], @taken) }
      else raise Broken, "#{name} raised an EndOfStreamError"
      end
    end

    def refused_by_limit(name, with)
      settle
      mark = with.fetch(:mark, "\n")
      found = @bytes.byteindex(mark, @taken)
      size = found ? found - @taken : left - mark.bytesize + 1
      check(name, "more than #{with[:max]} bytes", size) { size > with[:max] }
    end

    def take(name, got, size)
      settle
      same(name, got, size)
      @taken += size
    end

    def same(name, got, size)
      wanted = @bytes.byteslice(@taken, size)
      return if got.b == wanted

      place = got.bytes.zip(wanted.bytes).index { |one, other| one != other }
      raise Broken, "#{name} at byte #{@taken}: #{size} bytes expected, got #{got.bytesize}; " \
                    "they differ from byte #{place || [got.bytesize, wanted.bytesize].min} on"
    end

    def assert_end(name)
      raise Broken, "#{name} met the end before all was written" unless @whole
    end

    def assert_nothing_left(name)
      settle
      assert_end(name)
      raise Broken, "#{name} met the end, and #{left} bytes are missing" unless left.zero?
    end

    def check(name, wanted, got)
      raise Broken, "#{name}: expected #{wanted}, got #{got}" unless yield(got)
    end
  end
end
