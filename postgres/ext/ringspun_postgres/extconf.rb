# frozen_string_literal: true

require "ringspun"
require File.join(Ringspun.include_dir, "rooms_makefile")

use_our_flags
$CPPFLAGS << " -I#{Ringspun.include_dir}"
$CPPFLAGS << " -DRS_CHECKED" if ENV["RINGSPUN_CHECKED"] || ENV["RINGSPUN_SANITIZE"] # RPG_CHECK of the codec

create_rooms_makefile("ringspun/postgres_native", %w[codec client])
