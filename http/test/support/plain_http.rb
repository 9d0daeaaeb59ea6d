# frozen_string_literal: true

# A second opinion: heads and chunked bodies of HTTP/1.1 by regular expressions, slowly and all at once, as RFC 9110 and 9112 have
# them where they are read strictly. It knows nothing of the codec but its limits. Of a head that is refused it says with which
# statuses: one for each thing that is wrong, for which of these is found first is nobody's business.
module PlainHttp
  # A head that is whole.
  Head = Data.define(:length, :facts, :fields)
  # One that is refused.
  Refused = Data.define(:statuses)

  TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]/n
  TARGET = /[\x21\x22\x24-\x7e]/n
  HOST = /\A(?<name>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~]+)(?::(?<port>[0-9]{0,5}))?\z/n
  LINE_MAX = 8192 # the limits of http/ext/ringspun_http/codec/limits.c
  HEAD_MAX = 65_536
  FIELDS_MAX = 100
  NAME_MAX = 256
  METHOD_MAX = 32
  TRAILERS_COUNT_MAX = 32
  TRAILERS_MAX = 8192
  EXTENSIONS_MAX = 4096
  LENGTH_MAX = 2**63 - 1

  # Names that RFC 9110, 6.5.1, has no place for behind a body.
  NO_TRAILERS = %w[
    age authorization cache-control connection content-encoding content-language content-length content-location content-range
    content-type cookie date expect expires host http2-settings if-match if-modified-since if-none-match if-range
    if-unmodified-since keep-alive location max-forwards pragma proxy-authenticate proxy-authorization proxy-connection range
    retry-after set-cookie te trailer transfer-encoding upgrade vary www-authenticate
  ].freeze

  class << self
    # @param bytes [String]
    # @return [Head, Refused, nil] nil: its end has not come
    def request(bytes)
      bytes = bytes.b
      start = bytes.start_with?("\r\n") ? 2 : 0
      stop = bytes.index("\r\n\r\n", start) or return
      line, *lines = bytes[start...stop].split("\r\n", -1)
      faults = faults_of_size(stop + 4, line, lines) + faults_of_request_line(line.to_s) + faults_of_lines(lines)
      faults.empty? ? judge_request(line, fields_of(lines), stop + 4) : Refused.new(faults)
    end

    # @return [Head, Refused, nil]
    def response(bytes)
      bytes = bytes.b
      stop = bytes.index("\r\n\r\n") or return
      line, *lines = bytes[0...stop].split("\r\n", -1)
      faults = faults_of_status_line(line.to_s) + faults_of_lines(lines)
      faults << 431 if stop + 4 > HEAD_MAX || lines.size > FIELDS_MAX
      faults.empty? ? judge_response(line, fields_of(lines), stop + 4) : Refused.new(faults)
    end

    QUOTED = /"[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]*"/n
    # Blanks that should not be there: RFC 9112, 7.1.1.
    BLANKS = /[ \t]*/n
    CHUNK = /\G([0-9A-Fa-f]{1,16})((?:#{BLANKS};#{BLANKS}#{TOKEN}+(?:#{BLANKS}=#{BLANKS}(?:#{TOKEN}+|#{QUOTED}))?)*)\r\n/n

    # @return [Array(Integer, String, Array), nil] bytes of the body, its data, and its trailers; nil: it is not whole, or wrong
    def chunks(bytes)
      bytes = bytes.b
      at = extensions = 0
      data = +"".b
      while (chunk = bytes.match(CHUNK, at))
        size = chunk[1].hex
        extensions += chunk[2].bytesize
        return if extensions > EXTENSIONS_MAX || size > LENGTH_MAX
        return trailers(bytes, chunk.end(0), data) if size.zero?

        at = chunk.end(0) + size
        return if at > bytes.bytesize || bytes[at, 2] != "\r\n"

        data << bytes[chunk.end(0), size]
        at += 2
      end
    end

    # @param bytes [String] a chunked body that is whole
    # @return [String] the same without the blanks that should not be there
    def without_blanks(bytes)
      plain = +"".b
      at = 0
      while (chunk = bytes.match(CHUNK, at))
        plain << chunk[1] << chunk[2].gsub(/"[^"]*"|[ \t]+/n) { |text| text.start_with?('"') ? text : "" } << "\r\n"
        return plain << bytes.byteslice(chunk.end(0)..) if chunk[1].hex.zero?

        at = chunk.end(0) + chunk[1].hex + 2
        plain << bytes.byteslice(chunk.end(0)...at)
      end
    end

    private

    # RFC 9110, 2.5: a version 1 to come is read as the last that is known.
    def known?(version) = version.start_with?("1.")
    def last_known(version) = version == "HTTP/1.0" ? version : "HTTP/1.1"

    def trailers(bytes, start, data)
      empty = bytes[start, 2] == "\r\n"
      stop = empty ? start - 2 : bytes.index("\r\n\r\n", start)
      return if stop.nil? || stop + 4 - start > TRAILERS_MAX

      lines = empty ? [] : bytes[start...stop].split("\r\n", -1)
      return if lines.size > TRAILERS_COUNT_MAX || faults_of_lines(lines).any?

      fields = fields_of(lines)
      [stop + 4, data, without_raw(fields)] if fields.none? { |name, _| NO_TRAILERS.include?(name.downcase) }
    end

    def faults_of_size(length, line, lines)
      [*(431 if length > HEAD_MAX), *(414 if line.to_s.bytesize > LINE_MAX), *(431 if lines.size > FIELDS_MAX)]
    end

    def faults_of_request_line(line)
      faults = []
      faults << 501 if line.match?(/\A#{TOKEN}{#{METHOD_MAX + 1}}/n)
      version = line[%r{ HTTP/(\d\.\d)}n, 1]
      faults << 505 if version && !known?(version)
      fits = line.match?(%r{\A#{TOKEN}+ #{TARGET}+ HTTP/\d\.\d\z}n) && form_of(*line.split.take(2))
      fits ? faults : [*faults, 400]
    end

    def faults_of_status_line(line)
      version = line[%r{\AHTTP/(\d\.\d)}n, 1]
      faults = version && !known?(version) ? [505] : []
      faults << 400 if line.match?(/[\r\n\0]/)
      fits = line.bytesize <= LINE_MAX && line.match?(%r{\AHTTP/\d\.\d [1-9]\d\d(?: [\t\x20-\x7e\x80-\xff]*)?\z}n)
      fits ? faults : [*faults, 502]
    end

    def faults_of_lines(lines) = lines.flat_map { |line| faults_of_line(line) }

    def faults_of_line(line)
      return [431, 400] if line.match?(/\A#{TOKEN}{#{NAME_MAX + 1}}/n)

      line.match?(/\A#{TOKEN}+:[\t\x20-\x7e\x80-\xff]*\z/n) ? [] : [400]
    end

    def bare(text) = text.gsub(/\A[ \t]+|[ \t]+\z/n, "")

    # The last of three is the value as it was sent.
    def fields_of(lines) = lines.map { |line| line.split(":", 2) }.map { |name, value| [name, bare(value), value] }

    def without_raw(fields) = fields.map { |name, value,| [name, value] }
    def values_of(fields, name) = fields.select { |other, _| other.casecmp?(name) }.map { |_, value| value }
    def words_of(fields, name) = values_of(fields, name).flat_map { |value| value.split(",") }.map { |word| bare(word).downcase }

    def judge_request(line, fields, length)
      method, target, version = line.split
      version = last_known(version)
      form = form_of(method, target)
      faults = [*faults_of_hosts(fields, form, version), *faults_of_framing(fields, version)]
      framing = framing_of(fields)
      faults << 400 if method == "CONNECT" && framing.first != "none"
      return Refused.new(faults) if faults.any?

      host = (form[:host] if form[:form] == "absolute") || values_of(fields, "host").first || form[:host].to_s
      facts = { method:, target:, path: form[:path], query: form[:query], form: form[:form], secure: form[:secure] || false,
                host:, port: host_of(host)&.last || -1, body: framing.first, body_len: framing.last,
                expects: expects?(fields, version, framing), **connection_of(fields, version) }
      Head.new(length, facts, without_raw(fields))
    end

    def judge_response(line, fields, length)
      version, status, reason = line.split(" ", 3)
      version = last_known(version)
      faults = faults_of_framing(fields, version)
      framing = framing_of(fields)
      bodiless = status.start_with?("1") || status == "204"
      faults << 502 if bodiless && (framing.first == "chunked" || framing.last.positive?)
      return Refused.new(faults) if faults.any?

      body = body_of_status(status, framing.first)
      facts = { status: status.to_i, reason: reason.to_s, body:, body_len: framing.last, **connection_of(fields, version) }
      facts[:keeps_alive] &&= !%w[close tunnel].include?(body)
      Head.new(length, facts, without_raw(fields))
    end

    def body_of_status(status, framing)
      return "tunnel" if status == "101"
      return "none" if status.start_with?("1") || %w[204 304].include?(status)

      framing == "none" ? "close" : framing
    end

    def expects?(fields, version, framing)
      version == "HTTP/1.1" && framing.first != "none" && words_of(fields, "expect").include?("100-continue")
    end

    def connection_of(fields, version)
      options = words_of(fields, "connection")
      keeps = !options.include?("close") && (version == "HTTP/1.1" || options.include?("keep-alive"))
      upgrades = version == "HTTP/1.1" && options.include?("upgrade")
      upgrade = upgrades ? values_of(fields, "upgrade").first.to_s : ""
      { version: version == "HTTP/1.1" ? 11 : 10, keeps_alive: keeps, upgrade: }
    end

    # RFC 9112, 3.2. Nil: it is none of the four.
    def form_of(method, target)
      if method == "CONNECT"
        { form: "authority", path: "", query: "", host: target } if host_of(target)&.last
      elsif target.start_with?("/") || (method == "OPTIONS" && target == "*")
        path, query = target.split("?", 2)
        { form: target == "*" ? "asterisk" : "origin", path:, query: query.to_s }
      else
        absolute(target)
      end
    end

    def absolute(target)
      parts = target.match(%r{\A(?<scheme>https?)://(?<host>[^/?]*)(?<path>[^?]*)(?:\?(?<query>.*))?\z}in)
      return unless parts && parts[:host].match?(HOST) && host_of(parts[:host])

      secure = parts[:scheme].casecmp?("https")
      { form: "absolute", path: parts[:path], query: parts[:query].to_s, host: parts[:host], secure: }
    end

    # @return [Array(String, Integer), nil] the name and the port, if it has one
    def host_of(text)
      parts = text.match(HOST) or return
      port = parts[:port].to_s.empty? ? nil : Integer(parts[:port], 10)
      [parts[:name].downcase, port] unless port.to_i > 65_535
    end

    def faults_of_hosts(fields, form, version)
      hosts = values_of(fields, "host")
      return version == "HTTP/1.1" ? [400] : [] if hosts.empty?

      host = host_of(hosts.first)
      return [400] if hosts.size > 1 || host.nil?
      return [] unless form[:form] == "authority"

      name, port = host_of(form[:host])
      [name, port] == [host.first, host.last || port] ? [] : [400]
    end

    # RFC 9112, 6.3, where a field stands for nothing that it does not say.
    def faults_of_framing(fields, version)
      lengths = values_of(fields, "content-length")
      codings = fields.select { |name, _| name.casecmp?("transfer-encoding") }.map(&:last)
      return faults_of_lengths(lengths) if codings.empty?
      return [400] if lengths.any? || codings.size > 1 || version == "HTTP/1.0"

      faults_of_coding(codings.first)
    end

    def faults_of_lengths(lengths)
      return [] if lengths.empty?
      return [400] if lengths.size > 1 || !lengths.first.match?(/\A[0-9]+\z/)

      Integer(lengths.first, 10) > LENGTH_MAX ? [400] : []
    end

    def faults_of_coding(value)
      return [] if value.match?(/\A ?chunked\z/i)

      list = value.split(",").map { |word| bare(word).downcase } - [""]
      others = list[0...-1]
      unknown = list.last == "chunked" && others.any? && others.all?(/\A#{TOKEN}+\z/n) && (others & %w[chunked identity]).empty?
      [unknown ? 501 : 400]
    end

    def framing_of(fields)
      length = values_of(fields, "content-length").first
      return ["chunked", 0] if values_of(fields, "transfer-encoding").any?

      length ? ["length", length.to_i] : ["none", 0]
    end
  end
end
