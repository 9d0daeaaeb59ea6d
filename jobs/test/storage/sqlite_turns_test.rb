# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# Two processes that want the file all the time.
class SqliteTurnsTest < SqliteCase
  include AnyBackend

  TURNS = 400
  BATCH = 32

  # Writes a letter down at the beginning of each turn.
  module Noted
    class << self
      attr_accessor :file, :letter
    end

    def turn
      super do
        Noted.file&.syswrite(Noted.letter)
        yield
      end
    end
  end

  def turns = File.join(folder, "turns")

  # Those since both have had one: whoever begins first may have many alone.
  def turns_of_both
    all = File.read(turns)
    all[[all.index("p"), all.index("w")].max..] if all.include?("p") && all.include?("w")
  end

  # A process that takes turns until there were enough of all together.
  def taking_turns(letter, gate)
    forked do
      gate.last.close
      Sqlite.const_get(:LockFile).prepend(Noted)
      own = Sqlite.new(path)
      own.stats
      Noted.letter = letter
      gate.first.read # both begin at once
      Noted.file = File.open(turns, File::WRONLY | File::APPEND | File::CREAT)
      yield own until turns_of_both.to_s.size >= TURNS
    end
  end

  def work(own)
    fetched = own.fetch(NODE, ["default"], BATCH)
    own.ack(NODE, fetched.map { |one| Storage::Ack.new(queue: one.queue, token: one.token, jid: jids([one]).first) })
  end

  # By what SQLite does for itself, who pushes takes nearly all of them. What it pushes is made before, or it would ask for few.
  def test_a_process_that_pushes_and_one_that_works_both_have_turns
    storage.extend([NODE], 600)
    storage.close
    gate = IO.pipe
    batches = Array.new(TURNS) { |number| Array.new(BATCH) { |each| push_of("j#{number}-#{each}") } }.cycle
    pids = [taking_turns("p", gate) { |own| own.push(batches.next) },
            taking_turns("w", gate) { |own| work(own) }]
    gate.each(&:close)
    assert_equal [true, true], pids.map { |pid| status_of(pid).success? }
    shares = turns_of_both.each_char.first(TURNS).tally
    assert_operator shares.values_at("p", "w").map(&:to_i).min, :>=, TURNS / 4, shares
    assert_equal [0, [["ok"]]], [storage.stats[:in_flight], query("PRAGMA integrity_check")]
    assert_operator storage.stats[:processed], :>, 0
  end
end
