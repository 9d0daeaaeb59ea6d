# frozen_string_literal: true

require "rack/mock_request"
require "sidekiq/web"

# Sidekiq's web pages, called in this process.
class SidekiqWeb
  # Only a page of the same origin may change something.
  SAME_ORIGIN = { "HTTP_SEC_FETCH_SITE" => "same-origin" }.freeze

  # @param pool [ConnectionPool] to the Redis
  def initialize(pool)
    Sidekiq::Web.redis_pool = pool
    @pages = Rack::MockRequest.new(Sidekiq::Web.new)
  end

  def get(path) = @pages.get(path, "rack.session" => {})

  def post(path, **params)
    @pages.post(path, params: params.transform_keys(&:to_s), "rack.session" => {}, **SAME_ORIGIN)
  end
end
