# frozen_string_literal: true

module Ringspun
  module HTTP
    # Sends what a program has answered, in whichever of Rack's forms: https://github.com/rack/rack/blob/main/SPEC.rdoc
    #
    # @api private
    class Reply
      # Bytes of a file that are read into memory, and leave with the head. To have the kernel move more costs less.
      READ_BYTES = 32_768
      SWITCHING_PROTOCOLS = 101
      # Headers that speak of a body in a frame of HTTP, which no other protocol has.
      OF_FRAMES = %w[content-length transfer-encoding].freeze
      # Answers without a body, for which some programs give nil.
      BODILESS = [204, 304].freeze
      private_constant :READ_BYTES, :SWITCHING_PROTOCOLS, :OF_FRAMES, :BODILESS

      # @param connection [Connection]
      # @param stream [Stream]
      # @param env [Hash]
      # @param input [Input] the body of the request, whatever middleware has put around it
      # @param stall [Numeric, nil] seconds in which a client must take some of a file
      def initialize(connection, stream, env, input, stall)
        @connection = connection
        @stream = stream
        @env = env
        @input = input
        @stall = stall
      end

      # May switch strands.
      #
      # @param status [Integer, String]
      # @param headers [Hash]
      # @param body [#each, #call, #to_ary, #to_path] closed behind it, once
      # @return [nil]
      # @raise [AnswerError, GoneError, SystemCallError]
      def send(status, headers, body)
        status = Integer(status)
        headers = headers.to_h { |name, value| [name, value] } unless headers.instance_of?(Hash)
        protocol = headers["rack.protocol"]
        status, headers = upgrade(headers, protocol) if protocol
        hijack = headers["rack.hijack"]
        return deliver(status, headers, body, hijack) if hijack || !body.respond_to?(:to_ary)

        parts = body.to_ary # closes the body
        body = nil
        @connection.answer(status, headers, parts)
      ensure
        body.close if body.respond_to?(:close)
      end

      private

      # Whatever the status is: it may be meant for HTTP/2, where the same is a 200.
      def upgrade(headers, protocol)
        unless @env["rack.protocol"]&.include?(protocol)
          raise AnswerError, "the header rack.protocol says #{protocol.inspect}, and the client has asked for " \
                             "#{@env["rack.protocol"].inspect}"
        end

        [SWITCHING_PROTOCOLS, headers.except(*OF_FRAMES).merge("upgrade" => protocol, "connection" => "upgrade")]
      end

      def deliver(status, headers, body, hijack)
        check_body(status, body) unless hijack
        file = file_of(headers, body) unless hijack
        return send_file(status, headers, file) if file

        return @connection.finish unless @connection.begin(status, headers)

        hijack || !body.respond_to?(:each) ? stream(hijack || body, waits: hijack) : body.each { |part| @connection.write(part) }
        @connection.finish
      ensure
        file&.close
      end

      # Said before the head has gone, so that the client gets a 500.
      def check_body(status, body)
        return if %i[each call to_path].any? { |name| body.respond_to?(name) } || (body.nil? && BODILESS.include?(status))

        raise AnswerError, "a body must respond to each or call, got #{body.class}" \
                           "#{"; put it into an Array" if body.is_a?(String)}"
      end

      # Behind a 101 nothing is framed any more. The head leaves when the program first writes or waits, for what is streamed may
      # have nothing to say for long.
      #
      # @param waits [Boolean] whether it has ended when the program closes it, and not when the call returns
      def stream(body, waits:)
        @connection.send_head_soon
        output = Output.new(@connection, @stream, @connection.tunnel? ? nil : @input, @env["ringspun.peer"])
        body.call(output)
        output.wait_closed if waits
        output.check_whole
      ensure
        output&.close # who has kept it must not write into the next answer
      end

      # --- files ---

      # The file that has the same bytes as the body. A length of the program's that is another one is that of a part, which
      # only the body knows.
      def file_of(headers, body)
        path = body.to_path if body.respond_to?(:to_path)
        return unless path && File.file?(path)

        file = File.open(path, "rb")
        _, said = headers.find { |name, _| name.to_s.casecmp?("content-length") }
        return file unless said && Integer(said.to_s, 10) != file.size

        file.close
      end

      def send_file(status, headers, file)
        bytes = file.size
        headers = { "content-length" => bytes.to_s, **headers }
        return @connection.answer(status, headers, [file.read(bytes) || ""]) if bytes <= READ_BYTES

        Stream.open(file) { |from| pass(from, bytes) } if @connection.begin(status, headers)
        @connection.finish
      end

      # The kernel moves the bytes, where it need not encrypt them, and the client has its time again with each that it takes.
      def pass(from, bytes)
        return write(from, bytes) if @stream.tls

        @connection.send_head
        @connection.passed(from.copy_to(@stream, bytes, timeout: @stall))
      end

      def write(from, bytes)
        while bytes.positive? && (piece = from.read_partial([bytes, READ_BYTES].min))
          @connection.write(piece)
          bytes -= piece.bytesize
        end
      end
    end
    private_constant :Reply
  end
end
