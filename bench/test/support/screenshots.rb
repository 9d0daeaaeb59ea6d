# frozen_string_literal: true

# Takes pictures of the report of the run that is kept. usage: screenshots.rb FOLDER

require "bench"
require_relative "../../../jobs/test/support/browser"

folder = ARGV.fetch(0)
FileUtils.mkdir_p(folder)
report = Bench::Report.new(Bench::Documents.run).to_s
sizes = { "light" => ["light", 900, 800], "dark" => ["dark", 900, 800], "phone" => ["light", 360, 640] }
browser = Browser.new
browser.tab(->(_) { [200, { "content-type" => "text/html; charset=utf-8" }, [report]] }) do
  sizes.each do |name, (scheme, width, height)|
    browser.resize(width, height)
    browser.prefer(scheme)
    { "report" => nil, "table" => "#pipe", "growth" => "#switch_by_strands" }.each do |part, shown|
      browser.go("/")
      others = "document.querySelectorAll('header, main > :not(#{shown})')"
      browser.page.execute("#{others}.forEach((each) => each.hidden = true)") if shown
      browser.screenshot(File.join(folder, "#{part}-#{name}.png"))
    end
  end
end
browser.close
