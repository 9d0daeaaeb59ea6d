# frozen_string_literal: true

require "support/forked_command"
require "support/redis_case"
require "tmpdir"

# The executable on the tests' Redis, with the jobs of a program. The class says which: PROGRAM, and in SETTINGS what its workers
# are told.
class CommandCase < RedisCase
  def before_setup
    ForkedCommand.server
    super
  end

  def setup
    super
    @folder = Dir.mktmpdir("ringspun-command-")
    # A name for each test: what a killed process has asked of the server before may still happen for two seconds.
    @namespace = File.basename(@folder)
    File.write(path("app.rb"), self.class::PROGRAM)
    File.write(path("fast.yml"), self.class::SETTINGS)
  end

  def teardown
    FileUtils.rm_rf(@folder)
    super
  end

  def path(name) = File.join(@folder, name)

  def lapse(pid) = super(pid, prefix: "#{@namespace}:")

  def storage = @storage ||= open_storage({ path: redis_path }, namespace: @namespace)

  def start(*arguments, program: "app.rb")
    settings = ["-r", program, "-C", "fast.yml", "--redis", "unix://#{redis_path}", "--namespace", @namespace]
    @command = opened(ForkedCommand.new(*settings, *arguments, env: { "SEEN" => redis_path }, chdir: @folder))
  end
end
