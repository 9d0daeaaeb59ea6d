# frozen_string_literal: true

require "erb"
require "yaml"

module Ringspun
  module Jobs
    module Cron
      # Entries as files have them: ours, `config/recurring.yml` of Solid Queue and the YAML of sidekiq-cron. What these say and
      # we do not know is refused, with what to write.
      #
      # - https://github.com/rails/solid_queue#recurring-tasks
      # - https://github.com/sidekiq-cron/sidekiq-cron#adding-schedule-jobs-via-yaml-file
      #
      # @api private
      module Definitions
        OWN = %w[schedule class args zone catch_up description].freeze
        OPTIONS = Entry::OPTIONS.keys.map(&:name).freeze
        # Names of the same in those files.
        SAME = { "cron" => "schedule", "klass" => "class" }.freeze
        # What changes nothing here.
        WITHOUT_EFFECT = { "active_job" => [true, false], "status" => ["enabled"], "date_as_argument" => [false],
                           "symbolize_args" => [false] }.freeze
        INSTEAD = {
          "command" => "a line of Ruby is no job: write a class with that line in perform, and class: with its name",
          "status" => "remove the entry, or write \"ringspun-jobs cron pause NAME\" in a shell",
          "date_as_argument" => "leave it out, and let perform ask Time.now",
          "symbolize_args" => "leave it out: arguments are as JSON has them",
          "timezone" => "write zone: in its place",
          "tz" => "write zone: in its place"
        }.freeze
        # Levels of a value, as many as JSON reads. One that contains itself has more.
        DEPTH_MAX = 100
        private_constant :DEPTH_MAX, :OWN, :OPTIONS, :SAME, :WITHOUT_EFFECT, :INSTEAD

        module_function

        # @param value [Hash, Array<Hash>, String] entries by their names, or each with its name; or the name of a file
        # @return [Hash{String => Entry}, nil] nil: it is something else
        # @raise [ConfigError]
        def entries(value)
          return value if value.is_a?(Hash) && value.any? && value.each_value.all?(Entry)
          return entries(read(value, Home.section)) if value.is_a?(String)

          pairs = case value
                  when Hash then value.to_a
                  when Array then value.map { |each| named(each) }
                  end
          pairs&.each_with_object({}) do |(name, fields), all|
            entry = entry(name.is_a?(Symbol) ? name.name : name, fields)
            twice = all.key?(entry.name)
            raise ConfigError, "the cron entry #{entry.name} is there twice; give one of them another name" if twice

            all[entry.name] = entry
          end&.freeze
        end

        # @param path [String] of a YAML file, with ERB in it
        # @param environment [String] whose section counts, if it has sections
        # @return [Hash, Array<Hash>] for {entries}
        # @raise [ConfigError]
        def read(path, environment)
          text = text_of(path)
          content = content_of(text, path)
          twice = twice(YAML.parse(text)) and raise ConfigError, "#{path} has #{twice} twice; give one of them another name"
          section(content, environment)
        rescue SystemCallError, ArgumentError => error # the second if the path has a byte of zero
          raise ConfigError, "the file of cron entries cannot be read: #{error.message}"
        end

        # @param text [String] of YAML
        # @param shown [String] what errors call the file
        # @return [Object] what it says; an empty one says {}
        # @raise [ConfigError]
        def content_of(text, shown)
          YAML.safe_load(text, permitted_classes: [Symbol], aliases: true, filename: shown) || {}
        rescue StandardError, SystemStackError => error
          raise ConfigError, "#{shown} #{wrong_in_yaml(error)}"
        end

        # @param error [Exception] of Psych; or of Ruby, where a value is not what its tag says, as in !float abc
        # @return [String]
        def wrong_in_yaml(error)
          named = error.message[/unspecified class: (\S+)/, 1] if error.is_a?(Psych::DisallowedClass)
          return "has a value of the class #{named}; put it in quotes, for a text" if named

          "is no YAML: #{error.message.tr("\n", " ")}"
        end

        # UTF-8, whatever the locale is: under cron there is none.
        #
        # @param path [String] of a file with ERB in it
        # @param shown [String] what errors call it
        # @return [String] what that makes
        # @raise [SystemCallError] it cannot be read
        # @raise [ConfigError]
        def text_of(path, shown = path)
          text = ::File.read(path, encoding: Encoding::UTF_8)
          raise ConfigError, "#{shown} is no UTF-8: save it as such" unless text.valid_encoding?

          begin
            ERB.new(text.delete_prefix("\u{feff}"), trim_mode: "-").result
          rescue StandardError, ScriptError, SystemStackError, SystemExit => error
            raise ConfigError, "#{shown} has ERB that raises #{error.class}: #{error.message.tr("\n", " ")}"
          end
        end

        # @param node [Psych::Nodes::Node, false] of YAML, which takes the last of two that have the same name
        # @return [String, nil] a name that is there twice
        def twice(node)
          return unless node.respond_to?(:children) && node.children

          if node.is_a?(Psych::Nodes::Mapping)
            names = node.children.each_slice(2).filter_map { |name, _| name.value if name.is_a?(Psych::Nodes::Scalar) }
            found = (names - ["<<"]).tally.find { |_, count| count > 1 }
            return found.first if found
          end
          node.children.each { |child| (found = twice(child)) && (return found) }
          nil
        end

        # Sections are a level more than entries, whose class is no Hash.
        def section(content, environment)
          return content unless content.is_a?(Hash) && content.any? && content.each_value.all? { |one| sections?(one) }

          content.to_h { |name, entries| [name.to_s, entries] }.fetch(environment, nil) || {}
        end

        def sections?(value) = value.nil? || (value.is_a?(Hash) && value.each_value.all?(Hash))

        def named(fields)
          name = fields["name"] || fields[:name] if fields.is_a?(Hash)
          raise ConfigError, "a cron entry in a list needs a name:, got #{fields.inspect[0, 100]}" unless name

          [name, fields.reject { |key, _| key.to_s == "name" }]
        end

        def entry(name, fields)
          unless fields.is_a?(Hash)
            raise ConfigError, "the cron entry #{name}: must have schedule: and class:, got #{fields.inspect[0, 100]}"
          end

          fields = translated(name, fields)
          missing = %w[schedule class].find { |key| fields[key].nil? }
          raise ConfigError, "the cron entry #{name}: has no #{missing}:" if missing

          Entry.new(name, fields["schedule"], fields["class"], arguments(fields["args"]),
                    **fields.except("schedule", "class", "args").transform_keys(&:to_sym))
        end

        def translated(name, fields)
          fields.each_with_object({}) do |(key, value), known|
            key = SAME.fetch(key.to_s, key.to_s)
            next if WITHOUT_EFFECT[key]&.include?(value)
            raise ConfigError, "the cron entry #{name}: #{refusal(key)}" unless OWN.include?(key) || OPTIONS.include?(key)
            raise ConfigError, "the cron entry #{name}: has #{key}: twice" if known.key?(key)

            known[key] = value
          end
        end

        def refusal(key)
          hint = INSTEAD.fetch(key) { "there are #{[*OWN, *OPTIONS].join(", ")}" }
          "has #{key}:, which there is not; #{hint}"
        end

        # One value alone is the only argument.
        def arguments(value)
          return [] if value.nil?

          plain(value.is_a?(Array) ? value : [value])
        end

        # Keys may be Symbols, as in Sidekiq's file: https://github.com/sidekiq/sidekiq/wiki/Advanced-Options
        #
        # @param value [Object] of YAML
        # @return [Object] with Strings in place of Symbols
        # @raise [ConfigError]
        def plain(value, depth = 0)
          raise ConfigError, "a value of the YAML contains itself, or is nested too deeply" if depth > DEPTH_MAX

          case value
          when Hash then value.to_h { |name, each| [name.to_s, plain(each, depth + 1)] }
          when Array then value.map { |each| plain(each, depth + 1) }
          when Symbol then value.name
          else value
          end
        end
        private_class_method :wrong_in_yaml, :section, :sections?, :named, :entry, :translated, :refusal, :arguments
      end
    end
  end
end
