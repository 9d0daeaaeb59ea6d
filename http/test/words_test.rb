# frozen_string_literal: true

require "http_helper"
require "stringio"
require "tmpdir"
require "ringspun/http/command"

# rubies: one
# inputs: http, runtime/lib

# All words of the configuration file with all kinds of values: the server starts, or the start ends with status 64 and says which
# word is wrong, and in which line.
class HTTPWordsTest < Minitest::Test
  # It ends the server once that listens. Loaded before there is one, it ends the command.
  RU = <<~RUBY
    Thread.current.thread_variable_get(:ringspun_run) ? Process.kill(:TERM, Process.pid) : exit
    run ->(_env) { [200, {}, []] }
  RUBY

  VALUES = ["0", "-3", "1.5", "1e9", "2**70", "Float::NAN", "'x'", "''", "\"a\\0b\"", ":x", "nil", "true", "false", "[]", "[nil]",
            "{}", "{ x: 1 }", "Object.new", "BasicObject"].freeze
  ARGUMENTS = ["", *VALUES.map { |value| "(#{value})" }, " { |*| 5 }", "(5) { |*| 5 }", "('a', 'b')", " x: 1"].freeze
  # What messages call those that have several names.
  NAMES = { bind: "listen", rackup: "app", access_log: "access.log" }.freeze
  # Nothing is forked.
  STARTED = Class.new(Exception) # rubocop:disable Lint/InheritException -- else the parent tries again

  def setup
    @before = ENV.to_h
    @home = Dir.pwd
    @folder = Dir.mktmpdir
    File.write("#{@folder}/config.ru", RU)
  end

  def teardown
    ENV.replace(@before)
    FileUtils.remove_entry(@folder)
    super
  end

  # @return [Array(Integer, String)]
  def end_of(file, *arguments)
    errors = StringIO.new
    Dir.chdir(@folder)
    File.write("f.rb", file)
    [Ringspun::HTTP::Command.new(["-C", "f.rb", *arguments], output: StringIO.new, errors:).run, errors.string]
  rescue SystemExit, STARTED
    [0, errors.string]
  ensure
    Dir.chdir(@home)
    FileUtils.rm(Dir["#{@folder}/*"] - ["#{@folder}/config.ru"])
    ENV.replace(@before)
  end

  def words = Ringspun::HTTP::Command.const_get(:Words)

  # The line before, which the word's own replaces, keeps the test from what it would have to do.
  def file_of(word, arguments)
    <<~RUBY
      #{"listen 'tcp://127.0.0.1:0'" unless %i[listen bind port].include?(word)}
      #{"logger nil" unless word == :logger}
      #{"before_fork { raise HTTPWordsTest::STARTED }" if word == :workers}
      #{word}#{arguments}
    RUBY
  end

  def test_every_word_with_every_value
    wrong = words.of_files.product(ARGUMENTS).filter_map do |word, arguments|
      status, text = end_of(file_of(word, arguments))
      next if status.zero? || (status == 64 && text.match?(/^ringspun-http: f\.rb:4: .*(#{word}|#{NAMES[word]})/))

      "#{word}#{arguments}: #{status} #{text.lines.last}"
    rescue StandardError => error
      "#{word}#{arguments}: #{error.class} #{error.message.lines.first}"
    end
    assert_empty wrong, wrong.join("\n")
  end

  # What would start a server that does something else than what was said.
  def test_values_that_do_not_fit
    { "errors 5" => /errors: must have puts, as an IO has it, got 5/, "errors { }" => /errors: must have puts/,
      "errors 'none/e'" => %r{errors: none/e cannot be opened: No such file}, "errors :stderr" => /errors: must have puts/,
      "logger :x" => /logger: must be a Logger, an IO or nil, got :x/, "logger 'none/l'" => %r{logger: none/l cannot be opened},
      "access_log :common, to: 5" => /the access log goes to a path or an IO, got 5/,
      "access_log(:common) { }" => /access_log takes one value, got 2/,
      "preload 'yes'" => /preload: is true or false, got "yes"/, "early_hints 'x'" => /early_hints: is true or false, got "x"/,
      "tracing 5" => /tracing: is true or false, got 5/, "environment 5" => /environment takes a name, .* got 5/,
      "environment" => /environment takes one value, got 0/, "directory 'none'" => /directory: No such file/,
      "limits bodymax: 3" => /limits: there is no limit bodymax, did you mean body_max\?/,
      "limits head: 'x'" => /limits: head must be seconds above 0/, "limits nil => 3" => /limits: there is no limit ;/,
      "limits { 1 }" => /limits: takes a Hash/,
      "limits body: 0\nlimits head: 1" => /limits: body must be/, "metrics '#{"x" * 200}'" => /metrics: .*too long/,
      "listen 'ftp://x'\nlisten 'tcp://h:1'" => /listen: takes tcp/, "listen 'h', 70_000" => /listen: has ports up to 65535/,
      "listen nil\nlisten 'x'" => /listen: takes/, "drain(3) { }" => /drain takes one value, got 2/,
      "app 'none.ru'" => %r{app: there is no /.*none\.ru}, "app(5)" => /app needs a path, a program/,
      "port('5') { }" => /port takes no block/, "workers 5 => 6" => /workers: must be :cores or a number/ }
      .each do |line, message|
        file = "logger nil\n#{"listen 'tcp://127.0.0.1:0'" unless line.start_with?("listen")}\n#{line}"
        file = file.delete_prefix("logger nil") if line.start_with?("logger")
        assert_equal 64, (ended = end_of(file)).first, line
        assert_match(/^ringspun-http: f\.rb:3: #{message}/, ended.last)
      end
  end

  def test_words_that_are_off
    said = Dir.chdir(@folder) do
      File.write("f.rb", "access_log false\ndirectory Pathname(Dir.pwd)")
      Ringspun::HTTP::Command.const_get(:File).read("f.rb", "test")
    end
    assert_nil said.options.fetch(:access_log)
    assert_equal File.realpath(@folder), File.realpath(said.others[:directory])
  end

  # Limits that come one by one come together.
  def test_values_that_fit
    file = "errors 'e'\nlogger 'l'\nlimits head: 3\nlimits body: 4\nearly_hints\naccess_log { |exchange| exchange.client }"
    said = Dir.chdir(@folder) do
      File.write("f.rb", file)
      Ringspun::HTTP::Command.const_get(:File).read("f.rb", "test").options
    end
    assert_equal [{ head: 3, body: 4 }, true], said.values_at(:limits, :early_hints)
    said.values_at(:errors, :logger).each { |stream| stream.puts("told") }
    assert_equal(%W[told\n told\n], %w[e l].map { |path| File.read("#{@folder}/#{path}") })
    assert_equal "me", said[:access_log].instance_variable_get(:@lines).call(Struct.new(:client).new("me"))
  ensure
    said&.values_at(:errors, :logger)&.each(&:close)
  end

  def test_streams_of_programs
    [5, nil, "e", :e, Object].each do |errors|
      [-> { Ringspun::HTTP.run(->(_) {}, listen: ["127.0.0.1", 0], workers: 0, logger: nil, errors:) },
       -> { Ringspun.run { Ringspun::HTTP.listen(->(_) {}, "127.0.0.1", 0, errors:) } }].each do |start|
        assert_match(/errors: must have puts/, assert_raises(Ringspun::UsageError, &start).message)
      end
    end
    assert_raises(Ringspun::UsageError) { Ringspun::HTTP.run(->(_) {}, listen: ["127.0.0.1", 0], workers: 0, logger: "l") }
  end
end
