# frozen_string_literal: true

require_relative "stream_case"
require "support/certificate"

# The tests of streams once more, with a TLS session between the two sides: a stream at either end.
module OverTLS
  def make_streams(**options)
    streams = @machine.socketpair.map { |descriptor| keep_stream(Ringspun::Stream.new(descriptor, **options)) }
    shake_hands(*streams)
  end

  def make_stream(**) = make_streams(**)

  # With a collection at every allocation, one of these takes seconds, and most of it is not ours.
  def shake_hands(client, server)
    stressed, GC.stress = GC.stress, false
    accepting = spin { server.accept_tls(Certificate.server_context) }
    client.start_tls(Certificate.client_context, host: "localhost")
    accepting.join
    [client, server]
  ensure
    GC.stress = stressed
  end

  def send_all(stream, bytes)
    stream.write(bytes)
    stream.flush
  end

  def end_sending(stream) = stream.close_write
  def close(io) = io.is_a?(Ringspun::Stream) ? io.close : super

  # Who waits for bytes waits for the descriptor.
  def until_waits(strand, pattern = /./) = super(strand, Regexp.new(pattern.source.sub(/recv.*/, "(recv|poll) on")))
end
