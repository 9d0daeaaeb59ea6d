# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "minitest/autorun"
require "stringio"
require "bench"
require "bench/payload"

module BenchTest
  FIXTURES = File.expand_path("support", __dir__)

  # The real tables, loaded once for all tests.
  def self.tables
    Bench.load_tables if Bench.tables.empty?
    Bench.tables
  end

  # A table that exists for a test only; nothing of it runs.
  def self.table(name = "sample", &)
    Bench::Table.declare(name, File.join(FIXTURES, "none.rb"), &)
  end

  # What a child would answer.
  def self.sample(user: 1.0, system: 0.5, real: 2.0, **rest)
    { "user" => user, "system" => system, "real" => real, "notes" => {}, "proof" => {}, **rest.transform_keys(&:to_s) }
  end

  # A table with two rows and all kinds of contenders.
  def self.usual_table(*targets, backends: %w[uring])
    table("usual") do
      title "Usual work"
      row "N=1", groups: 1
      row "N=2", groups: 2
      contender("threads") {}
      contender("async") {}
      contender("ringspun") {}
      floor("stream.c") { |**| [] }
      targets(*targets)
    end.narrowed(backends:)
  end

  # A result of it: contender => seconds of user time, one or several, the same in each row; system time is zero and
  # real time equals user time. A Hash is a sample without numbers.
  def self.result(table, **seconds)
    Bench::Result.new(table).tap do |result|
      result.rows.product(table.contenders) do |row, contender|
        [seconds.fetch(contender.name.to_sym, 1.0)].flatten.each { |value| row.add(contender, sample_of(value)) }
      end
    end
  end

  def self.sample_of(value)
    value.is_a?(Hash) ? value : sample(user: value, system: 0.0, real: value)
  end

  # Stands in for Bench::Facts, which asks the machine.
  Facts = Data.define(:to_h, :warning) do
    def self.usual
      new(to_h: { cpu: "a CPU", cores: 2, kernel: "Linux 6", ruby: "ruby 3.3", async: "2.46.0", ringspun: "0.1" },
          warning: nil)
    end
  end

  def self.options(*arguments) = Bench::Options.parse(arguments, table_names: %w[pipe mutex_cpu mutex_io])
end
