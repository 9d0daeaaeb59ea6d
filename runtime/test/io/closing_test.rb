# frozen_string_literal: true

require_relative "io_case"

module ClosingTests
  # Between two connections no op waits on the listener, so nothing but its number could tell.
  def test_accept_each_ends_with_its_listener_and_takes_nothing_from_the_next
    on_machine(faults: false) do |machine|
      listener = make_listener("closing-one")
      seen = 0
      waiting_for, told = make_pipe
      strand = spin do
        machine.accept_each(listener) do |connection|
          keep(connection)
          seen += 1
          machine.read(waiting_for, +"")
        end
      end
      client = make_socket(:UNIX, :STREAM)
      machine.connect(client, address_of("closing-one"))
      machine.yield until seen == 1
      close(listener)
      other = make_listener("closing-two")
      assert_equal listener, other, "the number is in use again" unless simulated?
      machine.write(told, "go on")
      assert_raises(Ringspun::ClosedError) { strand.await }
      machine.connect(make_socket(:UNIX, :STREAM), address_of("closing-two"))
      keep(machine.accept(other))
      assert_equal 1, seen
    end
  end

  private

  def address_of(name) = Socket.sockaddr_un("\0ringspun-#{name}-#{Process.pid}")

  def make_listener(name)
    make_socket(:UNIX, :STREAM).tap do |listener|
      @machine.bind(listener, address_of(name))
      @machine.listen(listener, 1)
    end
  end
end

class ClosingTest < IOCase
  include ClosingTests

  # The kernel has taken a part, and the op goes on with the rest by itself: its strand hears of nothing in between.
  def test_writev_does_not_go_on_with_a_number_that_was_closed
    on_machine do |machine|
      reader, writer = make_socketpair
      total = 300_000 + LARGE
      strand = waiting(/writev/) { machine.writev(writer, ["a" * 300_000, "b" * LARGE]) }
      told, teller = make_pipe
      # Woken by the same look that brings the part.
      closer = waiting(/poll/) do
        machine.poll(told, :readable)
        strand.state.tap { close(writer) }
      end
      machine.write(teller, "x")
      machine.read(reader, +"", 200_000)
      assert_equal :parked, closer.await
      stranger, = make_socketpair
      assert_equal writer, stranger, "the number is in use again"
      assert_includes 1...total, strand.await
      assert_nothing_in_flight
    end
  end

  # On io_uring it is one lasting op until somebody else accepts there as well, and from then on one op after the other.
  def test_accept_each_on_a_listener_that_was_shared_takes_nothing_from_the_next
    on_machine do |machine|
      listener = make_listener("shared")
      waiting_for, told = make_pipe
      seen = 0
      strand = waiting(/accept/) do
        machine.accept_each(listener) do |connection|
          keep(connection)
          seen += 1
          machine.read(waiting_for, +"")
        end
      end
      other = waiting(/accept/) { keep(machine.accept(listener)) }
      2.times { machine.connect(make_socket(:UNIX, :STREAM), address_of("shared")) }
      other.await
      machine.yield until seen == 1
      close(listener)
      stranger = make_listener("stranger")
      assert_equal listener, stranger, "the number is in use again"
      machine.connect(make_socket(:UNIX, :STREAM), address_of("stranger"))
      machine.write(told, "go on")
      machine.yield while strand.alive? && seen == 1
      assert_equal 1, seen
      assert_raises(Ringspun::ClosedError) { strand.await }
      keep(machine.accept(stranger))
    end
  end

  # A listener on a path whose queue is full gives no notice of room.
  def test_a_connect_that_waits_for_room_ends_with_its_socket
    on_machine do |machine|
      listener = make_listener("full")
      clients = Array.new(4) { make_socket(:UNIX, :STREAM) }
      strands = clients.map { |client| spin { machine.connect(client, address_of("full")) } }
      strands.each { |strand| machine.yield while strand.state == :new }
      machine.sleep(0.005)
      waiting, client = strands.zip(clients).find { |strand, _| strand.alive? }
      assert_equal "connect on descriptor #{client}", waiting.waits_for
      close(client)
      assert_equal client, make_socket(:UNIX, :STREAM), "the number is in use again"
      assert_raises(Ringspun::ClosedError) { waiting.await }
      (strands - [waiting]).each do |strand|
        keep(machine.accept(listener))
        strand.await
      end
    end
  end

  # By the turn of a second one that closes it the number may be a stranger's.
  def test_a_descriptor_is_closed_once_and_nothing_begins_on_it_meanwhile
    on_machine do |machine|
      reader, = keep(*IO.pipe)
      number = reader.fileno
      late = []
      reader.define_singleton_method(:close) do
        late = [self, number].map { |io| machine.spin { machine.close(io) } } << machine.spin { machine.read(number, +"") }
        machine.yield while late.any?(&:alive?)
        super()
      end
      close(reader)
      assert_equal [Ringspun::ClosedError] * 3, late.map { |strand| strand.error.class }
      late.first(2).each { |strand| assert_match(/another strand is closing/, strand.error.message) }
      assert_nothing_in_flight
    end
  end

  def test_an_object_whose_close_raises_can_be_closed_again
    on_machine do |machine|
      reader, writer = keep(*IO.pipe)
      def writer.close = @told ? super : (@told = true) && raise("not yet")
      assert_raises(RuntimeError) { machine.close(writer) }
      machine.write(writer, "still open")
      assert_equal "still open", read_exactly(reader, 10)
      close(writer)
      assert_predicate writer, :closed?
    end
  end
end

class SimulatedClosingTest < IOCase
  include Simulated
  include ClosingTests
end
