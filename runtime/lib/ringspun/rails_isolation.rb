# frozen_string_literal: true

require "rails/railtie"

module Ringspun
  # Makes Rails keep the state of a request, such as its database connection, by fiber and not by thread, so that strands do not
  # share it. If the application sets `config.active_support.isolation_level`, that value stays.
  #
  # `require "ringspun"` loads this if Rails is loaded already; otherwise `require "ringspun/railtie"` does.
  #
  # @since 0.1.0
  class Railtie < ::Rails::Railtie
    # Before Active Support's own initializer reads it.
    initializer "ringspun.isolation_level", before: "active_support.isolation_level" do |app|
      app.config.active_support.isolation_level ||= :fiber
    end
  end
end
