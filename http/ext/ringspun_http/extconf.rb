# frozen_string_literal: true

require "ringspun"
require File.join(Ringspun.include_dir, "rooms_makefile")

use_our_flags
$CPPFLAGS << " -I#{Ringspun.include_dir}"
$CPPFLAGS << " -DRS_CHECKED" if ENV["RINGSPUN_CHECKED"] || ENV["RINGSPUN_SANITIZE"] # RHTTP_CHECK of the codec

create_rooms_makefile("ringspun/http_native", %w[codec server])
