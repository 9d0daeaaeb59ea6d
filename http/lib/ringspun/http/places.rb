# frozen_string_literal: true

require_relative "handed_in"

module Ringspun
  module HTTP
    # Where a server listens, as a program or a command line says it:
    #
    # - `["127.0.0.1", 9292]`, a host and a port; `"/run/app.sock"`, the path of a Unix socket
    # - `"tcp://127.0.0.1:9292"`, `"unix:///run/app.sock"`, `"ssl://0.0.0.0:443?cert=server.pem&key=server.key"`
    # - `"systemd://"`, all sockets that systemd has handed in, or `"systemd://web"`, those of that name
    # - an Array of Strings, or a Hash of names and these
    #
    # @api private
    class Places
      # One of them: what {Cluster.run} takes, and the options of TLS; nil: clear text.
      Place = Data.define(:at, :tls)

      # What `ssl://` takes behind its question mark, and what {TLS.server_context} calls it.
      WORDS = { "cert" => :cert, "key" => :key, "ca" => :ca, "min_version" => :min_version, "verify_mode" => :verify }.freeze
      # As Puma and OpenSSL call them.
      VERIFY = { "none" => nil, "peer" => false, "force_peer" => true }.freeze
      # An address, a name, or an address of IPv6 in brackets; and a port.
      HOST_AND_PORT = /\A(?:\[(?<six>[^\[\]]+)\]|(?<host>[^\[\]:]+)):(?<port>\d{1,5})\z/
      PORT_MAX = 65_535 # of 16 bits
      private_constant :WORDS, :VERIFY, :HOST_AND_PORT, :PORT_MAX

      class << self
        # @param what [Array, String, Socket, Hash]
        # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] for places that do not say themselves whether they have it
        # @param word [String] what messages call it
        # @return [Hash{Object => Place}] by their names; there is one at least
        # @raise [UsageError]
        def of(what, tls: nil, word: "listen")
          reader = new(tls, HandedIn.take, word)
          places = case what
                   when Hash then what.flat_map { |name, one| numbered(reader.all(one), name) }.to_h
                   else numbered(reader.all(what), nil).to_h
                   end
          raise UsageError, "#{word}: says no place" if places.empty?

          check_tls(tls, places)
        end

        # Looks at one alone, whatever TLS others say for it.
        #
        # @return [nil]
        # @raise [UsageError]
        def check(what)
          raise UsageError, "listen: says no place" if new({}, HandedIn.take, "listen").all(what).empty?
        end

        private

        def check_tls(tls, places)
          return places if tls.nil? || places.each_value.any?(&:tls)

          raise UsageError, "tls: is for ssl://HOST:PORT, [host, port] and paths, and listen: names none; tcp:// is clear text"
        end

        # Several of one name get numbers.
        def numbered(places, name)
          places.each_with_index.map { |place, at| [at.zero? ? name : [name, at], place] }
        end
      end

      def initialize(tls, handed_in, word)
        @tls = tls
        @handed_in = handed_in
        @word = word
      end

      # @return [Array<Place>]
      def all(what)
        case what
        in Place then [what]
        in [String, Integer | /\A\d+\z/ => port]
          wrong("has ports up to #{PORT_MAX}, got #{port}") unless (0..PORT_MAX).cover?(port.to_i)
          [Place.new(what, @tls)]
        in ::BasicSocket then [Place.new(what, @tls)]
        in Array then what.flat_map { |one| all(one) }
        in %r{\A[a-z]+://} then url(what)
        in String then [Place.new(path(what), @tls)]
        else wrong("takes [host, port], a path, #{forms}, or several of these, got #{what.inspect}")
        end
      end

      private

      def wrong(text) = raise(UsageError, "#{@word}: #{text}")

      # One that no socket can have is refused here, where it is known who has said it.
      def path(text)
        wrong("expected the path of a socket, got #{text.inspect}") if text.empty? || text.index("\0", 1)
        Net.unix_address(text, @word)
        text
      end

      def forms = "tcp://HOST:PORT, ssl://HOST:PORT?cert=FILE&key=FILE, unix://PATH, systemd://[NAME]"

      def url(text)
        scheme, rest = text.split("://", 2)
        rest, query = rest.split("?", 2)
        case scheme
        when "tcp" then tcp(text, rest, query)
        when "ssl" then [Place.new(host_and_port(text, rest), tls_of(text, query))]
        when "unix" then unix(text, rest, query)
        when "systemd" then handed_in(text, rest, query)
        else wrong("takes #{forms}, got #{text.inspect}")
        end
      end

      def tcp(text, rest, query)
        none(text, query)
        [Place.new(host_and_port(text, rest), nil)]
      end

      def unix(text, rest, query)
        none(text, query)
        wrong("#{text.inspect} has no path; it is unix:///run/app.sock") if rest.to_s.empty?
        [Place.new(@handed_in.at_path(rest) || path(rest), nil)]
      end

      def handed_in(text, rest, query)
        none(text, query)
        sockets = @handed_in.named(rest.to_s)
        return sockets.map { |socket| Place.new(socket, nil) } if sockets.any?

        wrong("systemd has handed in no socket#{" named #{rest}" unless rest.to_s.empty?}; #{@handed_in.told}")
      end

      def host_and_port(text, rest)
        parts = HOST_AND_PORT.match(rest.to_s)
        port = parts && parts[:port].to_i
        unless parts && port <= PORT_MAX
          wrong("#{text.inspect} has no host and port; it is tcp://127.0.0.1:9292 or tcp://[::1]:9292")
        end

        host = parts[:six] || parts[:host]
        @handed_in.at(host, port) || [host, port]
      end

      def none(text, query)
        wrong("#{text.inspect} takes nothing behind a question mark") if query
      end

      def tls_of(text, query)
        options = words(text, query)
        return @tls || wrong("#{text.inspect} needs ?cert=FILE&key=FILE, or tls:") if options.empty?

        options[:min_version] = options[:min_version].to_sym if options[:min_version]
        options[:verify] = verify(text, options[:verify]) if options.key?(:verify)
        options
      end

      def words(text, query)
        query.to_s.split("&").to_h do |pair|
          name, value = pair.split("=", 2)
          [WORDS.fetch(name), value.to_s]
        rescue KeyError
          wrong("#{text.inspect} says #{name.inspect}; there are #{WORDS.keys.join(", ")}")
        end
      end

      def verify(text, word)
        VERIFY.fetch(word) { wrong("#{text.inspect}: verify_mode is one of #{VERIFY.keys.join(", ")}") }
      end
    end
    private_constant :Places
  end
end
