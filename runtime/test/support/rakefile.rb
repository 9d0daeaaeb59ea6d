# frozen_string_literal: true

require_relative "children"

# The tasks of rake, in children of a process that has loaded them.
module Rakefile
  include Children

  ROOT = File.expand_path("../../..", __dir__)
  BUNDLED = { "RUBYOPT" => "-rbundler/setup" }.freeze
  LOADED = Zygote.new(<<~RUBY) { BUNDLED }
    Dir.chdir("#{ROOT}")
    require "rake"
    Rake.application.init("rake", [])
    Rake.application.load_rakefile
  RUBY

  private

  # Runs the code where the tasks are, in the folder of the Rakefile.
  def rake_child(code, *, env: {})
    Dir.chdir(ROOT) { ruby_child(code, *, env: { **BUNDLED, **env }, from: LOADED) }
  end
end
