# frozen_string_literal: true

module Bench
  # The copy of SQLite that our storage uses: an extension of Ruby, so a program in C that loads it needs Ruby's library first.
  module SqliteLibrary
    module_function

    # @return [Array<String>] what a program in C loads, in that order; the first is "" where the Ruby that runs has no library
    # @raise [Unavailable]
    def files
      extension = $LOAD_PATH.map { |folder| File.join(folder.to_s, "extralite_ext.so") }.find { |path| File.exist?(path) }
      raise Unavailable, "gem install extralite-bundle" unless extension

      [File.read("/proc/self/maps")[%r{/\S*/libruby[^/\s]*\.so\S*}].to_s, extension]
    end
  end
end
