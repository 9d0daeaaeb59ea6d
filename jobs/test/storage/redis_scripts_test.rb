# frozen_string_literal: true

require "jobs_helper"

# One file says what keys are called, and how a script begins that must write although memory is full.
class RedisScriptsTest < Minitest::Test
  include AnyBackend

  FOLDER = File.expand_path("../../lib/ringspun/jobs/storage/redis/scripts", __dir__)
  KEYS = "shared/keys.lua"
  # What only shared/keys.lua has: the prefix, and the guard.
  OWN = { "builds a key" => /\bARGV\[1\]/, "names a key without its prefix" => /call\('\w+', '/,
          "guards by itself" => /'HDEL', key\('ringspun:gone'/ }.freeze

  def scripts = Dir.glob("**/*.lua", base: FOLDER).sort.to_h { |name| [name, File.read(File.join(FOLDER, name))] }

  def offences(texts)
    texts.flat_map do |name, text|
      found = OWN.filter_map { |what, pattern| what if text.match?(pattern) }
      found << "is without keys" unless name.start_with?("shared/") || text.match?(/\A-- with: keys\b/)
      found.map { |what| "#{name} #{what}" }
    end
  end

  def test_no_script_builds_keys_or_guards_by_itself
    assert_includes scripts, KEYS
    assert_operator scripts.size, :>, 15
    assert_empty offences(scripts.except(KEYS))
  end

  def test_one_that_does_is_found
    assert_equal ["a.lua builds a key", "a.lua is without keys"], offences("a.lua" => "redis.call('GET', ARGV[1] .. 'a')")
    assert_equal ["a.lua names a key without its prefix"], offences("a.lua" => "-- with: keys\nredis.pcall('GET', 'a')")
    assert_equal ["a.lua guards by itself"],
                 offences("a.lua" => "-- with: keys clock\nredis.call('HDEL', key('ringspun:gone'), '')")
  end

  def test_comments_are_not_sent
    _, text, = Ringspun::Jobs::Storage::Redis.const_get(:Script).then { |script| script.whole(script[:register].command) }
    refute_match(/--|^$/, text)
    assert_operator text.bytesize, :<, 1000
  end
end
