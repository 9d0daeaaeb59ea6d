# frozen_string_literal: true

# A program of its own in which jobs are enqueued and run, for gems that a process must not have beside other tests: they patch
# what these use.
module TellingProgram
  include Children

  START = <<~'RUBY'
    require "json"
    require "logger"
    require "ringspun/jobs"

    Ringspun::Jobs.configure { |config| config.storage = :memory }

    class Work
      include Ringspun::Jobs::Job
      job_options retry: 1

      retry_in { 3600 }

      def perform(what, *rest)
        case what
        when "fail" then raise ArgumentError, "no luck"
        when "snooze" then snooze(3600)
        when "block" then BLOCKS.fetch(rest.first).call
        end
      end
    end
    BLOCKS = {}

    # Runs what is enqueued, until so many runs have ended.
    def work(count, log = Logger.new(nil))
      worker = Ringspun::Jobs::Worker.new(Ringspun::Jobs.config, storage: Ringspun::Jobs.storage, logger: log)
      Ringspun.run do |machine|
        machine.spin { worker.run }
        machine.sleep 0.005 until worker.counts.values.sum >= count
        worker.stop
      end
    end
  RUBY

  # @return [Object] what the program has printed as JSON
  def told(program)
    answer = ruby_child("#{START}#{program}", env: { "RUBYLIB" => $LOAD_PATH.join(":"), "OTEL_TRACES_EXPORTER" => "none" })
    assert_equal ["", true], [answer.err, answer.status.success?]
    JSON.parse(answer.out)
  end
end
