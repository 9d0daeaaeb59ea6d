# frozen_string_literal: true

# Loaded by rubocop. The name of a result in its cache has the file's absolute path in it, and those of a configuration. Here it
# has paths from the root, so that a new clone finds what another one has kept.
module RubocopCache
  ROOT = "#{File.expand_path("../..", __dir__)}/".freeze

  @signatures = {}.compare_by_identity

  # @param config [RuboCop::Config]
  # @return [String]
  def self.signature(config) = @signatures[config] ||= Digest::SHA1.hexdigest(config.to_s.gsub(ROOT, ""))

  private

  def file_checksum(file, config_store)
    return super unless File.file?(file)

    digest = Digest::SHA1.new
    digest << "#{file.delete_prefix(ROOT)} #{File.stat(file).mode} #{RubocopCache.signature(config_store.for_file(file))}"
    digest.file(file).hexdigest
  end
end

RuboCop::ResultCache.prepend(RubocopCache)
