# frozen_string_literal: true

require "etc"
require "open3"

# Only to find the servers' programs; none is started here.
autoload :Servers, File.join(Bench::ROOT, "runtime/test/support/servers")

module Bench
  autoload :Exq, File.join(ROOT, "bench/peers/exq")

  # What a reader must know of the machine to judge the numbers.
  class Facts
    def initialize(sampler: Sampler.new)
      @sampler = sampler
    end

    def to_h
      @to_h ||= { cpu:, cores: Etc.nprocessors, kernel: Etc.uname.values_at(:sysname, :release).join(" "),
                  ruby: RUBY_DESCRIPTION, compiler:, **libraries, **Exq.versions, "redis-server": redis_server, postgres:,
                  "vm.max_map_count": read("/proc/sys/vm/max_map_count"),
                  "files in": filesystem, "load average": load_average.join(" ") }
    end

    # nil, or why the numbers cannot be trusted.
    #
    # @param own [Integer] how many processes the bench itself has kept busy until now; 0: it has not begun
    def warning(own: 0)
      load = load_average.first
      return nil if load <= Etc.nprocessors * 0.5 + own

      "load average is #{load} on #{Etc.nprocessors} cores #{own.zero? ? "before" : "after"} the run: others are using " \
        "this machine, and the numbers will say so"
    end

    private

    def cpu
      read("/proc/cpuinfo")[/^model name\s*:\s*(.+)$/, 1] || Etc.uname[:machine]
    end

    def compiler
      Open3.capture2e(ENV.fetch("CC", "gcc"), "--version").first.lines.first.chomp
    rescue Errno::ENOENT
      "none"
    end

    def redis_server
      Open3.capture2e("redis-server", "--version").first[/v=(\S+)/, 1] || "unknown"
    rescue Errno::ENOENT
      "none"
    end

    def postgres
      Open3.capture2e(Servers.postgres_program("postgres"), "--version").first[/\d+(?:\.\d+)*/] || "unknown"
    rescue RuntimeError
      "none"
    end

    def libraries
      answer = @sampler.probe
      answer["failed"] ? { libraries: answer["failed"] } : answer.transform_keys(&:to_sym)
    end

    # Only the type: a path would publish names of the author's folders.
    def filesystem = Workspace.filesystem(Workspace.directory)

    def load_average = read("/proc/loadavg").split.first(3).map(&:to_f)

    def read(path)
      File.read(path).chomp
    rescue SystemCallError
      ""
    end
  end
end
