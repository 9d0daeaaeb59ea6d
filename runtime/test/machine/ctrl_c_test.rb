# frozen_string_literal: true

require "test_helper"
require "pty"
require "support/zygote"

# Ctrl-C at a terminal.
class CtrlCTest < Minitest::Test
  include Children

  CTRL_C = "\x03"
  TOLD = /a strand computes, .*Ctrl-C again ends the program/

  def in_terminal(code)
    PTY.spawn(RbConfig.ruby, *Zygote::OPTIONS, "-e", "require 'ringspun'\n$stdout.sync = true\n#{code}") do |output, input, pid|
      said = +""
      until_said = ->(pattern) { said << output.readpartial(1000) until said.match?(pattern) }
      yield until_said, -> { input.write(CTRL_C) }
      rest(output, said)
      return [said, Process.wait2(pid).last]
    ensure
      [output, input].each(&:close)
    end
  end

  # Reads until the other side is closed, which a terminal tells by EIO.
  def rest(output, said)
    loop { said << output.readpartial(1000) }
  rescue Errno::EIO
    nil
  end

  def test_a_strand_that_computes_is_named_and_the_second_ends_it
    said, status = in_terminal("Ringspun.run { puts('begins').then { loop {} } }") do |until_said, press|
      until_said.call(/begins/)
      press.call
      until_said.call(TOLD)
      press.call
    end
    assert_equal Signal.list.fetch("INT"), status.termsig, said
  end

  def test_one_that_waits_ends_at_once_and_nothing_is_said
    said, status = in_terminal(<<~'RUBY') do |until_said, press|
      main = Thread.current
      Thread.new { (Thread.pass until main.stop?).then { puts "waits" } }
      Ringspun.run { |machine| machine.sleep }
    RUBY
      until_said.call(/waits/)
      press.call
    end
    assert_equal Signal.list.fetch("INT"), status.termsig, said
    refute_match(TOLD, said)
  end
end
