# frozen_string_literal: true

require_relative "lib/ringspun/version"

Gem::Specification.new do |spec|
  spec.name = "ringspun"
  spec.version = Ringspun::VERSION
  spec.authors = ["Ringspun contributors"]
  spec.summary = "Strands, scopes and io_uring for Ruby."
  spec.description = "A machine of strands on one thread: scopes, deadlines and cancellation over io_uring or epoll, " \
                     "with Ruby's own IO running on it unchanged."
  spec.license = "MIT"

  # 3.3 is the first Ruby whose fiber scheduler interface carries all that the hooks need.
  spec.required_ruby_version = ">= 3.3"

  # No runtime dependency: the engine speaks the kernel's ABI itself, and the rest is Ruby's standard library.
  spec.files = Dir.chdir(__dir__) do
    Dir["ext/**/*.{c,h,rb}", "lib/**/*.rb", "sig/**/*.rbs"].sort
  end
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/ringspun/extconf.rb"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
