# frozen_string_literal: true

require_relative "../runtime/gem_pages"

Gem::Specification.new do |spec|
  spec.name = "ringspun-postgres"
  spec.version = Ringspun::VERSION
  spec.authors = ["Ringspun contributors"]
  spec.summary = "PostgreSQL for thousands of strands that share a few connections."
  spec.description = "Speaks protocol 3 itself: statements of many strands go out together on a shared connection, each can be " \
                     "cancelled, and a transaction commits only when its block has returned."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.3"

  spec.add_dependency "bigdecimal", ">= 3.1" # what numeric becomes; from Ruby 3.4 on a gem like any other
  spec.add_dependency "ringspun", Ringspun::VERSION # strands, streams and the C API

  spec.files = Dir.chdir(__dir__) do
    Dir["{CHANGELOG.md,LICENSE,README.md}", "ext/**/*.{c,h,rb}", "lib/**/*.rb", "sig/**/*.rbs"].sort
  end
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/ringspun_postgres/extconf.rb"]
  spec.homepage = GemPages::HOME
  spec.metadata = GemPages.of(spec.name)
end
