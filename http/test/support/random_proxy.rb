# frozen_string_literal: true

# PROXY headers drawn from a seed: most are right, others have something in them that a reader may take in two ways. What follows
# them is drawn as well.
class RandomProxy
  V4 = %w[1.2.3.4 255.255.255.255 0.0.0.0 10.0.0.1].freeze
  V6 = %w[:: ::1 2001:db8::7 1:2:3:4:5:6:7:8 ::ffff:1.2.3.4 FE80::A].freeze
  WRONG = %w[256.1.1.1 01.2.3.4 1.2.3 1.2.3.4.5 :::1 g::1 1:2:3:4:5:6:7:8:9 1.2.3.4/8 [::1] fe80::1%lo -1 ::1.2.3].freeze
  PORTS = [*%w[1 80 443 65535 0] * 8, "65536", "080", "-1", "+1", "", "1 ", "9" * 20].freeze
  PROTOCOLS = [*%w[TCP4 TCP6] * 10, "UNKNOWN", "UNKNOWN", "TCP5", "tcp4", "UDP4", ""].freeze
  ENDS = [*["\r\n"] * 40, "\n", "\r", "\r\r\n", "", " \r\n"].freeze
  KINDS = [*[0x21] * 14, *[0x20] * 3, 0x22, 0x11, 0x31, 0x01].freeze
  FAMILIES = [*[0x11, 0x21] * 10, 0x00, 0x12, 0x22, 0x31, 0x32, 0x13, 0x41, 0xff].freeze
  SIZES = { 0x11 => 12, 0x21 => 36, 0x12 => 12, 0x22 => 36, 0x31 => 216, 0x32 => 216 }.freeze
  SPOILERS = ["\0", "\r", "\n", " ", "\t", "\r\n", "0", ".", ":", "\xff"].freeze
  private_constant(*constants)

  def initialize(seed)
    @random = Random.new(seed)
  end

  # @return [String]
  def bytes
    bytes = @random.rand(2).zero? ? first : second
    spoil(bytes) if @random.rand(5).zero?
    bytes << @random.bytes(@random.rand(40))
  end

  private

  def one(list) = list[@random.rand(list.size)].dup

  def first
    protocol = one(PROTOCOLS)
    return "PROXY UNKNOWN#{one(["", " x", " #{"y" * @random.rand(110)}", " \r", " 1 2"])}#{one(ENDS)}".b if protocol == "UNKNOWN"

    "PROXY #{protocol} #{address(protocol)} #{address(protocol)} #{one(PORTS)} #{one(PORTS)}#{one(ENDS)}".b
  end

  def address(protocol)
    return one(WRONG) if @random.rand(15).zero?

    one(protocol == "TCP6" ? V6 : V4)
  end

  def second
    family = one(FAMILIES)
    rest = @random.bytes(SIZES.fetch(family, @random.rand(40)))
    rest[0, 12] = ["00000000000000000000ffff"].pack("H*") if family == 0x21 && @random.rand(4).zero?
    rest = rest[0, @random.rand(rest.bytesize + 1)] if @random.rand(15).zero?
    @random.rand(3).times { rest << field }
    rest << @random.bytes(@random.rand(3)) if @random.rand(10).zero?
    rest << ("\4\x10\0".b << @random.bytes(4096)) if @random.rand(20).zero?
    ["0d0a0d0a000d0a515549540a"].pack("H*") << [one(KINDS), family, rest.bytesize].pack("CCn") << rest
  end

  def field
    type = one([0x20, 0x20, 0x01, 0x02, 0x03, 0x04, 0x05, 0x30])
    value = @random.bytes(one([5, 5, 5, 0, 4, 8, 20]))
    [type, @random.rand(25).zero? ? value.bytesize + 1 : value.bytesize].pack("Cn") << value
  end

  def spoil(bytes)
    at = @random.rand(bytes.bytesize)
    case @random.rand(4)
    when 0 then bytes.setbyte(at, @random.rand(256))
    when 1 then bytes[at, 1] = ""
    when 2 then bytes.slice!(at..)
    else bytes[at, @random.rand(2)] = one(SPOILERS).b
    end
  end
end
