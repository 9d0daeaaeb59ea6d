# frozen_string_literal: true

# Agoo has no command for a program of Rack.
#
#   ruby agoo.rb PORT FOLDER

require "agoo"
require_relative "app"

port, folder = ARGV
quiet = %i[INFO DEBUG connect request response eval push].to_h { |name| [name, false] }
Agoo::Log.configure(dir: "", console: true, classic: true, colorize: false, states: quiet)
Agoo::Server.init(Integer(port), folder, thread_count: 1, bind: "http://127.0.0.1:#{port}")
%i[GET POST].each { |method| Agoo::Server.handle(method, "/", BenchApp.asked) }
Agoo::Server.start
sleep
