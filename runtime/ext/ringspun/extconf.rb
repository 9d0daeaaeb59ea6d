# frozen_string_literal: true

require_relative "rooms_makefile"

abort <<~MESSAGE unless RbConfig::CONFIG["target_os"].start_with?("linux")
  ringspun runs on Linux only: its engine waits by io_uring or epoll.
  This Ruby was built for #{RbConfig::CONFIG["target_os"]}.
MESSAGE

# A folder a room.
FOLDERS = %w[
  engine/src engine/src/core engine/src/ops engine/src/flow engine/src/procs engine/src/kernel
  engine/src/backend engine/src/backend/uring engine/src/backend/sim
  binding binding/cruby binding/core/machine binding/core/strand binding/core/scope binding/core/seeing binding/core
  binding/io binding/stream binding/sync binding/procs binding/scheduler
].freeze

use_our_flags
$CPPFLAGS << " -I$(srcdir)/engine/include"
$CPPFLAGS << " -DRS_CHECKED" if ENV["RINGSPUN_CHECKED"] || ENV["RINGSPUN_SANITIZE"] # RS_CHECK of the engine
# Each function at the start of a cache line: else a switch costs 60 or 67 ns, by where the linker happens to put it.
$CFLAGS << " -falign-functions=64"

# The engine's functions are small and the binding calls several of them per switch: inlining across files pays.
# A sanitizer's report is easier to read without it, and a build that is only for tests is linked in a tenth of the time.
lto = " -flto=auto"
wants_lto = !ENV["RINGSPUN_SANITIZE"] && ENV["RINGSPUN_LTO"] != "no"
compile_and_link_with(lto) if wants_lto && try_link("int main(void) { return 0; }", lto.strip)

# What some Rubies have and others have not. binding/cruby/has.h alone reads the answers.
have_func("rb_thread_lock_native_thread", "ruby/thread.h")

headers = Dir.glob("engine/include/**/", base: __dir__).map { |folder| folder.delete_suffix("/") }
# What a binding does not see of the engine.
own = FOLDERS.grep(/engine/).to_h { |folder| [folder, "-I$(srcdir)/engine/src"] }
create_rooms_makefile("ringspun/native", FOLDERS, warned: FOLDERS.grep(/binding/), headers:, own:)
