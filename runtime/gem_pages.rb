# frozen_string_literal: true

require_relative "lib/ringspun/version"

# What the gemspecs of all our gems say of where the project is.
module GemPages
  # Everything else follows from it.
  HOME = "https://github.com/ringspun/ringspun"

  # @param name [String] of a gem
  # @return [Hash{String => String}] the metadata of its gemspec
  def self.of(name)
    version = Ringspun::VERSION
    { "homepage_uri" => HOME, "source_code_uri" => "#{HOME}/tree/v#{version}",
      "changelog_uri" => "#{HOME}/blob/v#{version}/CHANGELOG.md", "bug_tracker_uri" => "#{HOME}/issues",
      "documentation_uri" => "https://rubydoc.info/gems/#{name}/#{version}", "rubygems_mfa_required" => "true" }
  end
end
