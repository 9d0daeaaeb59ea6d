# frozen_string_literal: true

require "support/both_sides"
require "ringspun/jobs/cli"

# The command line and the file of Sidekiq.
class SidekiqCommandLineTest < BothSides
  # Tells what is set once the worker starts.
  PROGRAM = <<~'RUBY'
    Sidekiq.configure_server do |config|
      config.on(:startup) do
        redis = RedisClient.new(url: ENV.fetch("REDIS_URL"), timeout: 60)
        redis.call("LPUSH", "told", JSON.generate([config.concurrency, config.queues.uniq.sort, config[:timeout], config[:max_retries] || 25,
                                                   config.logger.debug?, config[:tag], config[:labels].to_a, ENV["RAILS_ENV"]]))
        redis.close
      end
    end
  RUBY

  # What both sides tell, with a file of that text.
  def set(*options, file: nil, env: {})
    told = SIDES.keys.to_h do |side|
      folder = Dir.mktmpdir("ringspun-sidekiq-")
      path = File.join(folder, "sidekiq.yml")
      File.write(path, file) if file
      before = ENV.to_h.slice(*env.keys)
      ENV.update(env)
      program = start_side(side, PROGRAM, *options, *(["-C", path] if file))
      answer = self.told
      program.kill
      [side, answer]
    ensure
      env.each_key { |name| ENV[name] = before&.fetch(name, nil) }
      FileUtils.rm_rf(folder) if folder
    end
    assert_equal told[:theirs], told[:ours]
    told[:ours]
  end

  FILE = <<~YAML
    <%- threads = 3 -%>
    :concurrency: <%= threads %>
    :timeout: 7
    :max_retries: 4
    :tag: named
    :labels: [web, eu]
    :pidfile: tmp/x.pid
    :queues:
      - [critical, 3]
      - default
      - low,1
    production:
      :concurrency: 9
    staging:
      :queues: [slow]
  YAML

  def test_the_file
    assert_equal [3, %w[critical default low], 7, 4, false, "named", %w[web eu], "development"], set(file: FILE)
    assert_equal [9, "production"], set("-e", "production", file: FILE).values_at(0, 7)
    assert_equal [3, %w[slow], "staging"], set(file: FILE, env: { "APP_ENV" => "staging" }).values_at(0, 1, 7)
  end

  def test_what_a_file_does_not_say
    assert_equal 5, set("-g", "x", file: ":timeout: 3\n").first
    assert_equal 8, set("-g", "x", file: ":verbose: true\n", env: { "RAILS_MAX_THREADS" => "8" }).first
  end

  def test_the_options
    assert_equal [2, %w[a b], 6, 25, true, "mine", [], "test"],
                 set("-c", "2", "-q", "a,2", "-q", "b", "-t", "6", "-v", "-g", "mine", "-e", "test", file: ":concurrency: 3\n")
  end

  def refused(text)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "sidekiq.yml")
      File.write(path, text)
      error = assert_raises(Ringspun::Jobs::ConfigError) do
        Ringspun::Jobs::CLI.const_get(:File).new(path, "production")
      end
      error.message.delete_prefix("#{path} ")
    end
  end

  def test_what_a_file_cannot_have
    assert_match(/\Ahas capsules, .*\(for single: ringspun-jobs -q one -q two,2 -c 1; for other: ringspun-jobs -q x\)/,
                 refused(":capsules:\n  :single:\n    :concurrency: 1\n    :queues: [one, [two, 2]]\n  other: { queues: [x] }\n"))
    assert_match(/\Ahas capsules/, refused("production:\n  :capsules:\n    a: {}\n"))
    assert_match(/\Ahas redis_url, which is no setting .*config\/ringspun-jobs\.yml/, refused(":redis_url: x\n"))
    assert_match(/\Ahas scheduler, which is neither a setting .* nor the section/, refused(":scheduler:\n  enabled: true\n"))
  end
end
