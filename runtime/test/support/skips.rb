# frozen_string_literal: true

require "yaml"

# A skip that skips.yml does not know is a failure.
module Skips
  KNOWN = YAML.safe_load_file(File.expand_path("../skips.yml", __dir__)).to_h { |skip| skip.values_at("test", "reason") }
  @taken = 0

  class << self
    attr_accessor :taken

    def report = puts("skips: #{taken} taken, #{KNOWN.size} known")
  end

  Minitest.after_run { report }

  def skip(message = nil, *)
    flunk "skipped (#{message}), but skips.yml does not list #{self.class}##{name}" unless KNOWN.key?("#{self.class}##{name}")

    Skips.taken += 1
    super
  end
end
