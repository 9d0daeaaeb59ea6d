# frozen_string_literal: true

require_relative "options/checks"
require_relative "options/encryption"
require_relative "options/files"
require_relative "options/host"
require_relative "options/of_pool"
require_relative "options/keywords"
require_relative "options/uri"

module Ringspun
  module Postgres
    # Where to connect, as whom, and how. Of what is said twice counts the first: a keyword, the URI, the service file, PG* in the
    # environment, a default. What has a name of libpq's means what it means there:
    # https://www.postgresql.org/docs/17/libpq-connect.html#LIBPQ-PARAMKEYWORDS
    #
    # It differs in two: `connect_timeout` is 30 seconds unless told, and `allow_cleartext` has to be set for a password in clear
    # text over TCP.
    #
    # @api private
    class Options
      # libpq has no limit: https://www.postgresql.org/docs/17/libpq-connect.html#LIBPQ-CONNECT-CONNECT-TIMEOUT
      # This is more than a look-up of a name and a handshake with a server that has just started take.
      CONNECT_SECONDS = 30.0
      VERSIONS = { nil => 0x30000, "3.0" => 0x30000, "3.2" => 0x30002, "latest" => 0x30002 }.freeze

      # https://www.postgresql.org/docs/17/datatype-datetime.html#DATATYPE-DATETIME-OUTPUT2-TABLE
      DATE_ORDER = /\b(?:ymd|dmy|mdy|us|(?:non)?euro\w*)\b/i
      private_constant :CONNECT_SECONDS, :VERSIONS, :DATE_ORDER

      # @param source [String, nil] a URI
      # @return [Hash{Symbol => Object}] what it says for the pool
      # @raise [UsageError]
      def self.of_pool(source) = OfPool.take(Uri.read(source))

      # @return [Array<Host>] as they were given
      attr_reader :hosts

      # @return [String]
      attr_reader :user

      # @return [Encryption]
      attr_reader :encryption

      # @return [Hash{Symbol => Object}] what the URI says for the pool
      attr_reader :of_pool

      # Reads files, and sends nothing.
      #
      # @param source [String, nil] a URI: postgres://user@host:port/database?option=value
      # @param env [#[]] the environment
      # @param keywords by their names of libpq
      # @raise [UsageError] names the option that is wrong, and what it takes
      def initialize(source = nil, env: ENV, **keywords)
        @env = env
        @inexact = [].freeze
        @files = Files.new(env)
        of_uri = Uri.read(source)
        @of_pool = OfPool.take(of_uri)
        given = of_uri.merge(Keywords.read(keywords))
        Keywords.check_names(given)
        @values = values_of(given)
        Checks.new(self).call
        @user = self["user"] || system_user
        @hosts = Host.list(self)
        @encryption = Encryption.new(self, @files)
      end

      # @param name [String] one of {Keywords::ALL}
      # @return [String, nil] never an empty one
      def [](name) = @values[name]

      def database = self["dbname"] || user

      # @param host [Host]
      # @return [String, nil] for that host; the file of passwords is read each time
      def password(host) = self["password"] || @files.password(self, host)

      # @return [Float, nil] seconds that each host has; nil: as long as it takes
      def connect_timeout
        seconds = self["connect_timeout"] ? Float(self["connect_timeout"]) : CONNECT_SECONDS
        seconds if seconds.positive?
      end

      def allow_cleartext? = flag?("allow_cleartext", false)

      # @param way [String] to authenticate, as require_auth names it
      def allow_auth?(way)
        names = self["require_auth"]&.split(",") or return true
        names.first.start_with?("!") ? !names.include?("!#{way}") : names.include?(way)
      end

      def flag?(name, default) = self[name] ? %w[1 true].include?(self[name]) : default

      # @return [Integer] the version of the protocol that is asked for
      def max_version = version("max_protocol_version")

      # @return [Integer] that which will do
      def min_version = version("min_protocol_version")

      # What libpq has each session begin with. How values are written must stay as the decoders know it: of PGDATESTYLE that is
      # all but the order in which the server reads a date.
      #
      # @return [Hash{String => String}] settings of the server
      def session_settings
        order = @env["PGDATESTYLE"]&.slice(DATE_ORDER)
        { "DateStyle" => order && "ISO, #{order}", "TimeZone" => @env["PGTZ"], "geqo" => @env["PGGEQO"] }
          .reject { |_, text| text.nil? || text.empty? || text == "default" }
      end

      # @param host [Host]
      # @return [Boolean] whether sessions ask for settings that some poolers refuse
      def exact_settings?(host) = !@inexact.include?(host.to_s)

      # The host has refused them, and is not asked for them again.
      def leave_exact_settings(host) = @inexact |= [host.to_s]

      # Never shows a password.
      #
      # @return [String]
      def inspect = "#<#{self.class} #{hosts.join(",")} user=#{user} dbname=#{database} sslmode=#{encryption.mode}>"
      alias to_s inspect

      # Of this alone `pp` and what prints variables knows.
      def pretty_print(printer) = printer.text(inspect)

      private

      def values_of(given)
        variables = Keywords::ALL.filter_map { |name, variable| [name, @env[variable]] if variable && @env[variable] }.to_h
        variables["sslmode"] ||= "require" if @env["PGREQUIRESSL"]&.start_with?("1") # of old, as libpq has it
        service = given["service"] || variables["service"]
        of_service = service.to_s.empty? ? {} : @files.service(service, given["servicefile"] || variables["servicefile"])
        Keywords.check_names(of_service, "the service #{service}: ")
        [variables, of_service, given].map { |values| values.reject { |_, text| text.empty? } }.reduce(:merge).freeze
      end

      def version(name) = VERSIONS.fetch(self[name])

      def system_user
        Etc.getpwuid(Process.euid)&.name || raise(UsageError, "user: say which; the system knows no name for this process")
      rescue ArgumentError
        raise UsageError, "user: say which; the system knows no name for this process"
      end
    end
    private_constant :Options
  end
end
