# frozen_string_literal: true

# A key-value server that speaks lines over TLS: SET key bytes (and then so many bytes), GET key, DEL key, KEYS, QUIT. Then two
# clients, one of which trusts it.
#
#   bin/bundle exec ruby examples/kv_server.rb                                     # shows what clients see
#   bin/bundle exec ruby examples/kv_server.rb 4000                                # serves on that port, with a new certificate
#   bin/bundle exec ruby examples/kv_server.rb 4000 --cert cert.pem --key key.pem  # with yours
#
# Talk to it with `openssl s_client -quiet -connect localhost:4000`.
#
# Prints:
#   SET greeting: STORED
#   GET greeting: VALUE 12 "hello,\nworld"
#   SET greeting (too long): ERROR a value has at most 1048576 bytes
#   SING: ERROR unknown command SING; there are SET, GET, DEL, KEYS, QUIT
#   KEYS: KEYS greeting
#   DEL greeting: DELETED
#   GET greeting: NOT_FOUND
#   QUIT: BYE
#   a stranger: Ringspun::UntrustedCertificateError
#   TLSv1.3, 0 connections are left

require "openssl"
require "optparse"
require "ringspun"

# The values, and what may be asked of them. One strand runs at a time, so a Hash is enough.
class KeyValues
  VALUE_MAX = 1 << 20
  COMMANDS = %w[SET GET DEL KEYS QUIT].freeze

  # What the client did wrong; the connection goes on.
  Refused = Class.new(StandardError)

  def initialize = @values = {}

  def attend(stream)
    stream.each_line(limit: 1_000) do |line|
      command, *arguments = line.split
      stream.write_line(answer(stream, command, arguments))
      break if command == "QUIT"
    rescue Refused => error
      stream.write_line("ERROR #{error.message}")
    end
  end

  private

  def answer(stream, command, arguments)
    case [command, *arguments]
    in ["SET", key, /\A\d+\z/ => bytes] then set(stream, key, Integer(bytes, 10))
    in ["GET", key] then get(key)
    in ["DEL", key] then @values.delete(key) ? "DELETED" : "NOT_FOUND"
    in ["KEYS"] then ["KEYS", *@values.keys.sort].join(" ")
    in ["QUIT"] then "BYE"
    else refuse(command)
    end
  end

  def refuse(command)
    raise Refused, "wrong number or kind of arguments for #{command}" if COMMANDS.include?(command)

    raise Refused, "unknown command #{command}; there are #{COMMANDS.join(", ")}"
  end

  # The value is no line: it may hold anything. One that is too long is not read into memory.
  def set(stream, key, bytes)
    if bytes > VALUE_MAX
      stream.skip(bytes)
      raise Refused, "a value has at most #{VALUE_MAX} bytes"
    end
    @values[key] = stream.read(bytes)
    "STORED"
  end

  def get(key)
    value = @values[key] or return "NOT_FOUND"
    "VALUE #{value.bytesize}\n#{value}"
  end
end

# A certificate that is its own authority, for a day: who connects must be told to trust it.
def make_identity
  key = OpenSSL::PKey::EC.generate("prime256v1")
  certificate = OpenSSL::X509::Certificate.new
  certificate.version = 2
  certificate.serial = 1
  certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
  certificate.not_before = Time.now - 60
  certificate.not_after = Time.now + 86_400
  certificate.public_key = key
  extensions = OpenSSL::X509::ExtensionFactory.new(certificate, certificate)
  certificate.add_extension(extensions.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1"))
  { cert: certificate.sign(key, "SHA256"), key: }
end

def serve(port, tls)
  values = KeyValues.new
  Ringspun.listen_tcp("127.0.0.1", port, tls:, timeout: 60) { |stream| values.attend(stream) }
end

# What a client that trusts the server sees.
def converse(stream)
  ask = lambda do |line, value = ""|
    stream.write("#{line}\n", value)
    stream.read_line
  end
  puts "SET greeting: #{ask.call("SET greeting 12", "hello,\nworld")}"
  found = ask.call("GET greeting")
  puts "GET greeting: #{found} #{stream.read(Integer(found.split.last)).inspect}"
  stream.skip(1) # the end of the line
  puts "SET greeting (too long): #{ask.call("SET greeting 2000000", "x" * 2_000_000)}"
  ["SING", "KEYS", "DEL greeting", "GET greeting", "QUIT"].each { |line| puts "#{line}: #{ask.call(line)}" }
end

def show
  tls = make_identity
  Ringspun.run do
    server = serve(0, tls)
    version = Ringspun.connect_tcp("localhost", server.port, tls: { ca: tls[:cert] }) do |stream|
      converse(stream)
      stream.tls.version
    end
    begin
      Ringspun.connect_tcp("localhost", server.port, tls: true)
    rescue Ringspun::CertificateError => error
      puts "a stranger: #{error.class}"
    end
    server.stop
    puts "#{version}, #{server.connections} connections are left"
  end
end

tls = {}
OptionParser.new do |options|
  options.on("--cert PATH") { |path| tls[:cert] = path }
  options.on("--key PATH") { |path| tls[:key] = path }
end.parse!

if ARGV.empty?
  show
else
  Ringspun.run do
    server = serve(Integer(ARGV.first), tls.empty? ? make_identity : tls)
    puts "listening on port #{server.port}; end with Ctrl-C"
    server.wait
  end
end
