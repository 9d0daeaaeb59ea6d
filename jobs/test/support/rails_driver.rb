# frozen_string_literal: true

# A program of a generated application that does what it is told, see RailsApp::Driver.
#
# usage: rails_driver.rb ORDERS ANSWERS    pipes of the tests

orders = File.open(ARGV.shift)
answers = File.open(ARGV.shift, "w")
%w[./config/environment json].each { |name| require name }

tell = ->(value) { answers.puts(JSON.generate(value)) || answers.flush }
tell.call(true)
while (order = orders.gets)
  begin
    tell.call([TOPLEVEL_BINDING.dup.eval(JSON.parse(order))])
  rescue Exception => error
    tell.call({ error: error.class.ancestors.map(&:name), message: error.message, backtrace: error.backtrace.first(5) })
  end
end
