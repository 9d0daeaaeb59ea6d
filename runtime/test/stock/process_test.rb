# frozen_string_literal: true

require "test_helper"
require "support/stock"
require "open3"
require "tmpdir"

# Child processes: each ends when a strand beside the one that waits for it has closed its input.
class StockProcessTest < Minitest::Test
  include Stock

  # A command that ends with that status when the block's writer is closed.
  def waiting_command(status)
    reader, writer = IO.pipe
    yield ["sh", "-c", "cat; exit #{status}", { in: reader }], writer
  ensure
    [reader, writer].each(&:close)
  end

  def test_wait
    waiting_command(3) do |command, input|
      pid = spawn(*command)
      Ringspun.run do
        waiting = parked { Process.wait(pid) && $? }
        input.close
        assert_equal [pid, 3], [waiting.await.pid, waiting.await.exitstatus]
      end
    end
  end

  def test_wait_of_several_at_once
    Ringspun.run do
      input, *inputs = Array.new(4) { IO.pipe }
      pids = [input, *inputs].map.with_index { |(reader, _), i| spawn("cat; exit #{i}", in: reader) }
      waiting = pids.map { |pid| machine.spin { Process.wait2(pid) } }
      until_parked(*waiting)
      [input, *inputs].reverse_each { |pair| pair.each(&:close) }
      assert_equal [0, 1, 2, 3], machine.await(*waiting).map { |_, status| status.exitstatus }
    end
  end

  def test_system
    waiting_command(4) do |command, input|
      Ringspun.run do
        waiting = parked { [system(*command), $?.exitstatus] }
        input.close
        assert_equal [false, 4], waiting.await
      end
    end
  end

  def test_backticks
    Dir.mktmpdir do |folder|
      fifo = File.join(folder, "fifo")
      File.mkfifo(fifo)
      Ringspun.run do
        waiting = parked { `cat #{fifo}` }
        File.open(fifo, "w") { |file| file.write("by the fifo") }
        assert_equal "by the fifo", waiting.await
      end
    end
  end

  def test_detach_and_the_thread_that_it_makes
    waiting_command(5) do |command, input|
      Ringspun.run do
        thread = Process.detach(spawn(*command))
        waiting = parked { thread.value.exitstatus }
        input.close
        assert_equal 5, waiting.await
      end
    end
  end

  def test_popen
    Ringspun.run do
      IO.popen(["cat"], "r+") do |child|
        answer = parked { child.gets }
        child.puts("there and back")
        assert_equal "there and back\n", answer.await
      end
      assert_predicate $?, :success?
    end
  end

  def test_open3_popen
    Ringspun.run do
      Open3.popen3("cat; echo bad >&2; exit 6") do |input, output, errors, thread|
        waiting = [parked { output.read }, parked { errors.read }, parked { thread.value.exitstatus }]
        input.write("hello")
        input.close
        assert_equal ["hello", "bad\n", 6], machine.await(*waiting)
      end
    end
  end

  def test_open3_capture_beside_others
    bytes = Random.new(3).bytes(500_000)
    Ringspun.run do
      capturing = Array.new(3) { machine.spin { Open3.capture2("cat", stdin_data: bytes, binmode: true) } }
      until_parked(*capturing)
      capturing.map(&:await).each { |output, status| assert_same_bytes(bytes, output) && assert_predicate(status, :success?) }
    end
  end

  def test_open3_pipeline
    Ringspun.run do
      Open3.pipeline_rw("cat", "tr a-z A-Z") do |input, output, threads|
        answer = parked { output.read }
        input.write("through two")
        input.close
        assert_equal ["THROUGH TWO", [true, true]], [answer.await, threads.map { |thread| thread.value.success? }]
      end
    end
  end
end
