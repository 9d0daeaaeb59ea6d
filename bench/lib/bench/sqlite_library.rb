# frozen_string_literal: true

require "open3"

module Bench
  # The copy of SQLite that our storage uses: an extension of Ruby. A program in C that loads it needs whatever the extension has
  # from Ruby to be there, though it never calls it; and not each Ruby has a library of its own.
  module SqliteLibrary
    module_function

    # @return [Array<String>] what a program in C loads, in that order
    # @raise [Unavailable]
    def files
      extension = $LOAD_PATH.map { |folder| File.join(folder.to_s, "extralite_ext.so") }.find { |path| File.exist?(path) }
      raise Unavailable, "gem install extralite-bundle" unless extension

      [stand_in(extension), extension]
    end

    # @return [String] a library with all names that the extension has from Ruby
    def stand_in(extension)
      names = run("nm", "-D", "--undefined-only", extension).scan(/ U (\w+)$/).flatten # those of the C library have a version
      library = File.join(Workspace.build_directory, "ruby_names.so")
      fresh = "#{library}.#{Process.pid}"
      run(ENV.fetch("CC", "gcc"), "-shared", "-fPIC", "-x", "c", "-", "-o", fresh,
          stdin_data: names.map { |name| "char #{name}[8];\n" }.join)
      File.rename(fresh, library)
      library
    end

    def run(*command, **)
      output, status = Open3.capture2e(*command, **)
      status.success? ? output : raise(Unavailable, "no SQLite for the floor: #{output.lines.first&.chomp}")
    rescue Errno::ENOENT
      raise Unavailable, "no #{command.first} for the floor"
    end
    private_class_method :stand_in, :run
  end
end
