# frozen_string_literal: true

require_relative "../runtime/gem_pages"

Gem::Specification.new do |spec|
  spec.name = "ringspun-http"
  spec.version = Ringspun::VERSION
  spec.authors = ["Ringspun contributors"]
  spec.summary = "A web server for Rack with a strand for each connection."
  spec.description = "HTTP/1.1 for Rack 3: heads are read and answers written in C, straight from and to Ringspun's streams, " \
                     "and each connection has a strand, so that thousands may wait at once."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.3"

  spec.add_dependency "rack", ">= 3.1" # what programs for Rack are: config.ru, and the terms of an answer
  spec.add_dependency "ringspun", Ringspun::VERSION # strands, streams, the C API, and processes

  spec.files = Dir.chdir(__dir__) do
    Dir["{CHANGELOG.md,LICENSE,README.md}", "exe/*", "ext/**/*.{c,h,rb}", "lib/**/*.rb", "sig/**/*.rbs"].sort
  end
  spec.bindir = "exe"
  spec.executables = ["ringspun-http"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/ringspun_http/extconf.rb"]
  spec.homepage = GemPages::HOME
  spec.metadata = GemPages.of(spec.name)
end
