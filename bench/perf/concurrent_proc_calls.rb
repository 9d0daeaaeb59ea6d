#!/usr/bin/env ruby
# frozen_string_literal: true

# A command that the guides of the gem `concurrently` name, for what the bench has in its place.

exec File.expand_path("../../bin/bench", __dir__), "--only", "call_methods", *ARGV
