# frozen_string_literal: true

require "bench/libpq_program"

module Bench
  # What the table of COPY copies: rows of an Integer, a String and a Time.
  module Copies
    TABLE = "copied"
    COLUMNS = "id, name, at"
    IN = "copy #{TABLE} from stdin".freeze
    CHUNK = 65_536

    module_function

    # So many rows, as Arrays.
    def rows(count)
      @rows ||= {}
      @rows[count] ||= Array.new(count) do |id|
        [id, format("resource %08d", id), Time.at(1_577_836_800 + (60 * id), id, :usec).utc]
      end
    end

    # The same as texts of 64 KB. Lines are cut anywhere.
    def chunks(count)
      @chunks ||= {}
      @chunks[count] ||= begin
        text = rows(count).map { |id, name, at| "#{id}\t#{name}\t#{at.strftime("%F %T.%6N+00")}\n" }.join
        Array.new(text.bytesize.ceildiv(CHUNK)) { |place| text.byteslice(place * CHUNK, CHUNK) }
      end
    end

    # Of the table that the parent has filled.
    def out(count) = "copy (select #{COLUMNS} from #{source(count)}) to stdout"

    def source(count) = "#{TABLE}_#{count}"

    # Called in the process that has started the cluster.
    def prepare(count)
      @prepared ||= {}
      @prepared[count] ||= [
        "create unlogged table if not exists #{TABLE} (id int, name text, at timestamptz)",
        "create table #{source(count)} as select i as id, 'resource ' || lpad(i::text, 8, '0') as name, " \
        "timestamptz '2020-01-01 00:00+00' + i * interval '1 minute' + i * interval '1 us' as at " \
        "from generate_series(0, #{count - 1}) i",
        "vacuum (freeze, analyze) #{source(count)}"
      ].each { |sql| PostgresServer.start.ask(sql) }
    end

    # Into an empty table.
    def measure(meter, times, rows, &)
      PostgresServer.start.ask("truncate #{TABLE}")
      meter.operations = times * rows
      PostgresServer.start.measure(meter) { times.times.sum(&) }
    end

    # What the gem pg has for such rows.
    def encoder
      coders = [PG::TextEncoder::Integer.new, nil, PG::TextEncoder::TimestampUtc.new]
      PG::TextEncoder::CopyRow.new(type_map: PG::TypeMapByColumn.new(coders))
    end

    def decoder
      coders = [PG::TextDecoder::Integer.new, nil, PG::TextDecoder::TimestampWithTimeZone.new]
      PG::TextDecoder::CopyRow.new(type_map: PG::TypeMapByColumn.new(coders))
    end
  end
end
