# frozen_string_literal: true

require "socket"

# A server of Postgres' protocol 3 as strands of the caller's machine, simulated or not, at a Unix socket. It keeps what was
# inserted and committed, takes its time, and splits what it sends, by a Random.
#
# The first word of a statement, or that behind "select", is the command; the first parameter is a nonce that comes back with
# the answer:
#
#   echo $1            the nonce
#   work $1, $2        the nonce, after so many seconds
#   await $1, $2       the nonce, after a wait of so many seconds for a lock
#   rows $1, $2        so many rows of the nonce and a number; behind them, with $3, an error with that SQLSTATE,
#                      or the connection's end (die, cut)
#   fail $1, $2        an error with that SQLSTATE, and the nonce as message
#   insert $1          remembers the nonce, committed with the transaction
#   die $1, cut $1     ends the connection, with an error and without
#   mute $1            says nothing any more
#   open $1            leaves a transaction open
#   alter $1           changes the session, and says so
#   show lock_timeout  with which the client has begun
#   begin, commit, rollback, savepoint, release, discard
class ScriptedServer
  ADDRESS = "/scripted/.s.PGSQL.5432"
  URL = "postgres://somebody@/some?host=/scripted&sslmode=disable&application_name=test"
  CANCEL = 80_877_102

  # @return [Array<String>] nonces, in the order of their commits
  attr_reader :committed

  # @return [Array<Backend>] that have not ended
  attr_reader :backends

  attr_reader :machine, :random

  # @return [Float] how likely it is that a connection ends before it has begun
  attr_writer :refusals

  # @return [Boolean] whether every other request to cancel is passed over, as where a statement has not been read yet
  attr_accessor :deaf

  def initialize(machine, random, patience: 0.01)
    @machine = machine
    @random = random
    @patience = patience
    @committed = []
    @backends = []
    @strands = []
    @settings = {}.compare_by_identity # with which the client of each stream has begun
    @keys = 0
    @refusals = 0
    @listener = machine.socket(:UNIX, :STREAM)
    machine.bind(@listener, Addrinfo.unix(ADDRESS))
    machine.listen(@listener)
    @accepting = machine.spin { accept }
  end

  # What a network and a busy machine take.
  def dawdle(most = @patience) = @machine.sleep(@random.rand * most)

  # Also those that it works for; returns when nothing of it is left.
  def close
    @accepting.terminate
    @strands.each(&:terminate)
    [@accepting, *@strands].each { |strand| settle(strand) }
    @machine.close(@listener)
  end

  # Until all connections of clients have ended.
  def await_end = @strands.each { |strand| settle(strand) }

  private

  def settle(strand)
    strand.await
  rescue Ringspun::TerminatedError
    nil
  end

  # In a scope of its own: no run of a client's waits for a server.
  def accept
    @machine.scope do |scope|
      loop do
        stream = Ringspun::Stream.new(@machine.accept(@listener))
        @strands << scope.spin { serve(stream) }
      rescue Errno::ECONNRESET
        next # it had ended before it was accepted
      end
    end
  end

  def serve(stream)
    body = stream.read(stream.read(4).unpack1("N") - 4)
    code, = body.unpack("N")
    return cancel(*body.unpack("xxxxNN")) if code == CANCEL

    @settings[stream] = body[4..].split("\0").each_slice(2).to_h
    talk(stream)
  rescue Ringspun::Error, SystemCallError, NoMethodError
    nil # the client has gone before it had said anything
  ensure
    hang_up(stream)
  end

  def hang_up(stream)
    stream.close(timeout: 0)
  rescue Ringspun::Error, SystemCallError
    nil # something had not left
  end

  # It is the connection's end by which a client learns that the server has taken note. What is cancelled may have ended by then.
  def cancel(process, key)
    dawdle
    backend = @backends.find { |one| [one.process, one.key] == [process, key] }
    backend&.interrupt
    dawdle
  end

  def talk(stream)
    return if @random.rand < @refusals

    backend = new_backend(stream, @keys += 1)
    @backends << backend
    backend.run
  ensure
    @backends.delete(backend)
  end

  def new_backend(stream, number) = Backend.new(self, stream, number, @settings[stream])
end

require "support/scripted_server/backend"
