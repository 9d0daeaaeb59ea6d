# frozen_string_literal: true

# The codec of the Postgres client. It is C that needs neither Ruby nor Ringspun, and neither do its tests.

require "rake/clean"

POSTGRES_DIR = "postgres/ext/ringspun_postgres"
CODEC_SOURCES = FileList["#{POSTGRES_DIR}/codec/*.c"].sort
CODEC_TESTS = FileList["postgres/test/codec/test_*.c"].sort
CODEC_FUZZER = "postgres/test/codec/fuzz.c"
CODEC_COMMON = %W[-std=c11 -Wall -Wextra -Werror -g -I#{POSTGRES_DIR} -Iengine/test -Iengine/include].freeze
CODEC_CHECKED = (CODEC_COMMON + %w[-O1 -DRS_CHECKED -fsanitize=address,undefined -fno-sanitize-recover=all]).freeze
# As in the extension of a gem: what bytes of a server do there, without a check or a sanitizer that stops them.
CODEC_RELEASED = [*CODEC_COMMON, "-O3"].freeze

CLEAN.include("tmp/codec")
directory "tmp/codec"

def codec_program(source) = "tmp/codec/#{source.pathmap("%n")}"
def released_codec_program(source) = "#{codec_program(source)}_released"

# An object at a time, for only such a command is known to ccache, and so that programs share those of the codec.
def codec_object(source, name, flags)
  object = "tmp/codec/#{source.pathmap("%n")}#{name}.o"
  return object if Rake::Task.task_defined?(object)

  file object => [source, *FileList["#{POSTGRES_DIR}/codec/*.h", "engine/{test,include}/**/*.h"], "tmp/codec", __FILE__] do
    sh "gcc", *flags, "-c", source, "-o", object, verbose: false
  end
  object
end

def codec_file(program, source, name, flags)
  objects = [source, *CODEC_SOURCES].map { |path| codec_object(path, name, flags) }
  file program => objects do
    sh "gcc", *flags, *objects, "-o", program, verbose: false
  end
end

[*CODEC_TESTS, CODEC_FUZZER].each { |source| codec_file(codec_program(source), source, "_checked", CODEC_CHECKED) }
codec_file(released_codec_program(CODEC_FUZZER), CODEC_FUZZER, "_released", CODEC_RELEASED)

desc "The Postgres protocol: its C tests, and bytes of a hostile server for SECONDS=20 (SHORT=1: 6), or those of SEED=n again"
test_passes(:codec, *[*CODEC_TESTS, CODEC_FUZZER].map { |source| codec_program(source) },
            released_codec_program(CODEC_FUZZER)) do
  abort "no test ran: there is no postgres/test/codec/test_*.c" if CODEC_TESTS.empty?

  chosen = ENV["SEED"] ? ["--seed", ENV["SEED"]] : ["--seconds", ENV.fetch("SECONDS") { ENV["SHORT"] ? "6" : "20" }]
  [pass("hostile bytes for Postgres", codec_program(CODEC_FUZZER), *chosen),
   pass("hostile bytes for Postgres, as released", released_codec_program(CODEC_FUZZER), *chosen),
   *CODEC_TESTS.map { |source| pass("the Postgres protocol, #{source.pathmap("%n")}", codec_program(source)) }]
end
