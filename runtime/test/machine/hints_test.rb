# frozen_string_literal: true

require "test_helper"
require "support/strands"

# The names of Async, Thread and Trio, for each of which an error names our word.
class HintsTest < Minitest::Test
  include AnyBackend
  include Strands

  # What those libraries have, and what stands for it here. For nurseries: https://trio.readthedocs.io/en/stable/reference-core.html.
  PEERS = {
    "Async::Task" => :strand, "Async::Barrier" => :scope, "Async::Semaphore" => :semaphore, "Async::Condition" => :condition,
    "Async::Notification" => :condition, "Thread" => :strand, "Thread::Queue" => :queue, "Thread::SizedQueue" => :sized_queue,
    "Thread::Mutex" => :mutex, "Thread::ConditionVariable" => :condition
  }.freeze
  NURSERY = %i[cancel_scope start start_soon child_tasks parent_task].freeze
  # Put there by other libraries, or Ruby's own.
  NONE = %i[console_interface console_interface= marshal_dump].freeze

  # Things of ours that hints name, and what they are.
  OURS = { "strand" => Ringspun::Strand, "scope" => Ringspun::Scope, "semaphore" => Ringspun::Semaphore,
           "condition" => Ringspun::Condition, "machine" => Ringspun::Machine, "mutex" => Ringspun::Mutex,
           "queue" => Ringspun::Queue, "channel" => Ringspun::Channel }.freeze

  NAMES = <<~'RUBY'
    require "async"
    require "async/barrier"
    require "async/semaphore"
    require "async/condition"
    require "async/notification"
    ARGV.each do |peer|
      above = Object.const_get(peer).ancestors.take_while { |each| each != Object }
      puts [peer, *(above.flat_map { |each| each.public_instance_methods(false) } - Object.public_instance_methods).uniq].join(" ")
    end
  RUBY

  def test_every_name_of_the_peers_is_answered_or_has_a_hint
    answer = ruby_child(NAMES, *PEERS.keys, fresh: "loads Async")
    names = answer.out.lines.to_h { |line| line.split.then { |peer, *all| [peer, all.map(&:to_sym)] } }
    assert_equal ["", PEERS.keys], [answer.err, names.keys]
    names.each { |peer, all| all.each { |name| assert_known(things.fetch(PEERS[peer]), name, peer) } }
    NURSERY.each { |name| assert_known(things[:scope], name, "Trio's nursery") }
  end

  def test_each_hint_is_there
    words.each_value { |all| all.each_value { |word| assert exists?(word), word } }
  end

  # ringspun/async, which another test may have loaded, makes these two.
  BY_ASYNC = %i[Async Sync].freeze

  # Other libraries that a test has loaded add methods to Object.
  def test_no_hint_is_for_what_there_is
    words.each do |kind, all|
      there = kind.is_a?(Class) ? kind.public_instance_methods : kind.methods
      assert_empty (all.keys & there) - BY_ASYNC - Object.public_instance_methods(false), kind.name
    end
  end

  def test_names_that_programs_use
    { -> { things[:strand].value } => "strand.await", -> { things[:strand].wait } => "strand.await",
      -> { things[:strand].cancel } => "strand.terminate", -> { things[:strand].raise("x") } => /\Amachine.schedule/,
      -> { things[:scope].async {} } => "scope.spin", -> { things[:semaphore].synchronize {} } => "semaphore.hold",
      -> { machine.spawn {} } => "machine.spin", -> { machine.with_timeout(1) } => "machine.timeout",
      -> { machine.shield {} } => "Ringspun.shield", -> { Ringspun.sleep(1) } => "machine.sleep",
      -> { Ringspun.timeout(1) } => "machine.timeout", -> { Ringspun.with_timeout(1) } => "machine.timeout",
      -> { Ringspun.async {} } => "Ringspun.spin" }.each do |call, word|
      hint = hint_of(assert_raises(NoMethodError, &call))
      assert_operator word, :===, hint, hint
    end
  end

  def test_others_have_the_hints_of_ruby
    error = assert_raises(NoMethodError) { things[:strand].awiat }
    assert_equal "await", hint_of(error)
    assert_equal "start_with?", hint_of(assert_raises(NoMethodError) { "x".starts_with?("x") })
    [BasicObject.new, Object.new, nil, Class.new].each do |other|
      assert_nil hint_of(assert_raises(NoMethodError) { other.value_or_error })
    end
  end

  def test_in_a_ruby_without_hints
    answer = ruby_child("require 'ringspun'; begin; Ringspun.async; rescue NoMethodError => e; puts e.detailed_message; end",
                        env: { "RUBYOPT" => "--disable-did_you_mean" }, fresh: "another RUBYOPT")
    assert_equal "", answer.err
    refute_match(/Did you mean/, answer.out)
  end

  private

  def things
    @things ||= begin
      scope = machine.scope { |inside| inside }
      { strand: machine.spin {}.join, scope:, semaphore: Ringspun::Semaphore.new(1), condition: Ringspun::Condition.new,
        queue: Ringspun::Queue.new, sized_queue: Ringspun::SizedQueue.new(1), mutex: Ringspun::Mutex.new }
    end
  end

  # As Ruby prints it.
  def hint_of(error) = error.detailed_message(highlight: false)[/^Did you mean\?  (.*)$/, 1]

  def words = Ringspun.const_get(:Hints)::WORDS

  def assert_known(thing, name, peer)
    return if thing.respond_to?(name) || NONE.include?(name)

    error = assert_raises(NoMethodError, "#{peer}##{name}") { thing.public_send(name) }
    word = hint_of(error)
    assert word && exists?(word), "#{peer}##{name}: #{word.inspect}"
  end

  # The method that the hint names.
  def exists?(word)
    receiver, name = word.match(/\A([\w:]+)[.#](\w+[?=!]?)/)&.captures
    return word == "Fiber[:name]" unless receiver

    OURS.key?(receiver) ? OURS[receiver].public_method_defined?(name) : defined_on?(Object.const_get(receiver), name)
  end

  def defined_on?(owner, name) = owner.respond_to?(name) || owner.public_method_defined?(name)
end
