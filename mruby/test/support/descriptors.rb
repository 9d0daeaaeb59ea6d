# frozen_string_literal: true

# What tests need that open descriptors.
module Descriptors
  # Runs the block, which leaves no descriptor behind.
  def leaving_none
    machine.pipe.each(&:close) # a machine opens some of its own with its first wait
    wait(0.0001)
    GC.start
    before = open_descriptors
    value = yield
    GC.start
    till = machine.now + 10
    wait(0.001) until open_descriptors == before || machine.now > till # a worker may be at a look-up that was given up
    assert_equal before, open_descriptors, "open descriptors"
    value
  end

  def open_descriptors = Dir.entries("/proc/self/fd").size

  # A path of this process's own; its file is removed after the block.
  def with_path
    process = machine.open("/proc/self/stat") { |file| file.read.split[0] }
    path = "/tmp/ringspun-mruby-#{process}"
    yield path
  ensure
    File.unlink(path) if path && File.exist?(path)
  end

  def with_pipe
    ends = machine.pipe
    yield(*ends)
  ensure
    ends&.each(&:close)
  end

  def with_socketpair
    ends = machine.socketpair
    yield(*ends)
  ensure
    ends&.each(&:close)
  end

  # Runs the block in a strand, and cancels it in its wait.
  def cancelled_in_wait
    cancelled = nil
    in_scope do |scope|
      scope.spin do
        yield
      rescue Ringspun::Cancelled => cancelled
        raise cancelled
      end
      3.times { machine.yield }
      scope.cancel
    end
    assert_kind_of Ringspun::Cancelled, cancelled
  end

  # Runs the block in a strand, and the other in the root while that waits; the error that has ended the wait.
  def error_of(wait, &meanwhile)
    error = nil
    in_scope do |scope|
      scope.spin do
        wait.call
      rescue StandardError => error
        nil
      end
      3.times { machine.yield }
      meanwhile.call
    end
    error
  end

  def assert_usage_error(*words, &)
    error = assert_raises(Ringspun::UsageError, &)
    words.each { |word| assert_includes error.message, word }
  end
end
