# frozen_string_literal: true

require_relative "cluster_case"
require "tmpdir"

# Ringspun::Cluster without workers: the block in this process.
class ClusterAloneTest < ClusterCase
  def test_it_serves_in_this_process_and_drains
    program = start(<<~RUBY)
      cluster(workers: 0) { |worker| worker.serve { |stream| say("served"); answer(stream, worker) } }
      say "after \#{trap("TERM", "DEFAULT")}"
    RUBY
    TCPSocket.open("127.0.0.1", program.port) do |socket|
      socket.puts("hello")
      assert_equal "#{program.pid} hello\n", socket.gets
      program.kill(:TERM)
      program.wait_for(/event=ended|served/)
      socket.puts("again") # what was begun goes on
      assert_equal "#{program.pid} again\n", socket.gets
    end
    assert_predicate program.status, :success?
    assert_equal [1, 1], [program.count(/event=drained .*connections_cut=0/), program.count(/event=ended clean=true/)]
    assert_equal 1, program.count(/^after DEFAULT$/)
  end

  def test_the_second_signal_cuts_what_is_left
    program = start(<<~RUBY)
      cluster(workers: 0, drain: nil) do |worker|
        worker.serve(first_byte: nil) do |stream|
          say "begun"
          stream.read(1)
        ensure
          say "cut"
        end
        worker.wait
        say "told"
      end
    RUBY
    TCPSocket.open("127.0.0.1", program.port) do
      program.wait_for(/^begun$/)
      program.kill(:INT)
      program.wait_for(/^told$/)
      refute_predicate program.stop(:INT), :success?
    end
    assert_match(/event=drained .*connections_cut=1 /, program.text)
    assert_match(/^cut$.*event=ended clean=false.*a second signal has cut what was left \(Ringspun::ClusterE/m, program.text)
  end

  def test_the_end_of_the_drain_cuts_what_is_left
    program = start(<<~RUBY)
      cluster(workers: 0, drain: 0) { |worker| worker.serve(first_byte: nil) { |stream| stream.write_line("begun") && stream.read(1) } }
    RUBY
    TCPSocket.open("127.0.0.1", program.port) do |socket|
      assert_equal "begun\n", socket.gets
      assert_equal 1, program.stop.exitstatus
    end
    assert_match(/connections_cut=1 .*event=ended clean=false.*: what was left after drain: was cut \(Ringspun:/m, program.text)
  end

  def test_the_second_signal_cuts_the_block
    program = start(<<~RUBY)
      cluster(workers: 0, drain: nil) do |worker|
        worker.wait
        say "told"
        Ringspun::Machine.current.sleep
      end
    RUBY
    program.wait_for(/event=starting/)
    program.kill(:INT)
    program.wait_for(/^told$/)
    assert_equal 1, program.stop(:INT).exitstatus
    assert_match(/connections_cut=0 block_cut=true.*event=ended clean=false/m, program.text)
  end

  def test_an_error_of_the_block_is_raised
    in_child { assert_raises(KeyError) { Ringspun::Cluster.run(workers: 0, logger: nil) { raise KeyError } } }
      .then { |status| assert_predicate status, :success? }
  end

  # As systemd hands them in: who opens it has the file.
  def test_a_socket_that_listens_already
    Dir.mktmpdir do |folder|
      path = File.join(folder, "socket")
      program = start("listen = Socket.new(:UNIX, :STREAM)\nlisten.bind(Addrinfo.unix(#{path.inspect}))\nlisten.listen(8)\n" \
                      "cluster(workers: 0, listen:)")
      program.wait_for(/event=starting/)
      UNIXSocket.open(path) do |socket|
        socket.puts("hello")
        assert_equal "#{program.pid} hello\n", socket.gets
      end
      assert_predicate program.stop, :success?
      assert_path_exists path
    end
    Socket.open(:INET, :STREAM) do |socket|
      socket.bind(Addrinfo.tcp("127.0.0.1", 0))
      error = assert_raises(Ringspun::UsageError) { Ringspun::Cluster.run(listen: socket, logger: nil) { flunk } }
      assert_match(/does not listen; call listen on it/, error.message)
    end
  end
end
