# frozen_string_literal: true

require "jobs_helper"
require "stringio"
require "tempfile"

class LogTest < Minitest::Test
  include Strands

  Log = Ringspun::Jobs::Log
  JOB = { "jid" => "b4a5", "class" => "MailJob", "queue" => "default", "args" => [1] }.freeze
  START = /\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/

  def setup
    @file = Tempfile.create("log")
  end

  def teardown
    @log&.logger&.close
    @file.close
    File.unlink(@file.path)
  end

  def log(**options) = @log ||= Log.new(Log.open(path: @file.path, **options))

  def lines = File.readlines(@file.path, chomp: true)

  # Without what every line begins with.
  def texts = lines.map { |line| line.sub(/#{START} /o, "").sub(" pid=#{Process.pid}", "") }

  def error_at(place, message = "boom") = RuntimeError.new(message).tap { |error| error.set_backtrace([place]) }

  # --- what is told ---

  def test_a_job_that_is_done
    log.started(JOB)
    log.done(JOB, 0.01234)
    assert_match START, lines.first
    assert_equal ["INFO jid=b4a5 class=MailJob queue=default elapsed=0.012 done"], texts
  end

  def test_names_that_a_reader_could_not_tell_apart_are_quoted_each_time
    2.times { log.done(JOB.merge("queue" => "two words"), 61.5) }
    assert_equal ['INFO jid=b4a5 class=MailJob queue="two words" elapsed=61.500 done'] * 2, texts
  end

  def test_more_names_than_are_kept
    1001.times { |number| log.done(JOB.merge("queue" => "q#{number}"), 0) }
    assert_equal "INFO jid=b4a5 class=MailJob queue=q1000 elapsed=0.000 done", texts.last
  end

  def test_starts_are_told_at_debug
    log(level: "debug").started(JOB)
    assert_equal ["DEBUG jid=b4a5 class=MailJob queue=default start"], texts
  end

  def test_a_job_that_failed
    log.failed(JOB, error_at("app.rb:3"), 1.0, "retry in 20 s")
    assert_equal ["WARN jid=b4a5 class=MailJob queue=default elapsed=1.0 error=RuntimeError message=boom at=app.rb:3 " \
                  "failed: retry in 20 s"], texts
  end

  def test_a_failure_whose_message_raises
    error = Class.new(StandardError) { def message = raise("no") }.new
    log.failed(JOB, error, 1.0, "dead")
    assert_match(/message="its message raises RuntimeError" failed: dead\z/, lines.first)
  end

  def test_a_failure_of_a_class_without_a_name
    log.failed(JOB, Class.new(StandardError).new("boom"), 1.0, "dead")
    assert_match(/ error="?#<Class:0x\h+>"? message=boom failed: dead\z/, lines.first)
  end

  def test_what_a_wrapper_runs_is_named
    log.done(JOB.merge("wrapped" => "Mailer"), 0)
    assert_match(/class=Mailer /, lines.first)
  end

  def test_an_event_with_values
    log.event(:warn, "too late", node: "a:1:b", text: "two words", none: nil, line: "a\nb", quote: '"')
    assert_equal [%q(WARN node=a:1:b text="two words" none="" line="a\nb" quote="\"" too late)], texts
  end

  def test_the_level
    log(level: "warn").done(JOB, 0)
    log.event(:info, "no")
    log.event(:error, "yes")
    assert_equal ["ERROR yes"], texts
  end

  def test_json
    log(format: "json").failed(JOB, error_at("app.rb:3", "b\xff".b.force_encoding("UTF-8")), 1.0, "dead")
    told = JSON.parse(lines.first)
    assert_match(/#{START}\z/o, told.delete("time"))
    assert_equal({ "level" => "warn", "pid" => Process.pid, "jid" => "b4a5", "class" => "MailJob", "queue" => "default",
                   "elapsed" => 1.0, "error" => "RuntimeError", "message" => "b\ufffd", "at" => "app.rb:3",
                   "text" => "failed: dead" }, told)
  end

  def test_its_logger_is_a_stock_one
    log(format: "json").logger.info { "of a job" }
    log.logger.error(error_at("x.rb:1"))
    log.logger.debug("not told")
    assert_equal ["of a job", "x.rb:1: boom (RuntimeError)"], lines.map { |line| JSON.parse(line)["text"].chomp }
  end

  def test_any_other_logger
    text = StringIO.new
    other = Log.new(Logger.new(text, formatter: ->(severity, _, _, message) { "#{severity} #{message}|" }))
    other.started(JOB)
    other.done(JOB, 0.5)
    other.event(:warn, "that", number: 3)
    [other.flush, other.reopen]
    assert_equal "DEBUG jid=b4a5 class=MailJob queue=default start|INFO jid=b4a5 class=MailJob queue=default elapsed=0.5 done|" \
                 "WARN number=3 that|", text.string
  end

  # As entries and errors may bring them.
  def tell_of_bytes(log)
    bad = "\xFF\xFE"
    log.failed(JOB.merge("jid" => bad, "queue" => "ä"), error_at("app.rb:3", "b\xFF".b), 1.0, "dead")
    log.failed(JOB.merge("jid" => bad.b), error_at("ä.rb:3", "ä".encode("UTF-16LE")), 1.0, "dead")
    log.event(:warn, "no job: #{bad}".b, ratio: Float::NAN)
    log.logger.warn(bad.b)
  end

  def test_texts_that_are_no_utf8
    tell_of_bytes(log)
    assert_equal [true, 4], [File.read(@file.path).valid_encoding?, lines.size]
    assert_match(/jid=\ufffd\ufffd class=MailJob queue=ä .* message=b\ufffd /, lines[0])
    assert_match(/message=ä at=ä.rb:3 /, lines[1])
  end

  def test_texts_that_are_no_utf8_in_json
    tell_of_bytes(log(format: "json"))
    assert_equal ["\ufffd\ufffd", "\ufffd\ufffd", nil, nil], (lines.map { |line| JSON.parse(line)["jid"] })
  end

  def test_texts_that_are_no_utf8_for_any_other_logger
    text = StringIO.new
    tell_of_bytes(Log.new(Logger.new(text, formatter: ->(_, _, _, message) { Log.const_get(:Lines).utf8(message) })))
    assert_match(/message=ä at=ä.rb:3 /, text.string)
  end

  def test_a_logger_that_raises_is_told_of_once
    other = Log.new(Logger.new(StringIO.new, formatter: ->(*) { raise "no" }))
    _, told = capture_io { 2.times { other.done(JOB, 0) } }
    assert_equal "ringspun-jobs: a line of the log is lost: RuntimeError: no\n", told
  end

  # As where both are a pipe to a program that has ended.
  def test_a_log_that_nobody_reads_and_an_error_that_nobody_reads
    reader, writer = IO.pipe
    reader.close
    before, $stderr = $stderr, writer
    raising = Log.new(Logger.new(StringIO.new, formatter: ->(*) { raise "no" }))
    gone = Log.new(Log.const_get(:Front).new(writer, Log.const_get(:TextLines).new, "info"))
    2.times { [raising, gone].each { |log| log.done(JOB, 0) } }
  ensure
    $stderr = before
    writer.close
  end

  def test_a_file_that_cannot_be_opened
    error = assert_raises(Ringspun::Jobs::ConfigError) { Log.open(path: "/nowhere/log") }
    assert_match(%r{the log /nowhere/log cannot be opened: No such file}, error.message)
  end

  # --- where it is written ---

  def test_a_file_that_was_moved_away
    [log, log.logger].each_with_index do |one, round|
      log.event(:info, "old")
      File.rename(@file.path, moved = "#{@file.path}.#{round}")
      one.reopen
      assert_equal [0, 1], [File.size(@file.path), File.readlines(moved).size]
      log.event(:info, "new")
      assert_equal ["INFO new"], texts
      File.truncate(@file.path, 0)
    ensure
      File.unlink(moved)
    end
  end

  def test_a_logger_that_cannot_be_opened_anew
    text = StringIO.new
    logger = Logger.new(text).tap { |other| other.define_singleton_method(:reopen) { raise IOError, "no" } }
    Log.new(logger).reopen
    assert_match(/ERROR .* the log stays as it is: no$/, text.string)
  end
end
