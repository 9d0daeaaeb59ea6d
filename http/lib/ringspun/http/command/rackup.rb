# frozen_string_literal: true

module Ringspun
  module HTTP
    class Command
      # What rackup and Rails hand to their handler: words of `-O`, the host and the port, and the configuration file, whose words
      # come after those.
      #
      # @api private
      class Rackup
        # What is rackup's own, and what Rails adds.
        OWN = %i[Host Port AccessLog app builder config daemonize debug environment heapfile include pid profile_file profile_mode
                 quiet require server warn DoNotReverseLookup SSLEnable caching log_stdout restart_cmd
                 user_supplied_options].freeze
        # Where rackup listens when nobody says it: Rackup::Server#default_options.
        USUAL_HOSTS = %w[localhost 0.0.0.0].freeze
        USUAL_PORT = 9292 # of rackup as well
        LATE = "rackup and Rails have loaded the program, by options of their own"
        # Seconds of a drain, unless told: somebody sits at the terminal.
        DRAIN_SECONDS = 10
        private_constant :OWN, :USUAL_HOSTS, :USUAL_PORT, :LATE, :DRAIN_SECONDS

        # @return [Hash{String => String}] for `rackup --help`
        def self.help
          Words.of_rackup.to_h { |word| [[word.name, *word.takes].join("="), word.help.join(" ")] }
        end

        # @param given [Hash{Symbol => Object}] see Rackup::Handler; texts are read, other values are taken as they are
        # @param environment [ENV, Hash{String => String}]
        # @param reads [Boolean] whether a configuration file is looked for, and WEB_CONCURRENCY read
        # @raise [UsageError]
        def initialize(given, environment, reads: true)
          @given = given
          @environment = environment
          @reads = reads
          @spoken = Spoken.new
          @given.each { |name, value| take(name, value) if value && !OWN.include?(name) }
          @file = File.read(@spoken.others[:configuration] || (reads ? nil : "-"), name_of_environment)
          refuse_what_is_late
        end

        # @return [Boolean] whether a host and a port are all that was said
        def plain?
          @spoken.words.empty? && @file.lines.empty? && workers == 0 && !HandedIn.take.any?
        end

        # @return [String]
        def host = @given[:Host] || USUAL_HOSTS.first

        # @return [Integer, String]
        def port = Spoken.port((@given[:Port] || USUAL_PORT).to_s, "Port")

        # @return [Array<Object>] see {Places}
        def places
          [@spoken.places, host_and_port_are_meant? ? here : [], @file.places, HandedIn.take.any? ? ["systemd://"] : []]
            .find(&:any?) || here
        end

        # @return [Hash{Symbol => Object}] for {HTTP.run}
        def options
          @options ||= begin
            said = Spoken.merged({ workers:, drain: DRAIN_SECONDS }, @file.options, @spoken.options)
            said[:workers] == 0 ? { logger: nil, **said } : said
          end
        end

        # @return [String] with the line of the configuration that it is about
        def located(message) = @file.located(message, except: @spoken.words)

        private

        def workers = @reads ? Settings.workers(@environment["WEB_CONCURRENCY"]) : 0

        def take(name, value)
          word = Words::ALL[name] || Words::ALL[name.to_s.tr("-", "_").to_sym]
          text = value == true || value.is_a?(String)
          raise UsageError, "there is no option #{name}#{Words.instead_of(name, Words.of_rackup.map(&:name))}" unless word
          raise UsageError, "#{name}: comes too late: #{LATE}" if word.whose == :command

          if text && !word.rackup?
            raise UsageError, "bind: is listen here, as listen=tcp://127.0.0.1:9292" if word.name == :bind

            raise UsageError, "#{name}: only Ruby can say it; its place is the configuration, #{File::PLACES.last}"
          end
          raise UsageError, "#{name}: needs a value: #{name}=#{word.takes}" if value == true && word.takes

          @spoken.take(word, value)
        end

        def name_of_environment
          (@given[:environment] || @environment["RACK_ENV"] || @environment["RAILS_ENV"] || "development").to_s
        end

        # A file may serve ringspun-http as well, and say what is so in any case.
        def refuse_what_is_late
          said = @file.others.slice(:app, :directory, :environment)
          said.delete(:directory) if said[:directory] && ::File.expand_path(said[:directory]) == Dir.pwd
          said.delete(:environment) if said[:environment].to_s == name_of_environment
          word, = said.first
          raise UsageError, located("#{word}: comes too late: #{LATE}") if word
        end

        # Rails tells what its user has said. rackup does not, so that its defaults count for nothing.
        def host_and_port_are_meant?
          said = @given[:user_supplied_options]
          return said.intersect?(%i[Host Port]) if said

          !USUAL_HOSTS.include?(host) || port != USUAL_PORT
        end

        # Where `localhost` has two addresses, both: some clients take it for the one, and some for the other. A port that is free
        # is another one for each.
        def here
          return [[host, port]] unless host == "localhost"

          [["127.0.0.1", port], *([["::1", port]] if !port.zero? && six?)]
        end

        def six?
          TCPServer.new("::1", 0).close
          true
        rescue SystemCallError
          false
        end
      end
      private_constant :Rackup
    end
  end
end
