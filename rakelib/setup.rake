# frozen_string_literal: true

namespace :test do
  desc "Type README's commands in a bare Debian 12, or SUITE=trixie, made by debootstrap: for root, in minutes"
  task(:bare_debian) { sh "bin/support/bare_debian.sh", ENV.fetch("SUITE", "bookworm"), verbose: false }
end

BARE_DEBIAN_INPUTS = %w[bin/setup bin/support].freeze

# By night the task above runs whole. It waits for apt most of the time, so the others come first.
test_passes(:bare_debian_short) do
  next [] if nightly? || !selection.now?("bin/setup in a bare Debian 12", BARE_DEBIAN_INPUTS)

  [pass("bin/setup in a bare Debian 12", "nice", "-n", "10", "bin/support/bare_debian.sh", "--short")]
end
