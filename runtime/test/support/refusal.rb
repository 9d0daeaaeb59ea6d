# frozen_string_literal: true

# Has the kernel refuse a system call, in a child process, for it stays refused. Classic BPF for seccomp(2): an error for that one
# call, everything else as before.
module Refusal
  X86_64 = RUBY_PLATFORM.start_with?("x86_64")

  # Numbers that are not the same on every processor.
  CALLS = {
    "epoll_create1" => X86_64 ? 291 : 20, "eventfd2" => X86_64 ? 290 : 19, "inotify_init1" => X86_64 ? 294 : 26,
    "inotify_add_watch" => X86_64 ? 254 : 27
  }.freeze

  # Ruby code that defines `refuse(number, error)`.
  CODE = <<~'RUBY'
    Warning[:deprecated] = false # Kernel#syscall
    def prctl(*arguments) = syscall(RUBY_PLATFORM.start_with?("x86_64") ? 157 : 167, *arguments)

    def refuse(number, error)
      program = [[0x20, 0, 0, 0], [0x15, 0, 1, number], [0x06, 0, 0, 0x50000 | error], [0x06, 0, 0, 0x7fff0000]]
      instructions = program.map { |instruction| instruction.pack("SCCL") }.join
      filter = [program.size, instructions].pack("Sx6P")
      prctl(38, 1, 0, 0, 0) # PR_SET_NO_NEW_PRIVS
      prctl(22, 2, [filter].pack("P").unpack1("J"), 0, 0) # PR_SET_SECCOMP
    end
  RUBY

  # Ruby code that has the call refused from there on.
  def self.of(call, error) = "#{CODE}\nrefuse(#{CALLS.fetch(call)}, #{error::Errno})\n"
end
