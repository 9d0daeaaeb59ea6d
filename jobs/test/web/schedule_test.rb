# frozen_string_literal: true

require "jobs_helper"
require "support/client_storage"
require "support/web_case"

# The page of jobs that come by a schedule.
class WebScheduleTest < WebCase
  include ClientStorage

  EVIL = %(<script>alert("x")</script>)

  def define(name = "nightly", text: nil, **fields)
    entry = Jobs.const_get(:Cron)::Entry.new(name, "every day at 4am", "Report", ["all"], **fields)
    memory.cron_define("shop", [Storage::Cron.new(name:, schedule: "x", text: text || entry.to_text("UTC"))])
  end

  def test_there_may_be_none = assert_match(/Cron There are none/, text("/cron"))

  def test_an_entry_with_its_runs
    define(description: "for the board")
    assert_match(/1 entry .*nightly for the board every day at 4am UTC Report in .* never runs Pause Run now/, text("/cron"))
    memory.cron_push("nightly", memory.time + 1, Storage::Push.new(queue: "default", entry: entry("abc"), jid: "abc"))
    memory.cron_push("nightly", nil, nil)
    assert_match(/Last runs of nightly 2 runs Tick Enqueued Job by hand .* ago none .* ago abc/, text("/cron"))
    assert_includes get("/cron").body, %(href="/search?jid=abc")
  end

  def test_it_is_paused_and_goes_on
    define
    assert_equal ["/cron", "1 paused."], told(press("/cron?name=nightly", act: "pause"))
    assert_match(/nightly .* none never paused Resume Run now/, text("/cron"))
    assert_equal ["/cron", "1 going on."], told(press("/cron?name=nightly", act: "resume"))
    assert_match(/Not there any more: 1/, told(press("/cron?name=nightly", act: "resume")).last)
    assert_match(/Not there any more: 1/, told(press("/cron?name=weekly", act: "pause")).last)
    assert_equal 400, press("/cron?name=nightly", act: "explode").status
  end

  def test_it_runs_now
    define
    assert_equal ["/cron", "1 enqueued."], told(press("/cron?name=nightly", act: "run"))
    assert_equal %w[Report], memory.list("default", 0, 9).map { |job| JSON.parse(job.entry)["class"] }
  end

  def test_what_cannot_be_made_here_is_said
    define(text: JSON.generate("schedule" => "every day", "class" => "Nobody", "args" => [], "options" => {}, "wrapped" => true))
    answer = press("/cron?name=nightly", act: "run")
    assert_equal 409, answer.status
    assert_match(/Nothing was done.*only a program that has Nobody can make its jobs/m, answer.body)
    define(unique_for: 60, unique_token: "t")
    memory.lock("t", "other", 60)
    assert_match(/nightly is not enqueued: another job holds its lock/, press("/cron?name=nightly", act: "run").body)
  end

  def test_whatever_is_written_there_stays_text
    define(EVIL, description: EVIL, zone: "Asia/Tokyo")
    memory.cron_push(EVIL, nil, Storage::Push.new(queue: "default", entry: entry(EVIL), jid: EVIL))
    refute_includes get("/cron").body, "<script>"
    memory.cron_define("shop", [Storage::Cron.new(name: EVIL, schedule: EVIL, text: EVIL)])
    refute_includes get("/cron").body, "<script>"
    assert_equal 200, get("/cron").status
  end
end
