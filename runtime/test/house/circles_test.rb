# frozen_string_literal: true

require "minitest/autorun"
require_relative "houses"

# No circle of files, in a room or between rooms. Needs neither the extensions nor test_helper.
class CirclesTest < Minitest::Test
  House.all.each do |house|
    define_method("test_no_circle_of_files_in_#{house.folder}") { assert_empty house.faults, "see rake house:circles" }
  end

  def test_a_circle_of_files_of_c_is_found_by_calls_and_by_tables
    texts = { "core/a.h" => "int rs_a(void);", "core/a.c" => "#include \"b.h\"\nint rs_a(void) { return rs_b(); }",
              "core/b.h" => "int rs_b(void);\nextern const int rs_table[];",
              "core/b.c" => "#include \"c.h\"\nconst int rs_table[1] = {1};\nint rs_b(void) { return rs_c(); }",
              "core/c.h" => "int rs_c(void);", "core/c.c" => "#include \"b.h\"\nint rs_c(void) { return rs_table[0]; }" }
    assert_equal ["core/b -> core/c (rs_c) closes a circle"], faults(texts)
    assert_equal [%w[core/b core/c]], House.new("engine", texts).circles.found
    texts["core/c.c"] = "#include \"b.h\"\nint rs_c(void) { return 1; }"
    assert_empty faults(texts)
  end

  def test_a_circle_through_an_inline_function_is_found_and_one_of_declarations_is_none
    texts = { "core/a.h" => "static inline int rs_a(void) {\n    return rs_b();\n}\nint rs_c(void);",
              "core/b.c" => "int rs_b(void) { return 1; }", "core/c.c" => "int rs_c(void) { return rs_a(); }" }
    assert_empty faults(texts)
    texts["core/b.c"] = "int rs_b(void) { return rs_a(); }"
    assert_equal 1, faults(texts).size
  end

  # Nor are types, functions that have a name twice because they are a file's own, and members of structs.
  def test_what_is_a_files_own_is_used_by_no_other
    texts = { "core/a.c" => "int rs_a(x *x) { return x->rs_b; }\nstatic int rs_c(void) { return 1; }",
              "core/b.c" => "int rs_b(void) { return rs_a(); }", "core/c.c" => "int rs_c(void) { return rs_a(); }" }
    assert_empty faults(texts)
  end

  def test_a_circle_of_headers_is_found
    texts = { "core/a.h" => "#include \"b.h\"", "core/b.h" => "#include \"core/a.h\"", "core/b.c" => "#include \"a.h\"" }
    assert_match(/core\/[ab].h -> core\/[ab].h \(core/, faults(texts).join)
    assert_empty faults(texts.merge("core/b.h" => ""))
  end

  def test_a_circle_of_files_of_ruby_is_found_by_constants_by_methods_of_modules_and_by_what_opens_a_class_again
    by_constant = { "a.rb" => "class A; def x = B::Inner.new; end", "b.rb" => "module B; class Inner < A; end; end" }
    assert_equal ["a -> b (B::Inner) closes a circle"], faults(by_constant)
    by_method = { "a.rb" => "module J; class A; def x = J.one; end; end", "one.rb" => "module J; def self.one = A.new; end" }
    assert_equal ["j/a -> one (J.one) closes a circle"], faults(by_method.transform_keys { |path| path.sub("a.rb", "j/a.rb") })
    opened = { "a.rb" => "class A; def x = B.new; end", "b.rb" => "class B; end; class A; def y = 1; end" }
    assert_equal ["a -> b (B) closes a circle"], faults(opened)
  end

  def test_a_namespace_and_a_library_s_own_module_are_no_use_of_who_opened_them_first
    texts = { "j.rb" => "module J; def self.now = 1; end; class J::Worker; LIMIT = 1; def x = Run.new; end",
              "worker/run.rb" => "module J; class Worker; class Run; def x = J.soon; end; end; end",
              "soon.rb" => "module J; def self.soon = now + Worker::Run::X; end" }
    assert_empty faults(texts)
  end

  def test_a_door_that_requires_what_names_it_is_no_circle_and_two_that_require_each_other_are
    texts = { "j.rb" => "require_relative 'j/a'\nmodule J; LIMIT = 1; end",
              "j/a.rb" => "module J; class A; def x = LIMIT; end; end" }
    assert_empty faults(texts)
    assert_match(/requir/, faults(texts.merge("j/a.rb" => "require 'j'")).join)
  end

  def test_few_arrows_run_back
    all = %w[a b c d e].permutation(2).select { |from, to| from > to }
    circles = Circles.new(%w[a b c d e].to_h { |from| [from, all.select { |one, _| one == from }.to_h { |_, to| [to, [to]] }] })
    assert_empty circles.back
    assert_equal [%w[a e]], circles.without([]).tap { |copy| copy.send(:add, "a", "e") }.back
  end

  def test_the_table_counts_by_room
    texts = { "core/a.c" => "int rs_a(void) { return rs_b() + rs_d(); }", "core/b.c" => "int rs_b(void) { return rs_a(); }",
              "io/c.c" => "int rs_c(void) { return rs_a(); }", "d.c" => "int rs_d(void) { return rs_c(); }" }
    assert_equal [["core", 2, 2, 1, [2]], ["d", 1, 0, 0, []], ["io", 1, 0, 0, []], ["between rooms", 4, 3, 1, [3]],
                  ["all", 4, 5, 2, [4]]], House.new("engine", texts).table
  end

  private

  def faults(texts) = House.new("engine", texts).faults
end
