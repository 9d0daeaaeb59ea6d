# frozen_string_literal: true

module Ringspun
  module HTTP
    # Server-Sent Events: messages to a browser's EventSource, for as long as it stays. When the connection ends it comes back by
    # itself, and says which message it has got last (https://html.spec.whatwg.org/multipage/server-sent-events.html).
    #
    #   app = lambda do |env|
    #     Ringspun::HTTP::SSE.answer(env) do |events|
    #       messages_since(events.last_id).each { |message| events.write(message.text, event: "message", id: message.id) }
    #     end
    #   end
    #
    # The block runs in a scope that is cancelled when the client goes, or the server stops. A client that reads slowly is waited
    # for in {#write}.
    #
    # @since 0.1.0
    class SSE
      # Seconds without an event after which a comment is sent, so that no proxy takes the connection for dead. 15 are what the
      # standard proposes.
      HEARTBEAT_SECONDS = 15
      # nginx and whoever compresses would keep events in a buffer, where they would lie for long.
      HEADERS = { "content-type" => "text/event-stream", "cache-control" => "no-cache, no-transform",
                  "x-accel-buffering" => "no" }.freeze
      HEARTBEAT = ":\n\n"
      LINE_ENDS = /\r\n|\r|\n/
      private_constant :HEARTBEAT_SECONDS, :HEADERS, :HEARTBEAT, :LINE_ENDS

      class << self
        # An answer for Rack.
        #
        # @param env [Hash] of the request
        # @param headers [Hash{String => String}] more of the answer
        # @param options those of {open}
        # @yieldparam events [SSE]
        # @return [Array(Integer, Hash, Proc)]
        # @raise [UsageError]
        # @since 0.1.0
        def answer(env, headers: {}, **options, &block)
          raise UsageError, "SSE.answer needs a block, which gets the events" unless block

          [200, HEADERS.merge(headers), body(env, **options, &block)]
        end

        # The streaming body of such an answer, for programs that make the rest themselves: a controller of Rails sets it as the
        # header `rack.hijack`.
        #
        # @param env [Hash] of the request
        # @param options those of {open}
        # @yieldparam events [SSE]
        # @return [Proc]
        # @raise [UsageError]
        # @since 0.1.0
        def body(env, **options, &block)
          raise UsageError, "SSE.body needs a block, which gets the events" unless block

          options = { last_id: env["HTTP_LAST_EVENT_ID"], peer: env["ringspun.peer"], **options }
          lambda do |output|
            SSE.open(output, **options, &block)
          ensure
            output.close
          end
        end

        # Sends events by a stream that is there.
        #
        # May switch strands.
        #
        # @param output [#write] what a streaming body gets, or `response.stream` of ActionController::Live
        # @param peer [Peer, nil] `env["ringspun.peer"]`; nil: there are no heartbeats, and nobody sees that the client goes but
        #   the strand that writes
        # @param last_id [String, nil] what the client has got last
        # @param heartbeat [Numeric, nil] seconds without an event after which a comment is sent; nil: never
        # @param reconnect [Numeric, nil] seconds after which the client should come back (`retry`); nil: as it likes
        # @yieldparam events [SSE]
        # @return [Object] the block's value; nil: the server stops
        # @raise [GoneError, SystemCallError, TimeoutError, UsageError]
        # @since 0.1.0
        def open(output, peer: nil, last_id: nil, heartbeat: HEARTBEAT_SECONDS, reconnect: nil)
          heartbeat = Limits.seconds(:heartbeat, heartbeat, none: "nil for none")
          reconnect = Limits.seconds(:reconnect, reconnect, none: "nil for what the client likes")
          events = new(output, last_id)
          events.__send__(:reconnect_after, reconnect) if reconnect
          return yield(events) unless peer

          peer.guard(drain: true, every: heartbeat && heartbeat / 2.0, beat: events.method(:beat)) { yield events }
        end
      end

      # @return [String, nil] the id of the last event that the client has got, before it came back
      # @since 0.1.0
      attr_reader :last_id

      # @param output [#write]
      # @param last_id [String, nil]
      # @api private
      def initialize(output, last_id)
        @output = output
        @last_id = last_id&.dup&.force_encoding(Encoding::UTF_8)&.scrub
        @writing = 0
        @quiet = false
        @thread = Thread.current
      end

      # Sends an event. Several strands may: each event leaves in one piece.
      #
      # May switch strands, when the client reads slowly.
      #
      # @param data [String] UTF-8, of any number of lines; the client gets LF as the end of each
      # @param event [String, Symbol, nil] its type; nil: `message`
      # @param id [String, Integer, nil] what the client says when it comes back; nil: as before
      # @return [self]
      # @raise [UsageError] when it cannot be sent as an event; nothing was
      # @raise [WrongThreadError] on another thread than that of the answer, see {Output}
      # @raise [GoneError, SystemCallError, TimeoutError]
      # @since 0.1.0
      def write(data, event: nil, id: nil)
        text = +""
        text << "event: " << line("event", event) << "\n" if event
        text << "id: " << line("id", id) << "\n" if id
        lines(data).each { |one| text << "data: " << one << "\n" }
        put(text << "\n")
      end

      # @param data [String]
      # @return [self]
      # @raise (see #write)
      # @since 0.1.0
      def <<(data) = write(data)

      # Sends what a client leaves out.
      #
      # May switch strands, when the client reads slowly.
      #
      # @param text [String]
      # @return [self]
      # @raise (see #write)
      # @since 0.1.0
      def comment(text) = put(lines(text).sum(+"") { |one| ": #{one}\n" } << "\n")

      # Sends a comment, unless something was sent since the last call.
      #
      # @api private
      def beat
        put(HEARTBEAT) if @quiet && @writing.zero?
        @quiet = true
      end

      private

      def reconnect_after(seconds) = put("retry: #{(seconds * 1000).round}\n\n")

      # The stream decides whether another thread may write. Such a one does not count, which two threads must not do at once.
      def put(text)
        return @output.write(text).then { self } unless Thread.current.equal?(@thread)

        counted(text)
        self
      end

      def counted(text)
        @quiet = false
        @writing += 1
        @output.write(text)
      ensure
        @writing -= 1
      end

      # A part that has no end makes a line as well: what the client gets is what was given.
      def lines(text)
        raise UsageError, "an event has a String, got #{text.class}; call to_json or to_s" unless text.is_a?(String)

        text.empty? ? [""] : utf8(text).split(LINE_ENDS, -1)
      end

      def line(name, value)
        text = utf8(value.to_s)
        return text unless text.match?(/[\r\n\0]/)

        raise UsageError, "#{name} must be one line, got #{text.inspect}"
      end

      def utf8(text)
        text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
        text = text.encode(Encoding::UTF_8)
        return text if text.valid_encoding?

        raise UsageError, "an event must be UTF-8, got #{text.inspect[0, 80]}"
      rescue EncodingError => error
        raise UsageError, "an event must be UTF-8: #{error.message}"
      end
    end
  end
end
