# frozen_string_literal: true

module Bench
  # System calls that take longer, as in a sandbox.
  module SlowCalls
    PRCTL = RUBY_PLATFORM.start_with?("x86_64") ? 157 : 167

    # From here on each of this thread's goes through a filter of seccomp(2) of that many steps. It looks at an argument, for the
    # kernel keeps the answer of a filter that looks at numbers alone. There is no way back, so this is for a process that ends.
    # @param steps [Integer] at most 2,000; 0: nothing changes
    def self.slow_down(steps)
      return if steps.zero? || @slow

      @slow = true
      work = [[0x24, 0, 0, 3], [0x04, 0, 0, 7]] * steps # BPF_MUL, BPF_ADD
      install([[0x20, 0, 0, 16], *work, [0x06, 0, 0, 0x7fff0000]]) # SECCOMP_RET_ALLOW
    end

    def self.install(program)
      filter = [program.size, program.map { |instruction| instruction.pack("SCCL") }.join].pack("Sx6P")
      silently do
        syscall(PRCTL, 38, 1, 0, 0, 0) # PR_SET_NO_NEW_PRIVS
        syscall(PRCTL, 22, 2, [filter].pack("P").unpack1("J"), 0, 0) # PR_SET_SECCOMP
      end
    end
    private_class_method :install

    # Kernel#syscall is deprecated.
    def self.silently
      warned = Warning[:deprecated]
      Warning[:deprecated] = false
      yield
    ensure
      Warning[:deprecated] = warned
    end
    private_class_method :silently
  end
end
