# frozen_string_literal: true

module IOStorm
  # Messages on their way through one socket, from several strands to several others.
  Mail = Struct.new(:receiver, :sender, :address, :sent, :received) do
    def complete? = sent.sum == received.size
  end

  # Sends so many numbered messages.
  class Sender < Role
    def initialize(round, mail, index, total)
      super(round)
      @mail, @index, @total = mail, index, total
    end

    private

    def step
      return @done = true if @mail.sent[@index] == @total

      size = pick(3000)
      message = [@index, @mail.sent[@index], size].pack("NNN") + Pattern.at(@mail.sent[@index], size)
      disturbed { @mail.sent[@index] += 1 if @round.changing(message.dup) { |source| send(source) } == message.bytesize }
    end

    def send(message)
      io = @mail.sender.io
      return @machine.sendmsg(io, message, @mail.address) if @mail.address || pick(2).zero?

      @machine.send(io, message)
    end
  end

  # Takes messages until the socket is closed.
  class Receiver < Role
    def initialize(round, mail)
      super(round)
      @mail = mail
    end

    private

    def step
      return @done = true if @mail.receiver.closed?

      disturbed { take(receive) }
    rescue Ringspun::ClosedError
      @done = true
    end

    def receive
      io = @mail.receiver.io
      case pick(4)
      when 0 then (+"").tap { |bytes| @machine.recv(io, bytes) }
      when 1 then (+"").tap { |bytes| @machine.recvmsg(io, bytes, 5000) }
      when 2 then IO::Buffer.new(5000).then { |buffer| buffer.get_string(0, @machine.recv(io, buffer)) }
      else IO::Buffer.new(5020).then { |buffer| buffer.get_string(3, @machine.recvmsg(io, buffer.slice(3, 5000)).first) }
      end
    end

    def take(message)
      index, number, size = message.unpack("NNN")
      @round.complain("a message is wrong") unless Pattern.at?(number, message.byteslice(12..)) && message.bytesize == size + 12
      @round.complain("message #{number} of #{index} came twice") unless @mail.received.add?([index, number])
      Tally.add(messages: 1)
    end
  end

  # Datagrams and their kin: each arrives once.
  class Messages < Scene
    def play
      one, other, address = __send__(%i[pair packets named][pick(3)])
      ends = @round.ends_of([one, other])
      count = 1 + pick(3)
      @mail = Mail.new(*ends, address, [0] * count, Set.new)
      total = pick(GCStress::WANTED ? 5 : 40)
      @machine.scope do |scope|
        (1 + pick(3)).times { scope.spin { @round.act(Receiver.new(@round, @mail)) } }
        @round.act_all(*Array.new(count) { |index| Sender.new(@round, @mail, index, total) })
        @machine.sleep(0.000_5) until @mail.complete?
        @mail.receiver.close
      end
      @mail.sender.close
      @round.forget(*ends)
    end

    private

    def pair = @machine.socketpair(:UNIX, :DGRAM)
    def packets = @machine.socketpair(:UNIX, :SEQPACKET)

    def named
      receiver, sender = Array.new(2) { @machine.socket(:UNIX, :DGRAM) }
      address = Socket.sockaddr_un("\0ringspun-storm-#{Process.pid}-#{object_id}")
      @machine.bind(receiver, address)
      [receiver, sender, address]
    end
  end

  # Hands over pipes that a number comes back through. Not told or terminated from outside: it has descriptors in its hands.
  class Rights < Scene
    def play
      @ends = @machine.socketpair.map { |io| @round.end_of(io) }
      @total = pick(10)
      @machine.scope do |scope|
        scope.spin { @total.times { |number| answer(number) } }
        @total.times { |number| ask(number) }
      end
      @ends.each(&:close)
      @round.forget(*@ends)
    end

    private

    def ask(number)
      reader, writer = @machine.pipe.map { |io| @round.end_of(io) }
      rights = [[Socket::SOL_SOCKET, Socket::SCM_RIGHTS, [writer.io].pack("i")]]
      sent = nil
      until sent
        survive { sent = @machine.sendmsg(@ends[0].io, "!", nil, 0, rights) }
      end
      writer.close
      @machine.read(reader.io, bytes = +"")
      @round.complain("#{bytes.inspect} came back and not #{number}") unless bytes == number.to_s
    ensure
      Ringspun.shield { [reader, writer].compact.each(&:close) }
      @round.forget(reader, writer)
    end

    def answer(number)
      received = nil
      until received
        survive { received = @round.end_of(handed_over) }
      end
      @machine.write(received.io, number.to_s)
    rescue Errno::EPIPE # who has asked was cancelled
      nil
    ensure
      received&.close
      @round.forget(received)
    end

    def handed_over
      bytes = pick(2).zero? ? +"" : IO::Buffer.new(5)
      @machine.recvmsg(@ends[1].io, bytes, 1).last.first.last.unpack1("i")
    end

    def survive(&)
      disturbed(&)
    rescue Ringspun::TimeoutError
      nil
    end
  end
end
