# Sourced by bin/setup: what builds the engine's tests for aarch64, and runs them on another processor.

# On aarch64 itself nothing is emulated, for there all tests run on it.
is_aarch64() { [[ $HOSTTYPE == aarch64 ]]; }

# As Debian's package names.
lacking_cross_tools() {
  command -v aarch64-linux-gnu-gcc >/dev/null || printf 'gcc-aarch64-linux-gnu\n'
  aarch64-linux-gnu-gcc -E - <<<'#include <stdio.h>' >/dev/null 2>&1 || printf 'libc6-dev-arm64-cross\n'
  command -v qemu-aarch64 >/dev/null || printf 'qemu-user\n'
}

# Those that this system has as packages. Fedora and Alpine have cross compilers without a C library.
missing_cross_tools() {
  is_aarch64 || case $(package_installer) in apt | pacman) lacking_cross_tools ;; esac
}

# For bin/test.
note_cross_tools() {
  if is_aarch64 || [[ -n $(lacking_cross_tools) ]]; then rm -f "$state/cross"; else touch "$state/cross"; fi
}
