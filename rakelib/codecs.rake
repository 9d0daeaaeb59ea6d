# frozen_string_literal: true

# The codecs of the gems that speak a protocol. They are C that needs neither Ruby nor Ringspun, and neither do their tests.

require "rake/clean"

# The folder with `codec` in it, that of its tests, and where its programs are built.
Codec = Data.define(:sources, :tests, :built) do
  def codec = FileList["#{sources}/codec/*.c"].sort
  def headers = FileList["#{sources}/codec/*.h", "#{tests}/*.h", "engine/{test,include}/**/*.h"]
  def programs = FileList["#{tests}/test_*.c"].sort
  def fuzzer = "#{tests}/fuzz.c"
  def common = %W[-std=c11 -Wall -Wextra -Werror -g -I#{sources} -Iengine/test -Iengine/include]
  def checked = common + %w[-O1 -DRS_CHECKED -fsanitize=address,undefined -fno-sanitize-recover=all]
  # As in the extension of a gem: what bytes of a peer do there, without a check or a sanitizer that stops them.
  def released = [*common, "-O3"]
  def program(source) = "#{built}/#{source.pathmap("%n")}"
  def released_program(source) = "#{program(source)}_released"
end

CODECS = {
  "Postgres" => Codec.new("postgres/ext/ringspun_postgres", "postgres/test/codec", "tmp/codec"),
  "HTTP" => Codec.new("http/ext/ringspun_http", "http/test/codec", "tmp/http_codec")
}.freeze

CODECS.each_value do |codec|
  CLEAN.include(codec.built)
  directory codec.built
end

# An object at a time, for only such a command is known to ccache, and so that programs share those of the codec.
def codec_object(codec, source, name, flags)
  object = "#{codec.built}/#{source.pathmap("%n")}#{name}.o"
  return object if Rake::Task.task_defined?(object)

  file object => [source, *codec.headers, codec.built, __FILE__] do
    sh "gcc", *flags, "-c", source, "-o", object, verbose: false
  end
  object
end

def codec_file(codec, program, source, name, flags)
  objects = [source, *codec.codec].map { |path| codec_object(codec, path, name, flags) }
  file program => objects do
    sh "gcc", *flags, *objects, "-o", program, verbose: false
  end
end

CODECS.each_value do |codec|
  FileList["#{codec.tests}/*.c"].each do |source|
    codec_file(codec, codec.program(source), source, "_checked", codec.checked)
  end
  codec_file(codec, codec.released_program(codec.fuzzer), codec.fuzzer, "_released", codec.released)
end

# The task of one of them.
def codec_passes(task, protocol)
  codec = CODECS.fetch(protocol)
  programs = [*codec.programs, codec.fuzzer].map { |source| codec.program(source) }
  test_passes(task, *programs, codec.released_program(codec.fuzzer)) do
    abort "no test ran: there is no #{codec.tests}/test_*.c" if codec.programs.empty?

    chosen = ENV["SEED"] ? ["--seed", ENV["SEED"]] : ["--seconds", ENV.fetch("SECONDS") { ENV["SHORT"] ? "6" : "20" }]
    [pass("hostile bytes for #{protocol}", codec.program(codec.fuzzer), *chosen),
     pass("hostile bytes for #{protocol}, as released", codec.released_program(codec.fuzzer), *chosen),
     *codec.programs.map { |source| pass("the #{protocol} protocol, #{source.pathmap("%n")}", codec.program(source)) }]
  end
end

desc "The Postgres protocol: its C tests, and bytes of a hostile server for SECONDS=20 (SHORT=1: 6), or those of SEED=n again"
codec_passes(:codec, "Postgres")

desc "HTTP/1.1 as bytes: its C tests, and bytes of hostile peers for SECONDS=20 (SHORT=1: 6), or those of SEED=n again"
codec_passes(:http_codec, "HTTP")
