# frozen_string_literal: true

module Ringspun
  module Jobs
    module Cron
      # The classes of jobs that entries name.
      #
      # @api private
      module Classes
        module_function

        # What makes jobs of classes that are none of ours.
        #
        # @return [Array<#makes?, #push>]
        def makers = @makers ||= []

        # @param job_class [Class, String]
        # @return [Class, String] the class, if this program has it
        def named(job_class)
          return job_class unless job_class.is_a?(String)

          Object.const_get(job_class)
        rescue NameError => error # a program may have only the name
          raise if error.is_a?(NoMethodError) || !job_class.split("::").include?(error.name.to_s)

          job_class
        end

        # @param job_class [Class, String]
        # @return [#push, nil] which of {makers} makes its jobs
        def maker(job_class) = makers.find { |each| each.makes?(job_class) }
      end
    end
  end
end
