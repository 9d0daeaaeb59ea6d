# frozen_string_literal: true

require "optparse"

module Ringspun
  module HTTP
    class Command
      # The command line.
      #
      # @api private
      class Arguments
        HEAD = <<~TEXT
          Usage: ringspun-http [options] [config.ru]

          Serves a program for Rack: a strand for each connection, in this process or in several.

        TEXT

        FOOT = <<~TEXT

          Examples:
            ringspun-http
            ringspun-http -p 3000 -w auto -e production
            ringspun-http -b unix:///run/app.sock -b 'ssl://0.0.0.0:443?cert=server.pem&key=server.key' --access-log combined
            ringspun-http -b systemd:// --proxy-protocol 10.0.0.0/8,unix --metrics tcp://127.0.0.1:9394

          Options win over the configuration file, and that over PORT, WEB_CONCURRENCY and RACK_ENV.

          Signals:
            TERM, INT   no more connections are taken, requests that were begun are answered, and it ends; again: what is left is cut
            HUP         workers are replaced one after the other, with the program loaded anew; without workers, and when the
                        terminal is closed, it ends, as by TERM
            USR1        the file of the access log is opened anew, as it is within a second when it was moved away
            TTIN        prints what every strand serves, and waits for; to a worker

          Exit status: 0 when it was told to end and has; 1 when it had to cut a request for that, or a place cannot be had; 64 when
          an option or the configuration is wrong.
        TEXT

        # The groups of {Words::TABLE} that flags say, by their headings.
        HEADINGS = { "where" => "Where:", "how" => "How:", "what is seen" => "What is seen:",
                     "starts and ends" => "Starts and ends:", "others" => "Others:" }.freeze
        private_constant :HEAD, :FOOT, :HEADINGS

        # @return [String, nil]
        attr_reader :app

        # @return [String, nil] what to print instead of serving
        attr_reader :answer

        # @return [Array<String>] what is to be said, and ends nothing
        attr_reader :notes

        # @param words [Array<String>]
        # @raise [UsageError]
        def initialize(words)
          @spoken = Spoken.new
          @notes = []
          @app, *more = parser.parse(words)
          raise UsageError, "one config.ru is served, got #{[@app, *more].join(", ")}" if more.any?
        rescue OptionParser::ParseError => error
          raise UsageError, Suggestion.in_parse_error(error)
        end

        # @return [Array<Object>] see {Places}
        def places = @spoken.places

        # @return [Hash{Symbol => Object}] for {HTTP.run}
        # @raise [UsageError]
        def options = @spoken.options

        # @return [Array<Symbol>] the words that were said
        def said = @spoken.words

        # @return [String, true, nil]
        def environment = @spoken.others[:environment]
        def file = @spoken.others[:configuration]
        def directory = @spoken.others[:directory]
        def preload = @spoken.others[:preload]

        private

        def parser
          OptionParser.new(HEAD, 32, "  ") do |options|
            HEADINGS.each do |group, heading|
              options.separator heading
              Words::TABLE.fetch(group).each_value { |word| flag(options, word) if word.flag? }
              others(options) if group == "others"
              options.separator "" unless group == "others"
            end
            options.separator FOOT
          end
        end

        def flag(options, word)
          options.on(*word.flags, *word.help) { |text| @spoken.take(word, text) }
        end

        def others(options)
          options.on("-t", "--threads MIN:MAX", "is ignored: there are no threads") do
            @notes << "-t is ignored: each connection has a strand of its own, and there are no threads"
          end
          options.on("-V", "--version", "prints it") { @answer = "ringspun-http #{VERSION}" }
          options.on("-h", "--help", "prints this") { @answer = options.to_s }
        end
      end
      private_constant :Arguments
    end
  end
end
