# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Ringspun::Channel between ractors: made shareable, it takes what is shareable. In processes of their own, as ractor_test.rb.
class ChannelRactorsTest < Minitest::Test
  include Strands

  PRELUDE = <<~RUBY
    Warning[:experimental] = false
    def value_of(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take
    def channel(capacity = 1) = Ractor.make_shareable(Ringspun::Channel.new(capacity))
  RUBY

  def backend = "epoll"

  def child(code, *arguments, **options)
    super("#{PRELUDE}#{code}", *arguments, env: { "RINGSPUN_BACKEND" => backend }, **options)
  end

  def test_a_channel_is_made_shareable
    assert_child "[false, true, true]\n", <<~RUBY
      one = Ringspun::Channel.new(1)
      p [Ractor.shareable?(one), Ractor.shareable?(Ractor.make_shareable(one)), one.frozen?]
    RUBY
  end

  def test_one_that_is_not_shareable_says_how_to_make_it_so
    assert_child "true\n", <<~RUBY
      begin
        Ractor.new(Ringspun::Channel.new(1)) { |one| one.pop }
      rescue Ringspun::UsageError => error
        p error.message.include?("Ractor.make_shareable(channel)")
      end
    RUBY
  end

  def test_values_between_strands_of_several_ractors
    assert_child "[[0, 1, 2, 3], [0, 2, 4, 6]]\n", <<~RUBY
      to, back = channel, channel
      ractor = Ractor.new(to, back) do |to, back|
        Ringspun.run { |machine| machine.spin { to.each { |value| back.push(value * 2) } && back.close }.join }
        nil
      end
      Ringspun.run do |machine|
        feeder = machine.spin { 4.times { |i| to.push(i) } && to.close && [0, 1, 2, 3] }
        values = []
        back.each { |value| values << value }
        p [feeder.await, values]
      end
      value_of(ractor)
    RUBY
  end

  def test_threads_of_ractors_without_a_machine
    assert_child "[6, false]\n", <<~RUBY
      one, two = channel, channel
      ractor = Ractor.new(one, two) { |one, two| two.push((1..3).sum { one.pop }) && Ringspun::Machine.current? }
      3.times { |i| one.push(i + 1) }
      p [two.pop, value_of(ractor)]
    RUBY
  end

  def test_many_ractors_push_and_pop_at_the_same_time
    assert_child "[4, 8000, true]\n", <<~RUBY, timeout: 55
      one, sums = channel(8), channel(8)
      consumers = Array.new(2) do
        Ractor.new(one, sums) do |one, sums|
          Ringspun.run do |machine|
            strands = Array.new(2) do
              machine.spin { [0, 0].tap { |sum| one.each { |value| sum[0] += 1; sum[1] += value } } }
            end
            strands.each { |strand| sums.push(Ractor.make_shareable(strand.await)) }
          end
          nil
        end
      end
      producers = Array.new(4) { |n| Ractor.new(one, n) { |one, n| 2000.times { |i| one.push(n * 2000 + i) }; nil } }
      producers.each { |ractor| value_of(ractor) }
      one.close
      consumers.each { |ractor| value_of(ractor) }
      all = Array.new(4) { sums.pop }
      p [all.size, all.sum(&:first), all.sum(&:last) == 8000 * 7999 / 2]
    RUBY
  end

  def test_select_over_channels_of_another_ractor
    assert_child "[[0, :zero], [1, :one]]\n", <<~RUBY
      channels = [channel, channel]
      gate = channel
      ractor = Ractor.new(*channels, gate) { |zero, one, gate| zero.push(:zero) && gate.pop && one.push(:one) && nil }
      Ringspun.run do
        taken = Array.new(2) do
          from, value = Ringspun.select(*channels)
          gate.push(true) if value == :zero
          [channels.index(from), value]
        end
        p taken
      end
      value_of(ractor)
    RUBY
  end

  def test_what_is_not_shareable_is_refused
    assert_child "[Ringspun::UsageError, true, 0, \"frozen\"]\n", <<~RUBY
      one = channel
      error = [-> { one.push(+"not") }, -> { one.try_push([]) }, -> { Ringspun.select { |on| on.push(one, {}) } }].map do |push|
        push.call
      rescue => error
        error
      end
      refused = error.map { |each| each.message.include?("Ractor.make_shareable") }.all?
      p [error.first.class, refused, one.size, one.push("frozen".freeze).pop]
    RUBY
  end

  # Others run while the loop finds out whether there are any.
  def test_what_somebody_pushed_just_before_it_ended_is_found
    assert_child ":last\n", <<~RUBY
      one = channel
      Ractor.singleton_class.remove_method(:count)
      Ractor.define_singleton_method(:count) do
        thread = Thread.new { one.push(:last) }
        Thread.pass while thread.alive?
        1
      end
      Ringspun.run { p Ringspun.select(one).last }
    RUBY
  end

  # Nobody else of this ractor could push, but another may.
  def test_a_ractor_that_waits_for_another_is_in_no_deadlock
    assert_child "[:value, :value]\n", <<~RUBY
      one, two, gate = channel, channel, channel
      ractors = [Ractor.new(one) { |one| Ringspun.run { one.pop } }, Ractor.new(two) { |two| Ringspun.run { Ringspun.select(two).last } }]
      Thread.new { sleep 1.5 }.join
      [one, two].each { |each| each.push(:value) }
      p ractors.map { |ractor| value_of(ractor) }
    RUBY
  end
end

class ChannelRactorsOnUringTest < ChannelRactorsTest
  def backend = "uring"
end
