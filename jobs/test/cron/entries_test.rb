# frozen_string_literal: true

require "jobs_helper"
require "fileutils"
require "tempfile"
require "support/client_storage"
require "tmpdir"

# What the setting `cron` and `Jobs.cron` take, and what they refuse with what to do.
class CronEntriesTest < Minitest::Test
  include AnyBackend
  include ClientStorage

  Jobs = Ringspun::Jobs
  Cron = Jobs.const_get(:Cron)

  class Report
    include Jobs::Job
    job_options queue: "low", retry: 3

    def perform(*) = nil
  end

  FIELDS = { "schedule" => "every day at 4am", "class" => "CronEntriesTest::Report" }.freeze

  def setup
    super
    @config = Jobs::Config.new
  end

  def set(value)
    @config.cron = value
    @config.cron_entries
  end

  def one(**fields) = set("nightly" => { **FIELDS, **fields.transform_keys(&:to_s) })["nightly"]

  def refused(value = nil, **fields)
    error = assert_raises(Jobs::ConfigError) { value ? set(value) : one(**fields) }
    assert_equal 1, error.message.lines.size
    error.message
  end

  def add(name, schedule, job_class, *arguments, **)
    @config.add_cron(Cron::Entry.new(name, schedule, job_class, arguments, **))
  end

  def in_file(text)
    Tempfile.create(["schedule", ".yml"]) do |file|
      file.write(text)
      file.flush
      yield file.path
    end
  end

  # The job as a worker would push it.
  def job(entry) = JSON.parse(Cron::Making.push(entry).entry)

  def test_an_entry_and_its_job
    entry = one(args: ["all", { "n" => [1] }], queue: "reports", priority: 5, zone: "Europe/Berlin", catch_up: "all",
                description: "for the board")
    assert_equal ["nightly", :all, "for the board", "0 4 * * * Europe/Berlin"],
                 [entry.name, entry.catch_up, entry.description, entry.key("UTC")]
    job = job(entry)
    assert_equal ["CronEntriesTest::Report", ["all", { "n" => [1] }], "reports", 3, 5],
                 job.values_at("class", "args", "queue", "retry", "ringspun_priority")
    assert_equal ["low", []], job(one).values_at("queue", "args")
    assert_kind_of Float, job(one)["enqueued_at"]
    assert_equal [[5], [{ "a" => 1 }], %w[a b]], [5, { a: 1 }, [:a, "b"]].map { |args| one(args: args).arguments }
    assert_equal :once, one.catch_up
  end

  def test_texts_in_another_encoding
    set("größe".encode("ISO-8859-1") => { **FIELDS, "description" => "für alle".encode("ISO-8859-1") }).each do |name, entry|
      assert_equal %w[größe größe], [name, entry.name]
      assert_equal ["für alle"] * 2, [entry.description, JSON.parse(entry.to_text("UTC"))["description"]]
    end
  end

  class Größe < Report; end

  def test_a_class_whose_name_has_other_letters
    assert_equal "CronEntriesTest::Größe", job(one(class: "CronEntriesTest::Größe"))["class"]
    assert_equal "CronEntriesTest::Größe", job(one(class: Größe))["class"]
  end

  # The name is enough for other programs' classes, also as Elixir writes it.
  def test_a_class_that_only_others_have
    assert_equal %w[MyApp.Mail default], job(one(class: "MyApp.Mail")).values_at("class", "queue")
    assert_equal "reports", job(one(class: "Nobody::Knows", queue: "reports"))["queue"]
  end

  def test_a_class_whose_file_does_not_load_is_told
    Object.autoload(:CronEntriesBroken, "/nowhere/cron_entries_broken")
    assert_raises(LoadError) { job(one(class: "CronEntriesBroken")) }
  ensure
    Object.send(:remove_const, :CronEntriesBroken)
  end

  def test_what_is_stored_of_it_is_enough_for_others
    entry = one(args: [1], catch_up: "skip", unique_for: 60, zone: "Asia/Tokyo")
    other = Cron::Entry.load("nightly", entry.to_text("UTC"))
    assert_equal [entry.key("UTC"), [1], :skip], [other.key("Europe/Berlin"), other.arguments, other.catch_up]
    assert_equal [60, "low", 3], other.options.values_at(:unique_for, :queue, :retry)
    assert_equal "0 4 * * * Europe/Berlin",
                 Cron::Entry.load("a", one.to_text("Europe/Berlin")).key("UTC")
    ["", "{}", "5", "[]", '{"schedule":"every day","class":"A","args":[],"options":5}'].each do |text|
      assert_raises(Jobs::ConfigError, text) { Cron::Entry.load("a", text) }
    end
  end

  def test_what_is_refused
    assert_match(/the cron entry nightly: "every blue moon" is no schedule.*write "every day at 4am"/,
                 refused(schedule: "every blue moon"))
    assert_match(/the cron entry nightly: .* never comes/, refused(schedule: "0 0 31 2,4 *"))
    assert_match(/nightly: the class must be one of jobs, or its name such as "Reports::Nightly", got "report.run"/,
                 refused(class: "report.run"))
    assert_match(/nightly: a schedule must be a text .*, got "\\xFF"/, refused(schedule: "\xff"))
    assert_match(/nightly: there is no time zone "\\xFF"/, refused(zone: "\xff"))
    assert_match(/nightly: there is no time zone "UTC\+2"; write one/, refused(zone: "UTC+2"))
    assert_match(/nightly: the description must be a text, got "\\xFF"/, refused(description: "\xff"))
    assert_match(/nightly: has no class:/, refused({ "nightly" => { "schedule" => "every day" } }))
    assert_match(/nightly: has no schedule:/, refused({ "nightly" => { "class" => "A" } }))
    assert_match(/nightly: must have schedule: and class:, got "every day"/, refused({ "nightly" => "every day" }))
    assert_match(/nightly: has at:, which there is not; there are schedule, class, args, zone, catch_up, description, queue,/,
                 refused(at: 5))
    assert_match(/catch_up must be one of skip, once, all, got "twice"/, refused(catch_up: "twice"))
    assert_match(/nightly: priority must be an Integer from -100 to 100, got 1000/, refused(priority: 1000))
    assert_match(/nightly: .*args|argument/, refused(args: [Object.new]))
    assert_match(/name of a cron entry must be a text of 1 to 200 characters, got ""/, refused({ "" => FIELDS }))
    assert_match(/cron must be a Hash of names and entries, or the name of a file that has them, got 5/, refused(5))
    assert_match(/no time zone "Mars\/X"/, refused(zone: "Mars/X"))
    assert_match(/no time zone "Mars\/X"/, assert_raises(Jobs::ConfigError) { @config.cron_zone = "Mars/X" }.message)
    assert_empty @config.cron
  end

  def test_the_program_adds_entries
    add("nightly", "every day at 4am", Report, "all", catch_up: :skip, queue: "reports")
    add(:hourly, "every hour", Report.set(queue: "b", priority: 1), zone: "Asia/Tokyo")
    entries = @config.cron_entries
    assert_equal [%w[nightly hourly], ["all"], "reports", "b", 1],
                 [entries.keys, entries["nightly"].arguments, job(entries["nightly"])["queue"],
                  *job(entries["hourly"]).values_at("queue", "ringspun_priority")]
    add("nightly", "every day at 4am", Report, "all", catch_up: :skip, queue: "reports")
    error = assert_raises(Jobs::ConfigError) { add("nightly", "every day at 5am", Report) }
    assert_match(/nightly is there already, and says something else; give this one another name/, error.message)
    { Report.set(in: 5) => /in makes no sense there/, Object => /the class must be one of jobs/, nil => /got nil/,
      Class.new { include Jobs::Job } => /the class must be one of jobs/ }.each do |job_class, pattern|
      assert_match pattern, assert_raises(Jobs::ConfigError) { add("x", "every day", job_class) }.message
    end
  end

  def test_a_name_is_in_the_file_or_in_the_program
    set("nightly" => FIELDS)
    assert_raises(Jobs::ConfigError) { add("nightly", "every day at 4am", "CronEntriesTest::Report") }
    add("hourly", "every hour", Report)
    error = assert_raises(Jobs::ConfigError) { set("hourly" => FIELDS) }
    assert_match(/hourly is in the setting cron, and the program adds it as well/, error.message)
  end

  def test_a_file_that_was_read_again
    set("nightly" => FIELDS)
    add("hourly", "every hour", Report)
    [{ "hourly" => FIELDS }, { "a" => {} }, 5].each do |value|
      assert_raises(Jobs::ConfigError) { @config.reload_cron(value) }
      assert_equal %w[nightly hourly], @config.cron_entries.keys
    end
    @config.reload_cron("weekly" => FIELDS)
    assert_equal %w[weekly hourly], @config.cron_entries.keys
  end

  def test_the_files_of_the_guide
    guide = File.read(File.expand_path("../../../docs/27-cron.md", __dir__))
    own, other = guide.scan(/^```yaml\n(.*?)^```/m).flatten.map { |text| YAML.safe_load(text) }
    @config.update(own)
    assert_equal ["nightly report", "cleanup"], @config.cron_entries.keys
    assert_equal "0 4 * * * Europe/Berlin", @config.cron["nightly report"].key(@config.cron_zone)
    Dir.mktmpdir do |folder|
      FileUtils.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config/recurring.yml"), RECURRING)
      Dir.chdir(folder) { @config.update(other) }
    end
    assert_equal %w[other], @config.cron.keys
  end

  # --- files of others ---

  def entries(text, environment = "production")
    in_file(text) { |path| set(Cron::Definitions.read(path, environment)) }
  end

  def refused_file(text) = assert_raises(Jobs::ConfigError) { entries(text) }.message

  RECURRING = <<~YAML
    production:
      a_periodic_job:
        class: CronEntriesTest::Report
        args: [ 42, { status: "custom_status" } ]
        schedule: every second
      cleanup:
        class: "Soft::Cleanup"
        queue: background
        priority: 2
        schedule: every Tuesday at 5am Europe/Berlin
        description: of what is old
    development:
      other: { class: A, schedule: every day }
  YAML

  def test_recurring_tasks_of_solid_queue
    all = entries(RECURRING)
    assert_equal %w[a_periodic_job cleanup], all.keys
    assert_equal [[42, { "status" => "custom_status" }], "* * * * * * UTC", "0 5 * * 2 Europe/Berlin", "background", 2],
                 [all["a_periodic_job"].arguments, *all.each_value.map { |one| one.key("UTC") },
                  *job(all["cleanup"]).values_at("queue", "ringspun_priority")]
    assert_equal %w[other], entries(RECURRING, "development").keys
    assert_empty entries(RECURRING, "test")
    assert_equal %w[daily], entries("daily: { class: A, schedule: every day, args: 5 }").keys
    assert_match(/clear: has command:, which there is not; a line of Ruby is no job: write a class with that line in perform/,
                 refused_file("production:\n  clear:\n    command: 'Soft.clear'\n    schedule: every hour"))
  end

  SIDEKIQ_CRON = <<~YAML
    my_first_job:
      cron: "*/5 * * * *"
      class: "CronEntriesTest::Report"
      queue: hard_worker
      status: enabled
      description: "each five minutes"
    second_job:
      cron: "30 6 * * 1 Europe/Berlin"
      klass: "Other"
      active_job: true
      args:
        hard: "stuff"
  YAML

  def test_the_schedule_of_sidekiq_cron
    all = entries(SIDEKIQ_CRON)
    assert_equal [%w[my_first_job second_job], "hard_worker", "30 6 * * 1 Europe/Berlin", [{ "hard" => "stuff" }]],
                 [all.keys, job(all["my_first_job"])["queue"], all["second_job"].key("UTC"), all["second_job"].arguments]
    assert_equal %w[a], entries("- { name: a, cron: '0 0 * * *', class: A }").keys
    assert_match(/a cron entry in a list needs a name:/, refused_file("- { cron: '0 0 * * *', class: A }"))
    { "status: disabled" => /remove the entry, or write "ringspun-jobs cron pause NAME"/,
      "date_as_argument: true" => /leave it out, and let perform ask Time.now/, "timezone: UTC" => /write zone: in its place/,
      "colour: red" => /has colour:, which there is not; there are schedule,/ }.each do |line, pattern|
      assert_match pattern, refused_file("a: { cron: '0 0 * * *', class: A, #{line} }")
    end
  end

  def test_files_that_cannot_be
    assert_match(/has daily twice; give one of them another name/,
                 refused_file("daily: { class: A, schedule: every day }\ndaily: { class: B, schedule: every hour }"))
    assert_match(/has class twice/, refused_file("daily: { class: A, class: B, schedule: every hour }"))
    ["a: [1", "a: !float abc", "a: !!omap [a]", "a: !!str { a: b }", "#{"[" * 6000}#{"]" * 6000}"].each do |text|
      assert_match(/schedule.*\.yml is no YAML:/, refused_file(text))
    end
    assert_match(/schedule.*\.yml has ERB that raises SystemExit/, refused_file("<% exit %>"))
    assert_match(/the file of cron entries cannot be read: /, assert_raises(Jobs::ConfigError) { set("a\0b") }.message)
    assert_match(/schedule.*\.yml has ERB that raises RuntimeError: no/, refused_file("a: <% raise 'no' %>"))
    assert_match(/schedule.*\.yml has ERB that raises SyntaxError/, refused_file("<% if %>"))
    assert_match(/schedule.*\.yml has a value of the class Date; put it in quotes, for a text/,
                 refused_file("a: { class: A, schedule: every day, args: [2026-11-22] }"))
    assert_match(/the YAML contains itself/, refused_file("a: { class: A, schedule: every day, args: &all [*all] }"))
    assert_match(/schedule.*\.yml is no UTF-8: save it as such/, refused_file("a: { class: A, schedule: \xff }"))
    assert_match(/cannot be read: No such file/, assert_raises(Jobs::ConfigError) { set("/no/such/file.yml") }.message)
    assert_empty entries("")
    assert_equal %w[<%], entries("<%= \"<%\".inspect %>: { class: A, schedule: every day }").keys
  end
end
