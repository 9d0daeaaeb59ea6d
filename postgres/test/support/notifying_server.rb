# frozen_string_literal: true

require "support/scripted_server"

# A scripted server that knows LISTEN and NOTIFY, and whose connections end after some bytes. What it writes is not split.
class NotifyingServer < ScriptedServer
  # @return [Array(Symbol, Integer), nil] :there or :back, and the bytes after which the next connection ends
  attr_accessor :cut

  # @return [Boolean] whether it is a pooler, that keeps notifications back and names a process of its own
  attr_accessor :pooler

  # @return [Integer] connections that were cut
  attr_accessor :cuts

  def initialize(...)
    @cuts = 0
    super
  end

  # To all who listen.
  def notify(channel, payload = "") = @backends.dup.each { |backend| backend.notify(channel, payload) unless @pooler }

  # @return [Array<Array<String>>] the channels of each connection
  def listening = @backends.map(&:channels).reject(&:empty?)

  # Ends each connection that listens.
  def hang_up_on_listeners = @backends.select { |backend| backend.channels.any? }.each(&:hang_up)

  private

  def new_backend(stream, number)
    cut = @cut
    @cut = nil
    Listening.new(self, cut ? CutStream.new(stream, cut) { @cuts += 1 } : stream, number, @settings[stream])
  end

  # Ends after so many bytes in one direction.
  class CutStream
    Cut = Class.new(Ringspun::Error)

    def initialize(stream, cut, &on_cut)
      @stream = stream
      @direction, @left = cut
      @on_cut = on_cut
    end

    def read(len) = take(:there, len) { |part| @stream.read(part) }
    def write(bytes) = take(:back, bytes.bytesize) { |part| @stream.write(bytes.byteslice(0, part)).then { @stream.flush } }
    def read_partial(...) = @stream.read_partial(...)
    def close(...) = @stream.close(...)

    private

    def take(direction, len)
      return yield(len) unless direction == @direction

      part = [len, @left].min
      done = yield(part) if part.positive?
      @left -= part
      return done unless part < len

      @on_cut.call
      @stream.close
      raise Cut
    end
  end

  # One connection.
  class Listening < ScriptedServer::Backend
    # @return [Array<String>]
    attr_reader :channels

    def initialize(...)
      @channels = []
      super
    end

    # At once.
    def notify(channel, payload)
      return unless @channels.include?(channel)

      say("A", [process].pack("N") << "#{channel}\0#{payload}\0".b)
      flush
    rescue Ringspun::Error, SystemCallError
      nil # it has ended
    end

    def hang_up
      @stream.close
    rescue Ringspun::Error, SystemCallError
      nil # so has the client
    end

    private

    def flush
      bytes = @out
      @out = +"".b
      @stream.write(bytes)
    end

    def columns_of(sql) = sql.include?("pg_backend_pid") ? %w[pid] : super

    def perform(portal)
      case portal.sql
      when "select pg_backend_pid()" then answer(portal, "SELECT 1", [[(process + (@server.pooler ? 1 : 0)).to_s]])
      when /\ALISTEN (\w+|".*")\z/m then answer(portal, "LISTEN") { @channels |= [name_of($1)] }
      when /\AUNLISTEN (\w+|".*")\z/m then answer(portal, "UNLISTEN") { @channels -= [name_of($1)] }
      when /pg_notify/ then answer(portal, "SELECT 1") { @server.notify(*portal.params) }
      else super
      end
    end

    def name_of(text) = text.delete_prefix('"').delete_suffix('"').gsub('""', '"').force_encoding(Encoding::UTF_8)

    def answer(portal, tag, rows = [])
      yield if block_given?
      portal.tag = tag
      rows
    end
  end
  private_constant :Listening, :CutStream
end
