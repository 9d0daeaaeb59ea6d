# frozen_string_literal: true

require "rake/extensiontask"

# The C extensions: the folder of the sources, and the folder of the library.
EXTENSIONS = {
  "native" => %w[runtime/ext/ringspun runtime/lib/ringspun],
  "postgres_native" => %w[postgres/ext/ringspun_postgres postgres/lib/ringspun],
  "http_native" => %w[http/ext/ringspun_http http/lib/ringspun]
}.freeze
EXTENSION_DIR = EXTENSIONS.fetch("native").first
# The engine lies behind a link, into which `**` does not go by itself.
SOURCE_FOLDERS = "{**/,engine/{src,include}/**/}"

def write_if_changed(path, content)
  return if File.exist?(path) && File.read(path) == content

  mkdir_p File.dirname(path), verbose: false
  File.write(path, content)
end

# Whether bin/setup --matrix has made this Ruby ready beside that of all else.
def second_ruby?
  others, first = %w[ruby-{matrix,4} ruby].map do |stamps|
    FileList["tmp/setup/#{stamps}"].map { |path| File.read(path).chomp }
  end
  (others - first).include?(RbConfig.ruby)
end

# What is optimised over all files takes 16 s of the processor to link, which ccache does not spare: by day once.
ENV["RINGSPUN_LTO"] ||= "no" if second_ruby? && ENV["RINGSPUN_NIGHTLY"] != "1"
extension_flags = ENV.slice(*%w[SANITIZE WERROR CHECKED LTO].map { |name| "RINGSPUN_#{name}" }).map { |pair| pair.join("=") }

# The folders of the objects.
EXTENSION_BUILDS = EXTENSIONS.map do |name, (sources, library)|
  # mkmf fixes the sources and the flags when it writes the Makefile. This file changes exactly when one of them does, so that the
  # Makefile is written again then, and not at every edit.
  plan = "tmp/extension_plan-#{name}-#{RUBY_VERSION}"
  write_if_changed(plan, [*FileList["#{sources}/#{SOURCE_FOLDERS}*.c"].sort, *extension_flags].join("\n"))

  # The library goes into a folder per Ruby, so that one tree can have the builds of several Rubies.
  extension = Rake::ExtensionTask.new(name) do |ext|
    ext.ext_dir = sources
    ext.lib_dir = "#{library}/#{RUBY_VERSION[/\d+\.\d+/]}"
    ext.source_pattern = "#{SOURCE_FOLDERS}*.{c,h}"
  end
  "tmp/#{extension.platform}/#{name}/#{RUBY_VERSION}".tap do |build|
    file "#{build}/Makefile" => [plan, "#{EXTENSION_DIR}/rooms_makefile.rb"]
  end
end.freeze

# The others are built on the first, by its C API.
EXTENSION_BUILDS.drop(1).each { |build| file "#{build}/Makefile" => "#{EXTENSION_DIR}/ringspun.h" }
EXTENSIONS.keys.drop(1).each { |name| task "compile:#{name}" => "compile:native" }

# Two rake processes in one tree must not write the same objects.
compile_lock = File.open(mkdir_p("tmp", verbose: false).first + "/compile.lock", File::CREAT | File::RDWR)
task("compile:lock") { compile_lock.flock(File::LOCK_EX) }
Rake::Task["compile"].prerequisites.unshift("compile:lock")
task(:compile) { compile_lock.flock(File::LOCK_UN) }
