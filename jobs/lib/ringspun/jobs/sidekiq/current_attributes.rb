# frozen_string_literal: true

require "active_job"
require "active_support/time" # classes that Active Job's serializers name
require "active_job/arguments"
require "active_support/current_attributes"
require_relative "../sidekiq"

module Ringspun
  module Jobs
    module Sidekiq
      # Takes the current attributes of whoever enqueues a job along to where it runs, in the fields of Sidekiq:
      # https://api.rubyonrails.org/classes/ActiveSupport/CurrentAttributes.html
      module CurrentAttributes
        Serializer = ::ActiveJob::Arguments

        # Names of classes, each with the field of the entry that has its attributes.
        #
        # @param classes [Array<String>]
        # @return [Hash{String => String}]
        # @api private
        def self.fields(classes) = classes.each_with_index.to_h { |name, index| [index.zero? ? "cattr" : "cattr_#{index}", name] }

        # When a job is enqueued.
        #
        # @api private
        class Save
          def initialize(fields) = @fields = fields

          # A job that is enqueued again keeps what it has.
          def call(_job_class, job, *)
            @fields.each do |field, name|
              next if job.key?(field)

              attributes = name.constantize.attributes
              job[field] = Serializer.serialize(attributes) if attributes.any?
            end
            yield
          end
        end

        # When it runs.
        #
        # @api private
        class Load
          def initialize(fields) = @fields = fields

          def call(_instance, job, *, &)
            within(@fields.filter_map { |field, name| [name.constantize, attributes(job[field])] if job.key?(field) }, &)
          end

          private

          def attributes(stored) = Serializer.deserialize(stored).to_h

          # An attribute that the class does not have any more is left out.
          def within(classes, &)
            (current, attributes), *others = classes
            return yield unless current

            current.set(attributes.select { |name, _| current.respond_to?(name) }) { within(others, &) }
          end
        end

        # @param classes [Class, String, Array<Class, String>]
        # @param config [Config]
        # @since 0.1.0
        def self.persist(classes, config = Sidekiq.default_configuration)
          fields = fields([*classes].map(&:to_s))
          config.client_middleware.add(Save, fields)
          config.server_middleware.prepend(Load, fields)
        end
      end
    end
  end
end
