# frozen_string_literal: true

module IOStorm
  # A region of a file that nobody else writes.
  class Region < Role
    SIZE = 200_000

    def initialize(round, path, index)
      super(round)
      @path = path
      @start = index * SIZE
      @model = "\0".b * SIZE
      @steps = 5 + pick(10)
    end

    private

    def step
      if (@steps -= 1).negative?
        @file&.close
        return @done = true
      end
      return open unless @file

      disturbed { __send__(%i[write read sync look reopen][pick(5)]) }
    end

    def open = disturbed { @file = @round.end_of(@machine.open(@path, File::RDWR)) }

    def reopen
      file = @file
      @file = nil
      file.close
      @round.forget(file)
    end

    def place = pick(SIZE).then { |from| [from, 1 + pick([100, SIZE - from].min)] }
    def large = pick(SIZE).then { |from| [from, SIZE - from] }

    def write
      from, size = pick(3).zero? ? large : place
      bytes = Pattern.at(pick(Pattern::SIZE), size)
      source = pick(2).zero? ? bytes.dup : buffer_of(bytes)
      count = @round.changing(*[source].grep(String)) { @machine.pwrite(@file.io, source, @start + from) }
      @model[from, count] = bytes.byteslice(0, count)
    end

    def buffer_of(bytes) = IO::Buffer.new(bytes.bytesize).tap { |buffer| buffer.set_string(bytes) }

    def read
      from, size = pick(3).zero? ? large : place
      buffer = pick(2).zero? ? +"" : IO::Buffer.new(size)
      count = @machine.pread(@file.io, buffer, @start + from, size)
      bytes = buffer.is_a?(String) ? buffer : buffer.get_string(0, count)
      @round.complain("#{count} of #{size} bytes of a file") unless count == size
      @round.complain("a file at #{@start + from} is wrong") unless bytes.b == @model.byteslice(from, count)
    end

    def sync = @machine.fsync(@file.io, pick(2).zero?)

    def look
      facts = @machine.statx(pick(2).zero? ? @file.io : @path)
      @round.complain("a file is #{facts}") unless facts[:type] == :file && facts[:size] == Files::REGIONS * SIZE
    end
  end

  # A file that several write and read.
  class Files < Scene
    REGIONS = 4

    def play
      path = File.join(@round.folder, "regions-#{object_id}")
      File.write(path, "")
      File.truncate(path, REGIONS * Region::SIZE)
      @round.act_all(*Array.new(REGIONS) { |index| Region.new(@round, path, index) })
      File.delete(path)
    end
  end

  # Files as streams: one descriptor to write, one to read behind it.
  class Appending < Scene
    def play
      path = File.join(@round.folder, "stream-#{object_id}")
      @ends = %w[w r].map { |mode| @round.end_of(@machine.open(path, mode)) }
      stream = Stream.new(*@ends.reverse, pick(GCStress::WANTED ? 2000 : 400_000), pick(Pattern::SIZE))
      @round.act(Writer.new(@round, stream))
      @machine.fsync(@ends[0].io)
      @round.complain("a file is shorter than written") unless @machine.statx(path)[:size] == stream.total
      @round.act(Reader.new(@round, stream))
      @round.complain("#{stream.received} of #{stream.total} bytes of a file") unless stream.received == stream.total
      @ends.each(&:close)
      @round.forget(*@ends)
    end
  end
end
