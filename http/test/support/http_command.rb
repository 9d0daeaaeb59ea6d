# frozen_string_literal: true

require "fileutils"
require "net/http"
require "support/heard_process"
require "tmpdir"

# The executable, in a folder with a program.
class HTTPCommand < HeardProcess
  EXECUTABLE = File.expand_path("../../exe/ringspun-http", __dir__)
  LOAD_PATH = %w[../../lib ../../../runtime/lib].map { |folder| "-I#{File.expand_path(folder, __dir__)}" }.freeze

  # @param files [Hash{String => String}] what is in the folder, by paths
  # @param code [String, nil] a program that begins the executable, which is its first argument
  # @param handed_in [IO, nil] its descriptor 3
  # @yieldparam command [HTTPCommand]
  # @return [Object] of the block
  def self.run(*arguments, files:, env: {}, code: nil, handed_in: nil, &block)
    Dir.mktmpdir do |folder|
      files.each do |path, text|
        FileUtils.mkdir_p(File.dirname(File.join(folder, path)))
        File.write(File.join(folder, path), text)
      end
      command = new([*("-e" if code), *code, EXECUTABLE, *arguments], env, folder, handed_in ? { 3 => handed_in } : {})
      block.call(command)
    ensure
      command&.close
    end
  end

  def initialize(words, env, folder, descriptors)
    @folder = folder
    env = { "PORT" => nil, "WEB_CONCURRENCY" => nil, "RACK_ENV" => nil, "RAILS_ENV" => nil, **env }
    super("-w", *LOAD_PATH, *words, env:, chdir: folder, descriptors:)
  end

  def path(name) = File.join(@folder, name)

  # @return [Integer] of the first place where it listens
  def port = @port ||= Integer(await(/event=starting .*listen=\S*?:(\d+)/)[1])

  def get(path, port: self.port) = Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path}"))

  # @return [Boolean] whether it listens no more
  def refuses?(port = self.port)
    TCPSocket.new("127.0.0.1", port).close
    false
  rescue Errno::ECONNRESET
    false
  rescue Errno::ECONNREFUSED
    true
  end

  # @return [Integer, nil] the exit status, once it has ended
  def wait = super.exitstatus

  # @return [Integer, nil] the signal that has ended it
  def termsig = @status.termsig
end
