# frozen_string_literal: true

require_relative "../../../runtime/test/support/heard_process"

# The executable.
class Command < HeardProcess
  EXECUTABLE = File.expand_path("../../exe/ringspun-jobs", __dir__)
  LOAD_PATH = %w[../../lib ../../../runtime/lib].map { |folder| "-I#{File.expand_path(folder, __dir__)}" }.freeze

  def initialize(*, program: ["-w", *LOAD_PATH, EXECUTABLE], **) = super(*program, *, **)
end
