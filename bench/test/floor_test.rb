# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::FloorTest < Minitest::Test
  def setup
    skip "no C compiler" unless system(ENV.fetch("CC", "gcc"), "--version", out: File::NULL, err: File::NULL)
  end

  def test_stream_delivers_every_byte
    %w[pipe socketpair].product([[], ["ring"]]).each do |kind, ring|
      # 7 is no multiple of the batch.
      sample = floor_sample("stream.c", [kind, 3, 7, 1000, *ring], bytes: 3 * 7 * 1000, intact: 3)
      assert sample["unavailable"] || sample["proof"] == { "bytes" => 21_000, "intact" => 3 }, sample["failed"]
      assert_operator sample["real"], :>, 0 unless sample["unavailable"]
    end
  end

  def test_a_ring_takes_more_groups_than_it_has_entries_for
    sample = floor_sample("stream.c", ["socketpair", 50, 5, 100, "ring"], bytes: 25_000, intact: 50)
    assert sample["unavailable"] || sample["proof"]["intact"] == 50, sample["failed"]
    sample = floor_sample("messages.c", [150, 2, 64, 2, "ring"], bytes: 19_200, intact: 300)
    assert sample["unavailable"] || sample["operations"] == 300, sample["failed"]
  end

  def test_files_are_written_and_read_back
    sample = floor_sample("files.c", [2, 3, 4, 5, 100], bytes: 12_000, chunks: 120)
    assert_equal({ "bytes" => 12_000, "chunks" => 120 }, sample["proof"])
  end

  def test_messages_go_one_way_or_there_and_back
    [1, 2].product([[], ["ring"]]).each do |legs, ring|
      sample = floor_sample("messages.c", [3, 5, 64, legs, *ring], bytes: 960, intact: 15)
      assert sample["unavailable"] || sample["operations"] == 15, sample["failed"]
    end
  end

  def test_blocks_are_read_once_in_each_pass
    %w[warm cold].each do |state|
      sample = floor_sample("blocks.c", [state, 4, 20, 3], sum: 3 * 190)
      assert sample["unavailable"] || sample["operations"] == 60, sample["failed"]
    end
  end

  def test_messages_through_tls_come_back
    require "bench/tls_clients"
    sample = floor_sample("tls_messages.c", ["serve", Bench::TlsClients.pem, 3, 5, 20_000], intact: 15)
    assert sample["unavailable"] || sample["operations"] == 15, sample["failed"]
  end

  def test_connections_are_all_accepted
    sample = floor_sample("connections.c", ["serve", 640], accepted: 640)
    assert_equal 640, sample["operations"], sample["failed"]
  end

  def test_a_batch_is_received_by_the_bare_ring_and_by_the_engine
    %w[ring_batch.c engine_batch.c].product(%w[ready armed]).each do |program, state|
      sample = floor_sample(program, [state, 10], received: 320)
      refute_match(/does not compile/, sample["unavailable"].to_s)
      assert sample["unavailable"] || sample["operations"] == 320, sample["failed"]
    end
  end

  def test_a_floor_that_did_less_is_a_failure
    assert_equal "wrong result: bytes is 1000, not 2000", floor_sample("stream.c", ["pipe", 1, 1, 1000], bytes: 2000)["failed"]
  end

  def test_a_floor_that_cannot_do_its_work_is_a_failure
    assert_match(/exit 1: error: argument 3 must be a count/, floor_sample("stream.c", ["pipe", 1, 0, 1000])["failed"])
    # A chunk that no pipe can hold would block a single thread for ever; the time limit ends it.
    assert_match(/no answer/, floor_sample("stream.c", ["pipe", 1, 1, 1 << 22], time_limit: 1.0)["failed"])
  end

  def test_its_payload_is_that_of_the_contenders
    source = "#include \"measure.h\"\n#include <unistd.h>\nint main(void)\n" \
             "{ char p[300]; payload_fill(p, 300, 91); return write(3, p, 300) != 300; }\n"
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "payload.c"), source)
      program = File.join(directory, "payload")
      floor = Bench::FloorProgram::DIRECTORY
      assert system("gcc", "-I#{floor}", "-o", program, "#{program}.c", "#{floor}/measure.c")
      reader, writer = IO.pipe(binmode: true)
      assert system(program, 3 => writer)
      writer.close
      assert_equal Bench.payload(91, 300), reader.read
      reader.close
    end
  end

  def test_without_a_compiler_the_floor_is_not_available
    kept = ENV.fetch("CC", nil)
    ENV["CC"] = "no-such-compiler"
    Dir.mktmpdir do |directory|
      program = Bench::FloorProgram.new("stream.c", build_directory: directory)
      error = assert_raises(Bench::Unavailable) { program.path }
      assert_equal "no C compiler (no-such-compiler) for the floor", error.message
    end
  ensure
    ENV["CC"] = kept
  end

  private

  def floor_sample(program, arguments, time_limit: 60.0, **expected)
    table = BenchTest.table do
      proof { |**| expected }
      floor(program) { |**| arguments }
    end
    Bench::Sampler.new(time_limit:).sample(table, table.floor, {})
  end
end
