# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"

# What is read of a COPY statement.
class CopyStatementTest < Minitest::Test
  Statement = Ringspun::Postgres.const_get(:CopyStatement)

  TEXT = [0, "\t", "\\N", "", ""].freeze
  CSV = [1, ",", "", '"', '"'].freeze
  BINARY = [2, "\t", "\\N", "", ""].freeze

  # What is copied, and how.
  READ = {
    "copy t from stdin" => ["t", nil, nil, TEXT],
    "COPY t FROM STDIN;" => ["t", nil, nil, TEXT],
    "/* copy (/* x */ */ copy -- to stdout\n \"from\".\"T\"\"o\" (a, \"b (\") from/**/stdin" =>
      ["\"from\".\"T\"\"o\"", "a, \"b (\"", nil, TEXT],
    "copy t(a) from stdin with (format csv)" => ["t", "a", nil, CSV],
    "copy t from stdin (format 'csv', delimiter ';', null 'x', quote '''', escape E'\\\\')" =>
      ["t", nil, nil, [1, ";", "x", "'", "\\"]],
    "copy t from stdin (format \"csv\", quote '''')" => ["t", nil, nil, [1, ",", "", "'", "'"]],
    "copy t from stdin csv delimiter as E'\\t' null 'NULL'" => ["t", nil, nil, [1, "\t", "NULL", '"', '"']],
    "copy t from stdin with csv" => ["t", nil, nil, CSV],
    "copy t from stdin delimiter '|'" => ["t", nil, nil, [0, "|", "\\N", "", ""]],
    "copy t from stdin (format text, delimiter e'\\x7c')" => ["t", nil, nil, [0, "|", "\\N", "", ""]],
    "copy t from stdin binary" => ["t", nil, nil, BINARY],
    "copy binary t from stdin" => ["t", nil, nil, BINARY],
    "copy binary from stdin" => ["binary", nil, nil, TEXT],
    "copy t (format, csv) from stdin" => ["t", "format, csv", nil, TEXT],
    "copy t from stdin where format = 'csv' and delimiter = ','" => ["t", nil, nil, TEXT]
  }.freeze

  def test_what_goes_in
    READ.each do |sql, (table, columns, query, options)|
      statement = Statement.new(sql, :in)
      read = [statement.table, statement.columns, statement.query, statement.options]
      assert_equal [table, columns, query, options], read, sql
    end
  end

  def test_what_comes_out
    { "copy (select ')' from \"to\" where a = $$ ) to stdout $$) to stdout" =>
        "select ')' from \"to\" where a = $$ ) to stdout $$",
      "copy (values (1), (2)) to stdout (format csv)" => "values (1), (2)",
      "copy (select 1 -- )\n) to stdout" => "select 1" }.each do |sql, query|
      assert_equal [nil, query], [Statement.new(sql, :out).table, Statement.new(sql, :out).query], sql
    end
    assert_equal "t", Statement.new("copy t to stdout", :out).table
  end

  def test_headers
    { "(format csv, header)" => true, "(header true)" => true, "(header false)" => false, "(format csv, header off)" => false,
      "(format csv, header match)" => true, "csv header" => true, "csv" => false,
      "(header 0, format csv)" => false }.each do |options, header|
      assert_equal header, Statement.new("copy t from stdin #{options}", :in).header, options
    end
  end

  def test_what_is_none
    { "copy t to stdout" => /copy_in is for COPY \.\.\. FROM STDIN, got: copy t to stdout/,
      "copy t from '/tmp/x'" => /copy_in is for/,
      "copy t from program 'x'" => /copy_in is for/, "select 1" => /expected a COPY statement/, "" => /expected a COPY statement/,
      "copy" => /copy_in is for/, "copy \"" => /copy_in is for/, "copy (select 1 from stdin" => /copy_in is for/,
      5 => /a String, got 5/,
      "copy t from stdin (format xml)" => /no format "xml"/ }.each do |sql, message|
      assert_match message, assert_raises(Ringspun::UsageError, sql.to_s) { Statement.new(sql, :in) }.message
    end
  end

  def test_rows_of_values_that_cannot_be_written
    { "(encoding 'latin1')" => /UTF-8/, "(delimiter 'ab')" => /one byte each/,
      "(format csv, quote 'é')" => /one byte each/ }.each do |options, message|
      statement = Statement.new("copy t from stdin #{options}", :in)
      assert_match message, assert_raises(Ringspun::UsageError) { statement.check_rows }.message
    end
    assert_nil Statement.new("copy t from stdin (encoding 'UTF8')", :in).check_rows
  end
end
