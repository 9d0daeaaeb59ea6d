# frozen_string_literal: true

require "jobs_helper"
require "support/browser"
require "support/servers"
require "support/web_example"

# pass: browser
# in turns: jobs/lib/ringspun/jobs/web, jobs/test/support

# The pages in a browser.
class WebBrowserTest < Minitest::Test
  include AnyBackend

  EVIL = %(<script>document.title = "hit"</script><img src=x onerror="document.title = 'hit'">)

  # One for all tests, for its start takes longer than they do.
  def self.run_suite(...)
    @@browser = Browser.new
    super
  ensure
    @@browser&.close
  end

  def setup
    super
    @web, @storage = WebExample.web
    @browser = @@browser
  end

  def in_tab(&) = @browser.tab(@web, &)

  def page = @browser.page

  # One step, for what is live may be shown anew between two.
  def first_number = page.evaluate("document.querySelector('.numbers dd').textContent")

  def text = page.evaluate("document.body.innerText")

  # Contrast, labels, names, order of headings and what else axe knows, on every page, by day and by night.
  def test_every_page_is_accessible
    in_tab do
      WebExample::PAGES.each do |name, path|
        @browser.prefer("light")
        @browser.go(path)
        assert_empty @browser.axe, name
        @browser.prefer("dark")
        assert_empty @browser.axe(["color-contrast"]), "#{name}, dark"
      end
      assert_empty @browser.complaints
      page.evaluate("document.querySelector('h1').innerHTML = '<img><button></button>'")
      assert_match(/image-alt.*button-name|button-name.*image-alt/m, @browser.axe.join)
    end
  end

  def test_on_a_phone_nothing_is_wider_than_the_screen_and_all_is_accessible
    in_tab do
      @browser.resize(360, 740)
      WebExample::PAGES.each do |name, path|
        @browser.go(path)
        assert_operator page.evaluate("document.documentElement.scrollWidth"), :<=, 360, name
        assert_empty @browser.axe, name
      end
    end
  end

  def test_without_a_script_the_buttons_work
    in_tab do
      @browser.scripts = false
      @browser.go("/retries")
      refute_includes text, "All on this page"
      page.at_css("input[name=key]").click
      page.at_css("button[value=retry]:not(details button)").click
      @browser.soon("it is retried") { text.include?("1 enqueued.") }
      assert_equal 2, @storage.stats[:retries]
      @browser.go("/queues")
      page.at_css("button[aria-label='Pause mail']").click
      @browser.soon("it is paused") { @storage.paused.include?("mail") }
    end
  end

  def test_by_keyboard_alone
    in_tab do
      @browser.go("/retries")
      page.keyboard.type(:tab)
      assert_equal "To the content", @browser.focused
      page.keyboard.type(:enter)
      order = Array.new(9) { page.keyboard.type(:tab) && @browser.focused }
      assert_equal ["All 3 jobs", "Retry now", "Kill"], order.values_at(0, 7, 8)
      assert_match(/id="class".*id="in".*Show these/, order.slice(1, 3).join)
      assert_match(/choose-all/, order[6])
      page.keyboard.type([:shift, :tab], [:shift, :tab], :space)
      assert_equal 3, page.evaluate("document.querySelectorAll('input[name=key]:checked').length")
      page.keyboard.type(:tab, :enter)
      @browser.soon("they are retried") { text.include?("3 enqueued.") }
      assert_equal 0, @storage.stats[:retries]
    end
  end

  def test_the_numbers_move_by_themselves_and_can_be_stopped
    in_tab do
      @browser.go("/")
      before = first_number
      @storage.counters(processed: 1_000_000)
      @browser.soon("it shows more") { first_number != before }
      page.at_css("#live").click
      assert_equal false, page.evaluate("document.getElementById('live').checked")
      assert_empty @browser.complaints
    end
  end

  # The second tab says when the first would have asked again.
  def test_what_is_live_ends_with_its_tab
    asked = []
    app = lambda do |env|
      asked << env["QUERY_STRING"] if env["PATH_INFO"] == "/live"
      @web.call(env)
    end
    watch = lambda do |name|
      @browser.tab(app) do
        @browser.go("/")
        page.evaluate("document.querySelector('[data-live]').dataset.live += '?#{name}'")
        answered = "performance.getEntriesByType('resource').some((entry) => entry.name.endsWith('?#{name}'))"
        @browser.soon("#{name} is answered") { page.evaluate(answered) }
      end
    end
    watch.call("first")
    watch.call("second")
    assert_equal asked.rindex("first") + 1, asked.index("second")
    assert_equal "second", asked.last
  end

  def test_what_a_job_brings_is_never_run
    in_tab do
      job = { jid: EVIL, tags: [EVIL], error_class: EVIL, error_message: EVIL, queue: EVIL }
      entry = WebExample.entry(EVIL, [EVIL, { EVIL => EVIL }], **job)
      storage = @storage
      storage.push([WebExample::Storage::Push.new(queue: EVIL, entry:, jid: EVIL),
                    WebExample::Storage::Push.new(queue: "default", entry:, jid: EVIL, at: 1.0)])
      storage.announce(EVIL, { "tag" => EVIL, "queues" => [EVIL], "waits" => { "1" => EVIL } }, [["1", EVIL, entry, 1.0]])
      name = WebExample::Jobs::Web.const_get(:Request).encode(EVIL)
      [*WebExample::PAGES.values, "/queue?place=queue&queue=#{name}", "/job?jid=#{name}", "/search?jid=#{name}"].each do |path|
        @browser.go(path)
        refute_equal "hit", page.evaluate("document.title"), path
      end
      assert_empty @browser.complaints
    end
  end
end
