# frozen_string_literal: true

require "tmpdir"

module Bench
  # The folders for the files of samples. Not on a memory filesystem, unless TMPDIR names one: there a table would measure
  # something else than it says.
  module Workspace
    MEMORY = %w[tmpfs ramfs].freeze

    module_function

    def directory
      return Dir.tmpdir if ENV["TMPDIR"]

      places = [Dir.tmpdir, "/var/tmp", build_directory]
      places.find { |place| File.writable?(place) && !MEMORY.include?(filesystem(place)) } || Dir.tmpdir
    end

    # The folder for what the bench compiles, out of version control.
    def build_directory
      File.join(ROOT, "tmp/bench").tap { |path| FileUtils.mkdir_p(path) }
    end

    # Yields a new directory, and removes it.
    def with_scratch(&) = Dir.mktmpdir("ringspun-bench-", directory, &)

    # Waits until the filesystem has written what earlier samples have left. Its journal would do so in the middle of a later
    # sample, which then takes up to twice its time. Then fills as much of the page cache as the sample will: the host of a
    # virtual machine takes free memory away, and the first sample would pay for its return.
    def settle(bytes)
      system("sync", "-f", directory, out: File::NULL, err: File::NULL)
      with_scratch do |scratch|
        chunk = "x" * (1 << 20)
        File.open(File.join(scratch, "pages"), "wb") { |file| (bytes / chunk.bytesize + 1).times { file.syswrite(chunk) } }
      end
    end

    # The type of the filesystem that holds `path`: that of the longest mount point above it.
    def filesystem(path)
      real = File.realpath(path)
      mounts = File.readlines("/proc/self/mounts").map { |line| line.split[1, 2] }
      # The last of several mounts at one point hides the others.
      mounts.reverse.select { |point, _| inside?(real, point) }.max_by { |point, _| point.size }&.last || "unknown"
    rescue SystemCallError
      "unknown"
    end

    def inside?(path, point)
      point == "/" || path == point || path.start_with?("#{point}/")
    end
  end
end
