# frozen_string_literal: true

class StreamPrograms
  # What is written, how much, and for how long somebody waits.
  module Bytes
    # The limits of the code: where a buffer begins (16384) and stops doubling (1 MiB), the least room of a read (4096), the one
    # when there is much (65536), the default of high_water and of a line (65536), a pipe (65536, and 262144 in a copy), and a
    # record of TLS (16384).
    LIMITS = [4096, 8192, 16_384, 32_768, 65_536, 131_072].freeze
    RARE = [262_143, 262_144, 262_145, 1_048_576, 1_048_577].freeze

    LINES = [0, 1, 1, 2, 10, 80, 1000, 4095, 4096, 16_383, 16_384, 40_000, 65_535, 65_536, 65_537].freeze
    MARKS = ["\n", "\r\n", "ab", "aab", "\r\n\r\n", "aabaab"].freeze

    class << self
      def size(random)
        case random.rand(20)
        when 0 then RARE.sample(random:)
        when 1..7 then LIMITS.sample(random:) + random.rand(-1..1)
        when 8..12 then random.rand(1..70_000)
        when 13 then 0
        else random.rand(1..200)
        end
      end

      # Few letters, so that half a mark is frequent; lines of all lengths.
      def drawn(seed, size)
        random = Random.new(seed)
        bytes = +""
        while bytes.bytesize < size
          place = random.rand([pool.bytesize - 70_000, 1].max)
          bytes << pool.byteslice(place, [LINES.sample(random:), size - bytes.bytesize].min) << MARKS.sample(random:)
        end
        bytes.byteslice(0, size)
      end

      # None, or a limit to the call itself, or to the block around it. Those that have passed already are frequent.
      def limit(random)
        return if random.rand(3) != 0

        [%i[timeout cancel].sample(random:), [0, 0, 0.000_01, 0.000_1, 0.001, 0.002].sample(random:)]
      end

      private

      def pool
        @pool ||= begin
          random = Random.new(1)
          letters = ["a", "b", "\r", "c"]
          Array.new(300_000) { letters[random.rand(4)] }.join.b
        end
      end
    end
  end

  # The steps of both sides of a flow.
  module Steps
    WRITES = %i[write write write write_several write_line shovel flush pause].freeze
    READS = %i[read read read read_partial read_partial peek read_line read_until each_line each_chunk skip eof copy copy
               pause].freeze

    # @return [Array] flow, side, name, a Hash of arguments
    def self.draw(random, flow)
      side = random.rand(2).zero? ? :write : :read
      name = (side == :write ? WRITES : READS).sample(random:)
      with = { size: Bytes.size(random), draw: random.rand(1_000_000), limit: Bytes.limit(random) }
      [flow, side, name, with.merge(more(random, name))]
    end

    def self.more(random, name)
      case name
      when :write_several then { parts: random.rand(1..4) }
      when :read_line, :each_line then { max: max(random), chomp: random.rand(2).zero?, count: random.rand(1..5) }
      when :read_until then { mark: Bytes::MARKS.sample(random:), max: max(random) }
      when :each_chunk then { count: random.rand(1..5) }
      when :copy then { to: %i[stream descriptor pipe].sample(random:), all: random.rand(6).zero? }
      when :read, :read_partial then { into: random.rand(3).zero?, all: random.rand(12).zero? }
      else {}
      end
    end

    def self.max(random) = [1, 100, 65_535, 65_536, 65_536, 200_000].sample(random:)
    private_class_method :more, :max
  end
end
