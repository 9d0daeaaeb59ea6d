# frozen_string_literal: true

module Bench
  # The contender that targets are about. Its absence is a failure, that of a peer only a remark.
  SUBJECT = "ringspun"

  # The backends of Ringspun: name => options of Machine.new. The first is the subject, the others stand beside it.
  BACKENDS = { "uring" => { backend: :uring }, "epoll" => { backend: :epoll },
               "sqpoll" => { backend: :uring, sqpoll: true } }.freeze
  MAIN_BACKEND = BACKENDS.keys.first

  # Stock Ruby classes on its fiber scheduler.
  SCHEDULED = "#{SUBJECT} fs"

  # Ringspun::Stream in place of the machine's own calls.
  STREAMS = "#{SUBJECT} streams"

  # Ours in place of the gem `concurrently`.
  DROP_IN = "drop-in"

  # Contenders that run only on the main backend, unless a table says otherwise.
  VARIANTS = [SCHEDULED, STREAMS, DROP_IN].freeze

  # The contender that needs the Ruby of RINGSPUN_RUBY_4, which is newer than that of the rest of the bench.
  URING_MACHINE = "uringmachine"
  URING_MACHINE_FS = "#{URING_MACHINE} fs"

  # The rings as in its own scripts.
  URING_MACHINE_RINGS = { URING_MACHINE => { size: 16_384 }, "#{URING_MACHINE} sqpoll" => { sqpoll: true } }.freeze

  def self.subject_on(backend) = on(backend, SUBJECT)

  # The name of a contender of ours on a backend.
  def self.on(backend, name) = backend == MAIN_BACKEND ? name : "#{name} #{backend}"
end
