# frozen_string_literal: true

require "minitest/autorun"
require_relative "constants"

# Numbers say why they are what they are. Needs neither the extensions nor test_helper.
class ConstantsTest < Minitest::Test
  ROOT = File.expand_path("../../..", __dir__)
  FILES = "{engine/{src,include},runtime/ext/ringspun/binding,mruby/src,{postgres,http}/ext," \
          "{runtime,postgres,jobs,http}/lib}/**/*.{c,h,rb}"

  def test_every_number_with_a_name_has_a_reason_beside_it
    files = Dir.glob(FILES, base: ROOT).sort
    assert_equal %w[engine http jobs mruby postgres runtime], files.map { |file| file[/\w+/] }.uniq
    assert_empty(files.flat_map do |file|
      Constants.silent(file, File.read(File.join(ROOT, file))).map { |line| "#{file}:#{line}" }
    end)
  end

  def test_a_number_without_a_reason_is_found
    assert_equal ["1: #define ROOM 4096"], silent("#define ROOM 4096")
    assert_equal ["2: # define ROOM (4 << 20)"], silent("int x; /* a comment of something else */\n# define ROOM (4 << 20)")
    assert_equal ["3: static const int a = B(5);"], silent("/* Far */\n\nstatic const int a = B(5);")
    assert_equal ["3: #define B 5"], silent("#define A 4 /* its own */\n\n#define B 5")
    assert_equal ["2: #define B 5"], silent("#define A 4 /* its own */\n#define B 5")
    assert_equal ["2: ROOM = 4_096"], silent("class A\n  ROOM = 4_096", "a.rb")
    assert_equal ["3: ROOM = 4 * 1024"], silent("# Far.\n\nROOM = 4 * 1024", "a.rb")
  end

  def test_a_number_with_one_is_none
    ["/* Why. */\n#define ROOM 4096", "/* Why,\n * and why. */\n#define A 5\n#define B 6", "#define A 5 /* why */", "#define A 1",
     "#define A \"5\"", "#define A(b) (5 * (b))", "/* Why. */\nstatic const int a = 5;", "#define A RS_B2"].each do |text|
      assert_empty silent(text), text
    end
    ["# Why.\nROOM = 5\nMORE = 6", "ROOM = 5 # why", "ROOM = 1", "ROOM = [5, 6].freeze", "ROOM = Float(5)"].each do |text|
      assert_empty silent(text, "a.rb"), text
    end
  end

  private

  def silent(text, path = "a.c") = Constants.silent(path, text)
end
