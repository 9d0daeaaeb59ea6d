# frozen_string_literal: true

require "test_helper"
require "rack/lint"
require "ringspun/http"
require_relative "support/on_server"
