# frozen_string_literal: true

# What the Ruby has loaded from which programs of a generated application are forked: Rails as its config/application.rb loads it,
# the gems of its bundle but ours, and those parts of Rails that are the same for all applications. Each program loads what is set
# up by an application's settings when it is loaded, as a base class is; then our gems, and the application.

require "bundler/setup"
require "rails"
%w[active_model active_job active_record action_controller action_view].each { |name| require "#{name}/railtie" }
%w[sqlite3 pg rails/command rails/generators].each { |name| require name }

module RailsPrelude
  SET_UP = /\A(?:Base|API|Live|Renderer|Configurable)\z|Job|Debug/
  # What is there for tests and for other databases.
  NEVER_USED = /Test|Assertions|Fixture|Integration|Mysql|Trilogy|Tasks|Deprecat/
  LEFT = Regexp.union(SET_UP, NEVER_USED)

  FRAMEWORKS = [ActiveModel, ActiveRecord, AbstractController, ActionDispatch, ActionView, ActionController].freeze
  FRAMEWORKS.each do |framework|
    framework.constants(false).grep_v(LEFT).each { |name| framework.const_get(name) if framework.autoload?(name) }
  end

  early = [ActiveRecord, ActionView, ActionController, ActiveJob].reject { |framework| framework.autoload?(:Base) }
  raise "loaded before there is an application: #{early.map { |framework| "#{framework}::Base" }.join(", ")}" if early.any?
end
