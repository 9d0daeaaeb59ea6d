# frozen_string_literal: true

require "test_helper"
require "support/preloaded"

# A thread that ends while worker threads are at ops of its machine. On epoll, for only there workers read files.
class ThreadEndTest < Minitest::Test
  include AnyBackend

  def setup = GC.stress = false # what runs here runs in another process

  # Nobody but the ops knows of these Strings by then. Afterwards they go.
  def test_strings_that_workers_read_into_stay_until_they_have_read
    answer = ruby_child(<<~'RUBY', env: Preloaded.env(File.expand_path("held_reads.c", __dir__)))
      require "ringspun"
      require "tempfile"
      THREADS = 4
      READS = 2
      BEGAN, begins = IO.pipe
      may_end, end_all = IO.pipe
      ENV["READ_BEGINS"] = begins.fileno.to_s
      ENV["READS_MAY_END"] = may_end.fileno.to_s
      FILE = Tempfile.new.tap { |file| file.write("a" * 5000) && file.flush }.path
      STRINGS = ObjectSpace::WeakMap.new

      def read(machine, fd)
        string = String.new(capacity: 5000)
        STRINGS[string] = true
        machine.pread(fd, string, 5000, 0)
      end

      def read_and_end
        machine = Ringspun::Machine.new(backend: :epoll, file_io: :offload)
        fd = machine.open(FILE)
        READS.times { machine.spin { read(machine, fd) } }
        machine.yield
        BEGAN.read(READS)
      end

      def start_reads = THREADS.times { Thread.new { read_and_end }.join }

      start_reads
      3.times { GC.start }
      puts STRINGS.size
      end_all << "x"
      GC.start until STRINGS.size < THREADS * READS
    RUBY
    assert_equal ["8\n", "", true], [answer.out, answer.err, answer.status.success?]
  end
end
