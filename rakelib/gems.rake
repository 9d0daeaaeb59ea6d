# frozen_string_literal: true

require "bundler/gem_helper"
require "rbconfig"

# What `gem` on PATH is may belong to another Ruby.
ENV["GEM_COMMAND"] ||= "#{RbConfig.ruby} -S gem"

# The tasks of one of our gems. There is one list of changes for all, which each of them has in its package.
class GemTasks < Bundler::GemHelper
  ROOMS = { "runtime" => "ringspun", "jobs" => "ringspun-jobs", "postgres" => "ringspun-postgres",
            "http" => "ringspun-http" }.freeze
  CHANGES = "CHANGELOG.md"

  # In the gem's folder, for it moves what it has built to `pkg` of the folder where it is.
  def build_gem
    Dir.chdir(base) do
      FileUtils.cp("../#{CHANGES}", CHANGES)
      super
    ensure
      FileUtils.rm_f(CHANGES)
    end
  end
end

GemTasks::ROOMS.each { |room, name| namespace(room) { GemTasks.install_tasks(dir: room, name:) } }

{ build: "Build all gems, each into `pkg` of its folder", install: "Build and install all gems",
  release: "Tag the version, build all gems and push them" }.each do |name, description|
  desc description
  task(name => GemTasks::ROOMS.keys.map { |room| "#{room}:#{name}" })
end
