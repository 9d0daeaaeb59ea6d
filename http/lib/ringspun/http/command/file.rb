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
        # What errors call words that say the same.
        SAME = { bind: :listen, port: :listen, rackup: :app }.freeze
        private_constant :AT_TOP, :SAME

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
          Places.check(place)
          @said.places.concat(tls.empty? ? [place] : Places.of(place, tls:).values)
        end
        alias say_bind say_listen

        def say_port(port, host = "0.0.0.0")
          wrong("port takes a number, and a host that is a String, got #{host.inspect}") unless host.is_a?(String)
          @said.places << [host, Spoken.port(port.to_s, "port")]
        end

        # The path of a config.ru, or a program for Rack.
        def say_app(app = nil, &block)
          wrong("app takes a path, a program, or a block that gives one, got two of these") if app && block
          app = block.call if block
          fits = path?(app) || app.respond_to?(:call)
          wrong("app needs a path, a program, or a block that gives one, got #{app.inspect}") unless fits
          @said.others[:app] = app
        end
        alias say_rackup say_app

        def say_access_log(*format, to: $stdout, &block)
          format << block if block
          wrong("access_log takes one value, got #{format.size}") if format.size > 1
          format = format.empty? ? :combined : format.first
          @said.options[:access_log] = format ? AccessLog.new(format, to:) : nil
        end

        def say_environment(name)
          fits = name.nil? || (name.respond_to?(:to_sym) && !name.to_s.match?(/\A\z|\0/))
          wrong("environment takes a name, such as \"production\", got #{name.inspect}") unless fits
          @said.others[:environment] = name
        end

        def say_directory(path)
          path = path.to_path if path.respond_to?(:to_path)
          wrong("directory takes a path, got #{path.inspect}") unless path.nil? || path?(path)
          @said.others[:directory] = path
        end

        def say_preload(value = true)
          wrong("preload: is true or false, got #{value.inspect}") unless [true, false, nil].include?(value)
          @said.others[:preload] = value
        end

        def path?(value) = value.is_a?(String) && !value.include?("\0")

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
          note(SAME.fetch(name, name))
          return say(name, method(:"say_#{name}"), values, named, block) if respond_to?(:"say_#{name}", true)

          value = value_of(Words::ALL[name], values, named, block)
          Limits.of(value) if name == :limits # here its own line is known, and there may be several
          @said = @said.with(options: Spoken.merged(@said.options, { name => value }))
        end

        # What Ruby says of a call that does not fit has not the name of the word.
        def say(name, method, values, named, block)
          takes = method.parameters.group_by(&:first).transform_values { |all| all.map(&:last) }
          least = takes.fetch(:req, []).size
          most = least + takes.fetch(:opt, []).size unless takes[:rest]
          unknown = takes[:keyrest] ? [] : named.keys - takes.fetch(:key, [])
          wrong("#{name} takes no block") if block && !takes[:block]
          wrong("#{name} takes no #{unknown.first.inspect}") if unknown.any?
          count = least == most ? "one value" : "#{least} to #{most} values"
          wrong("#{name} takes #{count}, got #{values.size}") unless (least..most).cover?(values.size)
          method.call(*values, **named, &block)
        end

        def value_of(word, values, named, block)
          given = values + [named].reject(&:empty?) + [block].compact
          return true if given.empty? && word.switch?
          return values if word.name == :proxy_protocol && values.any? && given == values

          wrong("#{word.name} takes one value, got #{given.size}") unless given.size == 1
          word.stream? ? stream(given.first, word.name) : given.first
        end

        # The file of a path is opened as for a flag.
        def stream(value, name)
          value.nil? || value.is_a?(String) ? Texts.stream(value || "none", name) : value
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
