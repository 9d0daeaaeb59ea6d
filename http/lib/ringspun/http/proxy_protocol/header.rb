# frozen_string_literal: true

require "ipaddr"
require "socket"

module Ringspun
  module HTTP
    class ProxyProtocol
      # What a PROXY header says: the ends of the client's connection, and whether that had TLS. All is nil where the proxy speaks
      # for itself, or of something else than TCP.
      #
      # @api private
      Header = Data.define(:source, :source_port, :destination, :destination_port, :secure)

      # It cannot be read. The message goes on behind the name of the proxy.
      class Wrong < Error
      end

      UNKNOWN = Header.new(nil, nil, nil, nil, false)

      # @param address [IPAddr]
      # @return [String] one of IPv4 as such, also where IPv6 has it
      def self.shown(address) = (address.ipv4_mapped? ? address.native : address).to_s

      # Version 1, a line of text.
      module Line
        PORT = /\A(?:0|[1-9]\d{0,4})\z/
        FORMS = { "TCP4" => [/\A(?:\d{1,3}\.){3}\d{1,3}\z/, ::Socket::AF_INET],
                  "TCP6" => [/\A[\h:]*:[\h:.]+\z/, ::Socket::AF_INET6] }.freeze
        private_constant :PORT, :FORMS

        class << self
          # @param line [String] with its end
          # @return [Header]
          # @raise [Wrong]
          def read(line)
            protocol, *words = line.delete_suffix("\r\n").delete_prefix("PROXY ").split(/ /, -1)
            return UNKNOWN if protocol == "UNKNOWN"

            form, family = FORMS.fetch(protocol) { wrong(line) }
            wrong(line) unless words.size == 4 && words.none? { |word| word.match?(/[\r\n]/) }
            source, destination = words.first(2).map { |word| address(word, form, family, line) }
            Header.new(source, port(words[2], line), destination, port(words[3], line), false)
          end

          private

          def address(word, form, family, line)
            wrong(line) unless word.match?(form)
            ProxyProtocol.shown(IPAddr.new(word, family))
          rescue IPAddr::Error
            wrong(line)
          end

          def port(word, line)
            wrong(line) unless word.match?(PORT) && word.to_i <= 65_535
            word.to_i
          end

          def wrong(line) = raise(Wrong, "has sent a PROXY header that cannot be read: #{line.inspect}")
        end
      end

      # Version 2.
      module Bytes
        VERSION = 0x2
        # The commands.
        LOCAL = 0x0
        PROXY = 0x1
        # TCP over IPv4 and IPv6: bytes of an address.
        ADDRESSES = { 0x11 => 4, 0x21 => 16 }.freeze
        # What is not taken for a client's address, for it is no TCP: the bytes that there are at least.
        OTHERS = { 0x00 => 0, 0x12 => 12, 0x22 => 36, 0x31 => 216, 0x32 => 216 }.freeze
        # The type of the field about TLS, PP2_TYPE_SSL, the bit that says there was some, PP2_CLIENT_SSL, and its least bytes.
        TLS_FIELD = 0x20
        HAD_TLS = 0x01
        TLS_BYTES = 5 # the bits, and whether the client's certificate was verified, of 4
        # Bytes of the two ports, and of what comes before each field: its type and its length.
        PORTS = 4
        FIELD_HEAD = 3
        private_constant :VERSION, :LOCAL, :PROXY, :ADDRESSES, :OTHERS, :TLS_FIELD, :HAD_TLS, :TLS_BYTES, :PORTS, :FIELD_HEAD

        class << self
          # @param command [Integer] version and command
          # @param family [Integer] family and protocol
          # @param rest [String] all behind the length
          # @return [Header]
          # @raise [Wrong]
          def read(command, family, rest)
            wrong("the version #{command >> 4}") unless command >> 4 == VERSION
            command &= 0xf
            wrong("the command #{command}") unless [LOCAL, PROXY].include?(command)
            return UNKNOWN if command == LOCAL

            bytes = ADDRESSES[family]
            bytes ? client(rest, bytes) : other(family, rest)
          end

          private

          def other(family, rest)
            least = OTHERS.fetch(family) { wrong(format("the family 0x%02x", family)) }
            wrong("#{rest.bytesize} bytes of addresses, where #{least} belong") if rest.bytesize < least

            UNKNOWN
          end

          def client(rest, bytes)
            least = (2 * bytes) + PORTS
            wrong("#{rest.bytesize} bytes of addresses, where #{least} belong") if rest.bytesize < least

            source, destination = [0, bytes].map { |at| ProxyProtocol.shown(IPAddr.new_ntoh(rest.byteslice(at, bytes))) }
            source_port, destination_port = rest.byteslice(2 * bytes, PORTS).unpack("nn")
            Header.new(source, source_port, destination, destination_port, tls?(rest.byteslice(least..)))
          end

          def tls?(fields)
            secure = false
            until fields.empty?
              type, length = fields.unpack("Cn")
              wrong("a field without its end") if length.nil? || fields.bytesize < FIELD_HEAD + length

              secure |= had_tls?(fields.byteslice(FIELD_HEAD, length)) if type == TLS_FIELD
              fields = fields.byteslice((FIELD_HEAD + length)..)
            end
            secure
          end

          def had_tls?(field)
            wrong("a field about TLS of #{field.bytesize} bytes") if field.bytesize < TLS_BYTES
            field.getbyte(0).anybits?(HAD_TLS)
          end

          def wrong(what) = raise(Wrong, "has sent a PROXY header with #{what}")
        end
      end
      private_constant :Header, :Wrong, :UNKNOWN, :Line, :Bytes
    end
  end
end
