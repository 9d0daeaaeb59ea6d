# frozen_string_literal: true

require_relative "command"
require_relative "fork_server"

# The same, forked from a Ruby that has loaded the executable: a start costs a tenth.
class ForkedCommand < Command
  LIBRARY = "ringspun/jobs/cli"

  def self.server = ForkServer.for(LIBRARY)

  # @param server [ForkServer] from which it is forked
  # @param program [Array(String)] its file
  def initialize(*, server: self.class.server, program: [EXECUTABLE], **)
    @server = server
    super(*, program:, **)
  end

  private

  def start((file, *arguments), env, chdir, writer, _descriptors)
    @server.run(file, arguments, env, "/proc/#{Process.pid}/fd/#{writer.fileno}", chdir)
  end

  def ended
    Patience.poll(LIMIT_SECONDS, pause: 0.001) { @server.status(@pid) } || raise("it does not end:
#{text}")
  end
end
