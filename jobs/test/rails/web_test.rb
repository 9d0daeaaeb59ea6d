# frozen_string_literal: true

require "support/rails_case"

# The web pages, mounted in the routes of an application.
class RailsWebTest < RailsCase
  # Where the pages are, what a browser gets there, and what a button does: with and without a session.
  PAGES = <<~'RUBY'
    require "ringspun/jobs/web"
    Ringspun::Jobs.enqueue("NoteJob", "<b>")
    refused = begin
      Ringspun::Jobs::Web.new
    rescue Ringspun::Jobs::ConfigError => error
      error.message
    end
    routes = ActionDispatch::Routing::RouteSet.new
    routes.draw { mount Ringspun::Jobs::Web.new(authenticate: :outside), at: "/admin/jobs" }
    app = routes
    if SESSION
      app = ActionDispatch::Session::CookieStore.new(app, key: "of_app")
      app = ActionDispatch::Cookies.new(app)
      inner = app
      app = ->(env) { inner.call(Rails.application.env_config.merge(env)) }
    end
    browser = ActionDispatch::Integration::Session.new(app)
    browser.host! "jobs.example.org"
    browser.get("/admin/jobs/queue?place=queue&queue=default")
    page = browser.response.body
    action = CGI.unescapeHTML(page[%r{action="(/admin/jobs/all\?[^"]+)"}, 1])
    browser.post(action, params: { act: "clear", ringspun_jobs_secret: "0" * 64 })
    forged = browser.response.status
    browser.post(action, params: { act: "clear", ringspun_jobs_secret: page[/secret" value="(\h+)"/, 1] })
    [refused, forged, browser.response.status, browser.response.headers["location"], browser.cookies.to_hash.keys]
  RUBY

  def pressed(session) = app.run(PAGES.sub("SESSION", session.to_s))

  def test_in_an_application_without_sessions
    refused, forged, status, location, cookies = pressed(false)
    assert_match(/the web pages can delete jobs, and this is production/, refused)
    assert_equal [403, 303, %w[ringspun_jobs_secret]], [forged, status, cookies]
    assert_match(%r{/admin/jobs/queue\?place=queue&queue=default&said=clear&n=1&gone=0}, location)
    assert_equal 0, storage.stats[:enqueued]
  end

  def test_in_an_application_with_sessions
    _, forged, status, _, cookies = pressed(true)
    assert_equal [403, 303, %w[of_app]], [forged, status, cookies]
  end
end
