# frozen_string_literal: true

require "support/plain_http"

# A second opinion about all that a client sends on one connection before it closes its side: which requests a program sees, and
# with which statuses the others are refused. It knows what PlainHttp knows.
class PlainServer
  # The statuses of a body that is not framed as it should be.
  OF_BODIES = [400, 413, 431].freeze
  # Those of a head that has not come to its end, where the server says so before.
  OF_PARTS = [nil, 400, 414, 431, 501, 505].freeze

  # @return [Array<Array(String, String, String)>] the method, the target and the body of each request that is whole
  attr_reader :requests

  # @return [Array<Integer, nil>] one of these is the status behind the last of them; nil: that the connection ends without one
  attr_reader :refused

  # @return [Boolean] whether the server certainly closes the connection where the client leaves its side open
  attr_reader :closes

  # @param bytes [String]
  def initialize(bytes)
    @left = bytes.b
    @requests = []
    @closes = true
    @refused = [nil]
    nil while take
  end

  private

  # @return [Boolean, nil] whether another one may follow
  def take
    case head = PlainHttp.request(@left)
    when PlainHttp::Head then take_body(head, @left.byteslice(head.length..))
    when PlainHttp::Refused then refuse(head.statuses)
    else wait(@left.empty? ? [nil] : OF_PARTS)
    end
  end

  def take_body(head, rest)
    length, data = length_and_data(head, rest)
    return wait(head.facts[:body] == "length" ? [400] : OF_BODIES) unless length

    method, target, = @left.delete_prefix("\r\n").split(" ", 3)
    @requests << [method, target, data]
    @left = rest.byteslice(length..)
    head.facts[:keeps_alive]
  end

  def length_and_data(head, rest)
    case head.facts[:body]
    when "none" then [0, ""]
    when "chunked" then PlainHttp.chunks(rest)
    else [head.facts[:body_len], rest.byteslice(0, head.facts[:body_len])] if rest.bytesize >= head.facts[:body_len]
    end
  end

  def refuse(statuses)
    @refused = statuses
    false
  end

  def wait(statuses)
    @closes = false
    refuse(statuses)
  end
end
