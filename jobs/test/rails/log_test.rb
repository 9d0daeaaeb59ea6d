# frozen_string_literal: true

require "support/rails_case"

# What a worker of a Rails application logs.
class RailsLogTest < RailsCase
  # Of the text form.
  LINE = /\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?:DEBUG|INFO|WARN|ERROR) pid=\d+ /

  # The lines that it has logged from its start on.
  def lines_of(process)
    process.finish
    process.lines.drop_while { |line| !line.include?("the worker is ready") }.map(&:chomp)
  end

  def texts(lines, pattern) = lines.grep(pattern).map { |line| line.sub(LINE, "").gsub(/(jid|elapsed|at)=\S+ /, '\1= ') }

  def test_a_job_is_one_line_beside_what_it_logs_itself
    process = worker
    app.run("LoudJob.perform_later('done'); nil")
    assert_equal ["done"], seen
    lines = lines_of(process)
    assert_empty lines.grep_v(LINE)
    assert_equal ["jid= class=LoudJob queue=default elapsed= done"], texts(lines, /class=LoudJob/)
    assert_equal ["by Rails", "[a tag] with a tag", "by Active Job"],
                 texts(lines, /by |with a/).map { |text| text.sub(/\[ActiveJob\] \[LoudJob\] \[\h{8}-[\h-]+\] /, "") }
    assert_equal 4, lines.grep(/LoudJob/).size
    assert_equal %w[INFO WARN INFO INFO], lines.grep(/by |with a| done$/).map { |line| line[/INFO|WARN|ERROR/] }
  end

  def test_a_job_that_fails_is_one_line
    process = worker
    app.run("LoudJob.perform_later('fail'); nil")
    assert_equal ["reported ArgumentError job.ringspun"], seen
    process.await(/failed: retry/)
    lines = lines_of(process)
    assert_empty lines.grep_v(LINE)
    assert_match(/\Ajid= class=LoudJob queue=default elapsed= error=ArgumentError message="as told" at=.* failed: retry in/,
                 texts(lines, /as told/).join("\n"))
    assert_equal 4, lines.grep(/LoudJob/).size
  end

  # As at a deploy.
  def test_a_job_that_is_put_back_is_no_error
    process = worker("-t", "0.1")
    app.run("LoudJob.perform_later('wait'); nil")
    assert_equal ["wait"], seen
    lines = lines_of(process)
    assert_empty lines.grep_v(LINE)
    assert_empty lines.grep(/ERROR|Cancelled|\.rb/)
    assert_match(/\Ajid= class=LoudJob queue=default elapsed= back in its queue/, texts(lines, /class=LoudJob/).join("\n"))
    assert_equal [1, []], [storage.stats[:enqueued], call("LRANGE", "seen", 0, -1)]
  end

  def test_lines_of_json
    process = worker("--log-format", "json")
    app.run("LoudJob.perform_later('done'); nil")
    assert_equal ["done"], seen
    lines = lines_of(process).map { |line| JSON.parse(line) }
    assert_equal ["by Rails", "[a tag] with a tag", "by Active Job", "done"],
                 lines.map { |line| line["text"].sub(/\[ActiveJob\] \[LoudJob\] \[[\h-]+\] /, "") }.grep(/by |with|\Adone/)
    assert_equal 1, lines.count { |line| line["class"] == "LoudJob" }
  end

  # What an application writes into a file stays there as well. A job runs once, though two loggers have it.
  def test_a_log_in_a_file
    process = worker(env: { "RAILS_ENV" => "development" })
    app.run("LoudJob.perform_later('done'); nil")
    assert_equal ["done"], seen
    lines = lines_of(process)
    assert_empty lines.grep_v(LINE)
    assert_equal [1, 1], [lines.grep(/class=LoudJob/).size, lines.grep(/by Rails/).size], lines.join("\n")
    assert_nothing_seen
    file = File.readlines("#{RailsApp.folder}/log/development.log").last(30).join
    assert_match(/by Rails/, file)
  end
end
