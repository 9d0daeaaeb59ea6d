# frozen_string_literal: true

# What files, options and the standard input are read as where LANG is not set: under cron, and in most containers.
module Locale
  module_function

  def in_locale_c
    before = Encoding.default_external
    set(Encoding::US_ASCII)
    yield
  ensure
    set(before)
  end

  # As a word of the command line with other letters comes then.
  def word(text) = text.b

  def set(encoding)
    verbose, $VERBOSE = $VERBOSE, nil # Ruby warns of that
    Encoding.default_external = encoding
  ensure
    $VERBOSE = verbose
  end
end
