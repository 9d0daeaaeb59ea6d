# frozen_string_literal: true

module Ringspun
  module HTTP
    class Command
      # The configuration file: Ruby, whose words are those of {Words}.
      #
      #   listen "tcp://0.0.0.0:9292"
      #   workers 4
      #   access_log :combined, to: "log/access.log"
      #   limits head: 5, body_max: 10 * 1024 * 1024
      #   after_fork { |worker| puts "worker #{worker.index}" }
      #
      # @api private
      class File
        # The places where it is looked for, the first one for an environment alone.
        PLACES = ["config/ringspun_http/ENVIRONMENT.rb", "config/ringspun_http.rb"].freeze

        # Evaluates a text where constants are those of a program, and `File` is Ruby's.
        AT_TOP = TOPLEVEL_BINDING.eval("proc { |*given| given.shift.instance_eval(*given) }")
        # They say the same, for errors.
        LISTENS = %i[listen bind port].freeze
        private_constant :AT_TOP, :LISTENS

        # What a file has said: options for {HTTP.run}; the words :app, :environment, :directory and :preload; places, see
        # {Places}; and where each word stands.
        Said = Data.define(:options, :others, :places, :lines) do
          # @param message [String] of an error, which begins with the word that it is about
          # @param except [Array<Symbol>] words that others have said, and more loudly
          # @return [String] with the line where the file says that word
          def located(message, except: [])
            line = lines.except(*except)[message[/\A\w+/]&.to_sym]
            line ? "#{line}: #{message}" : message
          end
        end

        # What the file is evaluated in. It has no methods, so that what is no word is found to be none.
        class DSL
          def initialize(heard)
            @heard = heard
          end

          private

          def method_missing(name, *values, **named, &block) = @heard.call(name, values, named, block)

          def respond_to_missing?(_name, _all = false) = true
        end
        private_constant :DSL

        # @param path [String, nil] nil: the first of {PLACES} that exists; "-": none
        # @param environment [String]
        # @return [Said]
        # @raise [UsageError]
        def self.read(path, environment)
          path ||= PLACES.map { |place| place.sub("ENVIRONMENT", environment) }.find { |place| ::File.exist?(place) }
          new(path == "-" ? nil : path).said
        end

        def initialize(path)
          @shown = path
          @path = path && ::File.expand_path(path)
          @said = Said.new({}, {}, [], {})
        end

        # @return [Said]
        # @raise [UsageError]
        def said
          evaluate if @path
          @said
        end

        private

        # One place, see {Places}, or a host and a port; and what {TLS.server_context} takes.
        def say_listen(*place, **tls)
          note(:tls) if tls.any?
          place = place.first if place.size == 1
          @said.places.concat(tls.empty? ? [place] : Places.of(place, tls:).values)
        end
        alias say_bind say_listen

        def say_port(port, host = "0.0.0.0")
          @said.places << [host, Spoken.port(port.to_s, "port")]
        end

        # The path of a config.ru, or a program for Rack.
        def say_app(path = nil, &block)
          @said.others[:app] = path || block&.call || wrong("app needs a path, a program, or a block that gives one")
        end
        alias say_rackup say_app

        def say_access_log(format = :combined, to: $stdout)
          @said.options[:access_log] = format && AccessLog.new(format, to:)
        end

        %i[environment directory preload].each do |word|
          define_method(:"say_#{word}") { |value = true| @said.others[word] = value }
        end

        def evaluate
          AT_TOP.call(DSL.new(method(:hear)), text, @path)
        rescue UsageError => error
          raise if error.message.start_with?(@shown)

          wrong(error.message, error.backtrace_locations)
        rescue SyntaxError => error
          raise UsageError, "the configuration #{@shown} is no Ruby:\n#{error.message}"
        rescue StandardError, LoadError => error
          wrong("#{error.message} (#{error.class})", error.backtrace_locations)
        end

        def text
          ::File.read(@path)
        rescue SystemCallError => error
          raise UsageError, "#{@shown}, the configuration, cannot be read: #{error.message}"
        end

        # A word of files, or an option of {HTTP.run}.
        def hear(name, values, named, block)
          unknown(name) unless Words.of_files.include?(name)
          note(LISTENS.include?(name) ? :listen : name)
          return __send__(:"say_#{name}", *values, **named, &block) if respond_to?(:"say_#{name}", true)

          @said.options[name] = value_of(name, values, named, block)
        end

        def value_of(name, values, named, block)
          return named if values.empty? && named.any?
          return block if values.empty? && block
          return values if name == :proxy_protocol

          values.size == 1 && named.empty? ? values.first : wrong("#{name} takes one value, got #{values.size}")
        end

        def unknown(name)
          wrong("there is no word #{name}#{Words.instead_of(name, Words.of_files)}")
        end

        def note(word) = @said.lines[word] = line_of(caller_locations)

        def line_of(places)
          place = places&.find { |one| one.path == @path }
          place ? "#{@shown}:#{place.lineno}" : @shown
        end

        def wrong(message, places = caller_locations) = raise(UsageError, "#{line_of(places)}: #{message}")
      end
      private_constant :File
    end
  end
end
