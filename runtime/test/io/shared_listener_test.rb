# frozen_string_literal: true

require_relative "io_case"

# Several processes that accept on one socket, by `accept_each(ahead: 0)`.
class SharedListenerTest < IOCase
  def with_listener
    on_machine do |machine|
      listener = make_socket(:INET, :STREAM)
      machine.bind(listener, Addrinfo.tcp("127.0.0.1", 0))
      machine.listen(listener)
      yield machine, listener, Socket.for_fd(listener).tap { |socket| socket.autoclose = false }.local_address
    end
  end

  def connect(machine, address)
    make_socket(:INET, :STREAM).tap { |client| machine.connect(client, address) }
  end

  # What the block makes of each connection goes to the client.
  def accept_each(machine, listener)
    machine.accept_each(listener, ahead: 0) do |connection|
      machine.send(connection, yield)
      machine.close(connection)
    end
  end

  def answer(machine, client) = (+"").tap { |buffer| machine.recv(client, buffer) }

  # Another process that has accepted one connection, and waits for the next.
  def with_other(machine, listener, address)
    child = fork do
      machine.__send__(:own_listener, listener) # or it would accept none ahead anyway
      accept_each(machine, listener) { "other" }
    ensure
      exit!(false)
    end
    assert_equal "other", answer(machine, connect(machine, address))
    yield child
  ensure
    Process.kill(:KILL, child)
    machine.waitid(child)
  end

  # It waited first, and is the one that an accept which waits in the kernel would go to.
  def test_one_that_is_stopped_keeps_none_from_others
    with_listener do |machine, listener, address|
      with_other(machine, listener, address) do |child|
        strand = spin { accept_each(machine, listener) { "mine" } }
        until_waits(strand)
        stop(child)
        clients = Array.new(20) { connect(machine, address) }
        assert_equal ["mine"], clients.map { |client| answer(machine, client) }.uniq
        machine.terminate(strand)
      end
    end
  end

  def test_one_that_is_killed_takes_none_along
    with_listener do |machine, listener, address|
      clients = []
      with_other(machine, listener, address) do |child|
        stop(child)
        clients.concat(Array.new(20) { connect(machine, address) })
      end
      strand = spin { accept_each(machine, listener) { "mine" } }
      assert_equal ["mine"], clients.map { |client| answer(machine, client) }.uniq
      machine.terminate(strand)
    end
  end

  def test_one_that_is_cancelled_leaves_what_has_come_to_others
    with_listener do |machine, listener, address|
      clients = Array.new(2) { connect(machine, address) }
      strand = spin { accept_each(machine, listener) { machine.terminate(strand) && "cancelled" } }
      assert_raises(Ringspun::TerminatedError) { strand.await }
      other = spin { accept_each(machine, listener) { "other" } }
      assert_equal %w[cancelled other], clients.map { |client| answer(machine, client) }
      machine.terminate(other)
    end
  end

  # The kernel would have given it to an accept that waits there.
  def test_one_that_is_cancelled_takes_none_along
    with_listener do |machine, listener, address|
      strand = spin { accept_each(machine, listener) { "cancelled" } }
      until_waits(strand)
      client = Fiber.blocking { Socket.tcp(address.ip_address, address.ip_port) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      other = spin { accept_each(machine, listener) { "other" } }
      assert_equal "other", answer(machine, client)
      machine.terminate(other)
      machine.close(client)
    end
  end

  def test_the_listener_is_closed
    with_listener do |machine, listener, _|
      strand = spin { accept_each(machine, listener) { flunk } }
      until_waits(strand)
      close(listener)
      assert_raises(Ringspun::ClosedError) { strand.await }
    end
  end

  private

  # While it waits for a connection.
  def stop(child)
    until_state(child, "S")
    Process.kill(:STOP, child)
    until_state(child, "T")
  end

  def until_state(child, state)
    Thread.pass until File.read("/proc/#{child}/stat")[/\) (\w)/, 1] == state
  end
end
