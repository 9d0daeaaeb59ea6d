# frozen_string_literal: true

require "tmpdir"

module Bench
  # Where samples put their files. A memory filesystem would measure something else than the table says, so where
  # /tmp is one and the user did not insist with TMPDIR, another place is taken.
  module Workspace
    MEMORY = %w[tmpfs ramfs].freeze

    module_function

    def directory
      return Dir.tmpdir if ENV["TMPDIR"]

      places = [Dir.tmpdir, "/var/tmp", build_directory]
      places.find { |place| File.writable?(place) && !MEMORY.include?(filesystem(place)) } || Dir.tmpdir
    end

    # What we compile stays here, out of version control.
    def build_directory
      File.join(ROOT, "tmp/bench").tap { |path| FileUtils.mkdir_p(path) }
    end

    # Yields a fresh directory and removes it.
    def with_scratch(&) = Dir.mktmpdir("ringspun-bench-", directory, &)

    # Waits until the filesystem has written out what earlier samples left to it. Its journal would do so in the
    # middle of a later sample, which then takes up to twice its time. Then uses as much memory for pages of files as
    # the sample will: the host of a virtual machine takes what is free away, and whoever comes first would pay for it.
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
      # The last of several mounts on one point hides the others.
      mounts.reverse.select { |point, _| inside?(real, point) }.max_by { |point, _| point.size }&.last || "unknown"
    rescue SystemCallError
      "unknown"
    end

    def inside?(path, point)
      point == "/" || path == point || path.start_with?("#{point}/")
    end
  end
end
