# frozen_string_literal: true

require "ringspun"
require "rails/railtie"

module Ringspun
  # Rails keeps what belongs to a request, as database connections do, by fiber and not by thread, so that strands do not share
  # it. An application that has set `config.active_support.isolation_level` itself keeps that.
  #
  # Loaded by `require "ringspun"` where Rails is loaded already; elsewhere by `require "ringspun/railtie"`.
  #
  # @since 0.1.0
  class Railtie < ::Rails::Railtie
    # Before Active Support reads it, which it does when all are initialized.
    initializer "ringspun.isolation_level", before: "active_support.isolation_level" do |app|
      app.config.active_support.isolation_level ||= :fiber
    end
  end
end
