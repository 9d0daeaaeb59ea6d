# frozen_string_literal: true

require_relative "../scripted_server"

# A scripted server that copies, as one of Postgres does: while it waits for rows it passes over a Sync, and any statement ends
# the connection; after an error it passes over all but a Sync; rows that nobody waits for are dropped. An interrupt is seen
# before a COPY begins, between its beginning and the first row, and behind each row. What it takes and gives are lines.
#
#   copy t (a) from stdin    keeps the lines, with the transaction
#   copy t (a) to stdout     `lines` of them
class CopyingServer < ScriptedServer
  # @return [Integer] of a COPY to the client
  attr_accessor :lines

  # @return [#call] gets a Symbol, what the server is at: begin, begun, row or cancel; and takes as long as that does
  attr_accessor :pause

  def initialize(...)
    @lines = 3
    @pause = ->(_) { dawdle }
    super
  end

  private

  def new_backend(stream, number) = Backend.new(self, stream, number, @settings[stream])

  def cancel(process, key)
    @pause.call(:cancel)
    @backends.find { |one| [one.process, one.key] == [process, key] }&.interrupt
  end

  # One connection.
  class Backend < ScriptedServer::Backend
    INTO = /\Acopy .* from stdin\z/
    OUT = /\Acopy .* to stdout\z/
    private_constant :INTO, :OUT

    private

    def columns_of(sql) = sql.start_with?("select a from") ? %w[a] : super

    def execute(limit)
      case @portal.sql
      when INTO then begin_in
      when OUT then send_rows
      else super
      end
    end

    def refuse_failed = @status == "E" && raise(Failure.new("25P02", "the transaction has failed"))

    # Time in which an interrupt is seen.
    def at(what)
      @server.pause.call(what)
      check_interrupt
    end

    def begin_in
      refuse_failed
      at(:begin)
      say("G", [0, 1, 0].pack("Cnn"))
      flush
      at(:begun)
      @rows = []
    end

    def send_rows
      refuse_failed
      at(:begin)
      say("H", [0, 1, 0].pack("Cnn"))
      @server.lines.times do |number|
        say("d", "#{number}\n")
        flush
        at(:row)
      end
      say("c")
      say("C", "COPY #{@server.lines}\0")
    end

    def take(type, body)
      return take_row(type, body) if @rows

      super unless %w[d c f].include?(type)
    end

    def take_row(type, body)
      case type
      when "d" then guard { (@rows << body) && at(:row) }
      when "c" then end_in
      when "f" then guard { raise Failure.new("57014", "COPY from stdin failed: #{body.chomp("\0")}") }
      when "S", "H" then nil
      else leave(true)
      end
    end

    def end_in
      @written.last.concat(@rows.join.lines(chomp: true))
      say("C", "COPY #{@rows.join.lines.size}\0")
      @rows = nil
    end

    def fail(...)
      @rows = nil
      super
    end
  end
end
