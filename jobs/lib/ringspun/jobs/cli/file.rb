# frozen_string_literal: true

require "yaml"
require_relative "sidekiq_file"
require_relative "values"

module Ringspun
  module Jobs
    class CLI
      # The configuration file: YAML, with ERB in it. Its keys are the settings of {Config}, and `require`. The section of the
      # environment wins over what stands outside of all sections.
      #
      # @api private
      class File
        PLACES = %w[config/ringspun-jobs.yml config/jobs.yml config/sidekiq.yml config/sidekiq.yml.erb].freeze
        ENVIRONMENTS = %w[development test staging production].freeze

        # @return [Hash{String => Object}]
        attr_reader :settings

        # @return [String, nil] the whole path of the file that there was, by which it is read again
        attr_reader :path

        # @return [String, nil] the program to load
        attr_reader :program

        # @param path [String, nil] nil: the first of {PLACES} that exists
        # @param environment [String]
        # @raise [ConfigError]
        def initialize(path, environment)
          @shown = path || PLACES.find { |place| ::File.exist?(place) }
          @path = ::File.expand_path(@shown) if @shown
          @settings = @path ? settings_in(read, environment) : {}
          @program = @settings.delete("require")
        end

        private

        def read
          text = Cron::Definitions.text_of(@path, @shown)
          content = Cron::Definitions.content_of(text, @shown)
          refuse("must have names and values at its top") unless content.is_a?(Hash)
          refuse_cron_twice(text)

          content = Cron::Definitions.plain(content)
          SidekiqFile.named?(@path) ? SidekiqFile.translated(content, @shown) : content
        rescue SystemCallError => error
          raise ConfigError, "the configuration file cannot be read: #{error.message}"
        end

        def refuse_cron_twice(text)
          document = YAML.parse(text) # false: it is empty
          root = document.root if document
          return unless root.is_a?(Psych::Nodes::Mapping)

          parts = [root, *root.children.grep(Psych::Nodes::Mapping)].flat_map { |part| part.children.each_slice(2).to_a }
          parts.each do |name, value|
            next unless name.is_a?(Psych::Nodes::Scalar) && name.value == "cron"

            Cron::Definitions.twice(value)&.then { |twice| refuse("has #{twice} twice under cron; give one of them another name") }
          end
        end

        def settings_in(content, environment)
          sections, general = content.partition { |name, value| section?(name, value, environment) }.map(&:to_h)
          sections.each { |name, section| section&.each_key { |key| check(key, "#{name}: ") } }
          general.each_key { |key| check(key, "") }
          values = general.merge(sections[environment] || {})
          values["queues"] = CLI.queues_of(values["queues"]) if values["queues"].is_a?(Array)
          values["cron"] = Cron::Definitions.read(values["cron"], environment) if values["cron"].is_a?(String)
          values["storage"] = Storage.located(values["storage"], folder) if values["storage"]
          values["strategy"] = values["strategy"].to_sym if values["strategy"].is_a?(String)
          values
        end

        # The program's: that of the file, or the one around it where that is a folder for configuration.
        def folder
          folder = ::File.dirname(@path)
          ::File.basename(folder) == "config" ? ::File.dirname(folder) : folder
        end

        # An empty section can be recognised only by its name.
        def section?(name, value, environment)
          !known?(name) && (value.is_a?(Hash) || (value.nil? && [environment, *ENVIRONMENTS].include?(name)))
        end

        def known?(name) = name == "require" || (Config.settings.key?(name.to_sym) && !%w[logger reloader].include?(name))

        def check(name, where)
          return if known?(name)

          names = Config.settings.keys - %i[logger reloader]
          refuse("has an unknown setting #{where}#{name}; there are require, #{names.join(", ")}")
        end

        def refuse(why) = raise(ConfigError, "#{@shown} #{why.tr("\n", " ")}")
      end
      private_constant :File

      class << self
        # For a program that is no worker, but enqueues with the same settings.
        #
        # @param folder [String] the program's
        # @param environment [String]
        # @return [Hash{String => Object}] the settings in its configuration file, if there is one
        # @raise [ConfigError]
        # @api private
        def settings_in(folder, environment)
          path = File::PLACES.map { |place| ::File.join(folder, place) }.find { |place| ::File.exist?(place) }
          path ? File.new(path, environment).settings.except("require") : {}
        end
      end
    end
  end
end
