# frozen_string_literal: true

require "jobs_helper"

class WireTest < Minitest::Test
  include AnyBackend

  Wire = Ringspun::Jobs::Wire

  ENTRY = '{"class":"Mail","args":[1,"a"],"queue":"default","jid":"0123456789abcdef01234567","tags":["x"],"retry":true}'

  def test_unknown_fields_are_kept
    job = Wire.parse(ENTRY)
    assert_equal ["x"], job["tags"]
    assert_equal ENTRY, Wire.dump(job)
  end

  def test_what_is_no_job_is_refused
    refused = { "" => /no JSON/, "[]" => /no JSON object/, "{" => /no JSON/, "\xff" => /no JSON/,
                ENTRY.sub('[1,"a"]', "1") => /args is 1/, ENTRY.sub('"jid"', '"id"') => /jid is missing/,
                ENTRY.sub('"Mail"', "null") => /class is nil/ }
    refused.each do |entry, reason|
      error = assert_raises(Ringspun::Jobs::MalformedEntryError, entry) { Wire.parse(entry) }
      assert_match reason, error.message
      assert_match reason, Wire.fault(entry).message
      assert_equal [nil, nil, "default"], [Wire.read(entry), Wire.jid(entry), Wire.queue_of(entry)]
    end
    assert_equal %w[0123456789abcdef01234567 q], [Wire.jid(ENTRY), Wire.queue_of(ENTRY.sub('"default"', '"q"'))]
    assert_equal 'the queue "ringspun-quarantine" is reserved', Wire.fault(ENTRY.sub("default", Wire::QUARANTINE)).message
  end

  def test_an_entry_is_told_once_when_it_was_enqueued
    told = Wire.enqueued(ENTRY, Wire.parse(ENTRY), 1.5)
    job = { "enqueued_at" => 1.5, **Wire.parse(ENTRY) }
    assert_equal [job, told], [Wire.parse(told), Wire.enqueued(told, job, 2.5)]
  end

  def test_of_two_fields_of_one_name_the_last_one_counts
    entry = '{"class":"A","jid":"1","args":[],"args":[2]}'
    assert_equal [2], Wire.parse(entry)["args"]
    assert_equal [2], Wire.parse_to_change(entry)["args"]
  end

  def test_times_are_read_by_their_size
    assert_in_delta 1_795_288_827.25, Wire.seconds(1_795_288_827.25)
    assert_in_delta 1_795_288_827.0, Wire.seconds(1_795_288_827)
    assert_in_delta 1_795_288_827.25, Wire.seconds(1_795_288_827_250)
    assert_nil Wire.seconds("yesterday")
  end

  def test_times_are_written_so_that_everybody_reads_them
    assert_equal "1795288827.0", JSON.generate(Wire.time(1_795_288_827))
    assert_equal "1795288827250", JSON.generate(Wire.time(1_795_288_827.25, milliseconds: true))
  end

  # A trailing zero, and Sidekiq would not find the entry again.
  def test_the_present_is_written_as_json_writes_it
    [1_795_288_827_000, 1_795_288_827_120, 1_795_288_827_123, 1_795_288_827_001].each do |time|
      text = Ringspun::Jobs.const_get(:Ids).text_of(time, false)
      assert_equal text, JSON.generate(JSON.parse(text))
      assert_match(/\A\d+\.\d+\z/, text)
      assert_in_delta time / 1000.0, Float(text), 0.0001
    end
  end

  def test_no_jid_comes_twice
    jids = Array.new(1000) { Wire.new_jid }
    assert_equal 1000, jids.uniq.size
    jids.each { |jid| assert_match(/\A\h{24}\z/, jid) }
  end
end
