# frozen_string_literal: true

require "jobs_helper"
require "net/http"
require "support/command"
require "support/program"
require "support/redis_case"
require "ringspun/jobs/web"

# The pages as `ringspun-jobs web` serves them.
class WebServerTest < RedisCase
  REDIS = %w[--namespace of.web].freeze

  def start(*words) = opened(Command.new("web", *words, "--redis", "unix://#{redis_path}", *REDIS))

  def serve(*words)
    @command = start(*words, "--port", "0")
    @uri = URI(@command.await(%r{the pages are at (http://\S+/)})[1])
  end

  def storage = @storage ||= open_storage({ path: redis_path }, namespace: "of.web")

  def test_the_pages_are_served_and_their_buttons_work
    storage.push([push_of])
    serve
    Net::HTTP.start(@uri.host, @uri.port) do |http|
      page = http.get("/queue?place=queue&queue=default")
      assert_equal "200", page.code
      secret = page.body[/name="ringspun_jobs_secret" value="(\h+)"/, 1]
      form = "act=clear&ringspun_jobs_secret=#{secret}"
      headers = { "cookie" => page["set-cookie"][/\A[^;]+/], "content-type" => "application/x-www-form-urlencoded" }
      pressed = http.post("/all?place=queue&queue=default", form, headers)
      assert_equal ["303", "/queue?place=queue&queue=default&said=clear&n=1&gone=0&left=0"], [pressed.code, pressed["location"]]
      assert_includes http.get(pressed["location"]).body, "1 deleted."
      assert_equal "403", http.get("/", "host" => "evil.example").code
    end
    assert_equal 0, storage.stats[:enqueued]
    assert_predicate @command.finish, :success?, @command.lines.join
  end

  def test_they_show_the_example
    open_storage({ path: redis_path }, namespace: "mailer-example").counters(processed: 1_000)
    example = File.expand_path("../../../examples/mailer_jobs.rb", __dir__)
    @command = opened(Command.new("web", "-r", example, "--redis", "unix://#{redis_path}", "--port", "0"))
    uri = URI(@command.await(%r{the pages are at (http://\S+/)})[1])
    assert_match(%r{<dt>Processed</dt>\s*<dd>1,000</dd>}, Net::HTTP.get(uri))
    assert_predicate @command.finish, :success?, @command.lines.join
  end

  def test_it_says_what_it_cannot_do
    taken = TCPServer.new("127.0.0.1", 0)
    command = start("--port", taken.addr[1].to_s)
    command.await(/it cannot listen there: Address already in use/)
    assert_equal 1, command.wait.exitstatus
    command = start("-e", "production")
    command.await(/the web pages can delete jobs, and this is production/)
    assert_equal 64, command.wait.exitstatus
    command = start("--port", "70000")
    command.await(/the port must be from 0 to 65535/)
    assert_equal 64, command.wait.exitstatus
  ensure
    taken&.close
  end

  Server = Jobs::Web.const_get(:Server)

  def test_without_a_web_server
    none = Class.new(Server) { def found?(_name) = false }
    assert_match(/add gem "puma" to the Gemfile/, assert_raises(Jobs::ConfigError) { none.new(nil, "::1", 0) }.message)
  end

  # The port that it has got, as soon as connections to it wait to be accepted.
  def port_of(process)
    Patience.poll(40) { process.log[/^port (\d+)$/, 1] || (flunk process.log unless process.running?) } || flunk(process.log)
  end

  # Which would find Puma first here. Of two programs that look for a free port by themselves, both could take the same.
  def test_by_rackup
    program = <<~'RUBY'
      require "ringspun/jobs/web"
      $stdout.sync = true
      storage = Ringspun::Jobs::Storage::Memory.new
      by_rackup = Class.new(Ringspun::Jobs::Web.const_get(:Server)) do
        def found?(name) = name == "rackup" && super

        def handler_of_rackup
          Class.new(Rackup::Handler.get("webrick")) do
            def self.run(app, **options) = super { |server| puts "port #{server.listeners.first.addr[1]}" }
          end
        end
      end
      by_rackup.new(Ringspun::Jobs::Web.new(storage:), "127.0.0.1", 0).run { |url| puts url }
    RUBY
    process = opened(Program.ruby(program, bundle: false))
    assert_equal "200", Net::HTTP.get_response(URI("http://127.0.0.1:#{port_of(process)}/")).code
    assert_predicate process.stop, :success?, process.log
  end

  # As where the port is taken. Whoever has called is told, and waits for no signal.
  def test_a_server_of_rackup_that_fails
    failing = Class.new(Ringspun::Jobs::Web.const_get(:Server)) do
      def kind = :rackup
      def handler_of_rackup = Class.new { def self.run(*, **) = raise(Errno::EADDRINUSE) }
    end
    serving = Thread.new { failing.new(nil, "127.0.0.1", 1).run {} }
    serving.report_on_exception = false
    assert serving_ended?(serving), "it waits for ever"
    assert_raises(Errno::EADDRINUSE) { serving.value }
  end

  def serving_ended?(serving)
    serving.join(20)
  rescue Errno::EADDRINUSE
    true
  end
end
