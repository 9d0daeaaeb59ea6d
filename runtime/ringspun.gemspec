# frozen_string_literal: true

require_relative "gem_pages"

Gem::Specification.new do |spec|
  spec.name = "ringspun"
  spec.version = Ringspun::VERSION
  spec.authors = ["Ringspun contributors"]
  spec.summary = "Strands, scopes and cancellation for Ruby."
  spec.description = "Strands on one thread: scopes, deadlines and cancellation, files and sockets on a C engine over " \
                     "epoll and io_uring, and a deterministic simulation for tests."
  spec.license = "MIT"

  # 3.3 is the first Ruby with Fiber#kill and data per thread for extensions.
  spec.required_ruby_version = ">= 3.3"

  # No runtime dependency: the engine makes its system calls itself, and the rest is Ruby's standard library.
  spec.files = Dir.chdir(__dir__) do
    # The engine lies behind a link, into which `**` does not go by itself.
    Dir["{CHANGELOG.md,LICENSE,README.md}", "ext/{**/,ringspun/engine/{src,include}/**/}*.{c,h,rb}", "lib/**/*.rb",
        "sig/**/*.rbs"].sort
  end
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/ringspun/extconf.rb"]
  spec.homepage = GemPages::HOME
  spec.metadata = GemPages.of(spec.name)
end
