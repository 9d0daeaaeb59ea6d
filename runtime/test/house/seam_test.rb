# frozen_string_literal: true

require "minitest/autorun"
require "rbconfig"
require_relative "seam"

# The binding assigns no field of the engine: it asks by a function, so that the next binding need not repeat what this one knows.
# Needs neither the extension nor test_helper.
class SeamTest < Minitest::Test
  FOLDER = File.expand_path("../../ext/ringspun", __dir__)

  def self.binding
    rubys = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |folder| "-I#{folder}" }
    @binding ||= Seam.new(FOLDER, rubys)
  end

  def test_the_binding_assigns_no_field_of_the_engine
    assert_empty self.class.binding.assignments
  end

  HEADER = <<~C
    /* A struct { in a comment; */
    struct rs_other;
    typedef struct { int kind; } rs_request;
    typedef struct rs_thing {
        int plain, other;       /* first; second */
        struct rs_other *first, *last;
        void *slots[4];
        void (*call)(struct rs_thing *thing);
        unsigned flag : 1;
        struct { int deep; union { int a, b; }; } inner;
        struct rs_thing *next;
    } rs_thing;
    static inline void rs_set(rs_thing *thing) { thing->plain = 1; }
  C

  def test_each_way_to_assign_a_field_of_the_engine_is_found
    found = assigned(<<~C)
      void bad(rs_thing *thing, holder *held, rs_thing by_value) {
          thing->plain = 1;
          thing->next->other |= 1;
          thing->last = 0;
          thing->slots[0] = 0;
          thing->call = 0;
          thing->flag = 1;
          *thing = (rs_thing){0};
          held->thing.plain++;
          --by_value.plain;
          held->things[1].slots[1] = 0;
          thing->inner.deep = 1;
          thing->inner = by_value.inner;
      }
    C
    assert_equal %w[plain], found["binding/own.h"]
    assert_equal %w[*thing call deep flag held->things[1].slots[1] inner last other plain plain plain thing->slots[0]],
                 found["binding/room/bad.c"]
  end

  def test_what_is_no_assignment_of_a_field_is_none
    assert_equal({ "binding/own.h" => %w[plain] }, assigned(<<~C))
      int good(rs_thing *thing, holder *held, rs_request *request) {
          rs_set(thing);
          rs_request own = {.kind = 1};
          own.kind = request->kind = thing->plain;
          rs_thing fresh = {.plain = 1};
          held->number = fresh.plain;
          held->to = thing;
          for (thing = held->to; thing; thing = thing->next) {}
          return thing->plain == 1;
      }
    C
  end

  def test_a_source_or_a_header_that_cannot_be_read_is_an_error
    assert_raises(ArgumentError) { assigned("int bad(rs_stranger *thing);") }
    ["struct rs_a { int b; };", "typedef struct { int *a, b; } rs_a;"].each do |text|
      assert_raises(ArgumentError, text) { Seam.with_constant_members(text) }
    end
  end

  private

  OWN = "typedef struct { int number; rs_thing *to, thing, things[2]; } holder;\n" \
        "static inline void own(holder *held) { held->thing.plain = 1; }\n"

  # What is found in that source of a binding that has a struct with the engine's in it.
  def assigned(source) = seam_over(source, HEADER, OWN).assignments

  def seam_over(source, header, own = "")
    Dir.mktmpdir do |folder|
      { "engine/include/room/thing.h" => header, "binding/room/bad.c" => "#include \"binding/own.h\"\n#{source}",
        "binding/own.h" => "#include \"room/thing.h\"\n#{own}" }.each do |name, text|
        FileUtils.mkdir_p(File.dirname(path = File.join(folder, name)))
        File.write(path, text)
      end
      Seam.new(folder).tap(&:assignments) # while there is a folder
    end
  end
end
