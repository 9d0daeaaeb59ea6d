# frozen_string_literal: true

require_relative "../runtime/test/support/seeds"

# Tests that are held up at random lines, as on a machine that has no processor for them just then: see
# runtime/test/support/held_up.rb.

# The files that are left out, unless FILES names them, and why.
HELD_UP_NEVER = { %r{/test/(house|setup)/} => "they judge files and scripts, and wait for nothing",
                  /^# pass: collections$/ => "they collect at every allocation, and wait for nothing" }.freeze

# How many files of the day are held up where nobody knows which have changed.
HELD_UP_A_DAY = 12

def held_up_seed = ENV.fetch("SEED") { Seeds.of_the_day(1, env: {}).first }.to_s

def held_up_files
  named = ENV.fetch("FILES", "").split(/[\s,]+/)
  return some(named.flat_map { |pattern| FileList[pattern].to_a }) if named.any?

  all = RUNTIME_TESTS + JOBS_TESTS + POSTGRES_TESTS + HTTP_TESTS
  left_out, files = all.map { |path| [path, held_up_never(path)] }.partition(&:last)
  left_out.group_by(&:last).each { |why, paths| puts "Not held up, for #{why}: #{paths.map(&:first).join(" ")}" }
  files.map(&:first)
end

def held_up_never(path)
  text = "#{path}\n#{File.read(path)}"
  HELD_UP_NEVER.find { |pattern, _| text.match?(pattern) }&.last
end

desc "Tests that are held up at random lines, those of SEED=n or of the day's seed: FILES=a,b or all of runtime, jobs, " \
     "Postgres, HTTP"
test_passes(:held_up, :compile) do
  held_up_files.group_by { |path| path[%r{\A\w+}] }.flat_map do |gem, files|
    split_passes("#{gem}, held up by seed #{held_up_seed}", files, { "RINGSPUN_HELD_UP" => held_up_seed })
  end
end

desc "The same with the test files that have changed, or some of the day's where nobody knows which have"
test_passes(:held_up_changed, :compile) do
  files = held_up_files.to_a - RAILS_TESTS.to_a
  changed = selection.changed(files) || files.sample(HELD_UP_A_DAY, random: Random.new(held_up_seed.to_i))
  next [] if changed.empty?

  [test_pass("held up by seed #{held_up_seed}", changed, { "RINGSPUN_HELD_UP" => held_up_seed })]
end
