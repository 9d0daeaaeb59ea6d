# frozen_string_literal: true

require "ringspun-jobs" # in a Rails app with its railtie

# For programs that were written for Sidekiq: its names, by which their classes run here unchanged, without the gem sidekiq.
#
#   gem "ringspun-jobs", require: "ringspun/jobs/sidekiq" # in place of: gem "sidekiq"
#
# The guide "From Sidekiq" has a table of what is the same, what is other, and what is missing. What stands here only translates:
# to {Ringspun::Jobs::Job}, {Ringspun::Jobs::Config}, {Ringspun::Jobs::Chain} and the client.
if defined?(Sidekiq) && !Sidekiq.equal?(Ringspun::Jobs.const_defined?(:Sidekiq, false) && Ringspun::Jobs::Sidekiq)
  raise Ringspun::Jobs::ConfigError,
        "the gem sidekiq is loaded already, and ringspun/jobs/sidekiq stands in for it: a program has one or the other. " \
        "Remove sidekiq from the Gemfile, or do not require ringspun/jobs/sidekiq"
end

# Named before it is put into our namespace, so that errors, logs and entries show the names that programs know.
Sidekiq ||= Module.new
Ringspun::Jobs.const_set(:Sidekiq, Sidekiq) unless Ringspun::Jobs.const_defined?(:Sidekiq, false)

module Ringspun
  module Jobs
    # Sidekiq's own module.
    module Sidekiq
      NAME = "Sidekiq"
      # The version of Sidekiq whose names these are. Programs compare it.
      VERSION = "8.1.0"
      # Its first number.
      MAJOR = 8

      # Whoever waits when the worker ends gets a {Cancelled}; this class is here for a `rescue` that names it.
      class Shutdown < Interrupt; end
    end
  end
end

Ringspun::Jobs::Storage.keep_to_the_server("ringspun/jobs/sidekiq is loaded")

require_relative "sidekiq/settings"
require_relative "sidekiq/iterations"
require_relative "sidekiq/client"
require_relative "sidekiq/job_util"
require_relative "sidekiq/job"
require_relative "sidekiq/iterable_job"
require_relative "sidekiq/embedded"

module Ringspun
  module Jobs
    module Sidekiq
      @config_blocks = []

      class << self
        # @return [Boolean] whether this process is a worker of `ringspun-jobs`
        # @since 0.1.0
        def server? = defined?(CLI.running?) ? CLI.running? : false

        # @return [Gem::Version] of {VERSION}
        # @since 0.1.0
        def gem_version = Gem::Version.new(VERSION)

        # @return [Boolean] false: nothing of Sidekiq Pro is here
        # @since 0.1.0
        def pro? = false

        # @return [Boolean] false: nothing of Sidekiq Enterprise is here
        # @since 0.1.0
        def ent? = false

        # Calls the block if this process is a worker; of an embedded one, when that is configured.
        #
        # @yieldparam config [Config]
        # @since 0.1.0
        def configure_server(&block)
          @config_blocks << block
          configure(&block) if server?
        end

        # Calls the block unless this process is a worker.
        #
        # @yieldparam config [Config]
        # @since 0.1.0
        def configure_client(&block) = server? ? nil : configure(&block)

        # Configures a worker inside this process, see {Embedded}.
        #
        # @yieldparam config [Config]
        # @return [Embedded]
        # @since 0.1.0
        def configure_embed
          config = default_configuration
          config.concurrency = Embedded::CONCURRENCY
          [*@config_blocks, ->(settings) { yield settings }].each { |block| configure(&block) }
          Embedded.new(config)
        end

        # Has all jobs wait for the commit of the transactions that are open, see Jobs::Config#after_commit; also those of Active
        # Job whose adapter is `:sidekiq`.
        #
        # @since 0.1.0
        def transactional_push!
          require "ringspun/jobs/active_record"
          Jobs.configure { |config| config.after_commit = true }
        end

        # @since 0.1.0
        def load_json(text) = JSON.parse(text)

        # @since 0.1.0
        def dump_json(object) = JSON.generate(object)

        # Switches to a mode of `sidekiq/testing`: :fake, :inline or :disable. May switch strands, where the block does.
        #
        # @param mode [Symbol]
        # @yield the block for which it holds; without one it holds for good
        # @since 0.1.0
        def testing!(mode = :fake, &)
          raise "Unknown testing mode: #{mode}" unless %i[fake disable inline].include?(mode)

          require_relative "sidekiq/testing"
          Testing.public_send(:"#{mode}!", &)
        end

        # Called by what stands in for a file that has nothing here. The gem's own file would open classes that are ours.
        #
        # @param name [String] of the file, as programs require it
        # @param instead [String] what to do in its place
        # @raise [ConfigError]
        # @api private
        def refuse_file(name, instead)
          raise ConfigError, "#{name} is a part of the gem sidekiq, for which ringspun/jobs/sidekiq stands in: #{instead}"
        end

        private

        # What is made from the settings is made anew.
        def configure
          Jobs.configure { yield default_configuration }
        end
      end
    end
  end
end

# `require "sidekiq"` and its like find these from now on, also where the gem is installed. This comes first: what is below makes
# Active Job look for its adapter.
$LOAD_PATH.unshift(File.expand_path("sidekiq/stand_in", __dir__))

# So that jobs of Active Job may say `sidekiq_options` before anything else is asked of it.
ActiveSupport.on_load(:active_job) { require_relative "sidekiq/active_job" } if defined?(ActiveSupport.on_load)
