# frozen_string_literal: true

ActiveJob::Base.logger = Logger.new(nil)

# Jobs of Active Job, without Rails, in a storage in memory, and a worker that runs those that wait.
class ActiveJobCase < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs

  # A storage in memory that counts calls, and answers as the test says.
  class Recorder < Ringspun::Jobs::Storage::Memory
    attr_reader :calls
    attr_accessor :answers, :error

    def initialize(...)
      super
      @calls = 0
    end

    def push(pushes, connection: nil)
      @calls += 1
      raise error if error

      stored = answers ? pushes.zip(answers).reject(&:last).map(&:first) : pushes
      super(stored, connection: connection) || answers
    end
  end

  class << self
    # What jobs have done.
    def done = @done ||= []
  end

  def setup
    super
    ActiveJobCase.done.clear
    ActiveJob::Base.queue_adapter = :ringspun
    @storage = Recorder.new
    Jobs.storage = @storage
  end

  def teardown
    Jobs.config.client_middleware.clear
    Jobs.config.server_middleware.clear
    Jobs.storage = nil
    super
  end

  def done = ActiveJobCase.done

  def entries(queue = "default") = @storage.list(queue, 0, 100).map { |job| JSON.parse(job.entry) }

  def set(name) = @storage.scan(name, 0, 100).map { |job| [JSON.parse(job.entry), job.at] }

  def scheduled = set(:schedule)

  # Runs what waits in these queues.
  #
  # @return [Hash{Symbol => Integer}] how many runs have ended how
  def work(*queues, **settings)
    config = Jobs::Config.new.update({ queues: queues, concurrency: 10, **settings })
    worker = Jobs::Worker.new(config, storage: @storage, logger: Logger.new(@log = StringIO.new))
    Ringspun.run do |machine|
      running = machine.spin { worker.run }
      machine.sleep(0.001) until @storage.stats.values_at(:enqueued, :in_flight).sum.zero? && worker.busy.zero?
      worker.stop
      running.join
    end
    worker.counts
  end
end
