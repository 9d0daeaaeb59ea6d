# frozen_string_literal: true

require_relative "over_tls"

# What the tests of TLS share beside streams: servers, and somebody in between.
class TLSCase < StreamCase
  include OverTLS

  # With a collection at every allocation a handshake takes longer than it may. What is ours of a session, streams try as well.
  def setup = GC.stress = false

  IDENTITY = { cert: Certificate.certificate, key: Certificate.key }.freeze
  TRUST = { ca: Certificate.certificate }.freeze

  def echo(stream) = stream.each_line { |line| stream.write_line(line) }

  def on_server(tls = IDENTITY, handler = method(:echo), host: "127.0.0.1", **)
    on_machine do |machine|
      @told = []
      server = Ringspun.listen_tcp(host, 0, tls:, on_error: ->(error, _) { @told << error }, **, &handler)
      yield server, machine
    ensure
      server&.stop(within: 1)
      assert_empty @told
    end
  end

  def connect(server, tls = TRUST, host: "localhost", **, &) = Ringspun.connect_tcp(host, server.port, tls:, **, &)

  def ask(stream, line)
    stream.write_line(line)
    stream.read_line
  end

  # A server with a certificate like that, and what a client says to it. It goes on after those that it did not please.
  def assert_refused(error_class, message, certificate, tls = TRUST, host: "localhost")
    on_server({ cert: certificate, key: Certificate.key }) do |server|
      error = assert_raises(error_class) { connect(server, tls, host:) }
      assert_instance_of error_class, error
      assert_match message, error.message
      assert_equal("x", connect(server, { verify: false }) { |stream| ask(stream, "x") })
    end
  end

  # Two streams, and a strand that carries bytes from the first to the second: what the block makes of each that it yields.
  def make_watched(&change)
    (client, near), (far, server) = @machine.socketpair, @machine.socketpair
    keep(near, far)
    change ||= :itself.to_proc
    @carriers = [spin { carry(near, far, &change) }, spin { carry(far, near, &:itself) }]
    shake_hands(*[client, server].map { |descriptor| keep_stream(Ringspun::Stream.new(descriptor)) })
  end

  def end_carriers = @carriers.each { |strand| @machine.terminate(strand) }

  private

  def carry(from, to)
    while @machine.recv(from, byte = +"", 1).positive?
      @machine.send(to, yield(byte))
    end
    @machine.shutdown(to, :WR)
  rescue SystemCallError, Ringspun::Error
    nil
  end
end
