# frozen_string_literal: true

# A Rails application in one file, served by ringspun-http. A thousand browsers may look at its clock at once: the answer is a
# stream of server-sent events, and each takes a strand. A page that waits for a slow service takes no thread either.
#
#   cd examples/rails_app && bundle install
#   bundle exec rackup -s ringspun          # http://localhost:9292
#
# In an application as `rails new` makes it, the line `gem "ringspun-http"` and `bin/rails server -u ringspun` are enough.

require "rails"
require "action_controller/railtie"
require "ringspun/http"

# All of it.
class Clock < Rails::Application
  config.root = __dir__
  config.eager_load = true
  config.consider_all_requests_local = false
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
  config.logger = ActiveSupport::TaggedLogging.new(ActiveSupport::Logger.new($stdout))
  config.log_tags = [:request_id]
  config.log_level = :info

  routes.append do
    root to: "pages#index"
    get "clock", to: "pages#clock"
    get "slow", to: "pages#slow"
  end
end

class PagesController < ActionController::Base
  PAGE = <<~HTML
    <!DOCTYPE html>
    <title>Clock</title>
    <h1 id="now"></h1>
    <script>
      new EventSource("/clock").onmessage = (event) => { document.getElementById("now").textContent = event.data }
    </script>
  HTML

  def index = render(html: PAGE.html_safe)

  # A body that is a block streams, in the strand of the connection, until the browser goes away.
  def clock
    response.headers.merge!("content-type" => "text/event-stream", "cache-control" => "no-cache")
    self.response_body = lambda do |stream|
      loop { stream << "data: #{Time.now.utc.strftime("%H:%M:%S")}\n\n" && sleep(1) }
    ensure
      stream.close
    end
  end

  # Stands for a service that takes its time.
  def slow
    sleep 0.1
    render json: { waited: 0.1, locale: I18n.locale }
  end
end

run Clock.initialize!
