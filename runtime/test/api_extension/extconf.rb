# frozen_string_literal: true

# As a gem that uses Ringspun's C API would have it.
require "mkmf"

$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "ringspun"

$INCFLAGS << " -I#{Ringspun.include_dir}"
create_makefile("api_extension")
