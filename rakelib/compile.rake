# frozen_string_literal: true

require "rake/extensiontask"

EXTENSION_DIR = "runtime/ext/ringspun"
EXTENSION_SOURCES = FileList["#{EXTENSION_DIR}/**/*.{c,h}"]

# mkmf fixes the list of sources and the flags when the Makefile is written. This file changes exactly when
# one of them does, so the Makefile is written again then and not at every edit.
EXTENSION_PLAN = "tmp/extension_plan-#{RUBY_VERSION}"

def write_if_changed(path, content)
  return if File.exist?(path) && File.read(path) == content

  mkdir_p File.dirname(path), verbose: false
  File.write(path, content)
end

flags = ENV.slice("RINGSPUN_SANITIZE", "RINGSPUN_WERROR", "RINGSPUN_CHECKED").map { |pair| pair.join("=") }
write_if_changed(EXTENSION_PLAN, [*EXTENSION_SOURCES.grep(/\.c\z/).sort, *flags].join("\n"))

# The library goes to a folder per Ruby, so that several Rubies' builds live beside each other in one tree.
extension = Rake::ExtensionTask.new("native") do |ext|
  ext.ext_dir = EXTENSION_DIR
  ext.lib_dir = "runtime/lib/ringspun/#{RUBY_VERSION[/\d+\.\d+/]}"
  ext.source_pattern = "**/*.{c,h}"
end

EXTENSION_BUILD = "tmp/#{extension.platform}/native/#{RUBY_VERSION}".freeze
file "#{EXTENSION_BUILD}/Makefile" => EXTENSION_PLAN

# Two rake processes in one tree must not write the same objects.
compile_lock = File.open(mkdir_p("tmp", verbose: false).first + "/compile.lock", File::CREAT | File::RDWR)
task("compile:lock") { compile_lock.flock(File::LOCK_EX) }
Rake::Task["compile"].prerequisites.unshift("compile:lock")
task(:compile) { compile_lock.flock(File::LOCK_UN) }
