# frozen_string_literal: true

require_relative "model"

class StreamPrograms
  # Bytes in one direction: a stream that one strand writes to, and one that another strand reads from.
  class Flow
    DRAIN = 100_000

    def initialize(machine, from, to, steps)
      @machine = machine
      @from = from
      @to = to
      @steps = steps
      @model = Model.new
    end

    # What a writer has written leaves, also if its wait was cut short.
    def write_all
      each_step(:write) { |name, with| cutting(with) { |options| write_step(name, with, options) } }
      @model.whole = true
      end_writing
    end

    def read_all
      each_step(:read) { |name, with| name == :copy ? copy(with) : read_step(name, with) }
      nil while read_step(:read_partial, { size: DRAIN, limit: nil })
    end

    private

    def each_step(side)
      @steps.each { |_, its_side, name, with| yield name, with if its_side == side }
    end

    # A pipe has no other direction.
    def end_writing
      @from.close_write
    rescue Ringspun::UnsupportedError
      @from.close
    end

    # Yields the options of a call; :cut: its wait was cut short.
    def cutting(with)
      way, seconds = with[:limit]
      return yield({}) unless way
      return yield({ timeout: seconds }) if way == :timeout

      @machine.timeout(seconds) { yield({}) }
    rescue Ringspun::TimeoutError
      :cut
    end

    def write_step(name, with, options)
      bytes = Bytes.drawn(with[:draw], with[:size])
      case name
      when :flush then @from.flush(**options)
      when :pause then @machine.sleep(with[:size] % 3 * 0.000_1)
      else put(name, with, bytes, options)
      end
    end

    def put(name, with, bytes, options)
      bytes << "\n" if name == :write_line
      @model.written(bytes)
      count = case name
              when :write then @from.write(bytes, **options)
              when :write_line then @from.write_line(bytes.byteslice(0, bytes.bytesize - 1), **options)
              when :write_several then @from.write(*parts(bytes, with[:parts]), **options)
              when :shovel then (@from << bytes) && bytes.bytesize
              end
      raise Broken, "#{name} of #{bytes.bytesize} bytes returned #{count}" unless count == bytes.bytesize
    end

    def parts(bytes, count)
      size = bytes.bytesize / count + 1
      Array.new(count) { |part| bytes.byteslice(part * size, size) || "" }
    end

    # Answers what was read.
    def read_step(name, with)
      with = with.merge(limit: nil) if name == :skip && @model.owes? # which of the two is cut short cannot be told
      got = cutting(with) { |options| __send__(name, with, options) }
      @model.cut(name, with) if got == :cut
      got
    rescue Ringspun::EndOfStreamError, Ringspun::LimitError => error
      @model.refused(name, with, error)
    end

    def pause(with, _options) = @machine.sleep(with[:size] % 3 * 0.000_1)

    def read(with, options)
      buffer = with[:into] ? [+"x" * 10] : []
      return @model.read_all(@to.read(nil, *buffer, **options)) if with[:all]

      @model.read(with[:size], @to.read(with[:size], *buffer, **options))
    end

    def read_partial(with, options)
      most = with[:all] ? nil : [with[:size], 1].max
      buffer = with[:into] ? [+"x" * 10] : []
      @model.read_partial(most, @to.read_partial(most, *buffer, **options))
    end

    def peek(with, options)
      size = [with[:size], 1].max
      @model.peek(size, @to.peek(size, **options))
    end

    def skip(with, options)
      @to.skip(with[:size], **options)
      @model.skipped(with[:size])
    end

    def eof(_with, options) = @model.eof(@to.eof?(**options))

    def read_line(with, options)
      @model.read_line(with, @to.read_line(limit: with[:max], chomp: with[:chomp], **options))
    end

    def read_until(with, options)
      @model.read_until(with, @to.read_until(with[:mark], limit: with[:max], **options))
    end

    def each_line(with, options)
      left = with[:count]
      ended = @to.each_line(limit: with[:max], chomp: with[:chomp], **options) do |line|
        @model.read_line(with, line)
        break :enough if (left -= 1).zero?
      end
      @model.read_line(with, nil) if ended.nil?
    end

    def each_chunk(with, options)
      left = with[:count]
      ended = @to.each_chunk(**options) do |bytes|
        @model.read_partial(bytes.bytesize, bytes)
        break :enough if (left -= 1).zero?
      end
      @model.read_partial(1, nil) if ended.nil?
    end

    # To something of its own, whose other end is read by a strand until it is closed.
    def copy(with)
      out, into = with[:to] == :pipe ? @machine.pipe : @machine.socketpair
      gathering = @machine.spin { gather(out) }
      target = with[:to] == :descriptor ? into : Ringspun::Stream.new(into)
      length = with[:all] ? nil : with[:size]
      count = cutting(with) { |options| @to.copy_to(target, length, **options) }
      target.is_a?(Ringspun::Stream) ? target.close : @machine.close(target)
      @model.copied(length, count, gathering.await)
    rescue Ringspun::EndOfStreamError => error
      @model.refused(:copy, with, error)
      target.is_a?(Ringspun::Stream) ? target.close : @machine.close(target)
      gathering.await
    ensure
      @machine.close(out)
    end

    def gather(out)
      bytes = +""
      nil until @machine.read(out, bytes, 65_536, bytes.bytesize).zero?
      bytes
    end
  end
end
