# frozen_string_literal: true

require "support/both_sides"

# The middleware that Sidekiq brings along.
class SidekiqMiddlewareTest < BothSides
  CURRENT = <<~'RUBY'
    require "active_support"
    require "active_support/core_ext"
    require "active_job"
    %w[sidekiq/middleware/current_attributes].each { |name| require name }

    class Current < ActiveSupport::CurrentAttributes
      attribute :user, :tenant
    end
    class Other < ActiveSupport::CurrentAttributes
      attribute :colour
    end
    SEEN = []
    class Mail
      include Sidekiq::Job

      def perform = SEEN << [Current.user, Current.tenant, Other.colour]
    end
    Sidekiq::CurrentAttributes.persist(["Current", "Other"])
  RUBY

  def test_current_attributes
    made = both(<<~RUBY)
      #{CURRENT}
      Current.set(user: 5, tenant: :acme) { Other.set(colour: "red") { Mail.perform_async } }
      Mail.perform_async
      # What a worker does with an entry.
      job = { "class" => "Mail", "args" => [], "cattr" => { "user" => 7, "gone" => 1, "_aj_symbol_keys" => ["user", "gone"] },
              "cattr_1" => { "colour" => "blue", "_aj_symbol_keys" => ["colour"] } }
      chain = Sidekiq.default_configuration.server_middleware
      chain.invoke(Mail.new, job, "default") { Mail.new.perform }
      chain.invoke(Mail.new, {}, "default") { Mail.new.perform }
      [SEEN, Current.user]
    RUBY
    assert_equal [[[7, nil, "blue"], [nil, nil, nil]], nil], made.answer
    assert_equal [nil, "red"], made.stored["default"].map { |job| job["cattr_1"].inspect[/red/] }
  end

  # The real one adds its part of the server in a server only.
  def test_locale
    code = <<~RUBY
      require "active_support"
      require "active_support/core_ext"
      %w[sidekiq/middleware/i18n].each { |name| require name }
      class Mail
        include Sidekiq::Job

        def perform = nil
      end
      I18n.available_locales = %i[en de fr]
      I18n.with_locale(:de) { Mail.perform_async }
      server = Sidekiq::Middleware::I18n::Server.new
      [server.call(nil, { "locale" => "fr" }, "q") { I18n.locale }, server.call(nil, {}, "q") { I18n.locale }]
    RUBY
    made = both(code)
    assert_equal [%w[fr en], "de"], [made.answer, made.stored["default"].first["locale"]]
  end
end
