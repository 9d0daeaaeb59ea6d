# frozen_string_literal: true

require "etc"

module Ringspun
  module Jobs
    class Quarantine
      # How many children the computer has room for.
      #
      # @api private
      class Capacity
        # Most jobs wait for something, so children may be more than the cores.
        CHILDREN_A_CORE = 8
        # With one place, a job that never ends would hold the only one.
        LEAST = 2
        # The share of the available memory that children may have.
        MEMORY_SHARE = 0.5
        KILOBYTE = 1024
        # The files of a control group for the limit and the use, and the line of memory.stat for cached files. Version 2:
        # https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files and 1:
        # https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
        VERSION_2 = %w[memory.max memory.current inactive_file].freeze
        VERSION_1 = %w[memory.limit_in_bytes memory.usage_in_bytes total_inactive_file].freeze

        # @param processes [Integer] how many share the computer
        # @param folder [String] which has the kernel's proc and sys
        def initialize(processes, folder: "/")
          @processes = processes
          @folder = folder
        end

        # @return [Integer] this process's share of the cores; 1 or more
        def cores = [Etc.nprocessors / @processes, 1].max

        # @param used [Integer] how many children there are
        # @return [Integer] how many there may be
        def places(used)
          by_cores = CHILDREN_A_CORE * Etc.nprocessors / @processes
          [by_cores, used + more_by_memory].min.floor.clamp(LEAST..)
        end

        private

        # A child shares its parent's memory until one of them writes to it, so it begins with a copy of all of it at most.
        def more_by_memory
          own = Integer(read("proc/self/statm").split[1]) * Etc.sysconf(Etc::SC_PAGESIZE)
          [system_bytes, group_bytes].compact.min * MEMORY_SHARE / @processes / own
        rescue SystemCallError, ArgumentError, TypeError # a kernel that does not say sets no limit
          Float::INFINITY
        end

        def system_bytes = Integer(read("proc/meminfo")[/^MemAvailable:\s+(\d+)/, 1]) * KILOBYTE

        # What is left in the control groups of the process that have a limit, such as a container's or a service's.
        def group_bytes = groups.filter_map { |folder, names| left_in(folder, names) }.min

        # The process's own and those around it: https://man7.org/linux/man-pages/man7/cgroups.7.html
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

        # The kernel can take back the memory of cached files.
        def left_in(folder, names)
          limit, used, cached = names
          most = Integer(read(File.join(folder, limit)))
          back = Integer(read(File.join(folder, "memory.stat"))[/^#{cached} (\d+)/, 1])
          [most - Integer(read(File.join(folder, used))) + back, 0].max
        rescue SystemCallError, ArgumentError, TypeError # "max", which is no limit
          nil
        end

        # Without a switch: other strands could change what is counted.
        def read(path) = Fiber.blocking { File.read(File.join(@folder, path)) }
      end
      private_constant :Capacity
    end
  end
end
