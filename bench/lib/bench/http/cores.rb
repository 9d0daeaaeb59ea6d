# frozen_string_literal: true

module Bench
  module Http
    # Which core is for the clients, and which for the server: each has one to itself, where there are two.
    module Cores
      module_function

      def for_clients = on(all.first)
      def for_server = on(all.last)

      # @return [Array<String>] the beginning of a command
      def on(core) = all.size > 1 ? ["taskset", "-c", core.to_s] : []

      # @return [Array<Integer>] numbers of those that this process may use
      def all
        File.read("/proc/self/status")[/^Cpus_allowed_list:\s+(\S+)/, 1].split(",").flat_map do |range|
          first, last = range.split("-").map { |number| Integer(number) }
          [*first..(last || first)]
        end
      end
    end
  end
end
