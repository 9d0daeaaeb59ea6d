# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# An extension on the C API of ringspun.h, built against it as another gem would be.
module ApiExtensionBuild
  SOURCE = File.expand_path("../api_extension", __dir__)
  FOLDER = File.expand_path("../../../tmp/api_extension/#{RUBY_VERSION}", __dir__)
  LIBRARY = File.join(FOLDER, "api_extension")

  class << self
    def built
      @built ||= begin
        FileUtils.mkdir_p(FOLDER)
        File.open("#{FOLDER}.lock", File::CREAT | File::RDWR) do |lock|
          lock.flock(File::LOCK_EX) # a neighbour builds it as well
          run(RbConfig.ruby, File.join(SOURCE, "extconf.rb"))
          run("make")
          require LIBRARY
        end
        ApiExtension
      end
    end

    private

    def run(*command)
      output, status = Open3.capture2e(*command, chdir: FOLDER)
      raise "#{command.join(" ")} failed:\n#{output}" unless status.success?
    end
  end

  def api = ApiExtensionBuild.built

  def setup
    super
    api
  end
end
