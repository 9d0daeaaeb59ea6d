# frozen_string_literal: true

module Ringspun
  module Postgres
    # What is known of poolers by their hosts' names.
    #
    # @api private
    module Poolers
      # Supavisor, on the port where it pools transactions, gives the server's connection to others as soon as the first statement
      # is answered: the answers to those behind it never come. On its other port, 5432, a client has a connection of the server's
      # for itself. https://github.com/supabase/supavisor/issues/1061, https://github.com/porsager/postgres/issues/970
      WITHOUT_PIPELINING = [[/(?:\A|\.)pooler\.supabase\.com\.?\z/i, 6543]].freeze
      private_constant :WITHOUT_PIPELINING

      class << self
        # @param options [Options]
        # @return [Boolean]
        def pipelining?(options)
          host = options.hosts.find { |each| loses_statements?(each) } or return true
          Warnings.tell("ringspun: statements go to #{host} one at a time, because this pooler loses those that come " \
                        "behind another; pipelining: true sends them together, and pipelining: false says no more of it")
          false
        end

        private

        def loses_statements?(host) = WITHOUT_PIPELINING.any? { |name, port| host.name.match?(name) && host.port == port }
      end
    end
    private_constant :Poolers
  end
end
