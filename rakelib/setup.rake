# frozen_string_literal: true

namespace :test do
  desc "Run bin/setup and a test file in a bare Debian 12, or SUITE=trixie, made by debootstrap: for root, in minutes"
  task(:bare_debian) { sh "bin/support/bare_debian.sh", ENV.fetch("SUITE", "bookworm"), verbose: false }
end
