# frozen_string_literal: true

Warning[:deprecated] = false # Kernel#syscall

# Sandboxes: from here on the kernel refuses this thread, and all threads and processes that it makes, one system call.
module Seccomp
  X86 = RUBY_PLATFORM.start_with?("x86_64")
  PRCTL = X86 ? 157 : 167

  # [x86_64, aarch64]; nil: there is none.
  NUMBERS = {
    accept4: [288, 242], bind: [49, 200], clone: [56, 220], clone3: [435, 435], connect: [42, 203],
    copy_file_range: [326, 285], epoll_create1: [291, 20], epoll_ctl: [233, 21], epoll_pwait: [281, 22],
    epoll_pwait2: [441, 441], epoll_wait: [232, nil], eventfd2: [290, 19], fallocate: [285, 47], fcntl: [72, 25],
    fdatasync: [75, 83], fstat: [5, 80], fstatfs: [138, 44], fsync: [74, 82], ftruncate: [77, 46],
    getsockname: [51, 204], getsockopt: [55, 209],
    inotify_add_watch: [254, 27], inotify_init1: [294, 26], inotify_rm_watch: [255, 28], io_uring_enter: [426, 426],
    io_uring_register: [427, 427], io_uring_setup: [425, 425], ioctl: [16, 29], listen: [50, 201], lseek: [8, 62],
    mkdir: [83, nil], mkdirat: [258, 34], mmap: [9, 222], newfstatat: [262, 79], openat: [257, 56], pidfd_open: [434, 434],
    pidfd_send_signal: [424, 424], pipe2: [293, 59], poll: [7, nil], ppoll: [271, 73], pread64: [17, 67], preadv: [295, 69],
    preadv2: [327, 286], pwrite64: [18, 68], pwritev: [296, 70], pwritev2: [328, 287], readv: [19, 65], recvfrom: [45, 207],
    recvmsg: [47, 212], rename: [82, nil], renameat: [264, 38], sched_getaffinity: [204, 123], sendmsg: [46, 211],
    sendto: [44, 206], setsockopt: [54, 208], shutdown: [48, 210], socket: [41, 198], socketpair: [53, 199],
    splice: [275, 76], statfs: [137, 43], statx: [332, 291], tee: [276, 77], unlink: [87, nil], unlinkat: [263, 35],
    wait4: [61, 260], waitid: [247, 95], writev: [20, 66]
  }.transform_values { |numbers| numbers[X86 ? 0 : 1] }.compact.freeze

  # Ruby code that does so in a child process.
  def self.code(call, error) = "require \"support/seccomp\"; Seccomp.refuse(:#{call}, #{error})"

  def self.refuse(call, error) = filter(call, 0x50000 | error::Errno) # SECCOMP_RET_ERRNO

  # From here on each system call of this thread takes microseconds longer. The filter looks at an argument, for the kernel keeps
  # the answer of one that looks at numbers alone.
  def self.slow_down(steps: 2000)
    work = [[0x24, 0, 0, 3], [0x04, 0, 0, 7]] * steps # BPF_MUL, BPF_ADD
    install([[0x20, 0, 0, 16], *work, [0x06, 0, 0, 0x7fff0000]])
  end

  # The process ends with any of them.
  def self.forbid(calls) = calls.each { |call| filter(call, 0x80000000) if NUMBERS.key?(call) } # SECCOMP_RET_KILL_PROCESS

  # Classic BPF for seccomp(2): that answer to that call, everything else as before.
  def self.filter(call, answer)
    install([[0x20, 0, 0, 0], [0x15, 0, 1, NUMBERS.fetch(call)], [0x06, 0, 0, answer], [0x06, 0, 0, 0x7fff0000]])
  end

  def self.install(program)
    instructions = program.map { |instruction| instruction.pack("SCCL") }.join
    filter = [program.size, instructions].pack("Sx6P")
    syscall(PRCTL, 38, 1, 0, 0, 0) # PR_SET_NO_NEW_PRIVS
    syscall(PRCTL, 22, 2, [filter].pack("P").unpack1("J"), 0, 0) # PR_SET_SECCOMP
  end
  private_class_method :filter, :install
end
