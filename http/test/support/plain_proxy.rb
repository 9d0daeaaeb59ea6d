# frozen_string_literal: true

require "ipaddr"

# A second opinion on PROXY headers: https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, read in one piece, with
# addresses taken apart by hand.
module PlainProxy
  # Bytes of it, and its facts: nil where the proxy speaks for itself.
  Header = Data.define(:length, :facts)

  PORT = "(?:0|[1-9][0-9]*)"
  TCP = "(?<protocol>TCP[46]) (?<from>\\S+) (?<to>\\S+) (?<ports>#{PORT} #{PORT})".freeze
  LINE = /\APROXY (?:UNKNOWN(?: [^\r]*(?:\r(?!\n)[^\r]*)*)?|#{TCP})\r\n/n
  SIGNATURE = ["0d0a0d0a000d0a515549540a"].pack("H*")
  # Of families that are no TCP over IP: least bytes.
  OTHERS = { 0x00 => 0, 0x12 => 12, 0x22 => 36, 0x31 => 216, 0x32 => 216 }.freeze
  private_constant :LINE, :SIGNATURE, :OTHERS, :PORT, :TCP

  class << self
    # @param bytes [String] all that there is
    # @return [Header, nil] nil: there is none that can be read
    def read(bytes)
      bytes = bytes.b
      bytes.start_with?(SIGNATURE) ? second(bytes) : first(bytes)
    end

    private

    def first(bytes)
      line = bytes[0, 107].match(LINE) or return
      return Header.new(line.end(0), nil) unless line[:protocol]

      ends = [line[:from], line[:to]]
      ports = line[:ports].split.map(&:to_i)
      return if ends.any? { |text| line[:protocol] == "TCP4" ? !four?(text) : !six?(text) } || ports.max > 65_535

      Header.new(line.end(0), facts(ends.map { |text| IPAddr.new(text) }, ports, false))
    end

    def four?(text)
      parts = text.split(".", -1)
      parts.size == 4 && parts.all? { |part| part == part.to_i.to_s && part.to_i.between?(0, 255) }
    end

    # Eight groups. The last two may be an address of IPv4, and one run of them may be left out.
    def six?(text)
      halves = text.split("::", -1)
      return false if halves.size > 2 || text.match?(/:::/)

      sizes = halves.map.with_index { |half, at| groups(half, at == halves.size - 1) }
      sizes.none?(&:nil?) && (halves.size == 1 ? sizes.sum == 8 : sizes.sum < 8)
    end

    # How many there are; nil: one is none.
    def groups(half, last)
      list = half.split(":", -1)
      size = list.size
      if last && list.last&.include?(".")
        return unless four?(list.pop)

        size += 1
      end
      size if list.all?(/\A\h{1,4}\z/)
    end

    def second(bytes)
      kind, family, length = bytes[12, 4].to_s.unpack("CCn")
      return unless length && length <= 4096 && bytes.bytesize >= 16 + length

      rest = bytes[16, length]
      return Header.new(16 + length, nil) if kind == 0x20
      return unless kind == 0x21

      found = OTHERS.key?(family) ? (rest.bytesize >= OTHERS[family] ? :none : nil) : client(family, rest)
      found && Header.new(16 + length, found == :none ? nil : found)
    end

    def client(family, rest)
      size = { 0x11 => 4, 0x21 => 16 }[family] or return
      from, to, ports, fields = rest.unpack("a#{size}a#{size}a4a*")
      return if ports.bytesize < 4

      secure = secure(fields)
      facts([from, to].map { |bytes| IPAddr.new(IPAddr.ntop(bytes)) }, ports.unpack("nn"), secure) unless secure.nil?
    end

    # Nil: the fields do not fill their place, or one about TLS is too short.
    def secure(fields)
      had = false
      while fields.bytesize.positive?
        type, length = fields.unpack("Cn")
        return if length.nil? || fields.bytesize < 3 + length
        return if type == 0x20 && length < 5

        had = true if type == 0x20 && fields.getbyte(3).odd?
        fields = fields[(3 + length)..]
      end
      had
    end

    def facts(ends, ports, secure)
      ends = ends.map { |address| address.ipv4_mapped? ? address.native : address }
      host = ends[1].ipv6? ? "[#{ends[1]}]" : ends[1].to_s
      { "REMOTE_ADDR" => ends[0].to_s, "SERVER_NAME" => host, "SERVER_PORT" => ports[1].to_s,
        **(secure ? { "rack.url_scheme" => "https" } : {}) }
    end
  end
end
