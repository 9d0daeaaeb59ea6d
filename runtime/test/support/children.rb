# frozen_string_literal: true

require "rbconfig"

# Child processes with an end: a child that hangs is killed, by its pid, and fails the test.
module Children
  Answer = Data.define(:out, :err, :status)

  LOAD_PATH = %w[../../lib ..].map { |folder| File.expand_path(folder, __dir__) }.freeze

  # Forks, runs the block in the child and answers its Process::Status. The child ends by exit!, so no at_exit block
  # of the tests runs there; it succeeds unless the block raises.
  def in_child(timeout: 30)
    pid = fork do
      yield
      leave_child(true)
    rescue Exception => error
      warn error.full_message unless error.is_a?(SystemExit)
      leave_child(error.is_a?(SystemExit) && error.success?)
    end
    wait_for(pid, timeout) { flunk "the forked child ran longer than #{timeout} s" }
  end

  # Runs code in a fresh Ruby that can require ringspun, and answers what it printed and how it ended.
  def ruby_child(code, *arguments, env: {}, timeout: 30)
    out, err = Array.new(2) { IO.pipe }
    # Without Bundler, which would be most of the child's time.
    pid = spawn({ "RUBYOPT" => nil, **env }, RbConfig.ruby, "-w", *LOAD_PATH.map { |folder| "-I#{folder}" }, "-e", code,
                *arguments, in: File::NULL, out: out.last, err: err.last)
    printed = [out, err].map do |reader, writer|
      writer.close
      Thread.new { reader.read }
    end
    status = wait_for(pid, timeout) { flunk "the Ruby child ran longer than #{timeout} s: #{code}" }
    Answer.new(*printed.map(&:value), status)
  ensure
    [*out, *err].each(&:close)
  end

  private

  def wait_for(pid, timeout)
    waiter = Process.detach(pid)
    return waiter.value if waiter.join(timeout)

    Process.kill(:KILL, pid)
    waiter.join
    yield
  end

  def leave_child(success)
    [$stdout, $stderr].each(&:flush)
    exit!(success)
  end
end
