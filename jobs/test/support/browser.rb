# frozen_string_literal: true

require "ferrum"
require "puma"
require "tmpdir"
require_relative "../../../runtime/test/support/patience"

# Chromium without a window, and a server of the pages in this process. They end together.
class Browser
  # By Debian's and other systems' names.
  PROGRAMS = %w[chromium chromium-browser].freeze
  FLAGS = %w[no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync
             disable-dev-shm-usage].freeze
  SECONDS = 60
  AXE = File.join(Gem::Specification.find_by_name("axe-core-api").full_gem_path, "node_modules/axe-core/axe.min.js")

  # What a browser asks for by itself.
  NO_ICON = %r{favicon.ico}

  # @return [Array<String>] what the browser has complained of
  attr_reader :complaints

  # @return [#call] the app of Rack that is served
  attr_accessor :app

  def initialize
    @complaints = []
    @folder = Dir.mktmpdir("ringspun-browser-")
    # A connection that is kept would outlive its test.
    @server = Puma::Server.new(->(env) { @app.call(env) }, nil, min_threads: 0, max_threads: 4, enable_keep_alives: false,
                                                                log_writer: Puma::LogWriter.strings)
    @server.add_tcp_listener("127.0.0.1", 0)
    @server.run
    @browser = Ferrum::Browser.new(headless: true, browser_path: program, timeout: SECONDS, process_timeout: SECONDS,
                                   browser_options: { **FLAGS.to_h { |flag| [flag, nil] }, "user-data-dir" => @folder })
  rescue Exception
    close
    raise
  end

  # A tab of its own, in which nothing was seen yet.
  def tab(app)
    @app = app
    @complaints = []
    @page = @browser.create_page
    listen
    yield
  ensure
    @page&.close
    @page = nil
  end

  def close
    @browser&.quit
    @server&.stop(true)
    FileUtils.rm_rf(@folder)
  end

  # @return [Ferrum::Page]
  attr_reader :page

  def url(path) = "http://127.0.0.1:#{@server.connected_ports.first}#{path}"

  def go(path) = page.go_to(url(path))

  def resize(width, height)
    page.command("Emulation.setDeviceMetricsOverride", width:, height:, deviceScaleFactor: 1, mobile: false)
  end

  # @param scheme [String] "light" or "dark"
  def prefer(scheme)
    page.command("Emulation.setEmulatedMedia", features: [{ name: "prefers-color-scheme", value: scheme }])
  end

  def scripts=(allowed)
    page.command("Emulation.setScriptExecutionDisabled", value: !allowed)
  end

  # What axe says is wrong, in a line each: https://github.com/dequelabs/axe-core/blob/develop/doc/API.md
  #
  # @param rules [Array<String>, nil] nil: all
  def axe(rules = nil)
    evaluate(File.read(AXE))
    options = JSON.generate({ resultTypes: ["violations"], runOnly: rules }.compact)
    evaluate("axe.run(document, #{options}).then((found) => found.violations)").flat_map do |each|
      each["nodes"].map { |node| "#{each["id"]}: #{each["help"]}: #{node["html"]} #{node["failureSummary"]}" }
    end
  end

  # Waits until the block answers something true.
  def soon(what, &) = Patience.poll(SECONDS, pause: 0.02, &) || raise("#{what}: not so: #{page.body}")

  # The element that a key would go to.
  def focused = page.evaluate("(document.activeElement.textContent || document.activeElement.outerHTML).trim()")

  def screenshot(path) = page.screenshot(path:, full: false)

  private

  # By the protocol itself, which asks no policy of the page's.
  def evaluate(expression)
    answer = page.command("Runtime.evaluate", expression:, awaitPromise: true, returnByValue: true)
    answer["exceptionDetails"] ? raise(answer.to_s) : answer["result"]["value"]
  end

  def program
    folders = ENV.fetch("PATH").split(":")
    PROGRAMS.product(folders).map { |name, folder| File.join(folder, name) }.find { |path| File.executable?(path) } ||
      raise("chromium is missing: run bin/setup")
  end

  def listen
    page.command("Log.enable")
    page.on("Log.entryAdded") { |event| complain(event["entry"].values_at("text", "url").compact.join(" ")) }
    page.on("Runtime.exceptionThrown") { |event| complain(event["exceptionDetails"].to_s) }
    page.on(:dialog) { |dialog| complain("a dialog: #{dialog.message}") || dialog.accept }
  end

  def complain(text)
    @complaints << text unless text.match?(NO_ICON)
    nil
  end
end
