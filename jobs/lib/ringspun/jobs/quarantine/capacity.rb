# frozen_string_literal: true

require "etc"

module Ringspun
  module Jobs
    class Quarantine
      # How many children the computer can bear.
      #
      # @api private
      class Capacity
        # Most jobs wait for something, so children may be more than the cores.
        CHILDREN_A_CORE = 8
        # With one place, a job that never ends would hold the only one.
        LEAST = 2
        # Of the memory that is available, children may have this share.
        MEMORY_SHARE = 0.5
        KILOBYTE = 1024
        # The limit, what is used, and the name of what is cached.
        VERSION_2 = %w[memory.max memory.current inactive_file].freeze
        VERSION_1 = %w[memory.limit_in_bytes memory.usage_in_bytes total_inactive_file].freeze

        # @param processes [Integer] how many share the computer
        # @param folder [String] where the kernel tells of memory
        def initialize(processes, folder: "/")
          @processes = processes
          @folder = folder
        end

        # @return [Integer] for this process; 1 or more
        def cores = [Etc.nprocessors / @processes, 1].max

        # @param used [Integer] children that there are
        # @return [Integer] children that there may be
        def places(used)
          by_cores = CHILDREN_A_CORE * Etc.nprocessors / @processes
          [by_cores, used + more_by_memory].min.floor.clamp(LEAST..)
        end

        private

        # A child shares its parent's memory until it writes to it, so a copy of all of that is the most that it begins with.
        def more_by_memory
          own = Integer(read("proc/self/statm").split[1]) * Etc.sysconf(Etc::SC_PAGESIZE)
          [system_bytes, group_bytes].compact.min * MEMORY_SHARE / @processes / own
        rescue SystemCallError, ArgumentError, TypeError # a kernel that does not tell bounds nothing
          Float::INFINITY
        end

        def system_bytes = Integer(read("proc/meminfo")[/^MemAvailable:\s+(\d+)/, 1]) * KILOBYTE

        # Of the control groups that the process is in, where one has a limit: a container's, a service's.
        def group_bytes = groups.filter_map { |folder, names| left_in(folder, names) }.min

        # Its own and those around it, as in cgroups(7).
        def groups
          read("proc/self/cgroup").lines(chomp: true).flat_map do |line|
            _, controllers, path = line.split(":", 3)
            next [] unless controllers.empty? || controllers.split(",").include?("memory")

            root, names = controllers.empty? ? ["sys/fs/cgroup", VERSION_2] : ["sys/fs/cgroup/memory", VERSION_1]
            parts = path.split("/").reject(&:empty?)
            (0..parts.size).map { |size| [File.join(root, *parts.first(size)), names] }
          end
        rescue SystemCallError
          []
        end

        # What it has cached of files it can give back.
        def left_in(folder, names)
          limit, used, cached = names
          most = Integer(read(File.join(folder, limit)))
          back = Integer(read(File.join(folder, "memory.stat"))[/^#{cached} (\d+)/, 1])
          [most - Integer(read(File.join(folder, used))) + back, 0].max
        rescue SystemCallError, ArgumentError, TypeError # none: "max"
          nil
        end

        # In place: what others do while a strand waits would make its count a wrong one.
        def read(path) = Fiber.blocking { File.read(File.join(@folder, path)) }
      end
      private_constant :Capacity
    end
  end
end
