# frozen_string_literal: true

module Bench
  # Whether the Rubies of this run have YJIT. RUBYOPT hands it on, for contenders start programs as well, and those others.
  module Yjit
    OPTION = "--yjit"
    private_constant :OPTION

    # @param options [String, nil] as RUBYOPT has them
    # @return [String, nil] what is left of them for a program with gems of its own
    def self.option(options = ENV.fetch("RUBYOPT", nil)) = options&.split&.find { |word| word == OPTION }

    # @return [Boolean] whether this process has it, and so do those that it starts
    def self.handed_on? = !option.nil? && defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
  end
end
