# frozen_string_literal: true

require "support/interop_case"

# A program that was written for Sidekiq, run twice on the same Redis: with the real one, and with what stands in for it. What it
# answers, and what it leaves in Redis, must be the same.
class BothSides < InteropCase
  SIDES = { theirs: "sidekiq", ours: "ringspun/jobs/sidekiq" }.freeze
  # What a worker has before its command and its program load the rest.
  WORKERS = { theirs: "sidekiq", ours: "ringspun/jobs" }.freeze
  EXECUTABLE = File.join(Program::ROOT, "jobs/exe/ringspun-jobs")

  def before_setup
    SIDES.each_value { |library| ForkServer.for(library) }
    super
  end

  # Times differ between the runs, and jids.
  TIMES = %w[created_at enqueued_at failed_at retried_at discarded_at].freeze

  # When a job is due. A program names a time or a time from now: the two runs must agree on either.
  Due = Struct.new(:at, :minutes_from_now) do
    def ==(other) = at == other.at || minutes_from_now == other.minutes_from_now
  end

  # What the program has made: its answer, and what stands in Redis.
  Made = Struct.new(:answer, :stored)

  # Runs the code on both sides. Its value must be one that JSON knows.
  #
  # @return [Made]
  def both(code)
    made = SIDES.to_h { |side, library| [side, run_program(library, code)] }
    assert_equal made[:theirs].answer, made[:ours].answer
    assert_equal made[:theirs].stored, made[:ours].stored
    made[:ours]
  end

  def run_one(side, code) = run_program(SIDES.fetch(side), code)

  # A worker of that side with this program, and options of the command line.
  def start_side(side, code, *options)
    program = ForkedProgram.new(WORKERS.fetch(side), { "REDIS_URL" => url }) do |folder|
      app = File.join(folder, "app.rb")
      File.write(app, "require #{SIDES.fetch(side).inspect}\n#{RealSidekiq::JOBS.sub(/^class FromSidekiq.*/m, "")}\n#{code}")
      [side == :theirs ? Gem.bin_path("sidekiq", "sidekiq") : EXECUTABLE, "-r", app, *options]
    end
    @programs.push(program).last
  end

  private

  def run_program(library, code)
    redis.call("FLUSHALL")
    program = ForkedProgram.ruby(library, <<~RUBY, env: { "REDIS_URL" => url })
      require "json"
      Sidekiq.logger.level = Logger::FATAL
      answer = begin
        #{code}
      end
      puts "ANSWER \#{JSON.generate([answer])}"
    RUBY
    @programs << program
    status = program.wait
    assert_predicate status, :success?, program.log
    Made.new(JSON.parse(program.log[/^ANSWER (.*)$/, 1]).first, stored)
  end

  # Every job: where it stands, and its fields.
  def stored
    lists = redis.call("SMEMBERS", "queues").sort.to_h do |queue|
      [queue, redis.call("LRANGE", "queue:#{queue}", 0, -1).map { |entry| plain(entry) }]
    end
    sets = %w[schedule retry dead].to_h do |set|
      scored = redis.call("ZRANGE", set, 0, -1, "WITHSCORES")
      [set, scored.map { |entry, score| plain(entry).merge("due" => due(score)) }]
    end
    lists.merge(sets)
  end

  def due(score) = Due.new(score, ((score - Time.now.to_f) / 60).round)

  def plain(entry)
    job = JSON.parse(entry)
    job["jid"] = "a jid" if job["jid"].match?(/\A\h{24}\z/)
    TIMES.each { |name| job[name] = (Ringspun::Jobs::Wire.seconds(job[name]) - Time.now.to_f).abs < 60 if job.key?(name) }
    job.sort.to_h
  end
end
