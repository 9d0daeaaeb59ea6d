# frozen_string_literal: true

require "erb"
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

        # @return [String, nil] the program to load
        attr_reader :program

        # @param path [String, nil] nil: the first of {PLACES} that exists
        # @param environment [String]
        # @raise [ConfigError]
        def initialize(path, environment)
          @path = path || PLACES.find { |place| ::File.exist?(place) }
          @settings = @path ? settings_in(read, environment) : {}
          @program = @settings.delete("require")
        end

        private

        def read
          text = ERB.new(::File.read(@path), trim_mode: "-").result
          content = YAML.safe_load(text, permitted_classes: [Symbol], aliases: true, filename: @path) || {}
          refuse("must have names and values at its top") unless content.is_a?(Hash)

          SidekiqFile.named?(@path) ? SidekiqFile.translated(plain(content), @path) : plain(content)
        rescue SystemCallError => error
          raise ConfigError, "the configuration file cannot be read: #{error.message}"
        rescue Psych::Exception => error
          refuse("is no YAML: #{error.message}")
        rescue StandardError, ScriptError => error
          raise if error.is_a?(ConfigError)

          refuse("has ERB that raises #{error.class}: #{error.message}")
        end

        # Keys may be Symbols, as in Sidekiq's file: https://github.com/sidekiq/sidekiq/wiki/Advanced-Options
        def plain(value)
          case value
          when Hash then value.to_h { |name, each| [name.to_s, plain(each)] }
          when Array then value.map { |each| plain(each) }
          when Symbol then value.to_s
          else value
          end
        end

        def settings_in(content, environment)
          sections, general = content.partition { |name, value| section?(name, value, environment) }.map(&:to_h)
          sections.each { |name, section| section&.each_key { |key| check(key, "#{name}: ") } }
          general.each_key { |key| check(key, "") }
          values = general.merge(sections[environment] || {})
          values["queues"] = CLI.queues_of(values["queues"]) if values["queues"].is_a?(Array)
          values["strategy"] = values["strategy"].to_sym if values["strategy"].is_a?(String)
          values
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

        def refuse(why) = raise(ConfigError, "#{@path} #{why.tr("\n", " ")}")
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
