# frozen_string_literal: true

require_relative "tls_case"

# What a server tells `on_error` of a connection that fails: all but what the peer of that connection has done.
class ServerFaultsTest < TLSCase
  SHORT = 0.001 # must pass

  # What a block does, until its peer makes that fail: by nothing, too much, too little, or as it goes away.
  SILENT = {
    "nothing in time" => ->(stream) { stream.read(2) && stream.read_line(timeout: SHORT) },
    "a line too long" => ->(stream) { stream.read_line(limit: 1) },
    "a line too long in each_line" => ->(stream) { stream.each_line(limit: 1) { nil } },
    "no mark within the limit" => ->(stream) { stream.read_until("|", limit: 1) },
    "does not take what is written" => ->(stream) { stream.write("x" * 16_000_000, timeout: SHORT) },
    "takes nothing of what is copied" => ->(stream) { copy_of_zeros(stream, timeout: SHORT) },
    "copied to somebody, and sends nothing" => ->(stream) { with_pair { |near, _| stream.copy_to(near, timeout: SHORT) } }
  }.freeze

  ENDED = {
    "too few bytes" => ->(stream) { stream.read(10) },
    "too few to skip" => ->(stream) { stream.skip(10) },
    "no mark at all" => ->(stream) { stream.read_until("|") }
  }.freeze

  RESET = {
    "a reset while it is read" => ->(stream) { stream.read(10) },
    "a reset while it is copied" => ->(stream) { with_pair { |near, _| stream.copy_to(near) } },
    "a reset while it is written" => ->(stream) { loop { stream.write("x" * 100_000) } },
    "a reset while others are copied to it" => ->(stream) { copy_of_zeros(stream) }
  }.freeze

  # What a block does that fails by its own fault, or by that of another peer than its own.
  OWN = {
    "its own reset" => ->(_) { raise Errno::ECONNRESET },
    "its own limit" => ->(_) { raise Ringspun::LimitError, "too much" },
    "its own pipe" => ->(_) { raise Errno::EPIPE },
    "its own time" => ->(_) { raise Ringspun::TimeoutError, "too long" },
    "its own end" => ->(_) { raise Ringspun::EndOfStreamError, "too short" },
    "its own cut" => ->(_) { raise Ringspun::TruncatedStreamError, "cut" },
    "its own session" => ->(_) { raise Ringspun::TLSSessionError, "changed" },
    "a limit around what it computes" => ->(_) { Ringspun.timeout(SHORT) { loop { Ringspun.yield } } },
    "a limit around what it reads" => ->(stream) { stream.read(2) && Ringspun.timeout(SHORT) { stream.read_line } },
    "a queue" => ->(_) { Ringspun::Condition.new.wait(timeout: SHORT) },
    "another peer's silence" => ->(_) { with_pair { |near, _| near.read_line(timeout: SHORT) } },
    "another peer's line" => ->(_) { with_pair { |near, far| far.write("long\n") && near.read_line(limit: 1) } },
    "another peer's end" => ->(_) { with_pair { |near, far| far.close || near.read(1) || near.skip(1) } },
    "another peer that is gone" => ->(_) { with_pair { |near, far| far.close || near.write("x") && near.flush } },
    "copied to another peer that is gone" => ->(stream) { with_pair { |near, far| far.close || stream.copy_to(near) } },
    "copied to one that takes nothing" => ->(_) { with_pair { |near, _| copy_of_zeros(near, timeout: SHORT) } },
    "another's connection that nobody accepts" => ->(_) { Ringspun.connect_tcp("127.0.0.1", 1, connect_timeout: 0) }
  }.freeze

  def test_a_peer_that_is_silent_or_sends_too_much_is_not_told
    SILENT.each { |name, block| assert_not_told(name, block) }
  end

  def test_a_peer_that_ends_too_early_is_not_told
    ENDED.each { |name, block| assert_not_told(name, block, &:close_write) }
  end

  def test_a_peer_that_is_gone_is_not_told
    RESET.each { |name, block| assert_not_told(name, block) { |client| reset(client) } }
  end

  def test_what_the_block_itself_has_done_is_told
    OWN.each { |name, block| assert_equal 1, told_of(block).size, name }
  end

  def test_an_error_of_the_peer_that_comes_back_from_elsewhere_is_not_told
    assert_empty told_of(lambda do |stream|
      Ringspun.scope { |scope| scope.spin { stream.read_line(limit: 1) } }
    ensure
      begin
        stream.read(2) && stream.read_line(timeout: SHORT)
      rescue Ringspun::TimeoutError
        nil # and yet the first one is the peer's
      end
    end)
  end

  def test_an_error_of_one_connection_in_the_block_of_another
    errors = []
    keep_error = lambda do |stream|
      stream.read_line(limit: 1)
    rescue Ringspun::LimitError => error
      errors << error
      raise
    end
    assert_empty told_of(keep_error)
    assert_equal errors, told_of(->(_) { raise errors.first })
  end

  def test_over_tls
    @tls = IDENTITY
    test_a_peer_that_is_silent_or_sends_too_much_is_not_told
    test_a_peer_that_ends_too_early_is_not_told
    ENDED.merge(RESET).each { |name, block| assert_not_told(name, block) { |client| reset(client) } }
    test_what_the_block_itself_has_done_is_told
  end

  def test_tls_in_the_middle_of_a_connection
    begins_tls = ->(limit) { ->(stream) { stream.read(SENT.size) && stream.accept_tls(IDENTITY, timeout: limit) } }
    assert_not_told("silence", begins_tls.call(SHORT))
    assert_not_told("a reset", begins_tls.call(nil)) { |client| reset(client) }
    told = told_of(begins_tls.call(nil), &:close_write)
    assert_equal [Ringspun::HandshakeError], told.map(&:class)
  end

  def test_simulated
    9.times do |seed|
      Ringspun::Simulation.run(seed:, faults: seed.positive?) do |machine|
        @machine = machine
        SILENT.merge(ENDED).reject { |name, _| name.include?("cop") }.each do |name, block| # either side may be late
          assert_empty told_in(block, &:close_write), "#{name}, seed #{seed}"
        end
        OWN.except("another's connection that nobody accepts").each do |name, block|
          assert_equal 1, told_in(block).size, "#{name}, seed #{seed}"
        end
      end
    end
  end

  # Bytes that a client sends once it is connected.
  SENT = "abcdefgh"

  def assert_not_told(name, ...)
    assert_empty told_of(...), name
    assert @failed, "#{name}: no error"
  end

  def told_of(block, &act)
    told = nil
    on_machine { told = told_in(block, &act) }
    told
  end

  # What `on_error` is told of a connection to such a server, when the block has ended. The client acts while it runs.
  def told_in(block, &act)
    told, begun, ended = [], Ringspun::Queue.new, Ringspun::Queue.new
    handler = lambda do |stream|
      begun.push(true)
      block.call(stream)
      @failed = false
    ensure
      ended.push(true)
    end
    @failed = true
    server = Ringspun.listen_tcp("127.0.0.1", 0, tls: @tls, on_error: ->(error, _) { told << error }, &handler)
    client = Ringspun.connect_tcp("localhost", server.port, tls: @tls && TRUST)
    client.write(SENT)
    begun.pop
    act&.call(client)
    ended.pop
    error_of { client.close(timeout: 0) }
    server.stop(within: nil)
    told
  end

  # Below a session, which does not say that it ends.
  def reset(client)
    machine = Ringspun::Machine.current
    descriptor = client.__send__(:over)
    machine.setsockopt(descriptor, Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    machine.close(descriptor)
  end

  class << self
    def with_pair
      pair = Ringspun::Machine.current.socketpair.map { |descriptor| Ringspun::Stream.new(descriptor) }
      yield pair
    ensure
      pair.each { |stream| stream.close(timeout: 0) rescue nil }
    end

    # Copies bytes without end.
    def copy_of_zeros(stream, **limits)
      with_pair do |near, far|
        machine = Ringspun::Machine.current
        strand = machine.spin { loop { far.write("x" * 100_000) } }
        near.copy_to(stream, **limits)
      ensure
        machine.terminate(strand)
        strand.join rescue nil # before its stream is closed, which would fail its write
      end
    end
  end
end
