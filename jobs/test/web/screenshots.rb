# frozen_string_literal: true

# Takes pictures of every web page. usage: screenshots.rb FOLDER

require "ringspun/jobs"
require "support/browser"
require "support/web_example"

folder = ARGV.fetch(0)
FileUtils.mkdir_p(folder)
sizes = { "light" => ["light", 1100, 700], "dark" => ["dark", 1100, 700], "phone" => ["light", 360, 640] }
web, = WebExample.web(still: true)
browser = Browser.new
browser.tab(web) do
  sizes.each do |name, (scheme, width, height)|
    browser.resize(width, height)
    browser.prefer(scheme)
    WebExample::PAGES.each do |page, path|
      browser.go(path)
      browser.screenshot(File.join(folder, "#{page}-#{name}.png"))
    end
  end
end
browser.close
