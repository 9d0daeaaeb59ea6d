# frozen_string_literal: true

require "socket"

# A name server of a few lines, on the loopback of a network of the tests' own. It answers 127.0.0.1 for every name, but
# for those of `dead.test` never, and for those of `late.test` when they are let go.
# https://www.rfc-editor.org/rfc/rfc1035
class NameServer
  A = 1
  ANSWER = [0xc00c, A, 1, 0, 4, 127, 0, 0, 1].pack("nnnNnC4").freeze

  def initialize
    @socket = UDPSocket.new
    @socket.bind("127.0.0.1", 53)
    @asked = Thread::Queue.new
    @late = []
    @lock = Mutex.new
    @let_go = false
    Thread.new { serve(*@socket.recvfrom(512)) while @socket }
  end

  # Waits until it has been asked for that many names which end so.
  def await_asked(count, zone)
    names = []
    names = [*names, @asked.pop].uniq until names.count { |name| name.end_with?(zone) } == count
  end

  # Those that come later are answered as well: each name is asked for in two questions, one for each family.
  def let_go
    @lock.synchronize do
      @let_go = true
      @late.each { |question, port| answer(question, port) }
    end
  end

  private

  def serve(question, (_, port))
    name = name_of(question)
    case name
    when /dead\.test\z/ then nil
    when /late\.test\z/ then @lock.synchronize { @let_go ? answer(question, port) : @late << [question, port] }
    else answer(question, port)
    end
    @asked << name
  end

  def name_of(question)
    labels, at = [], 12
    while (length = question.getbyte(at)).positive?
      labels << question.byteslice(at + 1, length)
      at += length + 1
    end
    labels.join(".")
  end

  def answer(question, port)
    at = question.index("\0".b, 12) + 1
    found = question.byteslice(at, 2).unpack1("n") == A ? [ANSWER] : []
    header = question.byteslice(0, 2) + [0x8180, 1, found.size, 0, 0].pack("n5")
    @socket.send([header, question.byteslice(12, at - 8), *found].join, 0, "127.0.0.1", port)
  end
end
